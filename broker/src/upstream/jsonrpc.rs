//! JSON-RPC 2.0 as MCP uses it. Parses a message without decoding its payload, and formats a
//! message around an unchanged payload.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum length of an error's `data`, in bytes.
const DATA_BYTES_MAX: usize = 64 * 1024;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32_022;

/// One message from the other side.
#[derive(Debug)]
pub(crate) enum IncomingMessage<'a> {
    /// The answer to a request of airlock.
    Answer { id: u64, answer: Answer },
    /// A request of the other side. Its id is short and is returned unchanged.
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// Not JSON, not UTF-8, or not JSON-RPC.
    Stray,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Result(Box<RawValue>),
    Error(RpcError),
    /// An answer that contains neither a valid result nor a valid error.
    Unreadable(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// The versions that the other side supports, if it refuses airlock's version.
    pub(crate) supported: Vec<String>,
    /// Further data of the error as JSON text, if it is short.
    pub(crate) data: Option<String>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorMember<'a> {
    code: serde_json::Number,
    #[serde(default)]
    message: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct VersionDetail {
    supported: Vec<String>,
}

/// Parses one message. Never fails: an invalid message becomes [`IncomingMessage::Stray`].
pub(crate) fn parse(bytes: &[u8]) -> IncomingMessage<'_> {
    let Some(envelope) = envelope(bytes) else {
        return IncomingMessage::Stray;
    };
    let params = envelope.params;
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) if can_be_sent_back(id) => {
            IncomingMessage::Request { id, method, params }
        }
        (Some(_), Some(_)) => IncomingMessage::Stray,
        (Some(method), None) => IncomingMessage::Notification { method, params },
        (None, Some(id)) => match own_id(id.get()) {
            Some(id) => IncomingMessage::Answer {
                id,
                answer: answer(envelope.result, envelope.error),
            },
            None => IncomingMessage::Stray,
        },
        (None, None) => IncomingMessage::Stray,
    }
}

/// Parses the envelope of an object. Arrays are refused, because serde would read their items as
/// members in order.
fn envelope(bytes: &[u8]) -> Option<Envelope<'_>> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice::<Envelope<'_>>(bytes)
        .ok()
        .filter(|envelope| envelope.jsonrpc.as_deref() == Some("2.0"))
}

/// Whether a message has an `id`, including null, which other functions treat as absent.
pub(crate) fn names_an_id(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
    }
    fn present<'de, D: serde::Deserializer<'de>>(id: D) -> Result<Option<&'de RawValue>, D::Error> {
        <&RawValue>::deserialize(id).map(Some)
    }
    serde_json::from_slice::<Members<'_>>(bytes).is_ok_and(|it| it.id.is_some())
}

/// Whether an id of the other side may be repeated in the answer. The answer waits in memory until
/// the other side reads it, so the id must be a short string or number.
fn can_be_sent_back(id: &RawValue) -> bool {
    const ID_BYTES_MAX: usize = 256;
    let text = id.get();
    text.len() <= ID_BYTES_MAX && text.starts_with(|first| matches!(first, '"' | '-' | '0'..='9'))
}

/// Parses the id of a request that airlock sent. Such ids are whole numbers; some servers return
/// them as strings.
fn own_id(text: &str) -> Option<u64> {
    let text = text.trim();
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .parse()
        .ok()
}

fn answer(result: Option<&RawValue>, error: Option<&RawValue>) -> Answer {
    match (result, error) {
        (_, Some(error)) => match read_error(error) {
            Some(error) => Answer::Error(error),
            None => Answer::Unreadable("`error` is not a JSON-RPC error".to_owned()),
        },
        (Some(result), None) => Answer::Result(result.to_owned()),
        (None, None) => Answer::Unreadable("`result` and `error` are missing".to_owned()),
    }
}

fn read_error(error: &RawValue) -> Option<RpcError> {
    let error: ErrorMember<'_> = serde_json::from_str(error.get()).ok()?;
    let detail = error
        .data
        .and_then(|data| serde_json::from_str::<VersionDetail>(data.get()).ok());
    Some(RpcError {
        code: error.code.as_i64().unwrap_or_default(),
        message: error.message,
        supported: detail.map(|detail| detail.supported).unwrap_or_default(),
        data: error
            .data
            .map(RawValue::get)
            .filter(|it| it.len() <= DATA_BYTES_MAX)
            .map(str::to_owned),
    })
}

/// Parses the JSON-RPC error in a body that names no request (`id` null or absent).
pub(crate) fn parse_bare_error(bytes: &[u8]) -> Option<RpcError> {
    let envelope = envelope(bytes)?;
    let to_nobody = envelope.id.is_none() && envelope.method.is_none();
    envelope.error.filter(|_| to_nobody).and_then(read_error)
}

/// Whether a message with this beginning is not an answer: it is not JSON-RPC, or it is a request
/// or notification.
pub(crate) fn is_no_answer(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let head = head.trim_start();
    let payload = ["\"result\"", "\"error\""]
        .iter()
        .filter_map(|key| head.find(key))
        .min()
        .unwrap_or(head.len());
    !head.starts_with('{')
        || head
            .get(..payload)
            .is_some_and(|before| before.contains("\"method\":"))
}

/// Returns the id of the request that an overlong or invalid message answers. The id is before or
/// after the payload.
pub(crate) fn answered_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    const KEY: &str = "\"id\":";
    let head = String::from_utf8_lossy(head);
    let before = ["\"result\"", "\"error\"", "\"method\""]
        .iter()
        .filter_map(|key| head.find(key))
        .min()
        .unwrap_or(head.len());
    if let Some((_, after)) = head.get(..before).and_then(|head| head.split_once(KEY)) {
        return leading_id(after);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, after) = tail.rsplit_once(KEY)?;
    // After the payload, only members of the envelope can follow.
    let rest = after.trim_end();
    let plain =
        rest.ends_with('}') && !rest.contains(['{', '[', ']']) && rest.matches('}').count() == 1;
    if plain { leading_id(after) } else { None }
}

fn leading_id(text: &str) -> Option<u64> {
    let end = text.find([',', '}']).unwrap_or(text.len());
    own_id(text.get(..end)?)
}

/// Formats a request. `params` is the JSON text of an object and is sent unchanged.
pub(crate) fn request(id: u64, method: &str, params: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#,
        quoted(method)
    )
    .into_bytes()
}

pub(crate) fn notification(method: &str, params: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#,
        quoted(method)
    )
    .into_bytes()
}

pub(crate) fn result(id: &RawValue, result: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get()).into_bytes()
}

pub(crate) fn error(id: &RawValue, code: i64, message: &str) -> Vec<u8> {
    error_with(id, code, message, None)
}

pub(crate) fn error_with(
    id: &RawValue,
    code: i64,
    message: &str,
    detail: Option<&Value>,
) -> Vec<u8> {
    let detail = detail
        .map(|detail| format!(r#","data":{detail}"#))
        .unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":{}{detail}}}}}"#,
        id.get(),
        quoted(message)
    )
    .into_bytes()
}

/// Returns the JSON text of a string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the answer to a server's request other than an inquiry: only `ping` is supported.
pub(crate) fn answer_request(id: &RawValue, method: &str) -> Vec<u8> {
    if method == "ping" {
        result(id, "{}")
    } else {
        error(
            id,
            METHOD_NOT_FOUND,
            "this client does not support the method",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match parse(text.as_bytes()) {
            IncomingMessage::Answer {
                id,
                answer: Answer::Result(raw),
            } => format!("result {id} {}", raw.get()),
            IncomingMessage::Answer {
                id,
                answer: Answer::Error(error),
            } => format!("error {id} {} {}", error.code, error.message),
            IncomingMessage::Answer {
                id,
                answer: Answer::Unreadable(_),
            } => format!("unreadable {id}"),
            IncomingMessage::Request { id, method, .. } => format!("request {} {method}", id.get()),
            IncomingMessage::Notification { method, .. } => format!("notification {method}"),
            IncomingMessage::Stray => "stray".to_owned(),
        }
    }

    #[test]
    fn message_kind_follows_from_members() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"n":18446744073709551616}}"#,
                r#"result 7 {"n":18446744073709551616}"#,
            ),
            (r#"{"result":{},"jsonrpc":"2.0","id":"7"}"#, "result 7 {}"),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}"#,
                "error 7 -32602 no",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1}}"#,
                "error 7 -1 ",
            ),
            (r#"{"jsonrpc":"2.0","id":7,"error":"bad"}"#, "unreadable 7"),
            (r#"{"jsonrpc":"2.0","id":7,"result":null}"#, "unreadable 7"),
            (r#"{"jsonrpc":"2.0","id":7}"#, "unreadable 7"),
            (
                r#"{"jsonrpc":"2.0","id":"abc","method":"ping"}"#,
                r#"request "abc" ping"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
                "notification notifications/x",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
                "stray",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#, "stray"),
            (r#"{"level":"info","msg":"started"}"#, "stray"),
            (r#"[1,2]"#, "stray"),
            (r#"["2.0",7,null,null,{"content":[]},null]"#, "stray"),
            (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, "stray"),
            ("", "stray"),
            ("Listening on port 3000", "stray"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_utf8_and_deep_nesting_are_stray_or_raw() {
        assert!(matches!(
            parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}"),
            IncomingMessage::Stray
        ));
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(matches!(
            parse(deep.as_bytes()),
            IncomingMessage::Answer { id: 1, .. }
        ));
    }

    #[test]
    fn request_with_overlong_id_is_stray() {
        for (length, expected) in [(254, true), (255, false), (1_000_000, false)] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
                "x".repeat(length)
            );
            let asks = matches!(parse(text.as_bytes()), IncomingMessage::Request { .. });
            assert_eq!(asks, expected, "{length}");
        }
    }

    #[test]
    fn error_without_id_is_valid_json_rpc() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1}}"#,
                Some(-1),
            ),
            (
                r#"{"jsonrpc":"2.0","error":{"code":-1,"message":""}}"#,
                Some(-1),
            ),
            (r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1}}"#, None),
            (
                r#"{"jsonrpc":"2.0","method":"m","error":{"code":-1}}"#,
                None,
            ),
            (
                r#"{"error":{"code":504,"message":"upstream timeout"}}"#,
                None,
            ),
            (r#"["2.0",null,null,null,null,{"code":-1}]"#, None),
        ] {
            let code = parse_bare_error(text.as_bytes()).map(|error| error.code);
            assert_eq!(code, expected, "{text}");
        }
    }

    #[test]
    fn id_of_truncated_message_is_found_around_payload() {
        for (head, tail, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"id":99"#,
                "",
                Some(12),
            ),
            (
                r#"{"result":{"id":3,"x":"#,
                r#"xxx"}]},"jsonrpc":"2.0","id":12}"#,
                Some(12),
            ),
            (
                r#"{"result":{"x":"#,
                r#"xxx"}]},"id":12,"jsonrpc":"2.0"}"#,
                Some(12),
            ),
            (r#"{"result":{"x":"#, r#"{"id":5}]}}"#, None),
            (r#"{"result":{"x":"#, "xxxx", None),
        ] {
            assert_eq!(
                answered_id(head.as_bytes(), tail.as_bytes()),
                expected,
                "{head} … {tail}"
            );
        }
    }

    #[test]
    fn truncated_message_with_method_or_non_object_is_no_answer() {
        for (head, expected) in [
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"result":"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","#,
                true,
            ),
            ("DEBUG {\"result\":", true),
            ("[1,2,3", true),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"method":"x"#, false),
            (r#" {"result":{"x":"#, false),
            (r#"{"error":{"method":"#, false),
            (r#"{"x":"unknown"#, false),
        ] {
            assert_eq!(is_no_answer(head.as_bytes()), expected, "{head}");
        }
    }

    #[test]
    fn request_params_are_sent_byte_for_byte() {
        let sent = request(3, "tools/call", r#"{"arguments":{"n":1e21}}"#);
        assert_eq!(
            sent,
            br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"arguments":{"n":1e21}}}"#
        );
    }

    #[test]
    fn ping_is_answered_and_other_requests_are_refused() {
        let id = RawValue::from_string("\"q\"".to_owned()).unwrap();
        assert_eq!(
            answer_request(&id, "ping"),
            br#"{"jsonrpc":"2.0","id":"q","result":{}}"#
        );
        let told = String::from_utf8(answer_request(&id, "sampling/createMessage")).unwrap();
        assert!(told.contains("-32601"), "{told}");
    }
}
