//! The native parts of `setTimeout` and similar functions.

use std::rc::Rc;

use guest_common::timers::without_function;
use rquickjs::convert::Coerced;
use rquickjs::{Ctx, FromJs, Function, Persistent, Result, Value};

use crate::run::Run;
use crate::{clock, native};

/// The callback of a timer, with its arguments.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) callback: Persistent<Function<'static>>,
    pub(crate) args: Vec<Persistent<Value<'static>>>,
}

pub(crate) fn set_timeout<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    args: &[Value<'js>],
) -> Result<Value<'js>> {
    set(ctx, run, args, false)
}

pub(crate) fn set_interval<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    args: &[Value<'js>],
) -> Result<Value<'js>> {
    set(ctx, run, args, true)
}

fn set<'js>(
    ctx: &Ctx<'js>,
    run: &Rc<Run>,
    args: &[Value<'js>],
    repeats: bool,
) -> Result<Value<'js>> {
    let Some(callback) = native::arg(ctx, args, 0).into_function() else {
        return Err(native::throw_type(ctx, run, &without_function(repeats)));
    };
    let delay = native::arg(ctx, args, 1);
    let delay = match delay.as_number() {
        Some(delay) => delay,
        None => Coerced::<f64>::from_js(ctx, delay)?.0,
    };
    let args = args.get(2..).unwrap_or_default().iter();
    let turn = Turn {
        callback: Persistent::save(ctx, callback),
        args: args.map(|arg| Persistent::save(ctx, arg.clone())).collect(),
    };
    let set = run
        .timers
        .borrow_mut()
        .set(clock::now_ms(), delay, repeats, turn);
    let id = set.map_err(|why| native::throw_range(ctx, run, &why))?;
    Ok(Value::new_number(ctx.clone(), f64::from(id)))
}

pub(crate) fn clear<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, args: &[Value<'js>]) -> Result<Value<'js>> {
    let id = native::arg(ctx, args, 0);
    if !id.is_null() && !id.is_undefined() {
        let id = Coerced::<f64>::from_js(ctx, id)?.0;
        run.timers.borrow_mut().clear(to_u32(id));
    }
    Ok(native::undefined(ctx))
}

/// Converts a number to 32 bits as JavaScript does: truncated, and modulo 2³².
fn to_u32(number: f64) -> u32 {
    number.trunc().rem_euclid(4_294_967_296.0) as u32
}
