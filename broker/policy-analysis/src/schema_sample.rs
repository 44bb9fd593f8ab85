//! Builds a small value that fits a schema, for sample calls. The validator decides whether the
//! value really fits. Unknown keywords are ignored, so for some schemas no fitting value is found.

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

/// Returns a value for one member of the arguments. A list has at least one item.
pub(super) fn member(schema: &Json, name: &str) -> Option<Json> {
    let sampler = SchemaSampler { root: schema };
    let member = schema.get("properties")?.get(name)?;
    let value = sampler.sample(member, 0)?;
    match (value, member.get("items")) {
        (Json::Array(items), Some(item)) if items.is_empty() => {
            Some(json!([sampler.sample(item, 0)?]))
        }
        (value, _) => Some(value),
    }
}

/// Returns arguments near `wanted` that fit the schema. Parts that do not fit are replaced. If
/// there are several possible replacements, `turn` chooses one.
pub(super) fn nearest(schema: &Json, wanted: &Json, turn: usize) -> Option<Json> {
    SchemaSampler { root: schema }.nearest(schema, wanted, turn, 0)
}

struct SchemaSampler<'a> {
    root: &'a Json,
}

impl<'a> SchemaSampler<'a> {
    fn nearest(&self, schema: &'a Json, wanted: &Json, turn: usize, depth: usize) -> Option<Json> {
        if depth > DEPTH_MAX {
            return None;
        }
        let fits = self.validator(schema)?;
        if fits.accepts(wanted) {
            return Some(wanted.clone());
        }
        let words = schema.as_object()?;
        if let Some(target) = words.get("$ref").and_then(Json::as_str) {
            let target = self.root.pointer(target.strip_prefix('#')?)?;
            return self.nearest(target, wanted, turn, depth + 1);
        }
        let listed = words.get("enum").and_then(Json::as_array);
        let listed = listed.and_then(|all| all.get(turn % all.len().max(1)));
        let branches = ["anyOf", "oneOf"]
            .into_iter()
            .filter_map(|it| words.get(it)?.as_array());
        let branches = branches.flatten();
        let branched = || branches.filter_map(|it| self.nearest(it, wanted, turn, depth + 1));
        let near = match wanted {
            Json::Object(members) => self.near_object(words, members, turn, depth),
            Json::Array(items) if is_kind(words, "array") => {
                self.near_array(words, items, turn, depth)
            }
            Json::Array(items) => items
                .first()
                .and_then(|first| self.nearest(schema, first, turn, depth + 1)),
            value if is_kind(words, "array") => {
                self.near_array(words, std::slice::from_ref(value), turn, depth)
            }
            Json::Number(number) => near_numbers(words, number).find(|it| fits.accepts(it)),
            Json::String(text) => near_text(words, text),
            _ => None,
        };
        let mut all = listed.cloned().into_iter().chain(near).chain(branched());
        let found = all.find(|it| fits.accepts(it));
        found.or_else(|| self.sample(schema, depth).filter(|it| fits.accepts(it)))
    }

    /// Compiles a part of the schema, with the definitions that it may refer to.
    fn validator(&self, part: &Json) -> Option<Validator> {
        let mut schema = Map::new();
        for word in ["$schema", "$defs", "definitions"] {
            if let Some(value) = self.root.get(word) {
                schema.insert(word.to_owned(), value.clone());
            }
        }
        schema.insert("allOf".into(), json!([part]));
        Validator::compile(&Json::Object(schema)).ok()
    }

    fn near_object(
        &self,
        words: &'a Map<String, Json>,
        members: &Map<String, Json>,
        turn: usize,
        depth: usize,
    ) -> Option<Json> {
        let properties = words.get("properties").and_then(Json::as_object);
        let is_closed = words.get("additionalProperties") == Some(&Json::Bool(false));
        let mut near = Map::new();
        for (name, value) in members {
            match properties.and_then(|it| it.get(name)) {
                Some(schema) => {
                    let found = self.nearest(schema, value, turn, depth + 1);
                    near.extend(found.map(|value| (name.clone(), value)));
                }
                None if is_closed => {}
                None => {
                    near.insert(name.clone(), value.clone());
                }
            }
        }
        let required = words.get("required").and_then(Json::as_array);
        for name in required.into_iter().flatten().filter_map(Json::as_str) {
            if !near.contains_key(name) {
                let schema = properties.and_then(|it| it.get(name));
                let value = schema.map_or(Some(json!("x")), |it| self.sample(it, depth + 1))?;
                near.insert(name.to_owned(), value);
            }
        }
        Some(Json::Object(near))
    }

    fn near_array(
        &self,
        words: &'a Map<String, Json>,
        items: &[Json],
        turn: usize,
        depth: usize,
    ) -> Option<Json> {
        let count = |word: &str| words.get(word).and_then(Json::as_u64);
        let is_set = words.get("uniqueItems") == Some(&Json::Bool(true));
        let mut near: Vec<Json> = Vec::new();
        let least = count("minItems").unwrap_or(0).min(ITEMS_MAX);
        let least = usize::try_from(least).unwrap_or_default();
        let padding = std::iter::repeat_n(&Json::Null, least.saturating_sub(items.len()));
        for (at, item) in items.iter().chain(padding).enumerate() {
            let item = match words.get("items") {
                Some(schema) => self.nearest(schema, item, turn + at, depth + 1)?,
                None => item.clone(),
            };
            if !is_set || !near.contains(&item) {
                near.push(item);
            }
        }
        near.truncate(
            count("maxItems").map_or(near.len(), |it| usize::try_from(it).unwrap_or(usize::MAX)),
        );
        Some(Json::Array(near))
    }

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

fn is_kind(words: &Map<String, Json>, kind: &str) -> bool {
    words.get("type").and_then(Json::as_str) == Some(kind)
}

/// Returns numbers near this one: its neighbours, the nearest multiples, and the bounds.
fn near_numbers(
    words: &Map<String, Json>,
    number: &serde_json::Number,
) -> impl Iterator<Item = Json> {
    let wanted = number.as_i64().unwrap_or_default();
    let bound = |word: &str| words.get(word).and_then(Json::as_i64);
    let step = bound("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    let down = wanted - wanted.rem_euclid(step);
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let bounds = bounds.into_iter().filter_map(bound);
    let round = bounds.flat_map(move |it| {
        let down = it - it.rem_euclid(step);
        [
            it,
            down,
            down.saturating_add(step),
            down.saturating_sub(step),
        ]
    });
    let near = [
        down,
        down.saturating_add(step),
        wanted.saturating_sub(1),
        wanted.saturating_add(1),
    ];
    let all: Vec<i64> = near.into_iter().chain(round).collect();
    all.into_iter().map(Json::from)
}

/// Returns a text of a permitted length that begins like this one.
fn near_text(words: &Map<String, Json>, text: &str) -> Option<Json> {
    let count = |word: &str| words.get(word).and_then(Json::as_u64);
    let (least, most) = (count("minLength"), count("maxLength"));
    (least.is_some() || most.is_some()).then(|| {
        let most = most.unwrap_or(CHARS_MAX).min(CHARS_MAX);
        let most = usize::try_from(most).unwrap_or_default();
        let mut text: String = text.chars().take(most).collect();
        while (text.chars().count() as u64) < least.unwrap_or(0).min(CHARS_MAX) {
            text.push('x');
        }
        json!(text)
    })
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

    #[test]
    fn nearest_value_changes_only_what_does_not_fit() {
        let schema = json!({"type": "object", "required": ["project"],
            "additionalProperties": false, "properties": {
                "project": {"type": "string", "pattern": "^[A-Z]{2,5}$"},
                "to": {"type": "array", "items": {"type": "string"}},
                "mode": {"enum": ["a", "b"]}, "short": {"type": "string", "maxLength": 3},
                "step": {"type": "integer", "minimum": 10, "multipleOf": 10},
                "tags": {"type": "array", "minItems": 1, "items": {"enum": ["p", "q"]}}}});
        for (wanted, expected) in [
            (json!({"project": "OPS"}), json!({"project": "OPS"})),
            (json!({}), json!({"project": "AA"})),
            (
                json!({"project": "x", "other": 1}),
                json!({"project": "AA"}),
            ),
            (
                json!({"project": "OPS", "to": "a@x"}),
                json!({"project": "OPS", "to": ["a@x"]}),
            ),
            (
                json!({"project": "OPS", "step": 21, "short": "longer"}),
                json!({"project": "OPS", "step": 20, "short": "lon"}),
            ),
            (
                json!({"project": "OPS", "tags": [], "mode": "c"}),
                json!({"project": "OPS", "tags": ["p"], "mode": "a"}),
            ),
        ] {
            let found = nearest(&schema, &wanted, 0);
            assert_eq!(found.as_ref(), Some(&expected), "{wanted}");
        }
        // `turn` chooses between several possible values.
        let found = nearest(&schema, &json!({"project": "OPS", "mode": "c"}), 1);
        assert_eq!(found, Some(json!({"project": "OPS", "mode": "b"})));
    }
}
