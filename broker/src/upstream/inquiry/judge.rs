//! What a host said to an inquiry, and what its server is told.

use airlock_core::inquiry::{InquiryEnd, Wants};
use serde_json::{Value, json};

use super::{INTERNAL, INVALID_PARAMS, Refused, Told};
use crate::carrier::Said;
use crate::render::escape;

/// Of an error of a host.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Whether a form can be accepted with nothing in it.
pub(crate) fn may_be_empty(params: &Value) -> bool {
    let required = params.pointer("/requestedSchema/required");
    let required = required.and_then(Value::as_array);
    required.is_none_or(Vec::is_empty)
}

/// Said in place of a host that cannot be asked this.
pub(crate) fn unfit(why: &str) -> Said {
    Said::Error {
        code: INVALID_PARAMS,
        message: why.to_owned(),
    }
}

/// What came of carrying an inquiry, and what its server is told; none is no answer in time.
pub(crate) fn judge(wants: Wants, may_be_empty: bool, said: Option<Said>) -> (InquiryEnd, Told) {
    let is_of_person = matches!(wants, Wants::Form | Wants::Address);
    match said {
        None if is_of_person => (InquiryEnd::Expired, Ok(json!({"action": "cancel"}))),
        None => (InquiryEnd::Expired, Err(refused(InquiryEnd::Expired))),
        Some(Said::Nothing) if is_of_person => {
            (InquiryEnd::Dismissed, Ok(json!({"action": "cancel"})))
        }
        Some(Said::Nothing) => (InquiryEnd::Dismissed, Err(refused(InquiryEnd::Dismissed))),
        // Not the person: nobody says that they saw it.
        Some(Said::Error { code, message }) => {
            let code = if is_of_person { INTERNAL } else { code };
            let message = escape::brief(&message, MESSAGE_CHARS_MAX);
            (InquiryEnd::Declined, Err(Refused::new(code, message)))
        }
        Some(Said::Result(result)) => match answer(wants, may_be_empty, result) {
            Some((end, result)) => (end, Ok(result)),
            None => (InquiryEnd::Invalid, Err(refused(InquiryEnd::Invalid))),
        },
    }
}

/// The answer as the protocol has it, and nothing besides.
fn answer(wants: Wants, may_be_empty: bool, mut result: Value) -> Option<(InquiryEnd, Value)> {
    let members = result.as_object_mut()?;
    match wants {
        Wants::Form | Wants::Address => match members.get("action")?.as_str()? {
            "accept" if wants == Wants::Form => {
                let content = match members.remove("content") {
                    Some(content @ Value::Object(_)) => content,
                    None | Some(Value::Null) if may_be_empty => json!({}),
                    _ => return None,
                };
                let accepted = json!({"action": "accept", "content": content});
                Some((InquiryEnd::Answered, accepted))
            }
            "accept" => Some((InquiryEnd::Answered, json!({"action": "accept"}))),
            "decline" => Some((InquiryEnd::Declined, json!({"action": "decline"}))),
            "cancel" => Some((InquiryEnd::Dismissed, json!({"action": "cancel"}))),
            _ => None,
        },
        Wants::Sampling => {
            const KEPT: [&str; 4] = ["role", "content", "model", "stopReason"];
            members.retain(|key, _| KEPT.contains(&key.as_str()));
            let is_text = |key| members.get(key).is_some_and(Value::is_string);
            let fits = is_text("role") && is_text("model") && members.contains_key("content");
            fits.then_some((InquiryEnd::Answered, result))
        }
        Wants::Roots => {
            members.retain(|key, _| key == "roots");
            let fits = members.get("roots").is_some_and(Value::is_array);
            fits.then_some((InquiryEnd::Answered, result))
        }
    }
}

/// What a server is told when nothing was said that it could be told.
pub(crate) fn refused(end: InquiryEnd) -> Refused {
    /// A person who does not want the host's model to be asked.
    const REJECTED: i64 = -1;
    let (code, why) = match end {
        InquiryEnd::Answered | InquiryEnd::Invalid => {
            (INTERNAL, "the response of the host is not valid")
        }
        InquiryEnd::Declined => (REJECTED, "the host declined"),
        InquiryEnd::Dismissed => (REJECTED, "the host gave no answer"),
        InquiryEnd::Expired => (INTERNAL, "no answer came in time"),
        InquiryEnd::Withdrawn => (INTERNAL, "the caller no longer waits for the call"),
        InquiryEnd::TooMany => (INTERNAL, "too much was asked in this run"),
    };
    Refused::new(code, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_the_protocol_has_and_nothing_besides() {
        let said = |value: Value| Some(Said::Result(value));
        let content = json!({"name": "x"});
        let sampled = json!({"role": "assistant", "content": {}, "model": "m"});
        let more = json!({"role": "assistant", "content": {}, "model": "m", "_meta": {"a": 1}});
        let cancel = Ok(json!({"action": "cancel"}));
        for (wants, came, end, expected) in [
            (
                Wants::Form,
                said(json!({"action": "accept", "content": content, "_meta": {}})),
                InquiryEnd::Answered,
                Ok(json!({"action": "accept", "content": content})),
            ),
            (
                Wants::Form,
                said(json!({"action": "decline", "content": content})),
                InquiryEnd::Declined,
                Ok(json!({"action": "decline"})),
            ),
            (
                Wants::Form,
                said(json!({"action": "cancel"})),
                InquiryEnd::Dismissed,
                cancel.clone(),
            ),
            (Wants::Form, None, InquiryEnd::Expired, cancel.clone()),
            (
                Wants::Address,
                Some(Said::Nothing),
                InquiryEnd::Dismissed,
                cancel,
            ),
            (
                Wants::Address,
                said(json!({"action": "accept", "content": content})),
                InquiryEnd::Answered,
                Ok(json!({"action": "accept"})),
            ),
            (
                Wants::Sampling,
                said(more),
                InquiryEnd::Answered,
                Ok(sampled),
            ),
            (
                Wants::Roots,
                said(json!({"roots": [], "x": 1})),
                InquiryEnd::Answered,
                Ok(json!({"roots": []})),
            ),
        ] {
            assert_eq!(judge(wants, false, came), (end, expected), "{wants:?}");
        }
        for (wants, value) in [
            (Wants::Form, json!({"action": "accept"})),
            (Wants::Form, json!({"action": "Accept", "content": {}})),
            (Wants::Form, json!([])),
            (Wants::Sampling, json!({"role": "assistant", "content": {}})),
            (Wants::Roots, json!({"roots": 1})),
        ] {
            let (end, told) = judge(wants, false, said(value.clone()));
            assert_eq!((end, told.is_err()), (InquiryEnd::Invalid, true), "{value}");
        }
        for (wants, code) in [(Wants::Sampling, -1), (Wants::Form, INTERNAL)] {
            let message = "no\u{1b}[2J".into();
            let refused = judge(wants, false, Some(Said::Error { code: -1, message }));
            let told = Err(Refused::new(code, "no\\u{1b}[2J"));
            assert_eq!(refused, (InquiryEnd::Declined, told));
        }
    }

    #[test]
    fn a_form_that_wants_nothing_is_confirmed_with_nothing() {
        let accepted = || Some(Said::Result(json!({"action": "accept"})));
        for (required, end) in [
            (Value::Null, InquiryEnd::Answered),
            (json!([]), InquiryEnd::Answered),
            (json!(["x"]), InquiryEnd::Invalid),
        ] {
            let params = json!({"requestedSchema": {"properties": {}, "required": required}});
            let judged = judge(Wants::Form, may_be_empty(&params), accepted());
            assert_eq!(judged.0, end, "{params}");
        }
        let (_, told) = judge(Wants::Form, true, accepted());
        assert_eq!(told, Ok(json!({"action": "accept", "content": {}})));
    }
}
