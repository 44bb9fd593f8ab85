//! Decodes the answer to a `tools/call` without decoding its payloads: numbers keep their digits,
//! and unknown content keeps its members.

use airlock_core::json::{self, Bounds};
use airlock_core::outcome::{Code, LostCause, Reply};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::jsonrpc::{Answer, quoted};
use super::outgoing::{LinkError, how_to_log_in};
use super::raw::{read_object, without_meta};

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, rename = "resultType")]
    result_type: Option<&'a RawValue>,
    #[serde(borrow, rename = "isError")]
    is_error: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "structuredContent",
        deserialize_with = "even_null"
    )]
    structured_content: Option<&'a RawValue>,
}

/// Deserializes `null` as a value, because a tool may return `null`.
fn even_null<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

pub(crate) fn reply(answer: Result<Answer, LinkError>, result_bytes_max: usize) -> Reply {
    match answer {
        Ok(Answer::Result(result)) if result.get().len() > result_bytes_max => {
            failure(LinkError::too_large(result_bytes_max))
        }
        Ok(Answer::Result(result)) => result_reply(result.get()),
        Ok(Answer::Error(error)) => Reply::Refused {
            code: error.code,
            message: error.message,
        },
        Ok(Answer::Unreadable(why)) => unreadable(&why),
        Err(error) => failure(error),
    }
}

fn failure(error: LinkError) -> Reply {
    match error {
        LinkError::NotSent { why } => Reply::NotSent { why },
        ref unusable @ LinkError::LoginUnusable { .. } => Reply::NotSent {
            why: unusable.why(),
        },
        LinkError::SessionGone => Reply::NotSent {
            why: "the server ends each new session immediately".to_owned(),
        },
        LinkError::Status { status, why } if proves_refusal(status) => Reply::NotSent { why },
        LinkError::Status { why, .. } => Reply::Lost {
            why,
            cause: LostCause::Disconnected,
        },
        LinkError::Lost { why, cause } => Reply::Lost { why, cause },
        LinkError::LoginRequired { why, next, .. } => Reply::Failed {
            code: Code::LoginRequired,
            message: format!("{why}; {}", how_to_log_in(next.as_deref())),
            left: false,
        },
        ref unopened @ LinkError::Unopened { was_declined } => Reply::Failed {
            code: match was_declined {
                true => Code::Refused,
                false => Code::Unanswered,
            },
            message: unopened.why(),
            left: true,
        },
    }
}

/// Whether a POST with this status was certainly refused before any work was done. Other statuses
/// prove nothing. A 303 means that the work is done and its result is elsewhere. A gateway may have
/// forwarded the call before it answered 408, 409, 499 or 504.
fn proves_refusal(status: u16) -> bool {
    matches!(
        status,
        307 | 308 | 401 | 403..=406 | 411 | 413..=415 | 421 | 426 | 429 | 431
    )
}

fn unreadable(why: &str) -> Reply {
    Reply::Lost {
        why: format!("invalid answer: {why}"),
        cause: LostCause::Unreadable,
    }
}

fn result_reply(text: &str) -> Reply {
    // Other code limits the results of scripts. This bound only makes recursion over the text safe.
    const BOUNDS: Bounds = Bounds {
        depth_max: 640,
        ..Bounds::WIDEST
    };
    if let Err(bad) = json::measure(text.as_bytes(), BOUNDS) {
        return unreadable(&bad.to_string());
    }
    let result: ToolResult<'_> = match read_object(text) {
        Ok(result) => result,
        Err(error) => return unreadable(&error.to_string()),
    };
    match result.result_type.map(RawValue::get) {
        None | Some("\"complete\"") => {}
        Some("\"input_required\"") => {
            let why = "the server asked for input in the middle of the call".to_owned();
            return Reply::Lost {
                why,
                cause: LostCause::InputRequired,
            };
        }
        Some(_) => return unreadable("`resultType` has an unsupported value"),
    }
    let is_error = match result.is_error.map(RawValue::get) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return unreadable("`isError` is not a boolean"),
    };
    let Some(content) = content_array(result.content) else {
        return unreadable("`content` is not an array");
    };
    let structured_content = result
        .structured_content
        .map(|value| value.get().as_bytes().to_vec());
    Reply::Result {
        is_error,
        content,
        structured_content,
    }
}

/// Returns the content blocks unchanged, except that `_meta` is removed. One block or a bare text
/// is accepted in place of an array.
fn content_array(content: Option<&RawValue>) -> Option<Vec<u8>> {
    let Some(content) = content else {
        return Some(b"[]".to_vec());
    };
    let text = without_meta(content.get());
    match text.as_bytes().first() {
        Some(b'[') => Some(text.into_owned().into_bytes()),
        Some(b'{') => Some(format!("[{text}]").into_bytes()),
        Some(b'"') => {
            let said: String = serde_json::from_str(&text).ok()?;
            Some(format!(r#"[{{"type":"text","text":{}}}]"#, quoted(&said)).into_bytes())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: &str) -> String {
        let raw = RawValue::from_string(result.to_owned()).unwrap();
        match reply(Ok(Answer::Result(raw)), 1_000) {
            Reply::Result {
                is_error,
                content,
                structured_content,
            } => format!(
                "{}{} {}",
                if is_error { "error " } else { "" },
                String::from_utf8(content).unwrap(),
                structured_content
                    .map_or("-".to_owned(), |bytes| String::from_utf8(bytes).unwrap())
            ),
            Reply::Lost { cause, .. } => format!("lost {cause:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn decode_keeps_everything_but_meta() {
        for (result, expected) in [
            (
                r#"{"content":[{"type":"text","text":"a"}]}"#,
                r#"[{"type":"text","text":"a"}] -"#,
            ),
            (
                r#"{"resultType":"complete","content":[],"isError":true,"_meta":{"x":1}}"#,
                "error [] -",
            ),
            (r#"{"content":[],"structuredContent":null}"#, "[] null"),
            (
                r#"{"structuredContent":[18446744073709551616.50,{"b":1,"a":2}]}"#,
                r#"[] [18446744073709551616.50,{"b":1,"a":2}]"#,
            ),
            (
                r#"{"content":[{"type":"hologram","n":99999999999999999999,"_meta":{"a":1}}]}"#,
                r#"[{"type":"hologram","n":99999999999999999999}] -"#,
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"u","_meta":{}}}]}"#,
                r#"[{"type":"resource","resource":{"uri":"u"}}] -"#,
            ),
            (
                r#"{"content":[],"structuredContent":{"_meta":"is data here"}}"#,
                r#"[] {"_meta":"is data here"}"#,
            ),
            (
                r#"{"content":{"type":"text","text":"one"}}"#,
                r#"[{"type":"text","text":"one"}] -"#,
            ),
            (
                r#"{"content":"b\"are"}"#,
                r#"[{"type":"text","text":"b\"are"}] -"#,
            ),
            (r#"{"content":null}"#, "[] -"),
        ] {
            assert_eq!(read(result), expected, "{result}");
        }
    }

    #[test]
    fn ambiguous_result_is_lost() {
        for (result, expected) in [
            (
                r#"{"resultType":"input_required","inputRequests":{}}"#,
                "lost InputRequired",
            ),
            (r#"{"resultType":"task"}"#, "lost Unreadable"),
            (r#"{"isError":"yes"}"#, "lost Unreadable"),
            (r#"{"content":7}"#, "lost Unreadable"),
            (r#"{"isError":true,"isError":false}"#, "lost Unreadable"),
            ("[]", "lost Unreadable"),
            ("\"done\"", "lost Unreadable"),
        ] {
            assert_eq!(read(result), expected, "{result}");
        }
        assert_eq!(
            read(&format!(r#"{{"content":"{}"}}"#, "x".repeat(1_000))),
            "lost TooLarge"
        );
    }

    #[test]
    fn only_clear_http_refusals_prove_call_not_performed() {
        let refusals: Vec<u16> = (100..=999)
            .filter(|status| proves_refusal(*status))
            .collect();
        assert_eq!(
            refusals,
            [
                307, 308, 401, 403, 404, 405, 406, 411, 413, 414, 415, 421, 426, 429, 431
            ]
        );
        for status in 100..=999 {
            let why = String::new();
            let refused = matches!(
                reply(Err(LinkError::Status { status, why }), 0),
                Reply::NotSent { .. }
            );
            assert_eq!(refused, refusals.contains(&status), "{status}");
        }
    }
}
