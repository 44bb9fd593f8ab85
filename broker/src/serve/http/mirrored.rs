//! Arguments that a listed schema wants repeated in headers (`x-mcp-header`), so
//! that whatever stands between a host and us can tell calls apart by them: what
//! stands there has to be what stands in the message.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::coded::decoded;
use super::post::mismatch;
use crate::serve::meta;
use crate::serve::rpc::Refusal;
use crate::serve::shelf::Shelf;
use crate::upstream::headers::{self, Mirrored};

/// Whether a call of a tool is repeated as the list says.
pub(super) fn check(shelf: &Shelf, params: &Value, headers: &HeaderMap) -> Result<(), Refusal> {
    let name = params.get("name").and_then(Value::as_str);
    let tool = name.and_then(|it| shelf.find(it));
    let schema = tool.and_then(|it| meta::listed_schema(&shelf.broker.known(), it));
    let marked = schema.and_then(|it| headers::mirrored(&it).ok());
    let nothing = Map::new();
    let args = params.get("arguments").and_then(Value::as_object);
    let differs = |it: &Mirrored| !says(headers, it, args.unwrap_or(&nothing));
    match marked.unwrap_or_default().iter().find(|it| differs(it)) {
        Some(mirrored) => Err(mismatch(&mirrored.name())),
        None => Ok(()),
    }
}

/// An argument that is not there is not repeated either.
fn says(headers: &HeaderMap, mirrored: &Mirrored, args: &Map<String, Value>) -> bool {
    let name = mirrored.name();
    let text = mirrored.text_in(args);
    match headers.get_all(&name).iter().count() {
        0 => text.is_none(),
        1 => text.is_some() && decoded(headers, &name) == text,
        // Others may go by another one than we.
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
    fn a_header_says_what_its_argument_says_and_is_there_when_it_is() {
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
    fn a_header_that_says_something_else_or_too_often_is_found() {
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
