//! The native part of `console`. `guest_common` stores the printed lines.

use std::sync::atomic::{AtomicBool, Ordering};

use boa_engine::error::{EngineError, PanicError};
use boa_engine::{Context, JsArgs, JsError, JsResult, JsValue};
use guest_common::console::{FLOOD, level};

use crate::inspect;
use crate::run::Run;

static FLOODED: AtomicBool = AtomicBool::new(false);

/// Whether the script has printed too much. Called while the guest panics, because an async
/// generator of the engine panics on an error that cannot be caught.
#[cfg(target_arch = "wasm32")]
pub(crate) fn has_flooded() -> bool {
    FLOODED.load(Ordering::Relaxed)
}

/// `print(level, ...values)`: every method of `console` calls it.
pub(crate) fn print(_this: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let level = level(args.get_or_undefined(0).as_i32());
    let run = Run::of(context)?;
    let text = inspect::line(args.get(1..).unwrap_or_default(), context);
    let mut console = run.console.borrow_mut();
    console.print(level, &text, &run.limits.get());
    FLOODED.store(console.flooded, Ordering::Relaxed);
    if console.flooded {
        // Not an exception, because a script could catch an exception.
        return Err(JsError::from(EngineError::from(PanicError::new(FLOOD))));
    }
    Ok(JsValue::undefined())
}
