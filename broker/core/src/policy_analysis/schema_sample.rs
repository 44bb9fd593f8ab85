//! Builds a small value that fits a schema, for sample calls. The validator decides whether the
//! value really fits. Unknown keywords are ignored, so for some schemas there is no example.

use codegen::validate::Validator;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value as Json, json};

const DEPTH_MAX: usize = 12;
const ITEMS_MAX: u64 = 64;
const CHARS_MAX: u64 = 4_096;

/// Returns arguments with only the required members.
pub(super) fn arguments(schema: &Json) -> Json {
    let sampler = SchemaSampler { root: schema };
    let sampled = sampler.sample(schema, 0).filter(Json::is_object);
    sampled.unwrap_or_else(|| json!({}))
}

struct SchemaSampler<'a> {
    root: &'a Json,
}

impl<'a> SchemaSampler<'a> {
    fn sample(&self, schema: &'a Json, depth: usize) -> Option<Json> {
        if depth > DEPTH_MAX {
            return None;
        }
        let Json::Object(words) = schema else {
            return schema.as_bool()?.then(|| json!("x"));
        };
        if let Some(value) = written(words) {
            return Some(value.clone());
        }
        if let Some(target) = words.get("$ref").and_then(Json::as_str) {
            let target = self.root.pointer(target.strip_prefix('#')?)?;
            return self.sample(target, depth + 1);
        }
        let mut value = self.typed(words, depth)?;
        for word in ["anyOf", "oneOf"] {
            let any = words.get(word).and_then(Json::as_array);
            if let Some(any) = any {
                let one = any.iter().find_map(|it| self.sample(it, depth + 1))?;
                value = joined(value, one);
            }
        }
        for part in words
            .get("allOf")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
        {
            value = joined(value, self.sample(part, depth + 1)?);
        }
        Some(value)
    }

    fn typed(&self, words: &'a Map<String, Json>, depth: usize) -> Option<Json> {
        let kind = match words.get("type") {
            Some(Json::Array(kinds)) => kinds
                .iter()
                .filter_map(Json::as_str)
                .find(|kind| *kind != "null")
                .unwrap_or("null"),
            Some(kind) => kind.as_str()?,
            None if words.contains_key("properties") => "object",
            None if words.contains_key("items") => "array",
            None => "string",
        };
        Some(match kind {
            "object" => self.object(words, depth)?,
            "array" => self.array(words, depth)?,
            "integer" | "number" => number(words),
            "boolean" => false.into(),
            "null" => Json::Null,
            _ => text(words).into(),
        })
    }

    fn object(&self, words: &'a Map<String, Json>, depth: usize) -> Option<Json> {
        let mut members = Map::new();
        let required = words.get("required").and_then(Json::as_array);
        for name in required.into_iter().flatten().filter_map(Json::as_str) {
            let schema = words.get("properties").and_then(|it| it.get(name));
            let value = match schema {
                Some(schema) => self.sample(schema, depth + 1)?,
                None => json!("x"),
            };
            members.insert(name.to_owned(), value);
        }
        Some(Json::Object(members))
    }

    fn array(&self, words: &'a Map<String, Json>, depth: usize) -> Option<Json> {
        let least = words.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        let items = (0..least.min(ITEMS_MAX)).map(|_| match words.get("items") {
            Some(items) => self.sample(items, depth + 1),
            None => Some(json!("x")),
        });
        items.collect::<Option<Vec<_>>>().map(Json::Array)
    }
}

/// Returns a value that the schema itself contains.
fn written(words: &Map<String, Json>) -> Option<&Json> {
    let first = |word: &str| words.get(word).and_then(Json::as_array)?.first();
    let listed = words.get("const").or_else(|| first("enum"));
    listed
        .or_else(|| words.get("default").filter(|it| !it.is_null()))
        .or_else(|| first("examples"))
}

/// Merges two objects, or returns the more informative of the two values.
fn joined(one: Json, other: Json) -> Json {
    match (one, other) {
        (Json::Object(mut one), Json::Object(other)) => {
            one.extend(other);
            Json::Object(one)
        }
        (Json::Object(one), Json::String(_)) => Json::Object(one),
        (_, other) => other,
    }
}

fn number(words: &Map<String, Json>) -> Json {
    let bound = |word: &str| words.get(word).and_then(Json::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|it| it + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|it| it - 1.0));
    let wanted = match (least, most) {
        (Some(least), _) if least > 1.0 => least.ceil(),
        (_, Some(most)) if most < 1.0 => most.floor(),
        _ => 1.0,
    };
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let wanted = step.map_or(wanted, |step| (wanted / step).ceil() * step);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "used only if the number is whole and small"
    )]
    let whole = wanted as i64;
    if wanted.fract() == 0.0 && wanted.abs() < 1e15 {
        whole.into()
    } else {
        json!(wanted)
    }
}

fn text(words: &Map<String, Json>) -> String {
    let count = |word: &str| words.get(word).and_then(Json::as_u64);
    let least = count("minLength").unwrap_or(0).min(CHARS_MAX);
    let meant = match words.get("format").and_then(Json::as_str) {
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "someone@example.com",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "x",
    };
    let fitting = words
        .get("pattern")
        .and_then(Json::as_str)
        .and_then(|pattern| {
            let validator = Validator::compile(&json!({"pattern": pattern})).ok()?;
            let fits = |text: &String| validator.accepts(&json!(text));
            Some(meant.to_owned())
                .filter(fits)
                .or_else(|| matched_by(pattern).filter(fits))
        });
    let mut text = fitting.unwrap_or_else(|| meant.to_owned());
    while (text.chars().count() as u64) < least {
        text.push('x');
    }
    match count("maxLength") {
        Some(most) => text
            .chars()
            .take(usize::try_from(most).unwrap_or(usize::MAX))
            .collect(),
        None => text,
    }
}

/// Returns a short text that a pattern matches, if regex-syntax can parse the pattern.
fn matched_by(pattern: &str) -> Option<String> {
    let mut text = String::new();
    write_out(&regex_syntax::parse(pattern).ok()?, &mut text);
    Some(text)
}

/// Appends a text for a part of a pattern. The parser bounds the depth.
fn write_out(part: &Hir, text: &mut String) {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => {
            let has = |c: &char| {
                class
                    .ranges()
                    .iter()
                    .any(|it| it.start() <= *c && *c <= it.end())
            };
            let plain = ['a', 'A', '1', '-', '/'].into_iter().find(has);
            let first = class.ranges().first().map(|it| it.start());
            text.extend(plain.or(first));
        }
        HirKind::Class(Class::Bytes(_)) => {}
        HirKind::Repetition(repeated) => {
            // An unbounded repetition is written at least once, since an empty text is a poor
            // example.
            let least = u64::from(repeated.min).min(CHARS_MAX);
            let count = if repeated.max.is_none() {
                least.max(1)
            } else {
                least
            };
            for _ in 0..count {
                let before = text.len();
                write_out(&repeated.sub, text);
                // Stop repeating if nothing is added or the text is too long.
                if text.len() == before || text.len() as u64 >= CHARS_MAX {
                    break;
                }
            }
        }
        HirKind::Capture(group) => write_out(&group.sub, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write_out(part, text)),
        HirKind::Alternation(parts) => parts.iter().take(1).for_each(|it| write_out(it, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Json, expected: &Json) {
        let found = arguments(schema);
        assert_eq!(&found, expected, "{schema}");
        assert!(
            Validator::compile(schema).unwrap().accepts(&found),
            "{schema}"
        );
    }

    #[test]
    fn sample_has_required_members_and_validates() {
        check(&json!({"type": "object"}), &json!({}));
        check(
            &json!({"type": "object", "required": ["a", "n", "l", "o"], "properties": {
                "a": {"type": "string", "minLength": 3}, "n": {"type": "integer", "minimum": 5},
                "l": {"type": "array", "minItems": 2, "items": {"enum": ["p", "q"]}},
                "o": {"$ref": "#/$defs/o"}, "z": {"type": "string"},
            }, "$defs": {"o": {"type": "object", "required": ["m"],
                "properties": {"m": {"type": ["null", "boolean"]}}}}}),
            &json!({"a": "xxx", "n": 5, "l": ["p", "p"], "o": {"m": false}}),
        );
        check(
            &json!({"type": "object", "required": ["d", "u"], "properties": {
                "d": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\d$"},
                "u": {"anyOf": [{"type": "object", "required": ["k"],
                    "properties": {"k": {"const": "v"}}}, {"type": "null"}]},
            }}),
            &json!({"d": "1111-11-11", "u": {"k": "v"}}),
        );
        check(
            &json!({"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string", "pattern": "^([A-Z][A-Z0-9_]+|x{3})-\\d+(\\.md)?$"}}}),
            &json!({"k": "AA-1"}),
        );
    }
}
