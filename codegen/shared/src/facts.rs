//! Reads the facts that a schema states about a value in addition to its type: bounds, default,
//! examples and description.

use serde_json::{Map, Number, Value};

/// The facts about a value. They are shown after the type, and never change it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    pub default: Option<Value>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<Number>,
    pub length: Range,
    pub items: Range,
    pub properties: Range,
    pub unique: bool,
    pub pattern: Option<String>,
    pub format: Option<String>,
    /// The values of `contentEncoding` and `contentMediaType`.
    pub content: Option<String>,
    pub examples: Vec<Value>,
    pub deprecated: bool,
    /// Rules that neither a type nor the other facts can express, as short text.
    pub rules: Vec<String>,
    pub text: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub limit: Number,
    pub exclusive: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    pub min: Option<u64>,
    pub max: Option<u64>,
}

impl Facts {
    #[must_use]
    pub fn from_schema(fields: &Map<String, Value>, own_name: Option<&str>) -> Self {
        let text = |keyword: &str| {
            fields
                .get(keyword)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let encoding = [text("contentEncoding"), text("contentMediaType")];
        let encoding: Vec<String> = encoding.into_iter().flatten().collect();
        Self {
            default: fields.get("default").cloned(),
            minimum: bound(fields, "minimum", "exclusiveMinimum"),
            maximum: bound(fields, "maximum", "exclusiveMaximum"),
            multiple_of: fields.get("multipleOf").and_then(Value::as_number).cloned(),
            length: range(fields, "minLength", "maxLength"),
            items: range(fields, "minItems", "maxItems"),
            properties: range(fields, "minProperties", "maxProperties"),
            unique: fields.get("uniqueItems") == Some(&Value::Bool(true)),
            pattern: text("pattern"),
            format: text("format"),
            content: (!encoding.is_empty()).then(|| encoding.join(" ")),
            examples: examples(fields),
            deprecated: fields.get("deprecated") == Some(&Value::Bool(true)),
            rules: Vec::new(),
            text: prose(fields, own_name),
        }
    }

    /// Merges two sets of facts. If both state the same fact, the one in `self` wins.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let mut rules = below.rules;
        rules.extend(
            self.rules
                .into_iter()
                .filter(|it| !rules.contains(it))
                .collect::<Vec<_>>(),
        );
        Self {
            default: self.default.or(below.default),
            minimum: self.minimum.or(below.minimum),
            maximum: self.maximum.or(below.maximum),
            multiple_of: self.multiple_of.or(below.multiple_of),
            length: self.length.or(below.length),
            items: self.items.or(below.items),
            properties: self.properties.or(below.properties),
            unique: self.unique || below.unique,
            pattern: self.pattern.or(below.pattern),
            format: self.format.or(below.format),
            content: self.content.or(below.content),
            examples: if self.examples.is_empty() {
                below.examples
            } else {
                self.examples
            },
            deprecated: self.deprecated || below.deprecated,
            rules,
            text: both_texts(self.text, below.text),
        }
    }
}

/// Joins two texts, unless one repeats the other.
fn both_texts(own: Option<String>, below: Option<String>) -> Option<String> {
    match (own, below) {
        (Some(own), Some(below)) if own.contains(&below) => Some(own),
        (Some(own), Some(below)) => Some(format!("{own} {below}")),
        (own, below) => own.or(below),
    }
}

impl Range {
    fn or(self, below: Self) -> Self {
        Self {
            min: self.min.or(below.min),
            max: self.max.or(below.max),
        }
    }
}

/// Reads an exclusive bound in both spellings: as a number, and as draft 4's boolean flag.
fn bound(fields: &Map<String, Value>, inclusive: &str, exclusive: &str) -> Option<Bound> {
    let limit = fields.get(inclusive).and_then(Value::as_number);
    match fields.get(exclusive) {
        Some(Value::Number(limit)) => Some(Bound {
            limit: limit.clone(),
            exclusive: true,
        }),
        Some(Value::Bool(true)) => limit.map(|limit| Bound {
            limit: limit.clone(),
            exclusive: true,
        }),
        _ => limit.map(|limit| Bound {
            limit: limit.clone(),
            exclusive: false,
        }),
    }
}

fn range(fields: &Map<String, Value>, min: &str, max: &str) -> Range {
    let count = |keyword: &str| fields.get(keyword).and_then(whole);
    Range {
        min: count(min).filter(|count| *count > 0),
        max: count(max),
    }
}

/// Reads a count; `3` and `3.0` are the same.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let double = value
            .as_f64()
            .filter(|it| it.fract() == 0.0 && (0.0..=1e15).contains(it))?;
        format!("{double:.0}").parse().ok()
    })
}

fn examples(fields: &Map<String, Value>) -> Vec<Value> {
    let listed = fields
        .get("examples")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    listed
        .into_iter()
        .chain(fields.get("example").cloned())
        .collect()
}

/// Returns the description, or a title that says more than the name.
fn prose(fields: &Map<String, Value>, own_name: Option<&str>) -> Option<String> {
    let text = |keyword: &str| {
        fields
            .get(keyword)
            .and_then(Value::as_str)
            .filter(|it| !it.trim().is_empty())
    };
    let says_more = |text: &&str| own_name.is_none_or(|name| plain(name) != plain(text));
    let own = text("description").filter(says_more);
    own.or_else(|| own_name.and_then(|_| text("title").filter(says_more)))
        .map(str::to_owned)
}

fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}
