//! The native parts of `setTimeout` and similar functions.

use boa_engine::object::builtins::JsFunction;
use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsValue};
use guest_common::timers::without_function;

use crate::run::Run;

/// The callback of a timer, with its arguments.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) callback: JsFunction,
    pub(crate) args: Vec<JsValue>,
}

pub(crate) fn set_timeout(
    _this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<JsValue> {
    set(args, false, context)
}

pub(crate) fn set_interval(
    _this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<JsValue> {
    set(args, true, context)
}

fn set(args: &[JsValue], repeats: bool, context: &mut Context) -> JsResult<JsValue> {
    let callback = args
        .get_or_undefined(0)
        .as_object()
        .and_then(|object| JsFunction::from_object(object.clone()))
        .ok_or_else(|| JsNativeError::typ().with_message(without_function(repeats)))?;
    let delay = args.get_or_undefined(1).to_number(context)?;
    let turn = Turn {
        callback,
        args: args.get(2..).unwrap_or_default().to_vec(),
    };
    let run = Run::of(context)?;
    let set = run
        .timers
        .borrow_mut()
        .set(run.clock.now_ms(), delay, repeats, turn);
    let id = set.map_err(|why| JsNativeError::range().with_message(why))?;
    Ok(id.into())
}

pub(crate) fn clear(_this: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let id = args.get_or_undefined(0);
    if !id.is_null_or_undefined() {
        let id = id.to_u32(context)?;
        Run::of(context)?.timers.borrow_mut().clear(id);
    }
    Ok(JsValue::undefined())
}
