//! The fields of a call's arguments that a labelling names. A field is a JSON pointer in which `*`
//! matches every element or member.

use std::fmt;

use serde_json::Value;

/// A place in the arguments, which includes everything below it.
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
    /// Writes texts to this place and creates missing parents. A single value becomes the first
    /// text; a list gets all texts.
    pub(crate) fn put(&self, args: &mut Value, texts: &[String]) {
        set(args, &self.steps, texts);
    }

    /// Removes the member at this place. A pointer that contains `*` removes nothing.
    pub(crate) fn clear(&self, args: &mut Value) {
        let Some((Step::Key(last), before)) = self.steps.split_last() else {
            return;
        };
        let mut value = args;
        for step in before {
            let Step::Key(key) = step else { return };
            let Some(inner) = value.get_mut(key) else {
                return;
            };
            value = inner;
        }
        if let Value::Object(members) = value {
            members.shift_remove(last);
        }
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
    fn invalid_pointer_is_refused() {
        for text in ["", "/", "to", "$.to"] {
            assert!(Field::parse(text).is_err(), "{text}");
        }
    }
}
