//! The arguments that a grant covers. Some fields must stay equal and some may be anything; a field
//! in neither list must not be present. Fields are JSON pointers into the arguments. Objects are
//! compared member by member, lists as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use codegen::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::Digest;

/// Maximum number of fields that are compared one by one.
pub const FIELDS_MAX: usize = 64;
/// Maximum size of a value that is stored as text. A longer value is stored as its digest.
const TEXT_BYTES_MAX: usize = 1_024;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ConditionFile", into = "ConditionFile")]
pub struct Condition {
    same: BTreeMap<String, FieldValue>,
    free: BTreeSet<String>,
}

/// The value that a field must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldValue {
    /// The canonical JSON text of the value.
    Is(String),
    /// The digest of the value's canonical JSON text.
    Digest(Digest),
}

/// The form in which files contain a condition.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionFile {
    same: BTreeMap<String, FieldValue>,
    free: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCondition {
    #[error("invalid field `{0}`; expected /name or /name/inner")]
    Pointer(String),
    #[error("the condition contains the field `{inner}` and also `{outer}`, which encloses it")]
    Within { inner: String, outer: String },
    #[error("the condition has more than {FIELDS_MAX} fields")]
    TooMany,
}

impl FieldValue {
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let text = canonical::canonical(value);
        match String::from_utf8(text) {
            Ok(text) if text.len() <= TEXT_BYTES_MAX => Self::Is(text),
            Ok(text) => Self::Digest(Digest::sha256(text.as_bytes())),
            Err(bad) => Self::Digest(Digest::sha256(bad.as_bytes())),
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Is(text) => canonical::canonical(value) == text.as_bytes(),
            Self::Digest(digest) => canonical::digest(value) == *digest,
        }
    }
}

/// Writes the value's JSON text or its digest.
impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => f.write_str(text),
            Self::Digest(digest) => write!(f, "{digest}"),
        }
    }
}

impl Condition {
    /// Returns a condition that covers any arguments.
    #[must_use]
    pub fn anything() -> Self {
        Self {
            same: BTreeMap::new(),
            free: [String::new()].into(),
        }
    }

    /// Returns a condition that covers exactly these arguments, or `None` if they have too many
    /// fields.
    #[must_use]
    pub fn exactly(args: &Value) -> Option<Self> {
        let mut same = BTreeMap::new();
        for (field, value) in leaves(args)? {
            same.insert(field, FieldValue::from_value(value));
        }
        let free = BTreeSet::new();
        Some(Self { same, free })
    }

    pub fn new(
        same: BTreeMap<String, FieldValue>,
        free: BTreeSet<String>,
    ) -> Result<Self, BadCondition> {
        let condition = Self { same, free };
        condition.validate().map(|()| condition)
    }

    #[must_use]
    pub fn same(&self) -> &BTreeMap<String, FieldValue> {
        &self.same
    }

    #[must_use]
    pub fn free(&self) -> &BTreeSet<String> {
        &self.free
    }

    #[must_use]
    pub fn covers(&self, args: &Value) -> bool {
        let mut fitting = 0;
        self.walk(&mut String::new(), args, &mut fitting) && fitting == self.same.len()
    }

    /// Frees each field that differs in these arguments, or was added or removed: it may then have
    /// any value.
    pub fn widen(&mut self, args: &Value) {
        let Some(leaves) = leaves(args) else {
            *self = Self::anything();
            return;
        };
        let mut gone: BTreeSet<String> = self.same.keys().cloned().collect();
        for (field, value) in leaves {
            gone.remove(&field);
            if self.fields().any(|other| lies_within(&field, other)) {
                // An enclosing field had another shape before.
                let outer = self.fields().find(|other| lies_within(&field, other));
                if let Some(outer) = outer.map(str::to_owned) {
                    gone.remove(&outer);
                    self.release(outer);
                }
            } else if self.same.get(&field).is_none_or(|same| !same.fits(value)) {
                self.release(field);
            }
        }
        gone.into_iter().for_each(|field| {
            if !self.free.iter().any(|outer| lies_within(&field, outer)) {
                self.release(field);
            }
        });
        if self.same.len() + self.free.len() > FIELDS_MAX {
            *self = Self::anything();
        }
    }

    /// Frees each field for which `keep` returns false: it may then have any value.
    pub fn keep(&mut self, keep: impl Fn(&str, &FieldValue) -> bool) {
        let (same, freed) = std::mem::take(&mut self.same)
            .into_iter()
            .partition(|(field, same)| keep(field, same));
        self.same = same;
        self.free.extend(BTreeMap::into_keys(freed));
    }

    fn fields(&self) -> impl Iterator<Item = &str> {
        self.same.keys().chain(&self.free).map(String::as_str)
    }

    /// Frees a field and everything within it: it may then have any value.
    fn release(&mut self, field: String) {
        self.same
            .retain(|other, _| *other != field && !lies_within(other, &field));
        self.free.retain(|other| !lies_within(other, &field));
        self.free.insert(field);
    }

    fn walk(&self, field: &mut String, value: &Value, fitting: &mut usize) -> bool {
        if self.free.contains(field.as_str()) {
            return true;
        }
        if let Some(same) = self.same.get(field.as_str()) {
            *fitting += 1;
            return same.fits(value);
        }
        let is_within = field.is_empty() || self.fields().any(|other| lies_within(other, field));
        let Value::Object(members) = value else {
            return false;
        };
        is_within
            && members.iter().all(|(name, value)| {
                let length = field.len();
                push(field, name);
                let fits = self.walk(field, value, fitting);
                field.truncate(length);
                fits
            })
    }

    fn validate(&self) -> Result<(), BadCondition> {
        if self.same.len() + self.free.len() > FIELDS_MAX {
            return Err(BadCondition::TooMany);
        }
        for field in self.fields() {
            let fits = field.starts_with('/') || (field.is_empty() && self.free.contains(field));
            if !fits {
                return Err(BadCondition::Pointer(field.chars().take(80).collect()));
            }
            let is_twice = self.same.contains_key(field) && self.free.contains(field);
            let outer = self.fields().find(|other| lies_within(field, other));
            if let Some(outer) = outer.or(is_twice.then_some(field)) {
                let (inner, outer) = (field.to_owned(), outer.to_owned());
                return Err(BadCondition::Within { inner, outer });
            }
        }
        Ok(())
    }
}

/// Writes a condition such as `/project = "OPS"; /title, /body may be anything`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same: Vec<_> = self
            .same
            .iter()
            .map(|(field, same)| format!("{field} = {same}"))
            .collect();
        f.write_str(&same.join(", "))?;
        if self.free.contains("") {
            return f.write_str("the arguments may be anything");
        }
        let between = if same.is_empty() { "" } else { "; " };
        let free: Vec<_> = self.free.iter().map(String::as_str).collect();
        match free.len() {
            0 if same.is_empty() => f.write_str("there are no arguments"),
            0 => Ok(()),
            _ => write!(f, "{between}{} may be anything", free.join(", ")),
        }
    }
}

impl TryFrom<ConditionFile> for Condition {
    type Error = BadCondition;

    fn try_from(written: ConditionFile) -> Result<Self, BadCondition> {
        Self::new(written.same, written.free)
    }
}

impl From<Condition> for ConditionFile {
    fn from(condition: Condition) -> Self {
        let Condition { same, free } = condition;
        Self { same, free }
    }
}

/// Returns the fields that are not divided further, or `None` if there are too many.
fn leaves(args: &Value) -> Option<Vec<(String, &Value)>> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), args)];
    while let Some((field, value)) = open.pop() {
        match value {
            Value::Object(members) if field.is_empty() || !members.is_empty() => {
                for (name, value) in members {
                    let mut inner = field.clone();
                    push(&mut inner, name);
                    open.push((inner, value));
                }
            }
            _ => found.push((field, value)),
        }
        if found.len() + open.len() > FIELDS_MAX {
            return None;
        }
    }
    Some(found)
}

/// Appends one step to a JSON pointer, escaped as in RFC 6901.
fn push(field: &mut String, name: &str) {
    field.push('/');
    for c in name.chars() {
        match c {
            '~' => field.push_str("~0"),
            '/' => field.push_str("~1"),
            c => field.push(c),
        }
    }
}

fn lies_within(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn widened(samples: &[Value]) -> Condition {
        let (first, rest) = samples.split_first().unwrap();
        let mut condition = Condition::exactly(first).unwrap();
        rest.iter().for_each(|args| condition.widen(args));
        condition
    }

    fn check(samples: &[Value], expected: &str, covered: &[Value], others: &[Value]) {
        let condition = widened(samples);
        assert_eq!(condition.to_string(), expected);
        for args in samples.iter().chain(covered) {
            assert!(condition.covers(args), "{condition} and {args}");
        }
        for args in others {
            assert!(!condition.covers(args), "{condition} and {args}");
        }
        let text = serde_json::to_vec(&condition).unwrap();
        assert_eq!(crate::json::typed::<Condition>(&text).unwrap(), condition);
    }

    #[test]
    fn equal_fields_are_fixed_and_differing_ones_free() {
        check(
            &[
                json!({"project": "OPS", "title": "a"}),
                json!({"project": "OPS", "title": "b"}),
            ],
            "/project = \"OPS\"; /title may be anything",
            &[json!({"title": [1], "project": "OPS"})],
            &[
                json!({"project": "DEV", "title": "a"}),
                json!({"title": "a"}),
                json!({"project": "OPS", "title": "a", "cc": "x"}),
                json!({"project": ["OPS"], "title": "a"}),
            ],
        );
    }

    #[test]
    fn numbers_compare_by_value() {
        check(
            &[json!({"n": 1})],
            "/n = 1",
            &[json!({"n": 1.0})],
            &[
                json!({"n": 2}),
                json!({"n": "1"}),
                json!({}),
                json!({"n": [1]}),
            ],
        );
    }

    #[test]
    fn nested_objects_are_compared_and_changed_shape_is_free() {
        check(
            &[
                json!({"at": {"x": 1, "y": 2}, "a/b~": 1}),
                json!({"at": {"x": 1, "y": 3}, "a/b~": 1}),
            ],
            "/at/x = 1, /a~1b~0 = 1; /at/y may be anything",
            &[],
            &[
                json!({"at": {"x": 1, "y": 3, "z": 1}, "a/b~": 1}),
                json!({"at": 1, "a/b~": 1}),
            ],
        );
        check(
            &[json!({"at": {"x": 1}}), json!({"at": 5})],
            "/at may be anything",
            &[json!({"at": {"z": 1}})],
            &[json!({"z": 1})],
        );
        check(
            &[json!({"at": 5}), json!({"at": {"x": 1}})],
            "/at may be anything",
            &[],
            &[],
        );
        check(
            &[json!({"a": 1}), json!({})],
            "/a may be anything",
            &[],
            &[json!({"b": 1})],
        );
    }

    #[test]
    fn empty_arguments_cover_empty_arguments() {
        check(
            &[json!({})],
            "there are no arguments",
            &[],
            &[json!({"a": 1})],
        );
    }

    #[test]
    fn long_value_is_compared_by_digest() {
        let long = "x".repeat(5_000);
        let condition = widened(&[json!({"body": long})]);
        assert!(condition.to_string().starts_with("/body = sha256:"));
        assert!(condition.covers(&json!({"body": long})));
        assert!(!condition.covers(&json!({"body": "x".repeat(5_001)})));
    }

    #[test]
    fn contradictory_condition_is_refused() {
        let same = |fields: &[&str]| -> BTreeMap<String, FieldValue> {
            let one = |field: &&str| ((*field).to_owned(), FieldValue::Is("1".into()));
            fields.iter().map(one).collect()
        };
        let free = |fields: &[&str]| fields.iter().map(|it| (*it).to_owned()).collect();
        for (fixed, any) in [
            (&["a"][..], &[][..]),
            (&["/a"], &["/a"]),
            (&["/a/b"], &["/a"]),
            (&["/a"], &["/a/b"]),
            (&[""], &[]),
            (&["/a"], &[""]),
        ] {
            assert!(
                Condition::new(same(fixed), free(any)).is_err(),
                "{fixed:?} {any:?}"
            );
        }
        assert!(Condition::new(same(&["/a", "/ab"]), free(&["/c"])).is_ok());
        let many: Vec<_> = (0..100).map(|n| format!("/{n}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(
            Condition::new(same(&many), free(&[])),
            Err(BadCondition::TooMany)
        );
    }

    #[test]
    fn arguments_with_too_many_fields_are_not_compared() {
        let many: Value = (0..1_000)
            .map(|n| (n.to_string(), Value::from(n)))
            .collect();
        assert_eq!(Condition::exactly(&many), None);
    }
}
