//! Which arguments a grant covers: some stay equal, some may be anything, and
//! what is named by neither may not be given at all. Fields are JSON pointers
//! into the arguments; objects are taken apart, lists are compared whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use codegen::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::Digest;

/// Arguments in more pieces than these are not compared piece by piece.
pub const FIELDS_MAX: usize = 64;
/// A longer value is held by its digest.
const TEXT_BYTES_MAX: usize = 1_024;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Condition {
    same: BTreeMap<String, Same>,
    free: BTreeSet<String>,
}

/// What a field has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Same {
    /// Canonical JSON text.
    Is(String),
    /// Of its canonical JSON text.
    Digest(Digest),
}

/// As it stands in files.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    same: BTreeMap<String, Same>,
    free: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCondition {
    #[error("`{0}` is not a field: write /name, or /name/inner")]
    Pointer(String),
    #[error("`{inner}` lies within `{outer}`, which is named too")]
    Within { inner: String, outer: String },
    #[error("it names more than {FIELDS_MAX} fields")]
    TooMany,
}

impl Same {
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let text = canonical::canonical(value);
        match String::from_utf8(text) {
            Ok(text) if text.len() <= TEXT_BYTES_MAX => Self::Is(text),
            Ok(text) => Self::Digest(Digest::of(text.as_bytes())),
            Err(bad) => Self::Digest(Digest::of(bad.as_bytes())),
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Is(text) => canonical::canonical(value) == text.as_bytes(),
            Self::Digest(digest) => canonical::digest(value) == *digest,
        }
    }
}

/// The value's JSON text, or its digest.
impl fmt::Display for Same {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => f.write_str(text),
            Self::Digest(digest) => write!(f, "{digest}"),
        }
    }
}

impl Condition {
    /// Whatever the arguments are.
    #[must_use]
    pub fn anything() -> Self {
        Self {
            same: BTreeMap::new(),
            free: [String::new()].into(),
        }
    }

    /// Exactly these arguments; none when they have too many fields to be compared.
    #[must_use]
    pub fn exactly(args: &Value) -> Option<Self> {
        let mut same = BTreeMap::new();
        for (field, value) in leaves(args)? {
            same.insert(field, Same::of(value));
        }
        let free = BTreeSet::new();
        Some(Self { same, free })
    }

    pub fn new(same: BTreeMap<String, Same>, free: BTreeSet<String>) -> Result<Self, BadCondition> {
        let condition = Self { same, free };
        condition.validate().map(|()| condition)
    }

    #[must_use]
    pub fn same(&self) -> &BTreeMap<String, Same> {
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

    /// What these arguments have differently, or beside what was there, is free from now on.
    pub fn widen(&mut self, args: &Value) {
        let Some(leaves) = leaves(args) else {
            *self = Self::anything();
            return;
        };
        let mut gone: BTreeSet<String> = self.same.keys().cloned().collect();
        for (field, value) in leaves {
            gone.remove(&field);
            if self.fields().any(|other| lies_within(&field, other)) {
                // Something that encloses it had another shape before.
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

    /// Frees what `keep` does not want to stay equal.
    pub fn keep(&mut self, keep: impl Fn(&str, &Same) -> bool) {
        let (same, freed) = std::mem::take(&mut self.same)
            .into_iter()
            .partition(|(field, same)| keep(field, same));
        self.same = same;
        self.free.extend(BTreeMap::into_keys(freed));
    }

    fn fields(&self) -> impl Iterator<Item = &str> {
        self.same.keys().chain(&self.free).map(String::as_str)
    }

    /// The field, and with it all that lies within it, may be anything.
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

/// `/project = "OPS"; /title, /body may be anything`
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

impl TryFrom<Written> for Condition {
    type Error = BadCondition;

    fn try_from(written: Written) -> Result<Self, BadCondition> {
        Self::new(written.same, written.free)
    }
}

impl From<Condition> for Written {
    fn from(condition: Condition) -> Self {
        let Condition { same, free } = condition;
        Self { same, free }
    }
}

/// The fields of arguments that are not taken apart further; none when they are too many.
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

/// One step down, as RFC 6901 spells it.
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
    fn what_stays_equal_is_fixed_and_what_differs_is_free() {
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
    fn the_same_number_is_the_same_however_it_is_written() {
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
    fn objects_are_taken_apart_and_a_changed_shape_frees_the_whole() {
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
    fn no_arguments_cover_no_arguments() {
        check(
            &[json!({})],
            "there are no arguments",
            &[],
            &[json!({"a": 1})],
        );
    }

    #[test]
    fn a_long_value_is_held_by_its_digest() {
        let long = "x".repeat(5_000);
        let condition = widened(&[json!({"body": long})]);
        assert!(condition.to_string().starts_with("/body = sha256:"));
        assert!(condition.covers(&json!({"body": long})));
        assert!(!condition.covers(&json!({"body": "x".repeat(5_001)})));
    }

    #[test]
    fn a_condition_that_contradicts_itself_is_refused() {
        let same = |fields: &[&str]| -> BTreeMap<String, Same> {
            let one = |field: &&str| ((*field).to_owned(), Same::Is("1".into()));
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
    fn arguments_with_a_great_many_fields_are_not_compared() {
        let many: Value = (0..1_000)
            .map(|n| (n.to_string(), Value::from(n)))
            .collect();
        assert_eq!(Condition::exactly(&many), None);
    }
}
