//! Calls within calls within calls. The engine's own bound ends the run, and no `catch` sees
//! it. So in a script that catches errors, functions that may call themselves ask here first
//! how deep they are, and what is too deep is a `RangeError`. One that nobody catches ends
//! the run as the engine's bound does.
//!
//! Which functions may call themselves is read off the script ([`functions`]):
//! rather one too many than one too few, since asking costs a call and not asking an error
//! that is not caught.

mod cycles;
mod finder;
mod functions;
mod implied;
mod values;
mod visit;

use std::ptr;

use boa_ast::function::FunctionBody;
use boa_ast::statement::Statement;
use boa_ast::{Spanned, StatementListItem};
use boa_engine::builtins::error::Error;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsValue};
use boa_interner::Interner;

use super::Edit;
use super::spans::Text;
use crate::quiet;
use crate::run::Run;

/// Asks at the beginning of each function that may call itself.
pub(super) fn edits(
    script: &str,
    name: &str,
    body: &FunctionBody,
    interner: &Interner,
) -> Vec<Edit> {
    let functions = finder::of(body, interner);
    let text = Text::new(script);
    let own = functions.that_may_call_themselves();
    own.filter_map(|body| asking(&text, name, body)).collect()
}

fn asking(text: &Text<'_>, name: &str, body: &FunctionBody) -> Option<Edit> {
    let start = text.offset(body.span().start())?;
    if text.slice(start, start + 1) == Some("{") {
        return Some(inserted(start + 1, format!("{name}();")));
    }
    let [StatementListItem::Statement(value)] = body.statements() else {
        return None;
    };
    let Statement::Return(value) = value.as_ref() else {
        return None;
    };
    let start = text.start(value.target()?)?;
    let is_all_of_it = text.slice(0, start)?.trim_end().ends_with("=>");
    // It answers nothing, and what may stand here may stand behind a colon.
    is_all_of_it.then(|| inserted(start, format!("{name}()?0:")))
}

fn inserted(at: usize, text: String) -> Edit {
    Edit {
        start: at,
        end: at,
        text,
        place: Some(at),
    }
}

const TOO_DEEP: &str = "too many calls within each other";

/// The guest's own stack lies at the beginning of the memory and grows towards it; this is its
/// size, as the image is built with. The cage has another stack, which nobody can see from
/// here. Whatever calls through what is built in uses both alike, and when so much of this one
/// is used, at least an eighth of that one is left.
const STACK_BYTES: usize = 4 * 1024 * 1024;
const USED_BYTES_MAX: usize = 232 * 1024;

/// `airlock_depth()`
pub(super) fn ask(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let run = Run::of(context)?;
    // An iterator that knows its length.
    let depth = context.stack_trace().size_hint().0;
    if depth <= run.limits.get().recursion_max as usize && has_room() {
        return Ok(JsValue::undefined());
    }
    run.was_too_deep.set(true);
    Err(JsNativeError::range().with_message(TOO_DEEP).into())
}

/// Whether there is room on the stacks. Calls through what is built in take much more of them
/// than others, and of those through several functions the engine's count is no measure.
fn has_room() -> bool {
    let here = 0_u8;
    let used = STACK_BYTES.saturating_sub(ptr::from_ref(&here).addr());
    cfg!(not(target_arch = "wasm32")) || used <= USED_BYTES_MAX
}

/// Whether an error that nobody caught is the one above.
pub(crate) fn ended(reason: &JsValue, run: &Run) -> bool {
    let is_ours = |error: &JsObject| {
        let message = quiet::read(error, "message").and_then(|message| message.as_string());
        error.is::<Error>() && message.is_some_and(|message| message == TOO_DEEP)
    };
    run.was_too_deep.get() && reason.as_object().as_ref().is_some_and(is_ours)
}
