//! Combines shapes. Either all of them apply (`allOf`, or several keywords of one schema), or one
//! of them does (`anyOf`).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::text;

use super::{ExtraKeyRule, ExtraKeys, Facts, Kind, Object, Property, Shape};

/// Maximum number of alternatives when unions are multiplied out.
const DISTRIBUTED_MAX: usize = 32;
/// Maximum number of shapes visited or copied for all combinations of one schema.
const NODES_MAX: usize = 200_000;
/// Number of bytes of text that count as one shape in a copy.
const TEXT_BYTES_PER_NODE: usize = 100;
/// Maximum number of earlier alternatives that an alternative is compared with.
const COMPARED_MAX: usize = 500;

/// Combines shapes within a budget, because alternatives multiply.
#[derive(Debug)]
pub(super) struct Combiner {
    /// Number of shapes that may still be visited or copied.
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
    /// Whether part of a shape was dropped because the budget was used up.
    pub(super) fn is_spent(&self) -> bool {
        self.nodes_left == 0
    }

    fn pay(&mut self, nodes: usize) -> bool {
        self.nodes_left = self.nodes_left.saturating_sub(nodes);
        self.nodes_left > 0
    }

    /// Returns a shape that will be copied `times` times, or `any` if that exceeds the budget.
    pub(super) fn copied(&mut self, shape: Shape, times: usize) -> Shape {
        match self.pay(nodes(&shape.kind).saturating_mul(times)) {
            true => shape,
            false => Shape::any(),
        }
    }

    /// Returns a shape for values that fit both `a` and `b`. Facts of `a` win. If the budget is
    /// used up, returns `a`.
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
                parts.push(Shape::from_kind(kind));
                Kind::Intersection(parts)
            }
            (x, y) => Kind::Intersection(vec![Shape::from_kind(x), Shape::from_kind(y)]),
        };
        Shape {
            kind,
            facts: a.facts.over(b.facts),
        }
    }

    /// Combines a union with another shape. An object is kept as an intersection with the union.
    /// Any other shape is combined with each alternative.
    fn distributed(&mut self, members: Vec<Shape>, kind: Kind) -> Kind {
        let all_objects = members
            .iter()
            .all(|it| matches!(it.kind, Kind::Object(_) | Kind::Named(_)));
        let has_own = matches!(&kind, Kind::Object(object) if !object.properties.is_empty());
        if members.len() > DISTRIBUTED_MAX || (all_objects && has_own) {
            return Kind::Intersection(vec![
                Shape::from_kind(kind),
                Shape::from_kind(Kind::Union(members)),
            ]);
        }
        let copied = nodes(&kind).saturating_mul(members.len().saturating_sub(1));
        if !self.pay(copied) {
            return Kind::Union(members);
        }
        let each = members.into_iter();
        union_kind(
            each.map(|member| self.both(member, Shape::from_kind(kind.clone())))
                .collect(),
        )
    }

    fn merged(&mut self, x: Object, y: Object) -> Kind {
        if has_patterns(&x) || has_patterns(&y) {
            return Kind::Intersection(vec![
                Shape::from_kind(Kind::Object(x)),
                Shape::from_kind(Kind::Object(y)),
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

    /// Combines a property with the rule of another object for keys without a declared property.
    fn under_rest(&mut self, mut property: Property, rest: &ExtraKeys) -> Property {
        if let ExtraKeys::Allowed(rules) = rest {
            for rule in rules {
                property.shape = self.both(property.shape, rule.shape.clone());
            }
        }
        property
    }

    fn stricter(&mut self, x: ExtraKeys, y: ExtraKeys) -> ExtraKeys {
        match (x, y) {
            (ExtraKeys::Forbidden, _) | (_, ExtraKeys::Forbidden) => ExtraKeys::Forbidden,
            (ExtraKeys::Unsaid, rest) | (rest, ExtraKeys::Unsaid) => rest,
            (ExtraKeys::Allowed(x), ExtraKeys::Allowed(y)) => {
                ExtraKeys::Allowed(self.both_rules(x, y))
            }
        }
    }

    /// Combines the rules for extra keys. No rule has a pattern, so each side has at most one rule.
    fn both_rules(&mut self, x: Vec<ExtraKeyRule>, y: Vec<ExtraKeyRule>) -> Vec<ExtraKeyRule> {
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

/// Builds the shape of a union of alternatives.
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

/// Whether values of this type have no other simple type.
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

/// Whether the type of a value matches a simple type.
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
    matches!(&object.rest, ExtraKeys::Allowed(rules) if rules.iter().any(|it| it.pattern.is_some()))
}

/// Returns the allowed keys of an object, if it allows no others.
fn closed_keys(object: &Object) -> Option<HashSet<String>> {
    let names = object.properties.iter().map(|it| it.name.clone());
    (object.rest == ExtraKeys::Forbidden).then(|| names.collect())
}

fn rest_nodes(object: &Object) -> usize {
    match &object.rest {
        ExtraKeys::Allowed(rules) => rules.iter().map(|rule| nodes(&rule.shape.kind)).sum(),
        ExtraKeys::Unsaid | ExtraKeys::Forbidden => 0,
    }
}

/// Returns the cost of a copy in shapes. Long texts count as several.
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
