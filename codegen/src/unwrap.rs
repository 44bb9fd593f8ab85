//! The `{result: X}` wrapper: many servers can only return objects, and put any other value under
//! the single key `result`. The script gets `X` itself.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

const KEY: &str = "result";
/// The member that a widespread server library adds to the schema of a wrapper.
const MARKER: &str = "x-fastmcp-wrap-result";
/// Keywords that may add members which `properties` does not list.
const OPENING: [&str; 8] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
];

/// Whether a schema describes an object with the key `result` and no other declared key.
#[must_use]
pub fn is_wrapper(output_schema: &Value) -> bool {
    inner_schema(output_schema).is_some()
}

/// Returns the schema of `X`. Its references are relative to the whole output schema.
#[must_use]
pub fn inner_schema(output_schema: &Value) -> Option<&Value> {
    let schema = output_schema.as_object()?;
    let inner = sole_property(schema)?;
    let required = schema.get("required").and_then(Value::as_array);
    let always_there = required.is_some_and(|names| names.iter().any(|name| name == KEY));
    let marked = schema.get(MARKER) == Some(&Value::Bool(true));
    let is_object = schema.get("type").is_none_or(|name| name == "object");
    let closed = OPENING
        .iter()
        .all(|it| matches!(schema.get(*it), None | Some(Value::Bool(false))));
    (is_object && closed && (always_there || marked)).then_some(inner)
}

/// Finds `X` in JSON text without building a value. The returned text is a part of `json`.
#[must_use]
pub fn inner_text(json: &[u8]) -> Option<&[u8]> {
    #[derive(Deserialize)]
    struct Wrapper<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let wrapper: Wrapper<'_> = serde_json::from_slice(json).ok()?;
    Some(wrapper.result.get().as_bytes())
}

fn sole_property(schema: &Map<String, Value>) -> Option<&Value> {
    let properties = schema.get("properties")?.as_object()?;
    properties.get(KEY).filter(|_| properties.len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrapper_is_object_with_only_result_key() {
        let check = |schema: Value, expected| assert_eq!(is_wrapper(&schema), expected, "{schema}");
        let properties = json!({"result": {"type": "string"}});
        check(
            json!({"type": "object", "properties": properties, "required": ["result"]}),
            true,
        );
        check(
            json!({"properties": properties, "x-fastmcp-wrap-result": true}),
            true,
        );
        check(json!({"type": "object", "properties": properties}), false);
        check(
            json!({"properties": properties, "required": ["result"], "additionalProperties": true}),
            false,
        );
        check(
            json!({"properties": properties, "required": ["result"], "additionalProperties": false}),
            true,
        );
        check(
            json!({"properties": {"result": true, "more": true}, "required": ["result"]}),
            false,
        );
        check(
            json!({"properties": properties, "required": ["result"], "type": ["object", "null"]}),
            false,
        );
        check(json!(true), false);
    }

    #[test]
    fn unwrap_returns_inner_value() {
        assert_eq!(inner_text(br#"{"result": [1, 2]}"#), Some(&b"[1, 2]"[..]));
        assert_eq!(inner_text(br#"{"result": 1"#), None);
        assert_eq!(inner_text(b"[]"), None);
    }
}
