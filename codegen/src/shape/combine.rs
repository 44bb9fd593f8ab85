//! Shapes that hold together (`allOf`, a keyword beside another) or apart (`anyOf`).

use std::collections::HashSet;

use serde_json::Value;

use crate::text;

use super::{Kind, Object, Property, Rest, RestRule, Shape};

/// Alternatives that are still multiplied out.
const DISTRIBUTED_MAX: usize = 32;

/// What is both. Facts of `a` win.
pub(super) fn both(a: Shape, b: Shape) -> Shape {
    let kind = match (a.kind, b.kind) {
        (Kind::Any, kind) | (kind, Kind::Any) => kind,
        (Kind::Never, _) | (_, Kind::Never) => Kind::Never,
        (x, y) if x == y => x,
        (Kind::Number { .. }, Kind::Number { .. }) => Kind::Number { integer: true },
        (Kind::Object(x), Kind::Object(y)) => merged(x, y),
        (Kind::Literal(value), kind) | (kind, Kind::Literal(value)) if is_simple(&kind) => {
            narrowed(value, &kind)
        }
        (Kind::Union(members), kind) | (kind, Kind::Union(members)) => distributed(members, kind),
        (Kind::Array(x), Kind::Array(y)) => Kind::Array(Box::new(both(*x, *y))),
        (x, y) if is_simple(&x) && is_simple(&y) => Kind::Never,
        (Kind::Intersection(mut parts), kind) | (kind, Kind::Intersection(mut parts)) => {
            parts.push(Shape::of(kind));
            Kind::Intersection(parts)
        }
        (x, y) => Kind::Intersection(vec![Shape::of(x), Shape::of(y)]),
    };
    Shape {
        kind,
        facts: a.facts.over(b.facts),
    }
}

/// One of several.
pub(super) fn union_kind(members: Vec<Shape>) -> Kind {
    let mut flat: Vec<Shape> = Vec::new();
    for member in members {
        match member.kind {
            Kind::Never => {}
            Kind::Union(inner) if member.facts == super::Facts::default() => flat.extend(inner),
            _ => flat.push(member),
        }
    }
    let mut distinct: Vec<Shape> = Vec::new();
    let mut literals: HashSet<String> = HashSet::new();
    for member in flat {
        let is_new = match &member.kind {
            Kind::Literal(value) => literals.insert(text::json(value)),
            _ => !distinct.contains(&member),
        };
        if is_new {
            distinct.push(member);
        }
    }
    if distinct.iter().any(|it| it.kind == Kind::Any) {
        return Kind::Any;
    }
    match distinct.len() {
        0 => Kind::Never,
        1 if distinct
            .iter()
            .all(|it| it.facts == super::Facts::default()) =>
        {
            distinct.pop().map_or(Kind::Never, |it| it.kind)
        }
        _ => Kind::Union(distinct),
    }
}

/// Types of which a value has exactly one.
fn is_simple(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Null
            | Kind::Boolean
            | Kind::Number { .. }
            | Kind::String
            | Kind::Literal(_)
            | Kind::Array(_)
            | Kind::Tuple(_)
            | Kind::Object(_)
    )
}

fn narrowed(value: Value, kind: &Kind) -> Kind {
    let fits = match kind {
        Kind::Literal(other) => *other == value,
        _ => is_of(&value, kind),
    };
    if fits {
        Kind::Literal(value)
    } else {
        Kind::Never
    }
}

/// Whether a value is of a simple type, as far as the type alone tells.
pub(super) fn is_of(value: &Value, kind: &Kind) -> bool {
    match kind {
        Kind::Null => value.is_null(),
        Kind::Boolean => value.is_boolean(),
        Kind::Number { integer: false } => value.is_number(),
        Kind::Number { integer: true } => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        Kind::String => value.is_string(),
        Kind::Array(_) | Kind::Tuple(_) => value.is_array(),
        Kind::Object(_) => value.is_object(),
        _ => true,
    }
}

/// A base object stays one text beside its alternatives; anything else is multiplied out.
fn distributed(members: Vec<Shape>, kind: Kind) -> Kind {
    let all_objects = members
        .iter()
        .all(|it| matches!(it.kind, Kind::Object(_) | Kind::Named(_)));
    let has_own = matches!(&kind, Kind::Object(object) if !object.properties.is_empty());
    if members.len() > DISTRIBUTED_MAX || (all_objects && has_own) {
        return Kind::Intersection(vec![Shape::of(kind), Shape::of(Kind::Union(members))]);
    }
    union_kind(
        members
            .into_iter()
            .map(|member| both(member, Shape::of(kind.clone())))
            .collect(),
    )
}

fn merged(x: Object, y: Object) -> Kind {
    if has_patterns(&x) || has_patterns(&y) {
        return Kind::Intersection(vec![Shape::of(Kind::Object(x)), Shape::of(Kind::Object(y))]);
    }
    let (x_keys, y_keys) = (closed_keys(&x), closed_keys(&y));
    let from_x = x.properties.iter().map(|it| under_rest(it, &y));
    let only_y = y
        .properties
        .iter()
        .filter(|it| !x.properties.iter().any(|own| own.name == it.name));
    let from_y = only_y.map(|it| under_rest(it, &x));
    let mut properties: Vec<Property> = from_x.chain(from_y).collect();
    let is_allowed = |name: &String| {
        [&x_keys, &y_keys]
            .iter()
            .all(|keys| keys.as_ref().is_none_or(|it| it.contains(name)))
    };
    if properties
        .iter()
        .any(|it| it.required && !is_allowed(&it.name))
    {
        return Kind::Never;
    }
    properties.retain(|it| is_allowed(&it.name));
    Kind::Object(Object {
        properties,
        rest: stricter(x.rest, y.rest),
    })
}

/// A property together with what another object says about its key.
fn under_rest(property: &Property, other: &Object) -> Property {
    if let Some(same) = other.properties.iter().find(|it| it.name == property.name) {
        return Property {
            name: property.name.clone(),
            required: property.required || same.required,
            shape: both(property.shape.clone(), same.shape.clone()),
        };
    }
    let mut property = property.clone();
    if let Rest::Allowed(rules) = &other.rest {
        for rule in rules {
            property.shape = both(property.shape, rule.shape.clone());
        }
    }
    property
}

fn has_patterns(object: &Object) -> bool {
    matches!(&object.rest, Rest::Allowed(rules) if rules.iter().any(|it| it.pattern.is_some()))
}

/// The only keys that an object may have, when it says so.
fn closed_keys(object: &Object) -> Option<Vec<String>> {
    let names = object.properties.iter().map(|it| it.name.clone());
    (object.rest == Rest::Forbidden).then(|| names.collect())
}

fn stricter(x: Rest, y: Rest) -> Rest {
    match (x, y) {
        (Rest::Forbidden, _) | (_, Rest::Forbidden) => Rest::Forbidden,
        (Rest::Unsaid, rest) | (rest, Rest::Unsaid) => rest,
        (Rest::Allowed(x), Rest::Allowed(y)) => Rest::Allowed(both_rules(x, y)),
    }
}

fn both_rules(x: Vec<RestRule>, y: Vec<RestRule>) -> Vec<RestRule> {
    let mut rules = x;
    for rule in y {
        match rules.iter_mut().find(|it| it.pattern == rule.pattern) {
            Some(known) => {
                let own = std::mem::replace(&mut known.shape, Shape::any());
                known.shape = both(own, rule.shape);
            }
            None => rules.push(rule),
        }
    }
    rules
}
