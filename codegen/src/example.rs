//! Makes an example of a tool's arguments from its schema, for tools without one.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use crate::schema::resolve;
use crate::validate::Validator;

/// Maximum depth of nested values in an example.
const DEPTH_MAX: usize = 6;
/// Maximum number of schemas that are tried, because alternatives may contain each other.
const TRIES_MAX: u32 = 1_000;

/// Returns arguments that the schema accepts: the required ones, with the schema's own examples and
/// defaults where it has any. Returns `None` if no such arguments are found.
#[must_use]
pub fn example(schema: &Value) -> Option<Value> {
    let made = Maker::new(schema).value(schema, 0)?;
    let is_right = made.is_object() && Validator::compile(schema).is_ok_and(|it| it.accepts(&made));
    is_right.then_some(made)
}

struct Maker<'a> {
    root: &'a Value,
    tries_left: Cell<u32>,
}

impl<'a> Maker<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            tries_left: Cell::new(TRIES_MAX),
        }
    }

    fn value(&self, schema: &Value, depth: usize) -> Option<Value> {
        self.tries_left.set(self.tries_left.get().checked_sub(1)?);
        if depth > DEPTH_MAX {
            return None;
        }
        let Some(members) = schema.as_object() else {
            return (*schema == Value::Bool(true)).then(|| json!("any"));
        };
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            return self.value(resolve(self.root, target)?, depth + 1);
        }
        let first = |key: &str| members.get(key)?.as_array()?.first().cloned();
        let given = members.get("const").cloned();
        let given = given.or_else(|| first("examples"));
        let given = given.or_else(|| members.get("default").filter(|it| !it.is_null()).cloned());
        if let Some(given) = given.or_else(|| first("enum")) {
            return Some(given);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            let choices = members.get(key).and_then(Value::as_array);
            let mut choices = choices.into_iter().flatten();
            if let Some(found) = choices.find_map(|it| self.value(it, depth + 1)) {
                return Some(found);
            }
        }
        self.of_type(members, depth)
    }

    fn of_type(&self, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        let named = match members.get("type") {
            Some(Value::Array(types)) => types.iter().find(|it| *it != "null"),
            named => named,
        };
        let number = |key: &str| members.get(key).and_then(Value::as_f64);
        match named.and_then(Value::as_str) {
            Some("boolean") => Some(json!(true)),
            Some("null") => Some(Value::Null),
            Some("integer" | "number") => {
                let above = number("exclusiveMinimum").map(|it| it + 1.0);
                let least = number("minimum").or(above);
                let most = number("maximum").unwrap_or(f64::MAX);
                let value = least.unwrap_or(1.0).min(most);
                Some(match value.fract() == 0.0 && value.abs() < 1e15 {
                    true => json!(value as i64),
                    false => json!(value),
                })
            }
            Some("array") => {
                let item = members.get("items").unwrap_or(&Value::Bool(true));
                let least = members.get("minItems").and_then(Value::as_u64);
                let count = usize::try_from(least.unwrap_or(1).max(1)).ok()?.min(8);
                let item = self.value(item, depth + 1)?;
                Some(vec![item; count].into())
            }
            Some("string") => Some(text(members).into()),
            None | Some("object") => self.object(members, depth),
            Some(_) => None,
        }
    }

    fn object(&self, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        let required = members.get("required").and_then(Value::as_array);
        let required: Vec<_> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = members.get("properties").and_then(Value::as_object);
        let has_own_value = |schema: &Value| {
            let keys = ["examples", "const"];
            keys.iter().any(|key| schema.get(*key).is_some())
        };
        let mut made = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            if required.contains(&name.as_str()) {
                made.insert(name.clone(), self.value(schema, depth + 1)?);
            } else if depth == 0 && has_own_value(schema) {
                made.extend(self.value(schema, depth + 1).map(|it| (name.clone(), it)));
            }
        }
        Some(made.into())
    }
}

/// Returns a text of the schema's format.
fn text(members: &Map<String, Value>) -> String {
    let format = members.get("format").and_then(Value::as_str);
    let text = match format.unwrap_or_default() {
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T12:00:00Z",
        "time" => "12:00:00Z",
        "duration" => "PT1H",
        "email" => "someone@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "url" | "uri-reference" => "https://example.com/",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        _ => "text",
    };
    let least = members
        .get("minLength")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let most = members.get("maxLength").and_then(Value::as_u64);
    let least = usize::try_from(least).unwrap_or(usize::MAX).min(200);
    let most = most
        .and_then(|it| usize::try_from(it).ok())
        .unwrap_or(usize::MAX);
    let letters = text.chars().chain(std::iter::repeat('x'));
    letters.take(text.len().max(least).min(most)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_has_required_arguments_of_the_right_type() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 6},
                "to": {"type": "string", "format": "email"},
                "count": {"type": "integer", "minimum": 3},
                "kind": {"enum": ["bug", "task"]},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
                "limit": {"type": "integer", "examples": [10]},
                "verbose": {"type": "boolean"},
                "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            },
            "required": ["path", "to", "count", "kind", "tags", "either"],
            "$defs": {"tag": {"type": "string", "default": "urgent"}},
        });
        let expected = json!({
            "path": "textxx", "to": "someone@example.com", "count": 3, "kind": "bug",
            "tags": ["urgent"], "limit": 10, "either": null,
        });
        assert_eq!(example(&schema), Some(expected));
        assert_eq!(example(&json!({"type": "object"})), Some(json!({})));
    }

    #[test]
    fn no_example_is_better_than_a_wrong_one() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[0-9]+$"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 1}}, "required": ["a"]}),
            json!({"not": {}}),
        ] {
            assert_eq!(example(&schema), None, "{schema}");
        }
    }
}
