//! The forms of a script, and how each becomes a promise of its value.
//!
//! A body becomes the body of an async function; a single function is called with the input; a
//! single expression is the value; a module's value is its default export. The wrapper is on
//! separate lines, so that it moves no column. It does not begin with a parenthesis: the engine
//! would parse the whole script once more to find out whether the parenthesis begins an arrow
//! function.

use guest_common::forms::{self, Fault, readable};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Exception, Function, Module, Object, Promise, Result, Value};
use sandbox_protocol::ScriptError;

use crate::run::Run;
use crate::shape::{self, Single};
use crate::{native, place, quiet, raw};

const BODY: (&str, &str) = ("0, async function () {\n", "\n}");
const EXPRESSION: (&str, &str) = (
    "0, async function () { const airlock_value =\n",
    "\n; return airlock_value }",
);
const FUNCTION: (&str, &str) = (
    "0, async function () { const main =\n",
    "\n; return await main(input) }",
);

/// A started script.
pub(crate) enum StartedScript<'js> {
    Value(Promise<'js>),
    /// A module, whose value is its default export once it is evaluated.
    Module(Object<'js>, Promise<'js>),
}

/// Why a script cannot be started.
pub(crate) enum Unstartable {
    Syntax(Box<ScriptError>),
    Engine(Error),
}

impl From<Error> for Unstartable {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Starts the script.
pub(crate) fn start<'js>(
    ctx: &Ctx<'js>,
    script: &str,
    run: &Run,
) -> std::result::Result<StartedScript<'js>, Unstartable> {
    let script = readable(script).map_err(|fault| syntax_error(fault, run))?;
    let script = script.as_ref();
    run.script_lines.set(forms::lines(script));
    run.lines_before.set(1);
    let wrapper = match shape::detect(script, |text| parses(ctx, text)) {
        Some(Single::Function) => FUNCTION,
        Some(Single::Expression) => EXPRESSION,
        None => BODY,
    };
    match function(ctx, wrapper, script, run) {
        Ok(function) => Ok(StartedScript::Value(function.call(())?)),
        Err(error) => {
            let error = native::caught(ctx, error);
            if forms::looks_like_module(script) {
                run.lines_before.set(0);
                return start_module(ctx, script, run);
            }
            Err(explained(&error, script, run))
        }
    }
}

fn function<'js>(
    ctx: &Ctx<'js>,
    (before, after): (&str, &str),
    script: &str,
    run: &Run,
) -> Result<Function<'js>> {
    let made = raw::eval(
        ctx,
        &run.script_name.borrow(),
        format!("{before}{script}{after}"),
    )?;
    made.into_function().ok_or(Error::Unknown)
}

/// Whether a text is an expression. Compiles a function around the text, which is never called.
fn parses(ctx: &Ctx<'_>, text: &str) -> bool {
    let function = format!("0, async function () {{ return (\n{text}\n) }}");
    let made = raw::eval(ctx, "expression", function);
    if made.is_err() {
        ctx.catch();
    }
    made.is_ok()
}

fn start_module<'js>(
    ctx: &Ctx<'js>,
    script: &str,
    run: &Run,
) -> std::result::Result<StartedScript<'js>, Unstartable> {
    let name = run.script_name.borrow().clone();
    let module = raw::module(ctx, &name, script.to_owned()).map_err(|error| {
        let error = native::caught(ctx, error);
        if quiet_name(&error).as_deref() == Some("SyntaxError") {
            explained(&error, script, run)
        } else {
            Unstartable::Engine(ctx.throw(error))
        }
    })?;
    let (exports, evaluated) = raw::run_module(&module)?;
    Ok(StartedScript::Module(exports, evaluated))
}

/// Returns the value of an evaluated module: its default export, or, if that is a function, the
/// result of calling the function.
pub(crate) fn default_export<'js>(exports: &Object<'js>) -> Result<Value<'js>> {
    let ctx = exports.ctx();
    if !exports.contains_key("default")? {
        return Ok(native::undefined(ctx));
    }
    let value: Value<'js> = exports.get("default")?;
    match value.as_function() {
        Some(function) => {
            let input: Value<'js> = ctx.globals().get("input")?;
            function.call((input,))
        }
        None => Ok(value),
    }
}

fn quiet_name(error: &Value<'_>) -> Option<String> {
    quiet::text(error.as_object()?, "name", 100)
}

/// Converts the engine's error to one with a position in the script.
fn explained(error: &Value<'_>, script: &str, run: &Run) -> Unstartable {
    let message = error
        .as_object()
        .and_then(|error| quiet::text(error, "message", 500))
        .unwrap_or_else(|| "the script cannot be parsed".to_owned());
    let places = native::quietly(error.ctx(), place::of_error(error, run)).unwrap_or_default();
    let (line, column) = match places.first() {
        Some(place) => (place.line, place.column),
        // A missing part is reported at the script's end.
        None => forms::end_of(script),
    };
    let fault = Fault {
        message,
        line,
        column,
    };
    syntax_error(fault, run)
}

fn syntax_error(fault: Fault, run: &Run) -> Unstartable {
    let error = forms::syntax_error(fault, &run.script_name.borrow());
    Unstartable::Syntax(Box::new(error))
}

/// A module loader that refuses every module.
pub(crate) struct NoModules;

impl NoModules {
    fn refuse(ctx: &Ctx<'_>) -> Error {
        let message = "a script cannot import anything; servers and tools are globals";
        Exception::throw_type(ctx, message)
    }
}

impl Resolver for NoModules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _base: &str,
        _name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        Err(Self::refuse(ctx))
    }
}

impl Loader for NoModules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        Err(Self::refuse(ctx))
    }
}
