//! Simplifies a schema for a generator that reads draft-07 and panics on unknown input. Keywords
//! that only narrow a type are removed, and newer spellings are replaced with older ones. A schema
//! that the generator cannot express becomes "anything" and is listed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema;
use crate::text;

/// Keywords that determine the type. All other keywords only narrow or decorate the type, or are
/// resolved here.
const KEPT: [&str; 13] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "additionalItems",
    "minItems",
    "maxItems",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "minimum",
];

/// Returns the schema under the name `root`, and a list of the rules that it no longer expresses.
pub(super) fn normalised(root: &str, schema: &Value) -> (Value, BTreeSet<String>) {
    let mut normal = Normal {
        whole: schema,
        names: BTreeMap::new(),
        waiting: Vec::new(),
        lost: BTreeSet::new(),
    };
    let mut out = normal.schema(schema, 0);
    let mut definitions = Map::new();
    while let Some((name, reference)) = normal.waiting.pop() {
        let target = schema::resolve(schema, &reference).unwrap_or(&Value::Bool(true));
        let definition = normal.schema(target, 0);
        definitions.insert(name, definition);
    }
    definitions.sort_keys();
    if let Some(members) = out.as_object_mut() {
        members.insert("title".into(), root.into());
        members.insert("definitions".into(), definitions.into());
    } else {
        out = json!({"title": root});
    }
    (out, normal.lost)
}

struct Normal<'a> {
    whole: &'a Value,
    /// The name of the definition for each reference.
    names: BTreeMap<String, String>,
    /// Definitions that are not written yet.
    waiting: Vec<(String, String)>,
    lost: BTreeSet<String>,
}

impl Normal<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(members) = schema.as_object() else {
            return Value::Bool(schema != &Value::Bool(false));
        };
        if depth > schema::DEPTH_MAX {
            return Value::Bool(true);
        }
        if let Some(reference) = schema::references(members).next() {
            return self.reference(reference);
        }
        let mut out = Map::new();
        for keyword in KEPT {
            if let Some(value) = members.get(keyword) {
                self.keyword(keyword, value, depth, &mut out);
            }
        }
        self.others(members, depth, &mut out);
        if let Some(prose) = members.get("description").and_then(Value::as_str) {
            out.insert("description".into(), text::neutralise(prose).into());
        }
        typed_enum(&mut out);
        Value::Object(out)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        depth: usize,
        out: &mut Map<String, Value>,
    ) {
        let value = match (keyword, value) {
            // The only bound that is kept, because it makes a number unsigned.
            ("minimum", bound) if bound.as_f64() == Some(0.0) => bound.clone(),
            ("minimum", _) => return,
            ("items", Value::Array(items)) => self.list(items, depth),
            ("items" | "additionalProperties" | "additionalItems", value) => {
                self.schema(value, depth + 1)
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(members)) => self.list(members, depth),
            ("properties", Value::Object(members)) => self.named(members, depth),
            (_, value) => value.clone(),
        };
        out.insert(keyword.to_owned(), value);
    }

    /// Rewrites newer keywords as their older equivalents, such as `const` as `enum`. Records
    /// keywords that have no equivalent.
    fn others(&mut self, members: &Map<String, Value>, depth: usize, out: &mut Map<String, Value>) {
        if let Some(value) = members.get("const") {
            out.insert("enum".into(), json!([value]));
        }
        if let Some(Value::Array(items)) = members.get("prefixItems") {
            let rest = members.get("items");
            let rest = rest.map_or(Value::Bool(true), |rest| self.schema(rest, depth + 1));
            out.insert("items".into(), self.list(items, depth));
            out.insert("additionalItems".into(), rest);
        }
        if let Some(Value::Object(patterns)) = members.get("patternProperties") {
            let values = self.named(patterns, depth);
            let sole = values.as_object().filter(|it| it.len() == 1);
            match sole.and_then(|it| it.values().next()) {
                Some(value) if !out.contains_key("properties") => {
                    out.insert("additionalProperties".into(), value.clone());
                }
                _ => {
                    self.lost.insert("which keys may have which values".into());
                }
            }
        }
        for keyword in [
            "not",
            "if",
            "dependentSchemas",
            "dependentRequired",
            "dependencies",
        ] {
            if members.contains_key(keyword) {
                self.lost.insert(format!("`{keyword}`"));
            }
        }
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Value {
        items
            .iter()
            .map(|item| self.schema(item, depth + 1))
            .collect()
    }

    fn named(&mut self, members: &Map<String, Value>, depth: usize) -> Value {
        let inner =
            |(name, member): (&String, &Value)| (name.clone(), self.schema(member, depth + 1));
        Value::Object(members.iter().map(inner).collect())
    }

    /// Moves every referenced schema into a definition, wherever it is in the document.
    fn reference(&mut self, reference: &str) -> Value {
        if schema::resolve(self.whole, reference).is_none() {
            self.lost.insert(format!(
                "what `{}` refers to",
                text::clip(&text::neutralise(reference), 80)
            ));
            return Value::Bool(true);
        }
        let taken = self.names.len();
        let name = match self.names.get(reference) {
            Some(name) => name.clone(),
            None => {
                let name = definition_name(reference, taken);
                let is_taken = self.names.values().any(|it| *it == name);
                let name = if is_taken {
                    format!("{name}{taken}")
                } else {
                    name
                };
                self.names.insert(reference.to_owned(), name.clone());
                self.waiting.push((name.clone(), reference.to_owned()));
                name
            }
        };
        json!({"$ref": format!("#/definitions/{name}")})
    }
}

/// Returns the last segment of a reference if it is a word.
fn definition_name(reference: &str, number: usize) -> String {
    let last = reference.rsplit(['/', '#']).next().unwrap_or_default();
    let word: String = last.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_own_root = word.eq_ignore_ascii_case("args") || word.eq_ignore_ascii_case("output");
    if word.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_own_root {
        word
    } else {
        format!("Shared{number}{word}")
    }
}

/// Adds the type to an `enum`, because the generator only supports lists of strings.
fn typed_enum(out: &mut Map<String, Value>) {
    let Some(Value::Array(values)) = out.get("enum") else {
        return;
    };
    if values.iter().all(Value::is_string) {
        out.insert("type".into(), "string".into());
        return;
    }
    let kinds: BTreeSet<&str> = values.iter().map(kind).collect();
    let kinds: Vec<Value> = kinds.into_iter().map(Value::from).collect();
    let all_strings_or_null = values.iter().all(|it| it.is_string() || it.is_null());
    if !all_strings_or_null {
        out.remove("enum");
    }
    out.insert("type".into(), kinds.into());
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
