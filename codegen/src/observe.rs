//! Derives a schema from observed values, for tools whose server declares no output schema. The
//! schema never contains the values themselves, and only keys that look like names and not like
//! content.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema::DEPTH_MAX;

/// Maximum number of different keys of a record. An object with more keys is a map.
const KEYS_MAX: usize = 48;
const KEY_BYTES_MAX: usize = 64;

/// The observed values at one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    count: u64,
    kinds: BTreeSet<Kind>,
    items: Option<Box<Observation>>,
    objects: u64,
    members: BTreeMap<String, Observation>,
    /// The values of an object whose keys are content.
    values: Option<Box<Observation>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

impl Observation {
    pub fn add(&mut self, value: &Value) {
        self.look(value, 0);
    }

    /// Returns the number of values observed here.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    fn look(&mut self, value: &Value, depth: usize) {
        self.count += 1;
        if depth > DEPTH_MAX {
            return;
        }
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(number) if is_whole(number) => Kind::Integer,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(items) => {
                let seen = self.items.get_or_insert_default();
                items.iter().for_each(|item| seen.look(item, depth + 1));
                Kind::Array
            }
            Value::Object(members) => {
                self.look_at(members, depth);
                Kind::Object
            }
        };
        self.kinds.insert(kind);
    }

    fn look_at(&mut self, members: &Map<String, Value>, depth: usize) {
        self.objects += 1;
        let is_table = self.values.is_some() || !members.keys().all(|key| is_name(key));
        for (key, member) in members {
            let seen = if is_table {
                self.values.get_or_insert_default()
            } else {
                self.members.entry(key.clone()).or_default()
            };
            seen.look(member, depth + 1);
        }
        if is_table || self.members.len() > KEYS_MAX {
            let all = self.values.get_or_insert_default();
            std::mem::take(&mut self.members)
                .into_values()
                .for_each(|seen| all.join(seen));
        }
    }

    fn join(&mut self, other: Self) {
        self.count += other.count;
        self.objects += other.objects;
        self.kinds.extend(other.kinds);
        if let Some(items) = other.items {
            self.items.get_or_insert_default().join(*items);
        }
        if let Some(values) = other.values {
            self.values.get_or_insert_default().join(*values);
        }
        for (key, seen) in other.members {
            self.members.entry(key).or_default().join(seen);
        }
    }

    /// Returns a schema that all observed values fit. It does not forbid values of other forms.
    #[must_use]
    pub fn schema(&self) -> Value {
        let mut kinds = self.kinds.clone();
        if kinds.contains(&Kind::Number) {
            kinds.remove(&Kind::Integer);
        }
        let mut names: Vec<Value> = kinds.iter().map(|kind| kind.name().into()).collect();
        let mut schema = Map::new();
        match names.len() {
            0 => {}
            1 => drop(schema.insert("type".into(), names.remove(0))),
            _ => drop(schema.insert("type".into(), names.into())),
        }
        if let Some(items) = self.items.as_ref().filter(|items| items.count > 0) {
            schema.insert("items".into(), items.schema());
        }
        if let Some(values) = &self.values {
            schema.insert("additionalProperties".into(), values.schema());
        } else if self.objects > 0 {
            let member = |(key, seen): (&String, &Self)| (key.clone(), seen.schema());
            let properties: Map<String, Value> = self.members.iter().map(member).collect();
            let always =
                |(key, seen): (&String, &Self)| (seen.count == self.objects).then(|| json!(key));
            let required: Vec<Value> = self.members.iter().filter_map(always).collect();
            schema.insert("properties".into(), properties.into());
            if !required.is_empty() {
                schema.insert("required".into(), required.into());
            }
        }
        Value::Object(schema)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Null => "null",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// Whether a key looks like a name that a programmer chose.
fn is_name(key: &str) -> bool {
    let continues = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    let digits = key.chars().filter(char::is_ascii_digit).count();
    key.len() <= KEY_BYTES_MAX
        && key.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
        && key.chars().all(continues)
        && digits <= 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::Validator;

    fn seen(values: &[Value]) -> Observation {
        let mut seen = Observation::default();
        values.iter().for_each(|value| seen.add(value));
        seen
    }

    fn check(values: &[Value], expected: &Value) {
        let schema = seen(values).schema();
        assert_eq!(&schema, expected);
        let validator = Validator::compile(&schema).unwrap();
        for value in values {
            assert!(validator.accepts(value), "{value} does not fit {schema}");
        }
    }

    #[test]
    fn observed_schema_fits_all_and_requires_constant_keys() {
        check(
            &[
                json!({"a": 1, "b": null}),
                json!({"a": 2.5, "b": "x", "c": [1, "y"]}),
            ],
            &json!({"type": "object", "properties": {
                "a": {"type": "number"}, "b": {"type": ["null", "string"]},
                "c": {"type": "array", "items": {"type": ["integer", "string"]}},
            }, "required": ["a", "b"]}),
        );
        check(
            &[json!("x"), json!([])],
            &json!({"type": ["array", "string"]}),
        );
        check(
            &[json!([{"a": 1}, {}])],
            &json!({"type": "array", "items":
            {"type": "object", "properties": {"a": {"type": "integer"}}}}),
        );
    }

    #[test]
    fn content_keys_are_not_properties() {
        for key in [
            "ann@example.com",
            "sk-4f9a01c88e1",
            "two words",
            "日本語",
            &"x".repeat(80),
        ] {
            let schema = seen(&[json!({"known": 1}), json!({key: {"n": 1}})]).schema();
            assert!(!schema.to_string().contains(key), "{schema}");
            assert!(schema.get("additionalProperties").is_some(), "{schema}");
        }
        let many: Map<String, Value> = (0..60).map(|n| (format!("k{n}"), json!(n))).collect();
        check(
            &[Value::Object(many)],
            &json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        );
    }

    #[test]
    fn observation_order_does_not_matter() {
        let mut values = vec![
            json!({"a": 1}),
            json!({"x y": "z"}),
            json!([1]),
            json!({"b": {}}),
        ];
        let schema = seen(&values).schema();
        values.reverse();
        assert_eq!(seen(&values).schema(), schema);
    }
}
