//! The forms of a script, and how each becomes one promise.
//!
//! - A body with top-level `await` and `return`: it becomes the body of an async function.
//! - One function, written as an expression or a declaration: it is called with
//!   `input`.
//! - One other expression, such as `(async () => { … })()`: its value is the
//!   script's value.
//! - A module with `export default`: the value, or the function called with `input`.
//!
//! The wrapper is on a line before the script. So columns are the script's own, and line numbers
//! are one too high; [`crate::place`] corrects them.

use std::path::Path;

use boa_ast::statement::Statement;
use boa_ast::{Expression, Position, StatementListItem};
use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{
    Context, JsError, JsNativeError, JsObject, JsResult, JsValue, Module, Script, Source,
};
use boa_interner::Interner;
use boa_parser::{Error as ParseError, Parser, Source as ParserSource};
use guest_common::forms::{self, EXPRESSION, FUNCTION, Fault, readable};
use sandbox_protocol::ScriptError;

use crate::jobs;
use crate::run::Run;

/// The inner block makes a repeated declaration an error, as everywhere else; the engine accepts a
/// repeated declaration directly in a function's body.
const BODY: (&str, &str) = ("(async function () {{\n", "\n}})");

/// Why a script cannot be started.
pub(crate) enum Unstartable {
    Syntax(ScriptError),
    Engine(JsError),
}

impl From<JsError> for Unstartable {
    fn from(error: JsError) -> Self {
        Self::Engine(error)
    }
}

/// Starts the script and returns the promise of its value.
pub(crate) fn start(
    script: &str,
    run: &Run,
    context: &mut Context,
) -> Result<JsPromise, Unstartable> {
    let script = readable(script).map_err(|fault| syntax_error(fault, run))?;
    let script = script.as_ref();
    run.script_lines.set(forms::lines(script));
    let wrapper = match single_expression(script) {
        Some(Single::Function) => FUNCTION,
        Some(Single::Expression) => EXPRESSION,
        None => BODY,
    };
    run.lines_before.set(1);
    match parse(wrapper, script, run, context) {
        Ok(script) => {
            let function = callable(&script.evaluate(context)?)?;
            let promise = function.call(&JsValue::undefined(), &[], context)?;
            Ok(JsPromise::resolve(promise, context)?)
        }
        Err(_) if forms::looks_like_module(script) => {
            run.lines_before.set(0);
            start_module(script, run, context)
        }
        Err(error) => Err(explain(script, &error, run, context)),
    }
}

fn callable(value: &JsValue) -> JsResult<JsObject> {
    value.as_callable().ok_or_else(|| {
        JsNativeError::error()
            .with_message("the script is not a function")
            .into()
    })
}

fn parse(
    (before, after): (&str, &str),
    script: &str,
    run: &Run,
    context: &mut Context,
) -> JsResult<Script> {
    let text = format!("{before}{script}{after}");
    let name = run.script_name.borrow();
    let source = Source::from_bytes(&text).with_path(Path::new(name.as_str()));
    Script::parse(source, None, context)
}

enum Single {
    Function,
    Expression,
}

/// Returns the kind of a script that is one expression and nothing else.
fn single_expression(script: &str) -> Option<Single> {
    if !forms::may_be_expression(script) {
        return None;
    }
    let mut interner = Interner::default();
    let Ok(body) = parse_body(script, &mut interner) else {
        return nameless_function(script);
    };
    let [item] = body.statements() else {
        return None;
    };
    match item {
        StatementListItem::Declaration(declaration) => match declaration.as_ref() {
            boa_ast::Declaration::FunctionDeclaration(_)
            | boa_ast::Declaration::AsyncFunctionDeclaration(_) => Some(Single::Function),
            _ => None,
        },
        StatementListItem::Statement(statement) => match statement.as_ref() {
            Statement::Expression(expression) => of_expression(expression),
            _ => None,
        },
    }
}

/// Recognises a script that is only `function () {}`, which is not a valid statement but has a
/// clear meaning.
fn nameless_function(script: &str) -> Option<Single> {
    let start = forms::after_comments(script);
    if !start.starts_with("function") && !start.starts_with("async") {
        return None;
    }
    let in_brackets = format!("({}\n)", script.trim_end().trim_end_matches(';'));
    let mut interner = Interner::default();
    let body = parse_body(&in_brackets, &mut interner).ok()?;
    match body.statements() {
        [StatementListItem::Statement(statement)] => match statement.as_ref() {
            Statement::Expression(expression) => {
                of_expression(expression).filter(|single| matches!(single, Single::Function))
            }
            _ => None,
        },
        _ => None,
    }
}

fn of_expression(expression: &Expression) -> Option<Single> {
    match expression {
        Expression::Parenthesized(inner) => match of_expression(inner.expression()) {
            Some(Single::Function) => Some(Single::Function),
            _ => Some(Single::Expression),
        },
        Expression::FunctionExpression(_)
        | Expression::ArrowFunction(_)
        | Expression::AsyncArrowFunction(_)
        | Expression::AsyncFunctionExpression(_) => Some(Single::Function),
        // Inside the wrapper, `a, b` needs parentheses, and a directive is not a value.
        Expression::Binary(binary)
            if binary.op() == boa_ast::expression::operator::binary::BinaryOp::Comma =>
        {
            None
        }
        _ => Some(Single::Expression),
    }
}

fn parse_body(
    script: &str,
    interner: &mut Interner,
) -> Result<boa_ast::function::FunctionBody, ParseError> {
    let mut parser = Parser::new(ParserSource::from_bytes(script));
    parser.set_strict();
    parser.parse_function_body(interner, false, true)
}

fn start_module(script: &str, run: &Run, context: &mut Context) -> Result<JsPromise, Unstartable> {
    let name = run.script_name.borrow().clone();
    let bound = bind_async_default(script);
    let text = bound.as_deref().unwrap_or(script);
    let source = Source::from_bytes(text).with_path(Path::new(&name));
    let module = match Module::parse(source, None, context) {
        Ok(module) => module,
        Err(error) => return Err(explain_module(script, &error, run, context)),
    };
    let evaluated = module.load_link_evaluate(context);
    jobs::drain(run, context)?;
    // A failed link rejects at once, and so does an early throw. Any other evaluation continues.
    if let PromiseState::Rejected(reason) = evaluated.state() {
        return Ok(JsPromise::reject(JsError::from_opaque(reason), context)?);
    }
    let default = crate::module_value::then_default(&evaluated, &module, context)?;
    Ok(default)
}

/// Assigns an async arrow function to a name, because the engine's parser accepts `async` after
/// `export default` only for a function declaration. The added text has a length that moves no
/// column.
pub(crate) fn bind_async_default(script: &str) -> Option<String> {
    const EXPORT: &str = "export default ";
    const BINDING: &str = "const main__ = ";
    let starts = std::iter::once(0).chain(script.match_indices('\n').map(|(at, _)| at + 1));
    let at = starts.into_iter().find(|&at| {
        let rest = script.get(at..).unwrap_or_default();
        rest.strip_prefix(EXPORT)
            .and_then(|value| value.strip_prefix("async"))
            .is_some_and(|after| !after.trim_start().starts_with("function"))
    })?;
    let (before, rest) = script.split_at_checked(at)?;
    let value = rest.strip_prefix(EXPORT)?;
    Some(format!("{before}{BINDING}{value}\nexport default main__;"))
}

/// Converts the engine's error to one with a position in the script.
fn explain(script: &str, error: &JsError, run: &Run, context: &mut Context) -> Unstartable {
    let mut interner = Interner::default();
    match parse_body(script, &mut interner) {
        Err(error) => syntax_error(parse_error(&error, script), run),
        Ok(body) => match declared_twice(&body, &interner) {
            Some(name) => {
                let (line, column) = second_declaration(script, &name).unwrap_or((0, 0));
                let message = format!("`{name}` is declared twice");
                syntax_error(
                    Fault {
                        message,
                        line,
                        column,
                    },
                    run,
                )
            }
            None => syntax_error(somewhere(engine_message(error, context)), run),
        },
    }
}

fn declared_twice(body: &boa_ast::function::FunctionBody, interner: &Interner) -> Option<String> {
    let names = boa_ast::operations::lexically_declared_names(body);
    let mut seen = rustc_hash::FxHashSet::default();
    let twice = names.into_iter().find(|name| !seen.insert(*name))?;
    Some(interner.resolve_expect(twice).to_string())
}

/// Returns the position of the second declaration of `name`.
fn second_declaration(script: &str, name: &str) -> Option<(u32, u32)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let (at, _) = script
        .match_indices(name)
        .filter(|(at, _)| {
            let before = script.get(..*at).unwrap_or_default();
            let after = script.get(at + name.len()..).unwrap_or_default();
            let keyword = before.trim_end().rsplit(|c| !is_word(c)).next();
            !before.ends_with(is_word)
                && !after.starts_with(is_word)
                && matches!(keyword, Some("let" | "const" | "class" | "function"))
        })
        .nth(1)?;
    Some(forms::end_of_prefix(script.get(..at)?))
}

fn explain_module(script: &str, error: &JsError, run: &Run, context: &mut Context) -> Unstartable {
    let mut interner = Interner::default();
    let mut parser = Parser::new(ParserSource::from_bytes(script));
    match parser.parse_module(&boa_ast::scope::Scope::new_global(), &mut interner) {
        Err(error) => syntax_error(parse_error(&error, script), run),
        Ok(_) => syntax_error(somewhere(engine_message(error, context)), run),
    }
}

fn engine_message(error: &JsError, context: &mut Context) -> String {
    error
        .try_native(context)
        .map(|native| native.message().to_owned())
        .unwrap_or_else(|_| "the script cannot be parsed".to_owned())
}

/// Converts a parser's error.
fn parse_error(error: &ParseError, script: &str) -> Fault {
    let at = |message: String, position: Position| Fault {
        message,
        line: position.line_number(),
        column: position.column_number(),
    };
    let at_end = |message: String| {
        let (line, column) = forms::end_of(script);
        Fault {
            message,
            line,
            column,
        }
    };
    match error {
        ParseError::Expected {
            expected,
            found,
            span,
            context,
        } => {
            let expected: Vec<_> = expected.iter().map(|token| format!("`{token}`")).collect();
            let expected = match expected.as_slice() {
                [one] => one.clone(),
                several => format!("one of {}", several.join(", ")),
            };
            let message = format!("expected {expected}, found `{found}` in {context}");
            at(message, span.start())
        }
        ParseError::Unexpected {
            message,
            found,
            span,
        } => {
            let message = match (found.is_empty(), message.is_empty()) {
                (false, false) => format!("unexpected `{found}`: {message}"),
                (false, true) => format!("unexpected `{found}`"),
                (true, _) => message.to_string(),
            };
            at(message, span.start())
        }
        ParseError::General { message, position } => at(message.to_string(), *position),
        ParseError::Lex {
            err: boa_parser::lexer::Error::Syntax(message, position),
        } => at(message.to_string(), *position),
        ParseError::AbruptEnd => at_end("the script ends too early".to_owned()),
        ParseError::Lex { err } => at_end(err.to_string()),
        ParseError::ScopeAnalysis { err } => somewhere((*err).to_owned()),
    }
}

fn syntax_error(fault: Fault, run: &Run) -> Unstartable {
    Unstartable::Syntax(forms::syntax_error(fault, &run.script_name.borrow()))
}

/// Returns a fault at an unknown position.
fn somewhere(message: String) -> Fault {
    Fault {
        message,
        line: 0,
        column: 0,
    }
}
