//! Tests that a shape accepts a value exactly when the schema does, as far as shapes can express
//! the schema. There are four exceptions. More than one branch of `oneOf` may match. `uniqueItems`,
//! patterns and formats are only facts. A pattern for keys does not affect named keys. Degraded
//! parts are checked at each call, but are not part of the type.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot build its input has failed"
)]

#[path = "shared/schemas.rs"]
mod schemas;

use codegen::description::Description;
use codegen::shape::{
    Bound, Degraded, ExtraKeys, Facts, Kind, Object, Range, Shape, ToolShape, Tuple,
};
use codegen::validate::Validator;
use proptest::prelude::*;
use schemas::{schema, value};
use serde_json::{Map, Value, json};

/// Whether a value fits a shape, including its countable facts.
fn admits(shape: &Shape, tool: &ToolShape, value: &Value) -> bool {
    let of_kind = match &shape.kind {
        Kind::Any => true,
        Kind::Never => false,
        Kind::Null => value.is_null(),
        Kind::Boolean => value.is_boolean(),
        Kind::String => value.is_string(),
        Kind::Number { integer: false } => value.is_number(),
        Kind::Number { integer: true } => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        Kind::Literal(only) => only == value,
        Kind::Array(item) => value
            .as_array()
            .is_some_and(|it| it.iter().all(|it| admits(item, tool, it))),
        Kind::Tuple(tuple) => value
            .as_array()
            .is_some_and(|it| admits_items(tuple, tool, it)),
        Kind::Object(object) => value
            .as_object()
            .is_some_and(|it| admits_members(object, tool, it)),
        Kind::Union(members) => members.iter().any(|it| admits(it, tool, value)),
        Kind::Intersection(parts) => parts.iter().all(|it| admits(it, tool, value)),
        Kind::Named(index) => tool
            .named
            .get(*index)
            .is_some_and(|it| admits(&it.shape, tool, value)),
    };
    of_kind && holds(&shape.facts, value)
}

fn admits_items(tuple: &Tuple, tool: &ToolShape, items: &[Value]) -> bool {
    let placed = tuple
        .items
        .iter()
        .zip(items)
        .all(|(shape, item)| admits(shape, tool, item));
    let mut more = items.iter().skip(tuple.items.len());
    let rest = match &tuple.rest {
        Some(rest) => more.all(|it| admits(rest, tool, it)),
        None => more.next().is_none(),
    };
    placed && rest && items.len() >= tuple.required
}

fn admits_members(object: &Object, tool: &ToolShape, members: &Map<String, Value>) -> bool {
    let named = object
        .properties
        .iter()
        .all(|it| match members.get(&it.name) {
            Some(member) => admits(&it.shape, tool, member),
            None => !it.required,
        });
    let is_named = |key: &str| object.properties.iter().any(|it| it.name == key);
    let mut others = members.iter().filter(|(key, _)| !is_named(key));
    named
        && others.all(|(key, member)| match &object.rest {
            ExtraKeys::Unsaid => true,
            ExtraKeys::Forbidden => false,
            ExtraKeys::Allowed(rules) => {
                let prefixed = |pattern: &str| key.starts_with(pattern.trim_start_matches('^'));
                let (by_pattern, other): (Vec<_>, Vec<_>) =
                    rules.iter().partition(|it| it.pattern.is_some());
                let mut matching: Vec<_> = by_pattern
                    .into_iter()
                    .filter(|it| it.pattern.as_deref().is_some_and(prefixed))
                    .collect();
                if matching.is_empty() {
                    matching = other;
                }
                matching.iter().all(|it| admits(&it.shape, tool, member))
            }
        })
}

fn holds(facts: &Facts, value: &Value) -> bool {
    let count = |it: usize| u64::try_from(it).unwrap_or(u64::MAX);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let above = facts
                .minimum
                .as_ref()
                .is_none_or(|it| beyond(number, it, 1.0));
            above
                && facts
                    .maximum
                    .as_ref()
                    .is_none_or(|it| beyond(number, it, -1.0))
        }
        Value::String(text) => within(facts.length, count(text.chars().count())),
        Value::Array(items) => within(facts.items, count(items.len())),
        Value::Object(members) => within(facts.properties, count(members.len())),
        _ => true,
    }
}

fn beyond(number: f64, bound: &Bound, direction: f64) -> bool {
    let distance = (number - bound.limit.as_f64().unwrap_or(f64::NAN)) * direction;
    distance > 0.0 || (!bound.exclusive && distance == 0.0)
}

fn within(range: Range, count: u64) -> bool {
    range.min.is_none_or(|it| it <= count) && range.max.is_none_or(|it| count <= it)
}

/// Whether only the note of the shape expresses this, and not its type.
fn only_in_text(degraded: &Degraded) -> bool {
    degraded.reason.starts_with("limits its other keys")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shape_accepts_exactly_what_schema_accepts(
        inner in schema(), def in schema(), value in value(),
    ) {
        let input = json!({
            "type": "object", "properties": {"v": inner}, "required": ["v"], "additionalProperties": false,
            "$defs": {"d": {"type": "object", "properties": {"a": def, "b": {"type": "boolean"}}}},
        });
        let tool = json!({"name": "t", "inputSchema": input});
        let shape = codegen::shape::tool_shape(&Description::parse("s", &tool).unwrap());
        if let (Ok(validator), true) = (Validator::compile(&input), shape.degraded.iter().all(only_in_text)) {
            let args = json!({"v": value});
            prop_assert_eq!(admits(&shape.input, &shape, &args), validator.accepts(&args), "{:#?}", shape);
        }
    }
}
