//! Walks a JSON Schema: finds the schemas inside it and resolves references. Only references within
//! the same document are followed.

use serde_json::{Map, Value};

/// How a schema applies an inner schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applies {
    /// To the same instance: `anyOf`, `$ref`, `then` …
    Here,
    /// To a part of the instance: `properties`, `items` …
    Below,
    /// Only through a reference: `$defs`.
    Never,
}

pub(crate) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

const HERE_ONE: [&str; 4] = ["not", "if", "then", "else"];
const HERE_MANY: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const BELOW_ONE: [&str; 8] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];
const BELOW_MANY: [&str; 2] = ["prefixItems", "items"];
const BELOW_NAMED: [&str; 2] = ["properties", "patternProperties"];
const HERE_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
const NEVER_NAMED: [&str; 2] = ["$defs", "definitions"];

/// Returns every keyword that contains schemas.
#[cfg(test)]
pub(crate) fn keywords() -> impl Iterator<Item = &'static str> {
    let one = HERE_ONE.iter().chain(&BELOW_ONE);
    let many = HERE_MANY.iter().chain(&BELOW_MANY);
    let named = BELOW_NAMED.iter().chain(&HERE_NAMED).chain(&NEVER_NAMED);
    one.chain(many).chain(named).copied()
}

/// Returns every schema directly inside `schema`. References are not followed.
pub(crate) fn inner(schema: &Map<String, Value>) -> Vec<(Applies, &Value)> {
    let mut out = Vec::new();
    for (applies, keywords) in [
        (Applies::Here, &HERE_ONE[..]),
        (Applies::Below, &BELOW_ONE[..]),
    ] {
        let found = keywords.iter().filter_map(|keyword| schema.get(*keyword));
        out.extend(
            found
                .filter(|value| is_schema(value))
                .map(|value| (applies, value)),
        );
    }
    for (applies, keywords) in [
        (Applies::Here, &HERE_MANY[..]),
        (Applies::Below, &BELOW_MANY[..]),
    ] {
        let lists = keywords
            .iter()
            .filter_map(|keyword| schema.get(*keyword)?.as_array());
        out.extend(
            lists
                .flatten()
                .filter(|value| is_schema(value))
                .map(|value| (applies, value)),
        );
    }
    for (applies, keywords) in [
        (Applies::Below, &BELOW_NAMED[..]),
        (Applies::Here, &HERE_NAMED[..]),
        (Applies::Never, &NEVER_NAMED[..]),
    ] {
        let maps = keywords
            .iter()
            .filter_map(|keyword| schema.get(*keyword)?.as_object());
        let values = maps.flat_map(Map::values);
        out.extend(
            values
                .filter(|value| is_schema(value))
                .map(|value| (applies, value)),
        );
    }
    out
}

/// Returns all references directly in `schema`.
pub(crate) fn references(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    REFERENCES
        .iter()
        .filter_map(|keyword| schema.get(*keyword)?.as_str())
}

pub(crate) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Returns the target of a reference inside the document `root`; `None` for any other reference.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let own_id = root.get("$id").and_then(Value::as_str).unwrap_or_default();
    let fragment = match reference.split_once('#') {
        Some((base, fragment)) if base.is_empty() || same_document(base, own_id) => fragment,
        None if !own_id.is_empty() && same_document(reference, own_id) => "",
        _ => return None,
    };
    let fragment = percent_decoded(fragment)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&fragment).filter(|value| is_schema(value));
    }
    anchored(root, &fragment, 0)
}

fn same_document(base: &str, own_id: &str) -> bool {
    base == own_id.trim_end_matches('#')
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high << 4 | low).ok()?
            }
            other => other,
        };
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok()
}

/// Searches depth-first for `$anchor`, `$dynamicAnchor` or an old `$id: "#name"`.
fn anchored<'a>(value: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
    let schema = value.as_object().filter(|_| depth < DEPTH_MAX)?;
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let old_style = |keyword: &str| text(keyword).and_then(|id| id.strip_prefix('#')) == Some(name);
    if text("$anchor") == Some(name)
        || text("$dynamicAnchor") == Some(name)
        || old_style("$id")
        || old_style("id")
    {
        return Some(value);
    }
    inner(schema)
        .into_iter()
        .find_map(|(_, next)| anchored(next, name, depth + 1))
}

/// Maximum depth of nested JSON values in a description.
pub(crate) const DEPTH_MAX: usize = 100;
/// Maximum number of JSON values in one description.
pub(crate) const NODES_MAX: usize = 20_000;
/// Maximum total size in bytes of all keys and strings in one description.
pub(crate) const TEXT_BYTES_MAX: usize = 512 * 1024;

/// Whether a JSON value stays within the limits above. Safe for any depth.
pub(crate) fn is_bounded(value: &Value) -> bool {
    let (mut nodes, mut bytes) = (0_usize, 0_usize);
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                bytes += members.keys().map(String::len).sum::<usize>();
                open.extend(members.values().map(|member| (member, depth + 1)));
            }
            _ => {}
        }
        if depth > DEPTH_MAX || nodes + open.len() > NODES_MAX || bytes > TEXT_BYTES_MAX {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_resolve_within_document_only() {
        let root = json!({
            "$id": "https://example.com/tool",
            "$defs": {"a/b": {"type": "string"}, "n": {"$anchor": "here", "type": "null"}},
        });
        let check = |reference: &str, expected: Option<&Value>| {
            assert_eq!(resolve(&root, reference), expected, "{reference}");
        };
        check("#", Some(&root));
        check("#/$defs/a~1b", Some(&json!({"type": "string"})));
        check("#/%24defs/a~1b", Some(&json!({"type": "string"})));
        check("https://example.com/tool#here", root.pointer("/$defs/n"));
        check("https://example.com/tool", Some(&root));
        check("https://example.com/x.json", None);
        check("other.json#/a", None);
        check("#/$defs/missing", None);
        check("#%zz", None);
    }

    #[test]
    fn too_deep_or_large_value_is_rejected() {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!([deep]);
        }
        assert!(!is_bounded(&deep));
        assert!(!is_bounded(&json!(["x".repeat(TEXT_BYTES_MAX + 1)])));
        assert!(is_bounded(&json!({"a": [1, 2, {"b": null}]})));
    }
}
