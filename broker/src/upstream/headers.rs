//! Handles `x-mcp-header`, which marks arguments that must be repeated in HTTP headers.
//!
//! Only properties that are reached through `properties` alone can be marked, and only strings,
//! integers and booleans. A tool with a mark at another place or type must not be used over HTTP.

use std::collections::HashSet;

use serde_json::{Map, Value};

use base64::prelude::{BASE64_STANDARD, Engine as _};

const MARK: &str = "x-mcp-header";

/// One repeated argument, and its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MirroredHeader {
    path: Vec<String>,
    header: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHeaderMark {
    #[error("`{0}` is not a valid header name")]
    Name(String),
    #[error("two arguments use the header `{0}`")]
    Twice(String),
    #[error("the argument `{0}` has `x-mcp-header` but is not a string, integer or boolean")]
    Type(String),
    #[error("an `x-mcp-header` is not on an argument that is reached through `properties` alone")]
    Place,
}

/// Returns the marked arguments of a tool from its input schema.
pub(crate) fn mirrored(schema: &Value) -> Result<Vec<MirroredHeader>, BadHeaderMark> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    if found.len() != marks(schema) {
        return Err(BadHeaderMark::Place);
    }
    let mut seen = HashSet::new();
    for mirrored in &found {
        if !seen.insert(mirrored.header.to_ascii_lowercase()) {
            return Err(BadHeaderMark::Twice(mirrored.header.clone()));
        }
    }
    Ok(found)
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<MirroredHeader>,
) -> Result<(), BadHeaderMark> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            let header = mark.as_str().unwrap_or_default();
            if header.is_empty() || !header.bytes().all(is_token) {
                return Err(BadHeaderMark::Name(mark.to_string()));
            }
            if !is_plain(property) {
                return Err(BadHeaderMark::Type(path.join(".")));
            }
            found.push(MirroredHeader {
                path: path.clone(),
                header: header.to_owned(),
            });
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn is_plain(property: &Value) -> bool {
    matches!(
        property.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "boolean")
    )
}

/// Whether the byte is a `tchar` of RFC 9110.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Counts the marks at all places. A property that is named `x-mcp-header` is not a mark.
fn marks(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(marks).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| marks_in(key, value))
            .sum(),
        _ => 0,
    }
}

fn marks_in(key: &str, value: &Value) -> usize {
    match (key, value) {
        (MARK, _) => 1,
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
            named.values().map(marks).sum()
        }
        ("default" | "examples" | "const" | "enum", _) => 0,
        _ => marks(value),
    }
}

/// Returns the headers for one call. An argument that is absent or null has no header.
pub(crate) fn headers_for(
    mirrored: &[MirroredHeader],
    arguments: &Map<String, Value>,
) -> Vec<(String, String)> {
    mirrored
        .iter()
        .filter_map(|it| Some((it.name(), encoded(&it.text_in(arguments)?))))
        .collect()
}

impl MirroredHeader {
    /// Returns the full name of the header.
    pub(crate) fn name(&self) -> String {
        format!("Mcp-Param-{}", self.header)
    }

    /// Returns the value of the header before encoding, or `None` for an argument that is absent or
    /// null.
    pub(crate) fn text_in(&self, arguments: &Map<String, Value>) -> Option<String> {
        plain_text(find(&self.path, arguments)?)
    }
}

fn find<'a>(path: &[String], arguments: &'a Map<String, Value>) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(arguments.get(first)?, |value, key| value.get(key))
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Encodes a header value: unchanged if it is safe, otherwise in the base64 form of the
/// specification.
pub(crate) fn encoded(text: &str) -> String {
    let safe = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let bare = text.trim() == text && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if safe && bare {
        return text.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn header_marks_are_found_in_nested_properties() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "x-mcp-header": {"type": "string"},
            "options": {"type": "object", "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "gone": {"type": "string", "x-mcp-header": "Gone"}
        }});
        let arguments =
            json!({"region": "Zürich", "options": {"limit": 42}, "dry": false, "gone": null});
        let headers = headers_for(&mirrored(&schema).unwrap(), arguments.as_object().unwrap());
        assert_eq!(
            headers,
            [
                (
                    "Mcp-Param-Region".to_owned(),
                    "=?base64?WsO8cmljaA==?=".to_owned()
                ),
                ("Mcp-Param-Limit".to_owned(), "42".to_owned()),
                ("Mcp-Param-Dry".to_owned(), "false".to_owned()),
            ]
        );
    }

    #[test]
    fn misplaced_or_mistyped_header_mark_is_refused() {
        let one = |property: Value| mirrored(&json!({"properties": {"a": property}}));
        assert_eq!(
            one(json!({"type": "string", "x-mcp-header": "a b"})),
            Err(BadHeaderMark::Name("\"a b\"".into()))
        );
        assert_eq!(
            one(json!({"type": "string", "x-mcp-header": 1})),
            Err(BadHeaderMark::Name("1".into()))
        );
        assert_eq!(
            one(json!({"type": "number", "x-mcp-header": "A"})),
            Err(BadHeaderMark::Type("a".into()))
        );
        assert_eq!(
            one(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
            Err(BadHeaderMark::Place)
        );
        assert_eq!(
            one(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]})),
            Err(BadHeaderMark::Place)
        );
        let twice = json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "Same"},
            "b": {"type": "string", "x-mcp-header": "same"}
        }});
        assert_eq!(mirrored(&twice), Err(BadHeaderMark::Twice("same".into())));
    }

    #[test]
    fn unsafe_header_value_is_sent_as_base64() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("a b", "a b"),
            ("", ""),
            (" a", "=?base64?IGE=?="),
            ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(encoded(text), expected);
        }
    }
}
