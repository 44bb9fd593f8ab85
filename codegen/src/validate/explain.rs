//! Translates validator errors for script authors: the path as a script writes it, the expected and
//! the actual value, and the likeliest correction.

mod union;

use std::collections::HashSet;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value};

use super::finding::Finding;
use crate::closest::closest;
use crate::{names, text};

const SHOWN_CHARS_MAX: usize = 60;
const LISTED_MAX: usize = 12;
/// Maximum number of names that a misspelt one is compared with.
pub(super) const CANDIDATES_MAX: usize = 200;
/// Maximum length of a path in characters; a longer one is cut in the middle.
const PATH_CHARS_MAX: usize = 400;

pub(super) struct Explain<'a> {
    pub schema: &'a Value,
    /// The name of the whole value in messages.
    pub root_name: &'a str,
    pub value: &'a Value,
}

impl Explain<'_> {
    pub(super) fn all<'e>(
        &self,
        errors: impl IntoIterator<Item = ValidationError<'e>>,
    ) -> Vec<Finding> {
        let mut findings: Vec<Finding> = errors
            .into_iter()
            .flat_map(|error| self.one(&error))
            .collect();
        findings.sort_by(|a, b| a.path.cmp(&b.path));
        findings
    }

    pub(super) fn one(&self, error: &ValidationError<'_>) -> Vec<Finding> {
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                union::explain(self, error, context)
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => self.unexpected(error, unexpected),
            Kind::Required { property } => vec![self.missing(error, property)],
            Kind::PropertyNames { error: inner } => {
                let got = format!("the property name {}", display_value(inner.instance()));
                let expected = self.leaf_expectation(inner);
                vec![Finding::error(self.path(error), expected, got)]
            }
            _ => vec![self.leaf(error)],
        }
    }

    fn leaf(&self, error: &ValidationError<'_>) -> Finding {
        let expected = self.leaf_expectation(error);
        let got = match error.kind() {
            Kind::MinLength { .. } | Kind::MaxLength { .. } => length_of(error.instance()),
            Kind::MinItems { .. } | Kind::MaxItems { .. } => count_of(error.instance()),
            _ => display_value(error.instance()),
        };
        Finding::error(self.path(error), expected, got).suggesting(self.correction(error))
    }

    pub(super) fn leaf_expectation(&self, error: &ValidationError<'_>) -> String {
        match error.kind() {
            Kind::Type { kind } => list_of(types_of(kind).iter().map(|it| a_type(*it).to_owned())),
            Kind::Enum { options } => {
                list_of(options.as_array().into_iter().flatten().map(display_value))
            }
            Kind::Constant { expected_value } => display_value(expected_value),
            Kind::Minimum { limit } => format!("at least {limit}"),
            Kind::Maximum { limit } => format!("at most {limit}"),
            Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
            Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
            Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
            Kind::MinLength { limit } => format!("at least {}", counted(*limit, "character")),
            Kind::MaxLength { limit } => format!("at most {}", counted(*limit, "character")),
            Kind::MinItems { limit } => format!("at least {}", counted(*limit, "item")),
            Kind::MaxItems { limit } => format!("at most {}", counted(*limit, "item")),
            Kind::MinProperties { limit } => format!("at least {} properties", limit),
            Kind::MaxProperties { limit } => format!("at most {} properties", limit),
            Kind::AdditionalItems { limit } => format!("at most {limit} items"),
            Kind::Pattern { pattern } => {
                format!(
                    "text that matches /{}/",
                    text::clip(&text::neutralise(pattern), 200)
                )
            }
            Kind::UniqueItems => "items that all differ".to_owned(),
            Kind::Contains => "at least one item of the declared kind".to_owned(),
            Kind::FalseSchema => "nothing here".to_owned(),
            Kind::Not { schema } => format!("anything but {}", negated(schema)),
            Kind::OneOfMultipleValid { .. } => {
                "a value that fits exactly one of the alternatives".to_owned()
            }
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
                "text that the pattern can be tested on".to_owned()
            }
            _ => text::clip(&text::neutralise(&error.to_string()), 200),
        }
    }

    /// Suggests a correction for a value that only has the wrong JSON type, or that is close to an
    /// allowed one.
    pub(super) fn correction(&self, error: &ValidationError<'_>) -> Option<String> {
        let value: &Value = error.instance();
        match error.kind() {
            Kind::Enum { options } => {
                let texts = options.as_array()?.iter().filter_map(Value::as_str);
                let texts = texts.take(CANDIDATES_MAX);
                let meant = closest(value.as_str()?, texts)?;
                Some(format!("Did you mean {}?", text::literal(meant)))
            }
            Kind::Type { .. } if value.is_null() && self.is_optional(error) => {
                Some("Omit the property instead.".to_owned())
            }
            Kind::Type { kind } => types_of(kind)
                .into_iter()
                .find_map(|wanted| converted(value, wanted)),
            _ => None,
        }
    }

    fn is_optional(&self, error: &ValidationError<'_>) -> bool {
        let pointer = error.schema_path().as_str();
        let Some((owner, rest)) = pointer.rsplit_once("/properties/") else {
            return false;
        };
        let Some(key) = rest.strip_suffix("/type").filter(|key| !key.contains('/')) else {
            return false;
        };
        let required = self
            .schema
            .pointer(owner)
            .and_then(|it| it.get("required")?.as_array());
        !required.is_some_and(|names| names.iter().any(|name| *name == *unescaped(key)))
    }

    fn missing(&self, error: &ValidationError<'_>, property: &Value) -> Finding {
        let key = property.as_str().unwrap_or_default();
        let declared = self
            .keyword_owner(error)
            .and_then(|owner| owner.get("properties")?.get(key));
        let expected = declared.map_or_else(|| "a value".to_owned(), summary);
        let path = member_path(&self.path(error), key);
        let known: HashSet<&str> = declared_keys(self.keyword_owner(error))
            .into_iter()
            .collect();
        let given = error.instance().as_object().into_iter().flat_map(Map::keys);
        let unknown = given.map(String::as_str).filter(|it| !known.contains(it));
        let misspelt = closest(key, unknown.take(CANDIDATES_MAX));
        let suggestion = misspelt.map(|it| format!("Did you write {} instead?", quoted(it)));
        Finding::error(path, expected, "nothing".to_owned()).suggesting(suggestion)
    }

    fn unexpected(&self, error: &ValidationError<'_>, unexpected: &[String]) -> Vec<Finding> {
        let known = declared_keys(self.keyword_owner(error));
        let given = error.instance().as_object();
        let free: Vec<&str> = known
            .iter()
            .copied()
            .filter(|it| !given.is_some_and(|given| given.contains_key(*it)))
            .take(CANDIDATES_MAX)
            .collect();
        let base = self.path(error);
        let one = |key: &String| {
            let expected = if known.is_empty() {
                "no properties".to_owned()
            } else {
                list_of(known.iter().map(|it| quoted(it)))
            };
            let meant = closest(key, free.iter().copied());
            Finding::error(
                member_path(&base, key),
                expected,
                "an unknown property".to_owned(),
            )
            .suggesting(meant.map(did_you_mean))
        };
        unexpected.iter().take(LISTED_MAX).map(one).collect()
    }

    /// Returns the schema object whose keyword reported the error.
    pub(super) fn keyword_owner(&self, error: &ValidationError<'_>) -> Option<&Map<String, Value>> {
        let (owner, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(owner)?.as_object()
    }

    pub(super) fn path(&self, error: &ValidationError<'_>) -> String {
        let keys: Vec<String> = error
            .instance_path()
            .as_str()
            .split('/')
            .skip(1)
            .map(unescaped)
            .collect();
        let mut way = Vec::with_capacity(keys.len());
        let mut value = Some(self.value);
        for key in &keys {
            let place = match value {
                Some(Value::Array(_)) => key.parse::<usize>().ok(),
                _ => None,
            };
            way.push(place.map_or(Segment::Key(key), Segment::Place));
            value = value.and_then(|it| match it {
                Value::Array(items) => items.get(place?),
                other => other.get(key),
            });
        }
        written(self.root_name, &way)
    }
}

/// One step of the path to a part of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Segment<'a> {
    Key(&'a str),
    Place(usize),
}

/// Writes a path as a script would.
pub(super) fn written(root: &str, way: &[Segment<'_>]) -> String {
    let mut path = root.to_owned();
    for segment in way {
        match segment {
            Segment::Key(key) => push_key(&mut path, key),
            Segment::Place(at) => path.push_str(&format!("[{at}]")),
        }
    }
    cut_in_the_middle(path)
}

pub(crate) fn member_path(base: &str, key: &str) -> String {
    let mut path = base.to_owned();
    push_key(&mut path, key);
    path
}

fn push_key(path: &mut String, key: &str) {
    let short = text::clip(key, SHOWN_CHARS_MAX);
    if !names::is_identifier(key) {
        path.push_str(&format!("[{}]", text::literal(&short)));
    } else {
        path.push('.');
        path.push_str(&short);
    }
}

fn cut_in_the_middle(path: String) -> String {
    let chars = path.chars().count();
    if chars <= PATH_CHARS_MAX {
        return path;
    }
    let start: String = path.chars().take(PATH_CHARS_MAX / 4).collect();
    let end: String = path.chars().skip(chars - PATH_CHARS_MAX * 3 / 4).collect();
    format!("{start}…{end}")
}

/// Writes `a`, `a or b`, `a, b or c`; a long list ends with a count.
pub(super) fn list_of(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    let hidden = items.len().saturating_sub(LISTED_MAX);
    if hidden > 0 {
        items.truncate(LISTED_MAX);
        items.push(format!("{hidden} others"));
    }
    match items.split_last() {
        None => "a declared value".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// Writes a name for use in a sentence.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", text::clip(&text::neutralise(name), SHOWN_CHARS_MAX))
}

pub(super) fn did_you_mean(name: &str) -> String {
    format!("Did you mean {}?", quoted(name))
}

fn declared_keys(owner: Option<&Map<String, Value>>) -> Vec<&str> {
    let properties = owner.and_then(|fields| fields.get("properties")?.as_object());
    properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect()
}

pub(super) fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn types_of(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(several) => several.iter().collect(),
    }
}

fn a_type(name: JsonType) -> &'static str {
    match name {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    }
}

/// Briefly describes the values that a `not` refuses.
fn negated(schema: &Value) -> String {
    match (
        schema.get("const"),
        schema.get("enum").and_then(Value::as_array),
    ) {
        (Some(only), _) => display_value(only),
        (None, Some(options)) => list_of(options.iter().map(display_value)),
        (None, None) => text::clip(&text::json(schema), SHOWN_CHARS_MAX),
    }
}

/// Describes in a few words what a schema requires.
pub(super) fn summary(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return list_of(options.iter().map(display_value));
    }
    if let Some(only) = schema.get("const") {
        return display_value(only);
    }
    match schema.get("type") {
        Some(Value::String(name)) => type_word(name),
        Some(Value::Array(names)) => list_of(names.iter().filter_map(Value::as_str).map(type_word)),
        _ => "a value".to_owned(),
    }
}

fn type_word(name: &str) -> String {
    name.parse::<JsonType>()
        .map_or_else(|_| "a value".to_owned(), |it| a_type(it).to_owned())
}

fn converted(value: &Value, wanted: JsonType) -> Option<String> {
    let meant = match (value, wanted) {
        (Value::String(text), JsonType::Number | JsonType::Integer)
            if text.len() <= SHOWN_CHARS_MAX =>
        {
            let number = text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|it| it.is_finite())?;
            let whole = number.fract() == 0.0 || wanted == JsonType::Number;
            whole.then(|| text.trim().to_owned())?
        }
        (Value::String(text), JsonType::Boolean) if text.len() <= SHOWN_CHARS_MAX => {
            let word = text.to_lowercase();
            matches!(word.as_str(), "true" | "false").then_some(word)?
        }
        (Value::Number(_) | Value::Bool(_), JsonType::String) => format!("\"{value}\""),
        (Value::String(text), JsonType::Object) if looks_like_json(text) => {
            return Some("Pass the object itself, not its JSON text.".to_owned());
        }
        (Value::String(text), JsonType::Array) if looks_like_json(text) => {
            return Some("Pass the array itself, not its JSON text.".to_owned());
        }
        (Value::String(_) | Value::Number(_), JsonType::Array) => {
            format!("[{}]", display_value(value))
        }
        _ => return None,
    };
    Some(format!("Did you mean {meant}?"))
}

fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Writes a value, shortened if it is long.
pub(super) fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => text::literal(&text::clip(text, SHOWN_CHARS_MAX)),
        Value::Object(members) if members.len() > 3 => {
            format!("an object with {} properties", members.len())
        }
        Value::Array(items) if items.len() > 5 => format!("an array of {} items", items.len()),
        other => text::clip(&text::json(other), SHOWN_CHARS_MAX),
    }
}

fn length_of(value: &Value) -> String {
    let count = value.as_str().unwrap_or_default().chars().count();
    counted(u64::try_from(count).unwrap_or(u64::MAX), "character")
}

fn count_of(value: &Value) -> String {
    let count = value.as_array().map_or(0, Vec::len);
    counted(u64::try_from(count).unwrap_or(u64::MAX), "item")
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}
