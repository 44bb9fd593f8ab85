//! Checks headers that repeat arguments. A listed schema marks such arguments with `x-mcp-header`,
//! so that intermediaries can distinguish calls. The headers must agree with the message.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::header_value::decoded;
use super::response::mismatch;
use crate::broker::tool_index::ToolIndex;
use crate::serve::listed_schema::listed_schema;
use crate::serve::rpc::RpcErrorResponse;
use crate::upstream::headers::{self, MirroredHeader};

/// Checks that a call repeats its arguments in headers as the listed schema requires.
pub(super) fn check(
    tool_index: &ToolIndex,
    params: &Value,
    headers: &HeaderMap,
) -> Result<(), RpcErrorResponse> {
    let name = params.get("name").and_then(Value::as_str);
    let tool = name.and_then(|it| tool_index.find(it));
    let schema = tool.and_then(|it| listed_schema(&tool_index.broker.known(), it));
    let marked = schema.and_then(|it| headers::mirrored(&it).ok());
    let nothing = Map::new();
    let args = params.get("arguments").and_then(Value::as_object);
    let differs = |it: &MirroredHeader| !says(headers, it, args.unwrap_or(&nothing));
    match marked.unwrap_or_default().iter().find(|it| differs(it)) {
        Some(mirrored) => Err(mismatch(&mirrored.name())),
        None => Ok(()),
    }
}

/// Whether a header agrees with the arguments. An absent argument must have no header.
fn says(headers: &HeaderMap, mirrored: &MirroredHeader, args: &Map<String, Value>) -> bool {
    let name = mirrored.name();
    let text = mirrored.text_in(args);
    match headers.get_all(&name).iter().count() {
        0 => text.is_none(),
        1 => text.is_some() && decoded(headers, &name) == text,
        // Repeated headers are refused, because an intermediary may use another value than airlock.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(said: &[&str], args: &Value, expected: bool) {
        let schema = json!({"properties": {
            "s": {"type": "string", "x-mcp-header": "S"},
        }});
        let mirrored = headers::mirrored(&schema).unwrap();
        let mut headers = HeaderMap::new();
        for text in said {
            headers.append("mcp-param-s", text.parse().unwrap());
        }
        let says = says(&headers, &mirrored[0], args.as_object().unwrap());
        assert_eq!(says, expected, "{said:?} {args}");
    }

    #[test]
    fn mirrored_header_matches_its_argument() {
        check(&[], &json!({}), true);
        check(&[], &json!({"s": null}), true);
        check(&["a"], &json!({"s": "a"}), true);
        check(&["=?base64?SGVsbG8=?="], &json!({"s": "Hello"}), true);
        check(&["SGVsbG8="], &json!({"s": "SGVsbG8="}), true);
        check(
            &["=?base64?SGVsbG8="],
            &json!({"s": "=?base64?SGVsbG8="}),
            true,
        );
        check(&["true"], &json!({"s": true}), true);
        check(&["42"], &json!({"s": 42}), true);
    }

    #[test]
    fn mismatching_or_repeated_mirrored_header_is_refused() {
        check(&[], &json!({"s": "a"}), false);
        check(&["a"], &json!({}), false);
        check(&["a"], &json!({"s": "b"}), false);
        check(&["a", "a"], &json!({"s": "a"}), false);
        check(&["=?base64?SGVsbG8?="], &json!({"s": "Hello"}), false);
        check(&["=?base64?SGVs!!!bG8=?="], &json!({"s": "Hello"}), false);
        check(&["True"], &json!({"s": true}), false);
        check(&["1.0"], &json!({"s": "1"}), false);
    }
}
