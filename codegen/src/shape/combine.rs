//! Shapes that hold together (`allOf`, a keyword beside another) or apart (`anyOf`).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::text;

use super::{Facts, Kind, Object, Property, Rest, RestRule, Shape};

/// Alternatives that are still multiplied out.
const DISTRIBUTED_MAX: usize = 32;
/// Shapes that are gone through or copied for all that one schema combines.
const NODES_MAX: usize = 200_000;
/// Of texts that are copied with a shape.
const TEXT_BYTES_PER_NODE: usize = 100;
/// Of many alternatives, a later one is compared with so many.
const COMPARED_MAX: usize = 500;

/// Puts shapes together, as long as that stays affordable: alternatives multiply.
#[derive(Debug)]
pub(super) struct Combiner {
    /// Nodes that may still be gone through or copied.
    nodes_left: usize,
}

impl Default for Combiner {
    fn default() -> Self {
        Self {
            nodes_left: NODES_MAX,
        }
    }
}

impl Combiner {
    /// Whether something was left out of a shape because it would have taken too much.
    pub(super) fn is_spent(&self) -> bool {
        self.nodes_left == 0
    }

    fn pay(&mut self, nodes: usize) -> bool {
        self.nodes_left = self.nodes_left.saturating_sub(nodes);
        self.nodes_left > 0
    }

    /// A shape that is copied so often, or nothing about it.
    pub(super) fn copied(&mut self, shape: Shape, times: usize) -> Shape {
        match self.pay(nodes(&shape.kind).saturating_mul(times)) {
            true => shape,
            false => Shape::any(),
        }
    }

    /// What is both. Facts of `a` win; where it would take too much, `a` is all that is said.
    pub(super) fn both(&mut self, a: Shape, b: Shape) -> Shape {
        if !self.pay(1) {
            return a;
        }
        let kind = match (a.kind, b.kind) {
            (Kind::Any, kind) | (kind, Kind::Any) => kind,
            (Kind::Never, _) | (_, Kind::Never) => Kind::Never,
            (x, y) if x == y => x,
            (Kind::Number { .. }, Kind::Number { .. }) => Kind::Number { integer: true },
            (Kind::Object(x), Kind::Object(y)) => self.merged(x, y),
            (Kind::Literal(value), kind) | (kind, Kind::Literal(value)) if is_simple(&kind) => {
                narrowed(value, &kind)
            }
            (Kind::Union(members), kind) | (kind, Kind::Union(members)) => {
                self.distributed(members, kind)
            }
            (Kind::Array(x), Kind::Array(y)) => Kind::Array(Box::new(self.both(*x, *y))),
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

    /// A base object stays one text beside its alternatives; anything else is multiplied out.
    fn distributed(&mut self, members: Vec<Shape>, kind: Kind) -> Kind {
        let all_objects = members
            .iter()
            .all(|it| matches!(it.kind, Kind::Object(_) | Kind::Named(_)));
        let has_own = matches!(&kind, Kind::Object(object) if !object.properties.is_empty());
        if members.len() > DISTRIBUTED_MAX || (all_objects && has_own) {
            return Kind::Intersection(vec![Shape::of(kind), Shape::of(Kind::Union(members))]);
        }
        let copied = nodes(&kind).saturating_mul(members.len().saturating_sub(1));
        if !self.pay(copied) {
            return Kind::Union(members);
        }
        let each = members.into_iter();
        union_kind(
            each.map(|member| self.both(member, Shape::of(kind.clone())))
                .collect(),
        )
    }

    fn merged(&mut self, x: Object, y: Object) -> Kind {
        if has_patterns(&x) || has_patterns(&y) {
            return Kind::Intersection(vec![
                Shape::of(Kind::Object(x)),
                Shape::of(Kind::Object(y)),
            ]);
        }
        let keys = x.properties.len() + y.properties.len();
        let copied = x.properties.len().saturating_mul(rest_nodes(&y))
            + y.properties.len().saturating_mul(rest_nodes(&x));
        if !self.pay(keys.saturating_add(copied)) {
            return Kind::Object(x);
        }
        let (x_keys, y_keys) = (closed_keys(&x), closed_keys(&y));
        let is_allowed = |name: &String| {
            [&x_keys, &y_keys]
                .iter()
                .all(|keys| keys.as_ref().is_none_or(|it| it.contains(name)))
        };
        let mut of_y: Vec<Option<Property>> = y.properties.into_iter().map(Some).collect();
        let names = of_y.iter().flatten().map(|it| it.name.clone());
        let at_y: HashMap<String, usize> = names.zip(0..).collect();
        let mut properties: Vec<Property> = Vec::with_capacity(keys);
        for property in x.properties {
            let same = at_y
                .get(&property.name)
                .and_then(|at| of_y.get_mut(*at)?.take());
            properties.push(match same {
                Some(same) => Property {
                    required: property.required || same.required,
                    shape: self.both(property.shape, same.shape),
                    name: property.name,
                },
                None => self.under_rest(property, &y.rest),
            });
        }
        for property in of_y.into_iter().flatten() {
            properties.push(self.under_rest(property, &x.rest));
        }
        if properties
            .iter()
            .any(|it| it.required && !is_allowed(&it.name))
        {
            return Kind::Never;
        }
        properties.retain(|it| is_allowed(&it.name));
        Kind::Object(Object {
            properties,
            rest: self.stricter(x.rest, y.rest),
        })
    }

    /// A property together with what another object says about all keys that it does not name.
    fn under_rest(&mut self, mut property: Property, rest: &Rest) -> Property {
        if let Rest::Allowed(rules) = rest {
            for rule in rules {
                property.shape = self.both(property.shape, rule.shape.clone());
            }
        }
        property
    }

    fn stricter(&mut self, x: Rest, y: Rest) -> Rest {
        match (x, y) {
            (Rest::Forbidden, _) | (_, Rest::Forbidden) => Rest::Forbidden,
            (Rest::Unsaid, rest) | (rest, Rest::Unsaid) => rest,
            (Rest::Allowed(x), Rest::Allowed(y)) => Rest::Allowed(self.both_rules(x, y)),
        }
    }

    /// None has a pattern: there is one at most on each side.
    fn both_rules(&mut self, x: Vec<RestRule>, y: Vec<RestRule>) -> Vec<RestRule> {
        let mut rules = x;
        for rule in y {
            match rules.iter_mut().find(|it| it.pattern == rule.pattern) {
                Some(known) => {
                    let own = std::mem::replace(&mut known.shape, Shape::any());
                    known.shape = self.both(own, rule.shape);
                }
                None => rules.push(rule),
            }
        }
        rules
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
            _ => !distinct.iter().take(COMPARED_MAX).any(|it| *it == member),
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

fn has_patterns(object: &Object) -> bool {
    matches!(&object.rest, Rest::Allowed(rules) if rules.iter().any(|it| it.pattern.is_some()))
}

/// The only keys that an object may have, when it says so.
fn closed_keys(object: &Object) -> Option<HashSet<String>> {
    let names = object.properties.iter().map(|it| it.name.clone());
    (object.rest == Rest::Forbidden).then(|| names.collect())
}

fn rest_nodes(object: &Object) -> usize {
    match &object.rest {
        Rest::Allowed(rules) => rules.iter().map(|rule| nodes(&rule.shape.kind)).sum(),
        Rest::Unsaid | Rest::Forbidden => 0,
    }
}

/// What a copy takes, in shapes; long texts count as several.
fn nodes(kind: &Kind) -> usize {
    let inner = |shape: &Shape| nodes(&shape.kind) + texts(&shape.facts) / TEXT_BYTES_PER_NODE;
    let all = |shapes: &[Shape]| shapes.iter().map(inner).sum::<usize>();
    1 + match kind {
        Kind::Any | Kind::Never | Kind::Null | Kind::Boolean | Kind::Number { .. } => 0,
        Kind::String | Kind::Named(_) => 0,
        Kind::Literal(value) => text::json(value).len() / TEXT_BYTES_PER_NODE,
        Kind::Array(item) => inner(item),
        Kind::Tuple(tuple) => all(&tuple.items) + tuple.rest.as_deref().map_or(0, inner),
        Kind::Object(object) => {
            let properties = object.properties.iter();
            let properties = properties
                .map(|it| 1 + it.name.len() / TEXT_BYTES_PER_NODE + inner(&it.shape))
                .sum::<usize>();
            properties + rest_nodes(object)
        }
        Kind::Union(shapes) | Kind::Intersection(shapes) => all(shapes),
    }
}

fn texts(facts: &Facts) -> usize {
    let texts = [&facts.text, &facts.pattern, &facts.format, &facts.content];
    let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
    let rules = facts.rules.iter().map(String::len).sum::<usize>();
    let values = facts.examples.iter().chain(&facts.default);
    texts + rules + values.map(|it| text::json(it).len()).sum::<usize>()
}
