//! The limit of nested calls. The engine counts calls of the script's functions, and checks the
//! guest's own stack, which calls through native functions use up first: `toJSON` after about 450
//! nested calls, `map` after about 900. The error is a `RangeError` that scripts can catch. If a
//! script does not catch it, the run ends with `limit-stack`.

use std::ptr;

use boa_engine::builtins::error::Error;
use boa_engine::error::EngineError;
use boa_engine::{JsError, JsNativeError, JsObject, JsValue};

use crate::pure_reads;
use crate::run::Run;

const TOO_DEEP: &str = "too many nested calls";

/// Size in bytes of the guest's own stack, with which the image is built. The stack is at the
/// beginning of the memory and grows downwards. Wasmtime has a second stack, whose use is not
/// visible here. Calls through native functions use both in proportion: when `USED_BYTES_MAX`
/// bytes of the visible stack are used, at least an eighth of the other is left.
const STACK_BYTES: usize = 4 * 1024 * 1024;
const USED_BYTES_MAX: usize = 232 * 1024;

/// Number of bytes of a thread's stack that calls may use, natively.
const NATIVE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Returns the lowest address of the stack at which a function can be called.
pub(crate) fn native_stack_end() -> usize {
    if cfg!(target_arch = "wasm32") {
        return STACK_BYTES - USED_BYTES_MAX;
    }
    let here = 0_u8;
    ptr::from_ref(&here).addr().saturating_sub(NATIVE_BYTES_MAX)
}

pub(crate) fn error() -> JsError {
    JsNativeError::range().with_message(TOO_DEEP).into()
}

/// Whether the reason of an uncaught error is that too many calls were nested.
pub(crate) fn ended(reason: &JsValue, run: &Run) -> bool {
    let is_ours = |error: &JsObject| {
        let message = pure_reads::read(error, "message").and_then(|message| message.as_string());
        error.is::<Error>() && message.is_some_and(|message| message == TOO_DEEP)
    };
    run.was_too_deep.get() && reason.as_object().as_ref().is_some_and(is_ours)
}

/// Whether too many nested calls caused an error of the engine itself, which did not expect a call
/// to fail.
pub(crate) fn caused(error: &EngineError) -> bool {
    let mut error: Option<&dyn std::error::Error> = Some(error);
    while let Some(present) = error {
        error = match present.downcast_ref::<JsError>() {
            Some(error) => match error.as_native() {
                Some(native) => return native.message() == TOO_DEEP,
                None => error.as_engine().map(|engine| engine as _),
            },
            None => present.source(),
        };
    }
    false
}
