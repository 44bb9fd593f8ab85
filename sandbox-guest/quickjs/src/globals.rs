//! The globals of a script: standard ECMAScript without access to the outside, and the few
//! additions that every guest offers. All of them are created before the image is frozen; a run
//! only adds its own stubs and input.

use std::rc::Rc;

use guest_common::prelude;
use rquickjs::context::EvalOptions;
use rquickjs::object::Property;
use rquickjs::{Ctx, Error, Function, Object, Result, Value};

use crate::intrinsics::Intrinsics;
use crate::native::{self, Native};
use crate::run::Run;
use crate::{console, failure, inspect, raw, stubs, timers, web};

/// Removes features of this engine that no script needs: compiling text, shared memory, and hooks
/// into the creation of errors.
const DOORS: &str = include_str!("doors.js");

const TIMERS: [(&str, Native, usize); 4] = [
    ("setTimeout", timers::set_timeout, 2),
    ("setInterval", timers::set_interval, 2),
    ("clearTimeout", timers::clear, 1),
    ("clearInterval", timers::clear, 1),
];

const NATIVES: [(&str, Native, usize); 4] = [
    ("print", console::print, 1),
    ("inspect", inspect, 1),
    ("stack", stack, 1),
    ("random", random, 0),
];

/// Creates the globals of a new context, and keeps the intrinsics that the guest needs.
pub(crate) fn install(ctx: &Ctx<'_>, run: &Rc<Run>) -> Result<()> {
    for timer in TIMERS {
        let function = native::function(ctx, run, timer)?;
        let plain = Property::from(function).writable().configurable();
        ctx.globals().prop(timer.0, plain)?;
    }
    raw::install_json(ctx)?;
    let natives = Object::new_proto(ctx.clone(), None)?;
    for native in NATIVES.into_iter().chain(web::NATIVES) {
        let function = native::function(ctx, run, native)?;
        natives.prop(native.0, Property::from(function).enumerable())?;
    }
    // The prelude replaces the getter of an error's `stack`.
    let kept = |prototype| Intrinsics::gather(ctx, prototype, stubs::traps(ctx, run)?);
    let early = kept(Object::new(ctx.clone())?)?;
    let mut tool_error_prototype = None;
    for (name, text) in prelude::FILES {
        let exported = load(ctx, name, text, &natives)?;
        if name == "errors.js" {
            let class = exported.into_object().ok_or(Error::Unknown)?;
            tool_error_prototype = Some(class.get("prototype")?);
        }
    }
    load(ctx, "doors.js", DOORS, &natives)?;
    run.keep(early.with_tool_errors(ctx, tool_error_prototype.ok_or(Error::Unknown)?));
    Ok(())
}

fn load<'js>(ctx: &Ctx<'js>, name: &str, text: &str, natives: &Object<'js>) -> Result<Value<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    let function: Function<'js> = ctx.eval_with_options(text, options)?;
    function.call((natives.clone(),))
}

pub(crate) fn set_input<'js>(ctx: &Ctx<'js>, input: Value<'js>) -> Result<()> {
    let plain = Property::from(input).writable().enumerable().configurable();
    ctx.globals().prop("input", plain)
}

fn inspect<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    native::string(ctx, &inspect::one(&native::arg(ctx, args, 0), run)?)
}

/// Returns the frames of an error, with positions in the script.
fn stack<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    match native::arg(ctx, args, 0).as_object() {
        Some(error) => native::string(ctx, &failure::frames_text(error, run)?),
        None => Ok(native::undefined(ctx)),
    }
}

fn random<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, _: &[Value<'js>]) -> Result<Value<'js>> {
    let unit = run.chance.borrow_mut().unit();
    Ok(Value::new_number(ctx.clone(), unit))
}
