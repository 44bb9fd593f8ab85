//! `text += more`, again and again. The engine copies the whole text each time. This does
//! what `+` does, order and errors included, and keeps room behind a long text ([`room`]).

use boa_engine::{Context, JsArgs, JsResult, JsString, JsValue};

use super::room;
use crate::run::Run;

/// What `text + more` is.
pub(super) fn append(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (text, more) = (args.get_or_undefined(0), args.get_or_undefined(1));
    let Some(before) = text.as_string() else {
        return text.add(more, context);
    };
    let more = match more.as_string() {
        Some(more) => more,
        // These are made a text without anything of the script's running.
        None if more.is_number() || more.is_boolean() || more.is_null_or_undefined() => {
            more.to_string(context)?
        }
        None => return text.add(more, context),
    };
    if before.len() < room::WORTH_IT {
        return Ok(JsString::concat(before.as_str(), more.as_str()).into());
    }
    let run = Run::of(context)?;
    let whole = run.rooms.borrow_mut().append(&before, &more);
    Ok(whole.into())
}
