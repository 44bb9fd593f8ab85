//! Writes the note after a property: facts in short form, then the description.

use serde_json::{Number, Value};

use super::stated_facts::{says_bounds, says_default};
use crate::shape::{Bound, ExtraKeys, Facts, Kind, Range, Shape};
use crate::text::{self, in_comment, neutralise};

/// Larger bounds are not written, because they only say that the value is a number.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub facts: Vec<String>,
    pub prose: String,
}

impl Note {
    pub(super) fn from_shape(shape: &Shape) -> Self {
        let mut note = Self::default();
        note.collect(shape, "");
        note
    }

    pub(super) fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.prose.is_empty()
    }

    pub(super) fn text(&self) -> String {
        let facts = self.facts.join("; ");
        match (facts.is_empty(), self.prose.is_empty()) {
            (false, false) => format!("{facts}; {}", self.prose),
            (false, true) => facts,
            _ => self.prose.clone(),
        }
    }

    /// Collects the facts of the shape, and of its parts that have no separate line.
    fn collect(&mut self, shape: &Shape, label: &str) {
        let own = facts_of(&shape.facts, &shape.kind);
        self.facts
            .extend(own.into_iter().map(|fact| format!("{label}{fact}")));
        if let Some(prose) = shape
            .facts
            .text
            .as_deref()
            .map(|it| in_comment(&neutralise(it)))
            .filter(|it| !it.is_empty())
        {
            if !self.prose.is_empty() {
                self.prose.push(' ');
            }
            self.prose.push_str(label);
            self.prose.push_str(&prose);
        }
        match &shape.kind {
            Kind::Array(item) => self.collect(item, &format!("{label}each: ")),
            Kind::Tuple(tuple) => {
                for (at, item) in tuple.items.iter().enumerate() {
                    self.collect(item, &format!("{label}[{at}]: "));
                }
                if let Some(rest) = &tuple.rest {
                    self.collect(rest, &format!("{label}rest: "));
                }
            }
            Kind::Object(object) => {
                if let ExtraKeys::Allowed(rules) = &object.rest {
                    rules
                        .iter()
                        .for_each(|rule| self.collect(&rule.shape, &format!("{label}values: ")));
                }
            }
            Kind::Union(members) => self.collect_members(members, label),
            Kind::Intersection(parts) => parts.iter().for_each(|part| self.collect(part, label)),
            _ => {}
        }
    }

    /// Collects the facts of a union's members. If `null` is the only other member, the facts need
    /// no labels.
    fn collect_members(&mut self, members: &[Shape], label: &str) {
        let real = members.iter().filter(|it| it.kind != Kind::Null).count();
        for (at, member) in members.iter().enumerate() {
            let label = match &member.kind {
                _ if real == 1 => label.to_owned(),
                Kind::Literal(value) => format!("{label}{}: ", text::json(value)),
                _ => format!("{label}({}) ", at + 1),
            };
            self.collect(member, &label);
        }
    }
}

fn facts_of(facts: &Facts, kind: &Kind) -> Vec<String> {
    let mut out = Vec::new();
    let prose = facts.text.as_deref().map(neutralise).unwrap_or_default();
    match &facts.default {
        // If `null` is allowed, omitting the property has the same effect. If it is not allowed,
        // the default is a mistake.
        Some(Value::Null) => {}
        Some(value) if says_default(&prose, value) => {}
        Some(value) => out.push(format!("={}", text::json(value))),
        None => {}
    }
    let (minimum, maximum) = (facts.minimum.as_ref(), facts.maximum.as_ref());
    if !says_bounds(&prose, minimum, maximum) {
        out.extend(bounds(minimum, maximum));
    }
    out.extend(
        facts
            .multiple_of
            .as_ref()
            .map(|it| format!("multiple of {it}")),
    );
    out.extend(range("len", facts.length));
    let counts_itself = matches!(kind, Kind::Tuple(tuple) if tuple.rest.is_none());
    out.extend(range("items", facts.items).filter(|_| !counts_itself));
    out.extend(range("keys", facts.properties));
    out.extend(facts.unique.then(|| "unique".to_owned()));
    out.extend(
        facts
            .pattern
            .as_ref()
            .map(|it| format!("/{}/", neutralise(it))),
    );
    out.extend(facts.format.as_deref().map(neutralise));
    out.extend(facts.content.as_deref().map(neutralise));
    if !facts.examples.is_empty() {
        let examples: Vec<String> = facts.examples.iter().map(text::json).collect();
        out.push(format!("e.g. {}", examples.join(", ")));
    }
    out.extend(facts.rules.iter().cloned());
    out.extend(facts.deprecated.then(|| "DEPRECATED".to_owned()));
    out
}

fn bounds(minimum: Option<&Bound>, maximum: Option<&Bound>) -> Option<String> {
    let minimum = minimum.filter(|it| is_telling(&it.limit));
    let maximum = maximum.filter(|it| is_telling(&it.limit));
    let low = |it: &Bound| format!("{}{}", if it.exclusive { ">" } else { ">=" }, it.limit);
    let high = |it: &Bound| format!("{}{}", if it.exclusive { "<" } else { "<=" }, it.limit);
    match (minimum, maximum) {
        (Some(a), Some(b)) if !a.exclusive && !b.exclusive => {
            Some(format!("{}..{}", a.limit, b.limit))
        }
        (Some(a), Some(b)) => Some(format!("{}, {}", low(a), high(b))),
        (Some(a), None) => Some(low(a)),
        (None, Some(b)) => Some(high(b)),
        (None, None) => None,
    }
}

fn is_telling(limit: &Number) -> bool {
    limit.as_f64().is_none_or(|it| it.abs() < SAFE_INTEGER_MAX)
}

fn range(word: &str, range: Range) -> Option<String> {
    match (range.min, range.max) {
        (Some(min), Some(max)) if min == max => Some(format!("{word} {min}")),
        (Some(min), Some(max)) => Some(format!("{word} {min}..{max}")),
        (Some(min), None) => Some(format!("{word} >={min}")),
        (None, Some(max)) => Some(format!("{word} <={max}")),
        (None, None) => None,
    }
}
