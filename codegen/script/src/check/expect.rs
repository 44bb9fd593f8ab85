//! Describes in a few words what a shape accepts, and compares a single known value with it.

use serde_json::Value;

use super::static_value::StaticValue;
use crate::shape::{Kind, Shape, ToolShape};
use crate::text;
use codegen_shared::facts::{Bound, Facts};

/// Maximum number of alternatives named; the rest are counted.
const LISTED_MAX: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    OtherType,
    /// A value of the right type that is not one of the allowed values.
    OtherValue,
}

/// Compares a value with a shape that has no parts and is not a union.
pub(super) fn judge(known: StaticValue<'_>, shape: &Shape) -> Fit {
    let is = |fits: bool| if fits { Fit::Fits } else { Fit::OtherType };
    match (&shape.kind, known) {
        (Kind::Literal(value), known) => judge_literal(known, value),
        (Kind::Number { integer }, StaticValue::Number(Some(value))) => {
            if *integer && value.fract() != 0.0 {
                Fit::OtherType
            } else if is_within(value, &shape.facts) {
                Fit::Fits
            } else {
                Fit::OtherValue
            }
        }
        (Kind::String, StaticValue::Text(Some(value))) => {
            let length = value.chars().count() as u64;
            let range = shape.facts.length;
            let fits = range.min.is_none_or(|min| length >= min)
                && range.max.is_none_or(|max| length <= max);
            if fits { Fit::Fits } else { Fit::OtherValue }
        }
        (Kind::Number { .. }, known) => is(matches!(known, StaticValue::Number(_))),
        (Kind::String, known) => is(matches!(known, StaticValue::Text(_))),
        (Kind::Boolean, known) => is(matches!(known, StaticValue::Boolean(_))),
        (Kind::Null, known) => is(matches!(known, StaticValue::Null)),
        (Kind::Never, _) => Fit::OtherType,
        (Kind::Object(_), known) => is(matches!(known, StaticValue::Object(_))),
        (Kind::Array(_) | Kind::Tuple(_), known) => is(matches!(known, StaticValue::Array(_))),
        (Kind::Any | Kind::Union(_) | Kind::Intersection(_) | Kind::Named(_), _) => Fit::Fits,
    }
}

fn judge_literal(known: StaticValue<'_>, value: &Value) -> Fit {
    let equal = match (known, value) {
        (StaticValue::Text(Some(got)), Value::String(value)) => got == value,
        (StaticValue::Number(Some(got)), Value::Number(value)) => value.as_f64() == Some(got),
        (StaticValue::Boolean(Some(got)), Value::Bool(value)) => got == *value,
        (StaticValue::Null, Value::Null) => true,
        // The types match, and the exact value is not known.
        (known, value) if same_type(known, value) => {
            matches!(
                known,
                StaticValue::Text(None) | StaticValue::Number(None) | StaticValue::Boolean(None)
            ) || value.is_object()
                || value.is_array()
        }
        _ => return Fit::OtherType,
    };
    if equal { Fit::Fits } else { Fit::OtherValue }
}

pub(super) fn is_literal(known: StaticValue<'_>, value: &Value) -> bool {
    judge_literal(known, value) == Fit::Fits
}

/// Returns the value that a property of an object must have, if only one is allowed.
pub(super) fn literal_at(tool: &ToolShape, shape: &Shape, name: &str) -> Option<Value> {
    let shape = match &shape.kind {
        Kind::Named(index) => &tool.named.get(*index)?.shape,
        _ => shape,
    };
    let Kind::Object(object) = &shape.kind else {
        return None;
    };
    let property = object.properties.iter().find(|it| it.name == name)?;
    match &property.shape.kind {
        Kind::Literal(value) if property.required => Some(value.clone()),
        _ => None,
    }
}

pub(super) fn same_type(known: StaticValue<'_>, value: &Value) -> bool {
    match known {
        StaticValue::Text(_) => value.is_string(),
        StaticValue::Number(_) => value.is_number(),
        StaticValue::Boolean(_) => value.is_boolean(),
        StaticValue::Null => value.is_null(),
        StaticValue::Object(_) => value.is_object(),
        StaticValue::Array(_) => value.is_array(),
        StaticValue::Undefined | StaticValue::Nothing => true,
    }
}

fn is_within(value: f64, facts: &Facts) -> bool {
    let limit = |bound: &Option<Bound>| {
        bound
            .as_ref()
            .and_then(|it| Some((it.limit.as_f64()?, it.exclusive)))
    };
    let above = limit(&facts.minimum)
        .is_none_or(|(min, exclusive)| value > min || (!exclusive && value >= min));
    let below = limit(&facts.maximum)
        .is_none_or(|(max, exclusive)| value < max || (!exclusive && value <= max));
    above && below
}

/// Returns the literals that a shape allows, if it lists them.
pub(super) fn literals(tool: &ToolShape, shape: &Shape) -> Vec<Value> {
    match &shape.kind {
        Kind::Literal(value) => vec![value.clone()],
        Kind::Union(members) => members
            .iter()
            .filter(|it| !matches!(it.kind, Kind::Named(_)))
            .flat_map(|it| literals(tool, it))
            .collect(),
        Kind::Named(index) => match tool.named.get(*index).map(|it| &it.shape) {
            Some(shape) if !matches!(shape.kind, Kind::Named(_)) => literals(tool, shape),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Describes a shape: `a string`, `one of "a", "b"`, `a whole number from 1 to 100`.
pub(super) fn words(tool: &ToolShape, shape: &Shape) -> String {
    match &shape.kind {
        Kind::Any => "anything".to_owned(),
        Kind::Never => "nothing".to_owned(),
        Kind::Null => "null".to_owned(),
        Kind::Boolean => "a boolean".to_owned(),
        Kind::Number { integer } => {
            let what = if *integer {
                "a whole number"
            } else {
                "a number"
            };
            format!("{what}{}", bounds(&shape.facts))
        }
        Kind::String => format!("a string{}", lengths(&shape.facts)),
        Kind::Literal(value) => text::clip(&text::json(value), 60),
        Kind::Array(items) => format!("an array ({} each)", words(tool, items)),
        Kind::Tuple(_) => "a tuple".to_owned(),
        Kind::Object(_) => "an object".to_owned(),
        Kind::Intersection(_) => "an object".to_owned(),
        Kind::Union(members) => one_of(tool, members),
        Kind::Named(index) => match tool.named.get(*index) {
            Some(named) if matches!(named.shape.kind, Kind::Union(_) | Kind::Literal(_)) => {
                short(tool, &named.shape)
            }
            Some(named) => format!("a {}", text::clip(&named.name, 40)),
            None => "anything".to_owned(),
        },
    }
}

/// Describes a shape without describing the parts of a named shape.
fn short(tool: &ToolShape, shape: &Shape) -> String {
    match &shape.kind {
        Kind::Union(members) if members.iter().all(|it| matches!(it.kind, Kind::Literal(_))) => {
            one_of(tool, members)
        }
        Kind::Literal(value) => text::clip(&text::json(value), 60),
        _ => "one of several shapes".to_owned(),
    }
}

fn one_of(tool: &ToolShape, members: &[Shape]) -> String {
    let only_literals = members.iter().all(|it| matches!(it.kind, Kind::Literal(_)));
    let mut names: Vec<String> = members.iter().map(|it| words(tool, it)).collect();
    names.dedup();
    if only_literals && names.len() > 1 {
        return format!("one of {}", listed(&names));
    }
    match names.as_slice() {
        [one] => one.clone(),
        names => {
            let shown: Vec<&str> = names.iter().take(LISTED_MAX).map(String::as_str).collect();
            shown.join(" or ")
        }
    }
}

/// Joins the first names, and counts the rest.
pub(super) fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED_MAX).map(String::as_str).collect();
    let more = names.len() - shown.len();
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

fn bounds(facts: &Facts) -> String {
    let limit = |bound: &Option<Bound>| {
        bound
            .as_ref()
            .map(|it| (it.limit.to_string(), it.exclusive))
    };
    match (limit(&facts.minimum), limit(&facts.maximum)) {
        (Some((min, false)), Some((max, false))) => format!(" from {min} to {max}"),
        (Some((min, false)), None) => format!(" from {min} on"),
        (Some((min, true)), None) => format!(" above {min}"),
        (None, Some((max, false))) => format!(" up to {max}"),
        (None, Some((max, true))) => format!(" below {max}"),
        (Some((min, _)), Some((max, _))) => format!(" between {min} and {max}"),
        (None, None) => String::new(),
    }
}

fn lengths(facts: &Facts) -> String {
    match (facts.length.min, facts.length.max) {
        (Some(min), Some(max)) => format!(" of {min} to {max} characters"),
        (Some(1), None) => " that is not empty".to_owned(),
        (Some(min), None) => format!(" of {min} characters or more"),
        (None, Some(max)) => format!(" of {max} characters at most"),
        (None, None) => String::new(),
    }
}

/// Suggests how to write the value as the expected type.
pub(super) fn other_type(known: StaticValue<'_>, shape: &Shape) -> Option<String> {
    let takes = |wanted: fn(&Kind) -> bool| match &shape.kind {
        Kind::Union(members) => members.iter().any(|it| wanted(&it.kind)),
        kind => wanted(kind),
    };
    let takes_array = takes(|it| matches!(it, Kind::Array(_)));
    match known {
        StaticValue::Text(Some(value)) => {
            let is_number = value.trim().parse::<f64>().is_ok_and(f64::is_finite);
            if takes(|it| matches!(it, Kind::Number { .. })) && is_number {
                Some(format!("Write {} without quotes.", value.trim()))
            } else if takes(|it| matches!(it, Kind::Boolean)) && matches!(value, "true" | "false") {
                Some(format!("Write {value} without quotes."))
            } else {
                takes_array.then(|| format!("Write [{}].", text::literal(&text::clip(value, 60))))
            }
        }
        StaticValue::Number(Some(value)) if takes(|it| matches!(it, Kind::String)) => {
            Some(format!("Write \"{value}\"."))
        }
        StaticValue::Text(None) if takes(|it| matches!(it, Kind::Number { .. })) => {
            Some("Wrap it in `Number(…)`.".to_owned())
        }
        StaticValue::Number(None) if takes(|it| matches!(it, Kind::String)) => {
            Some("Wrap it in `String(…)`.".to_owned())
        }
        StaticValue::Null => Some("Remove it, or give it a value.".to_owned()),
        StaticValue::Text(None) | StaticValue::Number(_) if takes_array => {
            Some("Wrap it in an array.".to_owned())
        }
        _ => None,
    }
}

/// Returns the names of an object's properties, the required ones first.
pub(super) fn names_of(tool: &ToolShape, shape: &Shape) -> Vec<String> {
    match &shape.kind {
        Kind::Object(object) => {
            let required = object.properties.iter().filter(|it| it.required);
            let optional = object.properties.iter().filter(|it| !it.required);
            required.chain(optional).map(|it| key(&it.name)).collect()
        }
        Kind::Named(index) => match tool.named.get(*index).map(|it| &it.shape) {
            Some(shape) if !matches!(shape.kind, Kind::Named(_)) => names_of(tool, shape),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Writes a key as it appears in an object literal.
pub(super) fn key(name: &str) -> String {
    if crate::names::is_identifier(name) {
        name.to_owned()
    } else {
        text::literal(&text::clip(name, 80))
    }
}
