//! Regular expressions. The matcher is the engine's; this module reduces the work around it: the
//! subject is prepared once, the program is not copied, and no unused results are created. If a
//! script has changed the behaviour of an expression, the engine handles the expression.

mod program;
mod subject;
mod symbols;

use std::rc::Rc;

use boa_engine::object::builtins::{JsArray, JsRegExp};
use boa_engine::{
    Context, JsArgs, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, js_string,
};
use regress::{Match, Range};

use crate::builtin;
use crate::substring::part;
use program::{Program, Programs};
use subject::{LastSubject, Subject};

/// State that all expressions of a run share.
struct Regexes {
    programs: Programs,
    last: LastSubject,
    prototype: JsObject,
    /// The functions that an unchanged prototype has.
    exec: JsObject,
    flags: JsObject,
    constructor: JsObject,
    species: JsObject,
}

impl Regexes {
    fn of(context: &Context) -> JsResult<Rc<Self>> {
        context.get_data::<Rc<Self>>().cloned().ok_or_else(|| {
            JsError::from_native(JsNativeError::error().with_message("the guest is not set up"))
        })
    }
}

pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let prototype = builtin::prototype_of("RegExp", context)?;
    let programs = Programs::new(&prototype)?;
    let exec = builtin::replace(&prototype, js_string!("exec"), exec, context)?;
    builtin::replace(&prototype, js_string!("test"), test, context)?;
    builtin::replace(&prototype, js_string!("compile"), compile, context)?;
    symbols::install(&prototype, context)?;
    let constructor = context.intrinsics().constructors().regexp().constructor();
    let regexes = Regexes {
        programs,
        last: LastSubject::default(),
        exec,
        flags: program::getter(&prototype, "flags")?,
        species: program::getter(&constructor, boa_engine::JsSymbol::species())?,
        constructor,
        prototype,
    };
    context.insert_data(Rc::new(regexes));
    Ok(())
}

/// Returns `/source/flags` of an expression, ignoring properties that a script has overridden.
pub(crate) fn text(regex: &JsRegExp, context: &mut Context) -> JsResult<String> {
    let regexes = Regexes::of(context)?;
    regexes.programs.text(&regex.clone().into(), context)
}

/// An expression and a text, neither of them modified by the script.
struct MatchCall {
    object: JsObject,
    program: Rc<Program>,
    subject: Subject,
}

impl MatchCall {
    fn of(
        this: &JsValue,
        args: &[JsValue],
        regexes: &Regexes,
        context: &mut Context,
    ) -> JsResult<Option<Self>> {
        let (Some(object), Some(text)) = (this.as_object(), args.get_or_undefined(0).as_string())
        else {
            return Ok(None);
        };
        let Some(program) = regexes.programs.of(&object, context)? else {
            return Ok(None);
        };
        // An own property that is always data.
        if !object.get(js_string!("lastIndex"), context)?.is_number() {
            return Ok(None);
        }
        let subject = regexes.last.subject(&text);
        Ok(Some(Self {
            object,
            program,
            subject,
        }))
    }

    /// Does one match, like `exec`.
    fn step(&self, context: &mut Context) -> JsResult<Option<Match>> {
        let goes_on = self.program.global || self.program.sticky;
        let mut from = 0;
        if goes_on {
            let last = self.object.get(js_string!("lastIndex"), context)?;
            // The conversion saturates; a non-number becomes 0.
            from = last.as_number().unwrap_or(0.0) as usize;
        }
        let found = self.at_or_behind(from);
        if goes_on {
            let end = found.as_ref().map_or(0, Match::end);
            self.object
                .set(js_string!("lastIndex"), end, true, context)?;
        }
        Ok(found)
    }

    fn at_or_behind(&self, from: usize) -> Option<Match> {
        if from > self.subject.len() {
            return None;
        }
        let found = self.program.find(&self.subject, from)?;
        (!self.program.sticky || found.start() == from).then_some(found)
    }

    fn text(&self, range: Range) -> JsString {
        part(&self.subject.text, range.start, range.end)
    }

    fn text_or_undefined(&self, range: Option<Range>) -> JsValue {
        range.map_or_else(JsValue::undefined, |range| self.text(range).into())
    }

    /// Returns the named groups of a match, if it has any.
    fn named_groups(&self, found: &Match, context: &mut Context) -> JsResult<JsValue> {
        let mut named = found.named_groups().peekable();
        if named.peek().is_none() {
            return Ok(JsValue::undefined());
        }
        let groups = JsObject::with_null_proto();
        for (name, range) in named {
            let value = self.text_or_undefined(range);
            groups.create_data_property_or_throw(js_string!(name), value, context)?;
        }
        Ok(groups.into())
    }

    fn array(&self, found: &Match, context: &mut Context) -> JsResult<JsValue> {
        let texts: Vec<JsValue> = found
            .groups()
            .map(|range| self.text_or_undefined(range))
            .collect();
        let array = JsArray::from_iter(texts, context);
        let groups = self.named_groups(found, context)?;
        let properties = [
            (js_string!("index"), found.start().into()),
            (js_string!("input"), self.subject.text.clone().into()),
            (js_string!("groups"), groups),
        ];
        for (name, value) in properties {
            array.create_data_property_or_throw(name, value, context)?;
        }
        Ok(array.into())
    }
}

/// Returns an unmodified expression and a text, if `fits` accepts them too.
fn usual(
    this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
    fits: impl Fn(&Regexes, &MatchCall) -> bool,
) -> JsResult<Option<MatchCall>> {
    let regexes = Regexes::of(context)?;
    let matching = MatchCall::of(this, args, &regexes, context)?;
    Ok(matching.filter(|matching| fits(&regexes, matching)))
}

fn exec(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let has_no_more = |_: &Regexes, matching: &MatchCall| !matching.program.has_indices;
    let Some(matching) = usual(this, args, context, has_no_more)? else {
        return original.call(this, args, context);
    };
    match matching.step(context)? {
        Some(found) => matching.array(&found, context),
        None => Ok(JsValue::null()),
    }
}

fn test(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let have_exec = |regexes: &Regexes, it: &MatchCall| regexes.have_exec(&it.object);
    match usual(this, args, context, have_exec)? {
        Some(matching) => Ok(matching.step(context)?.is_some().into()),
        None => original.call(this, args, context),
    }
}

fn compile(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let compiled = original.call(this, args, context);
    Regexes::of(context)?.programs.forget();
    compiled
}
