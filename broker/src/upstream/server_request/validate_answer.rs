//! Checks a host's answer to an inquiry, and builds the answer to the server.

use airlock_core::inquiry::{InquiryEnd, InquiryKind};
use serde_json::{Value, json};

use super::{INTERNAL, INVALID_PARAMS, RequestError, RequestResult};
use crate::client_bridge::ClientReply;
use crate::render::escape;

/// Maximum length of a host's error message, in characters.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Whether a form can be accepted without any values.
pub(crate) fn may_be_empty(params: &Value) -> bool {
    let required = params.pointer("/requestedSchema/required");
    let required = required.and_then(Value::as_array);
    required.is_none_or(Vec::is_empty)
}

/// Builds the reply to an inquiry that cannot be passed to the host.
pub(crate) fn unfit(why: &str) -> ClientReply {
    ClientReply::Error {
        code: INVALID_PARAMS,
        message: why.to_owned(),
    }
}

/// Returns the outcome of an inquiry and the answer to the server. `said` is `None` if the host did
/// not answer in time.
pub(crate) fn judge(
    wants: InquiryKind,
    may_be_empty: bool,
    said: Option<ClientReply>,
) -> (InquiryEnd, RequestResult) {
    let is_of_person = matches!(wants, InquiryKind::Form | InquiryKind::Address);
    match said {
        None if is_of_person => (InquiryEnd::Expired, Ok(json!({"action": "cancel"}))),
        None => (InquiryEnd::Expired, Err(refused(InquiryEnd::Expired))),
        Some(ClientReply::Nothing) if is_of_person => {
            (InquiryEnd::Dismissed, Ok(json!({"action": "cancel"})))
        }
        Some(ClientReply::Nothing) => (InquiryEnd::Dismissed, Err(refused(InquiryEnd::Dismissed))),
        // The host refused. The person may not have seen the inquiry.
        Some(ClientReply::Error { code, message }) => {
            let code = if is_of_person { INTERNAL } else { code };
            let message = escape::brief(&message, MESSAGE_CHARS_MAX);
            (InquiryEnd::Declined, Err(RequestError::new(code, message)))
        }
        Some(ClientReply::Result(result)) => match answer(wants, may_be_empty, result) {
            Some((end, result)) => (end, Ok(result)),
            None => (InquiryEnd::Invalid, Err(refused(InquiryEnd::Invalid))),
        },
    }
}

/// Returns the answer with only the members that the protocol defines.
fn answer(
    wants: InquiryKind,
    may_be_empty: bool,
    mut result: Value,
) -> Option<(InquiryEnd, Value)> {
    let members = result.as_object_mut()?;
    match wants {
        InquiryKind::Form | InquiryKind::Address => match members.get("action")?.as_str()? {
            "accept" if wants == InquiryKind::Form => {
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
        InquiryKind::Sampling => {
            const KEPT: [&str; 4] = ["role", "content", "model", "stopReason"];
            members.retain(|key, _| KEPT.contains(&key.as_str()));
            let is_text = |key| members.get(key).is_some_and(Value::is_string);
            let fits = is_text("role") && is_text("model") && members.contains_key("content");
            fits.then_some((InquiryEnd::Answered, result))
        }
        InquiryKind::Roots => {
            members.retain(|key, _| key == "roots");
            let fits = members.get("roots").is_some_and(Value::is_array);
            fits.then_some((InquiryEnd::Answered, result))
        }
    }
}

/// Returns the error for a server if there is no answer to pass on.
pub(crate) fn refused(end: InquiryEnd) -> RequestError {
    /// The error code for a sampling request that a person rejected.
    const REJECTED: i64 = -1;
    let (code, why) = match end {
        InquiryEnd::Answered | InquiryEnd::Invalid => {
            (INTERNAL, "the host sent an invalid response")
        }
        InquiryEnd::Declined => (REJECTED, "the host declined"),
        InquiryEnd::Dismissed => (REJECTED, "the host gave no answer"),
        InquiryEnd::Expired => (INTERNAL, "no answer came in time"),
        InquiryEnd::Withdrawn => (INTERNAL, "the caller no longer waits for the call"),
        InquiryEnd::TooMany => (INTERNAL, "too many requests in this run"),
    };
    RequestError::new(code, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_contains_only_protocol_fields() {
        let said = |value: Value| Some(ClientReply::Result(value));
        let content = json!({"name": "x"});
        let sampled = json!({"role": "assistant", "content": {}, "model": "m"});
        let more = json!({"role": "assistant", "content": {}, "model": "m", "_meta": {"a": 1}});
        let cancel = Ok(json!({"action": "cancel"}));
        for (wants, came, end, expected) in [
            (
                InquiryKind::Form,
                said(json!({"action": "accept", "content": content, "_meta": {}})),
                InquiryEnd::Answered,
                Ok(json!({"action": "accept", "content": content})),
            ),
            (
                InquiryKind::Form,
                said(json!({"action": "decline", "content": content})),
                InquiryEnd::Declined,
                Ok(json!({"action": "decline"})),
            ),
            (
                InquiryKind::Form,
                said(json!({"action": "cancel"})),
                InquiryEnd::Dismissed,
                cancel.clone(),
            ),
            (InquiryKind::Form, None, InquiryEnd::Expired, cancel.clone()),
            (
                InquiryKind::Address,
                Some(ClientReply::Nothing),
                InquiryEnd::Dismissed,
                cancel,
            ),
            (
                InquiryKind::Address,
                said(json!({"action": "accept", "content": content})),
                InquiryEnd::Answered,
                Ok(json!({"action": "accept"})),
            ),
            (
                InquiryKind::Sampling,
                said(more),
                InquiryEnd::Answered,
                Ok(sampled),
            ),
            (
                InquiryKind::Roots,
                said(json!({"roots": [], "x": 1})),
                InquiryEnd::Answered,
                Ok(json!({"roots": []})),
            ),
        ] {
            assert_eq!(judge(wants, false, came), (end, expected), "{wants:?}");
        }
        for (wants, value) in [
            (InquiryKind::Form, json!({"action": "accept"})),
            (
                InquiryKind::Form,
                json!({"action": "Accept", "content": {}}),
            ),
            (InquiryKind::Form, json!([])),
            (
                InquiryKind::Sampling,
                json!({"role": "assistant", "content": {}}),
            ),
            (InquiryKind::Roots, json!({"roots": 1})),
        ] {
            let (end, told) = judge(wants, false, said(value.clone()));
            assert_eq!((end, told.is_err()), (InquiryEnd::Invalid, true), "{value}");
        }
        for (wants, code) in [(InquiryKind::Sampling, -1), (InquiryKind::Form, INTERNAL)] {
            let message = "no\u{1b}[2J".into();
            let refused = judge(wants, false, Some(ClientReply::Error { code: -1, message }));
            let told = Err(RequestError::new(code, "no\\u{1b}[2J"));
            assert_eq!(refused, (InquiryEnd::Declined, told));
        }
    }

    #[test]
    fn empty_form_is_confirmed_with_empty_content() {
        let accepted = || Some(ClientReply::Result(json!({"action": "accept"})));
        for (required, end) in [
            (Value::Null, InquiryEnd::Answered),
            (json!([]), InquiryEnd::Answered),
            (json!(["x"]), InquiryEnd::Invalid),
        ] {
            let params = json!({"requestedSchema": {"properties": {}, "required": required}});
            let judged = judge(InquiryKind::Form, may_be_empty(&params), accepted());
            assert_eq!(judged.0, end, "{params}");
        }
        let (_, told) = judge(InquiryKind::Form, true, accepted());
        assert_eq!(told, Ok(json!({"action": "accept", "content": {}})));
    }
}
