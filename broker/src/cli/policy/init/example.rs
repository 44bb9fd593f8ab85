//! Makes arguments that an input schema accepts, with the required members only.

use codegen::validate::Validator;
use serde_json::{Map, Value, json};

/// Maximum nesting of an example. Schemas of real tools nest less.
const DEPTH_MAX: usize = 6;

/// Returns `None` if the schema accepts none of the examples that this module makes.
pub(super) fn arguments(schema: &Value) -> Option<Value> {
    let example = value(schema, DEPTH_MAX)?;
    let validator = Validator::compile(schema).ok()?;
    let fits = example.is_object() && validator.errors("args", &example).is_empty();
    fits.then_some(example)
}

fn value(schema: &Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    for key in ["const", "default"] {
        if let Some(value) = schema.get(key).filter(|it| fits_toml(it)) {
            return Some(value.clone());
        }
    }
    for key in ["enum", "examples"] {
        let choices = schema.get(key).and_then(Value::as_array);
        let mut choices = choices.into_iter().flatten();
        if let Some(first) = choices.find(|it| fits_toml(it)) {
            return Some(first.clone());
        }
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            return choices.iter().find_map(|it| value(it, depth));
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|it| *it != "null")?
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    };
    match kind {
        "object" => object(schema, depth),
        "array" => {
            let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let count = usize::try_from(count).ok().filter(|it| *it <= 16)?;
            let anything = json!({});
            let items = schema.get("items").unwrap_or(&anything);
            let items = std::iter::repeat_with(|| value(items, depth)).take(count);
            items.collect::<Option<Vec<_>>>().map(Value::from)
        }
        "integer" | "number" => {
            let least = schema.get("minimum").and_then(Value::as_i64).unwrap_or(1);
            let most = schema.get("maximum").and_then(Value::as_i64);
            Some(least.max(1).min(most.unwrap_or(i64::MAX)).into())
        }
        "boolean" => Some(false.into()),
        "string" => Some(text(schema).into()),
        _ => None,
    }
}

/// Whether cases, which are written in TOML, can have this value. TOML has no null, and its
/// integers are signed.
fn fits_toml(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Number(number) => number.is_i64() || !number.is_u64(),
        Value::Array(items) => items.iter().all(fits_toml),
        Value::Object(members) => members.values().all(fits_toml),
        Value::Bool(_) | Value::String(_) => true,
    }
}

fn object(schema: &Value, depth: usize) -> Option<Value> {
    let nothing = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.unwrap_or(&nothing);
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let mut members = Map::new();
    for name in required {
        let anything = json!({});
        let member = value(properties.get(name).unwrap_or(&anything), depth)?;
        members.insert(name.to_owned(), member);
    }
    Some(members.into())
}

fn text(schema: &Value) -> String {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "someone@example.com",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "example",
    };
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let least = usize::try_from(least).unwrap_or(0).min(1_000);
    match text.len() < least {
        true => "x".repeat(least),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Option<Value>) {
        assert_eq!(arguments(&schema), expected, "{schema}");
    }

    #[test]
    fn example_has_the_required_members() {
        check(json!({"type": "object"}), Some(json!({})));
        check(
            json!({
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "minimum": 5},
                    "kind": {"enum": ["bug", "task"]},
                    "at": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
                    "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    "note": {"type": "string"},
                },
                "required": ["id", "kind", "at", "tags"],
            }),
            Some(json!({"id": 5, "kind": "bug", "at": "2026-01-31", "tags": ["example"]})),
        );
    }

    #[test]
    fn example_that_does_not_fit_is_left_out() {
        let pattern = json!({"type": "string", "pattern": "^[0-9]{9}$"});
        let schema = json!({"type": "object", "properties": {"id": pattern}, "required": ["id"]});
        check(schema, None);
    }

    #[test]
    fn example_has_no_null() {
        let of = |member: Value| {
            let schema = json!({"type": "object", "properties": {"a": member}, "required": ["a"]});
            arguments(&schema)
        };
        let text = Some(json!({"a": "x"}));
        assert_eq!(of(json!({"enum": [null, "x"]})), text);
        assert_eq!(of(json!({"examples": [[null], "x"]})), text);
        assert_eq!(of(json!({"enum": [null]})), None);
        let object = json!({"type": "object", "default": {"b": null}});
        assert_eq!(of(object), Some(json!({"a": {}})));
        let nullable = json!({"type": ["null", "string"]});
        assert_eq!(of(nullable), Some(json!({"a": "example"})));
    }
}
