//! The arguments that a grant covers. Some fields must stay equal, some must be in a folder, and some
//! may be anything; a field of none of these kinds must not be present. Fields are JSON pointers into
//! the arguments. Objects are compared member by member, lists as a whole.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use codegen::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::folder;
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
    /// A path or an address below this folder, which ends with `/`. The text alone counts: a link
    /// in the folder may lead elsewhere.
    Under(String),
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
    #[error(
        "invalid folder `{0}`; expected a path that ends with `/`, without `.`, `..`, `\\` and `%`"
    )]
    Folder(String),
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
            Self::Under(folder) => value
                .as_str()
                .is_some_and(|it| folder::contains(folder, it)),
        }
    }

    /// Returns the folder of this value and of another one, for a field that holds paths.
    fn widened(&self, field: &str, other: &Value) -> Option<Self> {
        let folder = self.folder(field)?;
        folder::common(&folder, other.as_str()?).map(Self::Under)
    }

    /// Returns the folder of this value, for a field that holds paths.
    fn folder(&self, field: &str) -> Option<String> {
        if !folder::is_named(field) {
            return None;
        }
        match self {
            Self::Under(folder) => Some(folder.clone()),
            Self::Is(text) => folder::of(&crate::json::typed::<String>(text.as_bytes())?),
            Self::Digest(_) => None,
        }
    }
}

/// Writes the value's JSON text or its digest, or the folder as JSON text.
impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => f.write_str(text),
            Self::Digest(digest) => write!(f, "{digest}"),
            Self::Under(folder) => write!(f, "any file under {}", Value::from(folder.as_str())),
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
            } else if let Some(same) = self.same.get(&field).filter(|it| !it.fits(value)) {
                match same.widened(&field, value) {
                    Some(wider) => drop(self.same.insert(field, wider)),
                    None => self.release(field),
                }
            } else if !self.same.contains_key(&field) {
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

    /// Frees each field for which `keep` returns false: it may then have any value, or any value in
    /// the same folder if it holds a path.
    pub fn keep(&mut self, keep: impl Fn(&str, &FieldValue) -> bool) {
        for (field, same) in std::mem::take(&mut self.same) {
            let kept = match keep(&field, &same) {
                true => Some(same),
                false => same.folder(&field).map(FieldValue::Under),
            };
            match kept {
                Some(same) => drop(self.same.insert(field, same)),
                None => drop(self.free.insert(field)),
            }
        }
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
        let mut values = self.same.values();
        let is_unusable = |it: &&FieldValue| match it {
            FieldValue::Under(folder) => !folder::is_clear(folder),
            _ => false,
        };
        if let Some(FieldValue::Under(folder)) = values.find(is_unusable) {
            return Err(BadCondition::Folder(folder.chars().take(80).collect()));
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
            .map(|(field, same)| match same {
                FieldValue::Under(_) => format!("{} is {same}", field_text(field)),
                same => format!("{} = {same}", field_text(field)),
            })
            .collect();
        f.write_str(&same.join(", "))?;
        if self.free.contains("") {
            return f.write_str("the arguments may be anything");
        }
        let between = if same.is_empty() { "" } else { "; " };
        let free: Vec<_> = self.free.iter().map(|field| field_text(field)).collect();
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

/// Returns a field for a text: as it is if it is plain, and otherwise as JSON text. No field can then
/// look like several fields, or like a value.
#[must_use]
pub fn field_text(field: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.$~@".contains(c);
    match field.chars().all(is_plain) {
        true => Cow::Borrowed(field),
        false => Cow::Owned(Value::from(field).to_string()),
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
    fn paths_of_one_folder_stay_in_it() {
        let at = |path: &str| json!({"path": path, "title": path});
        check(
            &[at("out/a/1.md"), at("out/b.md")],
            "/path is any file under \"out/\"; /title may be anything",
            &[at("out/c.md"), at("out/a/b/c")],
            &[
                at("out"),
                at("out/"),
                at("output/a.md"),
                at("out/../secret"),
                at("out/./a"),
                at("out//a"),
                at("out/a\\..\\b"),
                at("out/%2e%2e/b"),
                at("/out/a"),
                at("out/a\n"),
            ],
        );
        let url = |url: &str| json!({"url": url});
        check(
            &[url("https://docs.rs/a"), url("https://docs.rs/b/c")],
            "/url is any file under \"https://docs.rs/\"",
            &[],
            &[
                url("https://docs.rs.evil.example/"),
                url("https://docs.rs@evil.example/x"),
            ],
        );
        for (one, other) in [
            ("https://a.example/x", "https://b.example/x"),
            ("/etc/passwd", "/var/x"),
            ("a.md", "b.md"),
            ("out/../a", "out/../b"),
        ] {
            check(&[url(one), url(other)], "/url may be anything", &[], &[]);
        }
    }

    #[test]
    fn folder_cannot_imitate_another_field() {
        let at = |file: &str| json!({"path": format!("out/, /to stays \"ann@x\"/{file}")});
        check(
            &[at("a"), at("b")],
            r#"/path is any file under "out/, /to stays \"ann@x\"/""#,
            &[],
            &[],
        );
    }

    #[test]
    fn field_name_cannot_imitate_another_field() {
        let odd = "a = 1, /b";
        check(
            &[json!({odd: 1, "c d": 1}), json!({odd: 1, "c d": 2})],
            r#""/a = 1, ~1b" = 1; "/c d" may be anything"#,
            &[],
            &[json!({"a": 1, "b": 1, "c d": 1})],
        );
        let quote = "x\" = 1";
        check(&[json!({quote: 1})], r#""/x\" = 1" = 1"#, &[], &[]);
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
