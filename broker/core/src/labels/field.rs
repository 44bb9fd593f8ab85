//! The fields of a call's arguments that a labelling names. A field is a JSON pointer in which `*`
//! matches every element or member.

use std::fmt;

use codegen::shape::{ExtraKeys, Kind, NamedShape, Shape, ToolShape};
use serde_json::Value;

/// A place in the arguments. It includes everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Step {
    Any,
    Key(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid argument field `{text}`; expected /name, /name/0 or /name/*/email")]
pub struct BadField {
    pub text: String,
}

/// A text or number in a call's arguments, with its own JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    pub pointer: String,
    pub text: String,
}

impl Field {
    pub const CHARS_MAX: usize = 200;

    pub fn parse(text: &str) -> Result<Self, BadField> {
        let bad = || BadField {
            text: text.chars().take(Self::CHARS_MAX).collect(),
        };
        let rest = text.strip_prefix('/').ok_or_else(bad)?;
        if rest.is_empty() || text.len() > Self::CHARS_MAX {
            return Err(bad());
        }
        let step = |token: &str| match token {
            "*" => Step::Any,
            token => Step::Key(token.replace("~1", "/").replace("~0", "~")),
        };
        Ok(Self {
            text: text.to_owned(),
            steps: rest.split('/').map(step).collect(),
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the first step if it names a member, which can be looked up in the input schema.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Key(key)) => Some(key),
            _ => None,
        }
    }

    /// Returns all texts and numbers at and below this place. Absent values, `null` and booleans
    /// give nothing.
    #[must_use]
    pub fn leaves(&self, args: &Value) -> Vec<Leaf> {
        let mut found = Vec::new();
        select(args, &self.steps, &mut String::new(), &mut found);
        found
    }
}

impl Field {
    /// Whether a tool's input schema has a place for this argument. A key that the schema does not
    /// name counts only if the schema describes a map at this place.
    #[must_use]
    pub fn fits(&self, tool: &ToolShape) -> bool {
        let mut fuel = FIT_STEPS_MAX;
        let root = resolved(&tool.input, &tool.named, &mut fuel);
        root.into_iter().any(|shape| match &shape.kind {
            Kind::Object(object) => self.steps.split_first().is_some_and(|(step, rest)| {
                let named = object.properties.iter().filter(|it| step.is(&it.name));
                let mut shapes = named.map(|it| &it.shape);
                shapes.any(|shape| has_place(rest, shape, &tool.named, &mut fuel))
            }),
            _ => false,
        })
    }

    /// Whether a call has a value of an unexpected form at this place: a text instead of a list, or
    /// a list instead of members. The leaves of such a value are not found by this field.
    #[must_use]
    pub(crate) fn is_misplaced(&self, args: &Value) -> bool {
        is_misplaced(args, &self.steps)
    }

    /// Writes texts to this place and creates missing parents. A single value becomes the first
    /// text; a list gets all texts.
    pub fn put(&self, args: &mut Value, texts: &[String]) {
        set(args, &self.steps, texts);
    }

    /// Removes the member at this place. If the pointer contains `*`, the list becomes empty.
    pub fn clear(&self, args: &mut Value) {
        let mut value = args;
        for (at, step) in self.steps.iter().enumerate() {
            let is_last = at + 1 == self.steps.len();
            value = match (step, value) {
                (Step::Any, Value::Array(items)) => return items.clear(),
                (Step::Any, Value::Object(members)) => return members.clear(),
                (Step::Key(last), Value::Object(members)) if is_last => {
                    members.shift_remove(last);
                    return;
                }
                (Step::Key(key), Value::Object(members)) => match members.get_mut(key) {
                    Some(inner) => inner,
                    None => return,
                },
                _ => return,
            };
        }
    }

    /// Whether every object that fits the schema has a text or a number at this place.
    pub fn is_always_there(&self, schema: &Value) -> bool {
        always_has_leaf(schema, &self.steps)
    }
}

fn always_has_leaf(schema: &Value, steps: &[Step]) -> bool {
    let word = |name: &str| schema.get(name);
    let has_items = word("minItems").and_then(Value::as_u64) >= Some(1);
    let is = |kind: &str| word("type").and_then(Value::as_str) == Some(kind);
    let inner = |rest| {
        let items = word("items").filter(|_| word("prefixItems").is_none());
        is("array") && has_items && items.is_some_and(|items| always_has_leaf(items, rest))
    };
    match steps.split_first() {
        None => ["string", "integer", "number"].into_iter().any(is) || inner(steps),
        Some((Step::Any, rest)) => inner(rest),
        Some((Step::Key(key), rest)) => {
            let required = word("required").and_then(Value::as_array);
            let is_required = required.is_some_and(|all| all.iter().any(|it| it == key));
            let schema = word("properties").and_then(|it| it.get(key));
            is("object") && is_required && schema.is_some_and(|it| always_has_leaf(it, rest))
        }
    }
}

/// Maximum number of shapes that are visited to find the place of one field.
const FIT_STEPS_MAX: usize = 2_000;

impl Step {
    fn is(&self, key: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Key(wanted) => wanted == key,
        }
    }
}

/// Returns the alternatives of a shape. If no fuel is left, there are no alternatives, so that
/// nothing fits.
fn resolved<'a>(shape: &'a Shape, named: &'a [NamedShape], fuel: &mut usize) -> Vec<&'a Shape> {
    let mut open = vec![shape];
    let mut found = Vec::new();
    while let (Some(shape), true) = (open.pop(), *fuel > 0) {
        *fuel -= 1;
        match &shape.kind {
            Kind::Union(members) | Kind::Intersection(members) => open.extend(members),
            Kind::Named(index) => open.extend(named.get(*index).map(|it| &it.shape)),
            _ => found.push(shape),
        }
    }
    found
}

fn has_place(steps: &[Step], shape: &Shape, named: &[NamedShape], fuel: &mut usize) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    let alternatives = resolved(shape, named, fuel);
    alternatives.into_iter().any(|shape| {
        let mut inner = inner(shape, step).into_iter();
        matches!(shape.kind, Kind::Any) || inner.any(|it| has_place(rest, it, named, fuel))
    })
}

/// Returns the shapes to which one step leads.
fn inner<'a>(shape: &'a Shape, step: &Step) -> Vec<&'a Shape> {
    match &shape.kind {
        Kind::Array(item) => vec![item],
        Kind::Tuple(tuple) => {
            let further = tuple.rest.iter().map(|it| &**it);
            tuple.items.iter().chain(further).collect()
        }
        Kind::Object(object) => {
            let named = object.properties.iter().filter(|it| step.is(&it.name));
            let named = named.map(|it| &it.shape);
            let others = match &object.rest {
                ExtraKeys::Allowed(rules) => rules.as_slice(),
                ExtraKeys::Unsaid | ExtraKeys::Forbidden => &[],
            };
            named.chain(others.iter().map(|it| &it.shape)).collect()
        }
        _ => Vec::new(),
    }
}

fn is_misplaced(value: &Value, steps: &[Step]) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        return false;
    };
    match (step, value) {
        (_, Value::Null) => false,
        (Step::Any, Value::Array(items)) => items.iter().any(|it| is_misplaced(it, rest)),
        (Step::Any, Value::Object(members)) => members.values().any(|it| is_misplaced(it, rest)),
        (Step::Key(key), Value::Object(members)) => {
            members.get(key).is_some_and(|it| is_misplaced(it, rest))
        }
        (Step::Key(key), Value::Array(items)) => match key.parse::<usize>() {
            Ok(at) => items.get(at).is_some_and(|it| is_misplaced(it, rest)),
            Err(_) => !items.is_empty(),
        },
        _ => true,
    }
}

fn set(value: &mut Value, steps: &[Step], texts: &[String]) {
    let all = || texts.iter().cloned().map(Value::String).collect::<Vec<_>>();
    let Some((step, rest)) = steps.split_first() else {
        *value = match value {
            Value::Array(_) => Value::Array(all()),
            _ => texts.first().cloned().map_or(Value::Null, Value::String),
        };
        return;
    };
    match (step, &mut *value) {
        (Step::Any, Value::Array(items)) if rest.is_empty() => *items = all(),
        (Step::Any, Value::Array(items)) => {
            let first = items.first().cloned().unwrap_or(Value::Null);
            *items = texts
                .iter()
                .map(|text| {
                    let mut item = first.clone();
                    set(&mut item, rest, std::slice::from_ref(text));
                    item
                })
                .collect();
        }
        (Step::Any, Value::Object(members)) => {
            members.values_mut().for_each(|it| set(it, rest, texts));
        }
        (Step::Any, _) => {
            *value = Value::Array(vec![Value::Null]);
            set(value, steps, texts);
        }
        (Step::Key(key), Value::Object(members)) => {
            set(
                members.entry(key.clone()).or_insert(Value::Null),
                rest,
                texts,
            );
        }
        (Step::Key(key), Value::Array(items)) => {
            let at = key.parse().ok().and_then(|at: usize| items.get_mut(at));
            if let Some(item) = at {
                set(item, rest, texts);
            }
        }
        (Step::Key(_), _) => {
            *value = Value::Object(serde_json::Map::new());
            set(value, steps, texts);
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns all texts and numbers of a value.
#[must_use]
pub(crate) fn leaves(value: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    select(value, &[], &mut String::new(), &mut found);
    found
}

/// Collects the leaves below `value`. The recursion is bounded by the depth limit for arguments.
fn select(value: &Value, steps: &[Step], pointer: &mut String, found: &mut Vec<Leaf>) {
    let (wanted, rest) = match steps.split_first() {
        Some((Step::Key(key), rest)) => (Some(key.as_str()), rest),
        Some((Step::Any, rest)) => (None, rest),
        None => (None, steps),
    };
    let mut leaf = |text: String| {
        if steps.is_empty() {
            let pointer = pointer.clone();
            found.push(Leaf { pointer, text });
        }
    };
    match value {
        Value::String(text) => leaf(text.clone()),
        Value::Number(number) => leaf(number.to_string()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let at = at.to_string();
                if wanted.is_none_or(|wanted| wanted == at) {
                    below(item, &at, rest, pointer, found);
                }
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                if wanted.is_none_or(|wanted| wanted == key) {
                    below(member, key, rest, pointer, found);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn below(value: &Value, key: &str, rest: &[Step], pointer: &mut String, found: &mut Vec<Leaf>) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    select(value, rest, pointer, found);
    pointer.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(field: &str, args: Value, expected: &[(&str, &str)]) {
        let leaves = Field::parse(field).unwrap().leaves(&args);
        let found: Vec<_> = leaves
            .iter()
            .map(|leaf| (leaf.pointer.as_str(), leaf.text.as_str()))
            .collect();
        assert_eq!(found, expected, "{field}");
    }

    #[test]
    fn field_covers_its_subtree() {
        check("/to", json!({"to": "a@b"}), &[("/to", "a@b")]);
        check(
            "/to",
            json!({"to": ["a@b", {"x": "c@d"}], "cc": "e"}),
            &[("/to/0", "a@b"), ("/to/1/x", "c@d")],
        );
        check(
            "/to/*/mail",
            json!({"to": [{"mail": "a", "name": "n"}, {"mail": "b"}]}),
            &[("/to/0/mail", "a"), ("/to/1/mail", "b")],
        );
        check("/to/*", json!({"to": "not a list"}), &[]);
        check("/a~1b", json!({"a/b": 13}), &[("/a~1b", "13")]);
        check("/to", json!({"to": null, "x": true}), &[]);
    }

    #[test]
    fn field_fits_named_arguments_of_schema() {
        let properties = json!({
            "to": {"type": "string"},
            "cc": {"type": "array", "items": {"type": "string"}},
            "message": {"type": "object", "properties": {"to": {"type": "string"}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "anything": {},
        });
        let schema = json!({
            "type": "object", "properties": properties, "additionalProperties": {"type": "string"},
        });
        let tool = json!({"name": "t", "inputSchema": schema});
        let description = codegen::description::Description::parse("s", &tool).unwrap();
        let shape = codegen::shape::tool_shape(&description);
        for (field, expected) in [
            ("/to", true),
            ("/cc", true),
            ("/cc/*", true),
            ("/cc/0", true),
            ("/message/to", true),
            ("/message/*", true),
            ("/either/*", true),
            ("/headers/From", true),
            ("/anything/to", true),
            ("/*", true),
            ("/path", false),
            ("/to/*", false),
            ("/message/path", false),
            ("/cc/*/mail", false),
        ] {
            let found = Field::parse(field).unwrap().fits(&shape);
            assert_eq!(found, expected, "{field}");
        }
    }

    #[test]
    fn required_texts_are_always_there() {
        let text = json!({"type": "string"});
        let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties});
        let list = |least: u32| json!({"type": "array", "minItems": least, "items": text});
        for (field, schema, expected) in [
            ("/to", object(&["to"], json!({"to": text})), true),
            ("/to", object(&[], json!({"to": text})), false),
            ("/to", object(&["to"], json!({"to": list(1)})), true),
            ("/to/*", object(&["to"], json!({"to": list(1)})), true),
            ("/to/*", object(&["to"], json!({"to": list(0)})), false),
            (
                "/to",
                object(&["to"], json!({"to": {"type": ["string", "null"]}})),
                false,
            ),
            ("/to/x", object(&["to"], json!({"to": text})), false),
        ] {
            let found = Field::parse(field).unwrap().is_always_there(&schema);
            assert_eq!(found, expected, "{field} {schema}");
        }
    }

    #[test]
    fn value_of_another_form_is_misplaced() {
        for (field, args, expected) in [
            ("/to/*", json!({"to": "a@b"}), true),
            ("/to/*", json!({"to": ["a@b"]}), false),
            ("/to/*", json!({"to": []}), false),
            ("/to/*/mail", json!({"to": ["a@b"]}), true),
            ("/to/mail", json!({"to": [{"mail": "a@b"}]}), true),
            ("/to/mail", json!({"to": true}), true),
            ("/to/mail", json!({"to": null}), false),
            ("/to/mail", json!({}), false),
            ("/to", json!({"to": {"x": "a@b"}}), false),
        ] {
            let found = Field::parse(field).unwrap().is_misplaced(&args);
            assert_eq!(found, expected, "{field} {args}");
        }
    }

    #[test]
    fn clear_removes_every_text_of_the_field() {
        for (field, args, left) in [
            ("/to", json!({"to": "a", "x": 1}), json!({"x": 1})),
            ("/to/*", json!({"to": ["a", "b"]}), json!({"to": []})),
            (
                "/to/*/mail",
                json!({"to": [{"mail": "a"}]}),
                json!({"to": []}),
            ),
            (
                "/a/b",
                json!({"a": {"b": "x", "c": 1}}),
                json!({"a": {"c": 1}}),
            ),
            ("/a/b", json!({"x": 1}), json!({"x": 1})),
        ] {
            let mut args = args;
            Field::parse(field).unwrap().clear(&mut args);
            assert_eq!(args, left, "{field}");
        }
    }

    #[test]
    fn invalid_pointer_is_refused() {
        for text in ["", "/", "to", "$.to"] {
            assert!(Field::parse(text).is_err(), "{text}");
        }
    }
}
