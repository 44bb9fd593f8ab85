//! Estimates the cost of checking a value before the check. A schema that contains itself twice
//! doubles the work with every level of the value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::guard::{self, Weight};
use crate::schema::{self, Applies};

/// Maximum number of steps. A step applies one schema to one node and takes some tens of
/// nanoseconds.
const STEPS_MAX: u64 = 1_000_000;
/// Maximum number of steps for each node of a large value.
const STEPS_PER_NODE_MAX: u64 = 32;
/// Maximum depth of nested applications; each uses stack in the validator.
const NESTING_MAX: usize = 600;

/// Returns the length in bytes of the longest path to a part of `value`.
pub(super) fn path_bytes(value: &Value) -> u64 {
    let mut longest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, bytes)) = open.pop() {
        longest = longest.max(bytes);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, bytes + 8))),
            Value::Object(members) => open.extend(
                members
                    .iter()
                    .map(|(key, member)| (member, bytes + 1 + key.len() as u64)),
            ),
            _ => {}
        }
    }
    longest
}

/// Maximum cost of describing all errors of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub all: u64,
    /// Steps for a single error: all alternatives of one union together.
    pub in_one: u64,
}

/// A schema reduced to which inner schema applies to which part of a value.
#[derive(Debug)]
pub(super) struct Plan {
    weight: Weight,
    rules: Vec<Rule>,
}

#[derive(Debug, Default)]
struct Rule {
    /// Cost of one application, without inner schemas.
    weight: u64,
    /// Whether each application reads every key of an object.
    is_about_keys: bool,
    /// Whether all errors of the alternatives count as one.
    is_union: bool,
    here: Vec<usize>,
    /// Rules for each key, which apply to the key as a text.
    names: Vec<usize>,
    members: HashMap<String, usize>,
    other_members: Vec<usize>,
    /// Rules by position. The draft decides which of the two keywords counts, so both are counted.
    placed_items: [Vec<usize>; 2],
    every_item: Vec<usize>,
}

impl Plan {
    /// Creates a plan. `root` was examined before: its size is limited, and its references can be
    /// resolved.
    pub(super) fn new(root: &Value, weight: Weight) -> Self {
        let mut planner = Planner {
            root,
            indexes: HashMap::new(),
            found: Vec::new(),
        };
        planner.index(root);
        let mut rules = Vec::new();
        while let Some(fields) = planner.found.get(rules.len()).copied() {
            rules.push(planner.rule(fields));
        }
        Self { weight, rules }
    }

    /// Whether a check of `value`, which has `nodes` nodes, stays within the limits.
    pub(super) fn affords(&self, value: &Value, nodes: u64) -> bool {
        let worst = self.weight.unfolded.saturating_mul(nodes);
        let steps_max = STEPS_MAX.max(nodes.saturating_mul(STEPS_PER_NODE_MAX));
        let is_small = !self.weight.recursive && worst <= steps_max;
        is_small || self.rehearse(value, steps_max).is_some()
    }

    /// Returns the cost of describing the errors of a value that does not fit. [`Self::affords`]
    /// must have returned true.
    pub(super) fn faults(&self, value: &Value, nodes: u64) -> Faults {
        let steps_max = STEPS_MAX.max(nodes.saturating_mul(STEPS_PER_NODE_MAX));
        let endless = Faults {
            all: u64::MAX,
            in_one: u64::MAX,
        };
        self.rehearse(value, steps_max).unwrap_or(endless)
    }

    fn rehearse(&self, value: &Value, steps_max: u64) -> Option<Faults> {
        let mut rehearsal = Rehearsal {
            rules: &self.rules,
            steps_left: steps_max,
            in_one: 0,
        };
        rehearsal.apply(0, value, 0)?;
        Some(Faults {
            all: steps_max - rehearsal.steps_left,
            in_one: rehearsal.in_one,
        })
    }
}

const ABOUT_KEYS: [&str; 4] = [
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "propertyNames",
];

struct Planner<'a> {
    root: &'a Value,
    indexes: HashMap<*const Value, usize>,
    found: Vec<Option<&'a Map<String, Value>>>,
}

impl<'a> Planner<'a> {
    fn index(&mut self, node: &'a Value) -> usize {
        *self
            .indexes
            .entry(std::ptr::from_ref(node))
            .or_insert_with(|| {
                self.found.push(node.as_object());
                self.found.len() - 1
            })
    }

    fn rule(&mut self, fields: Option<&'a Map<String, Value>>) -> Rule {
        let Some(fields) = fields else {
            return Rule::default();
        };
        let mut here: Vec<&'a Value> = Vec::new();
        here.extend(
            schema::inner(fields)
                .into_iter()
                .filter(|it| it.0 == Applies::Here)
                .map(|it| it.1),
        );
        here.extend(schema::references(fields).filter_map(|it| schema::resolve(self.root, it)));
        let object = |keyword: &str| fields.get(keyword).and_then(Value::as_object);
        let list = |keyword: &str| fields.get(keyword).and_then(Value::as_array);
        let one = |keyword: &&str| fields.get(*keyword).filter(|it| it.is_object());
        let others = ["additionalProperties", "unevaluatedProperties"];
        let every = ["items", "contains", "unevaluatedItems", "additionalItems"];
        let by_pattern = object("patternProperties")
            .into_iter()
            .flat_map(Map::values);
        let named = object("properties").into_iter().flatten();
        let mut placed = |keyword: &str| {
            list(keyword)
                .into_iter()
                .flatten()
                .map(|it| self.index(it))
                .collect()
        };
        Rule {
            placed_items: [placed("prefixItems"), placed("items")],
            weight: guard::own_weight(fields),
            is_about_keys: ABOUT_KEYS.iter().any(|it| fields.contains_key(*it)),
            is_union: fields.contains_key("anyOf") || fields.contains_key("oneOf"),
            names: one(&"propertyNames")
                .into_iter()
                .map(|it| self.index(it))
                .collect(),
            here: here.into_iter().map(|it| self.index(it)).collect(),
            members: named
                .map(|(key, it)| (key.clone(), self.index(it)))
                .collect(),
            other_members: by_pattern
                .chain(others.iter().filter_map(one))
                .map(|it| self.index(it))
                .collect(),
            every_item: every
                .iter()
                .filter_map(one)
                .map(|it| self.index(it))
                .collect(),
        }
    }
}

/// Placeholder for every key, because the content of a key does not change the cost.
static A_NAME: Value = Value::String(String::new());

/// Visits the same nodes as a validator, but never stops early, and counts the steps.
struct Rehearsal<'a> {
    rules: &'a [Rule],
    steps_left: u64,
    /// Maximum number of steps within one application of a union.
    in_one: u64,
}

impl Rehearsal<'_> {
    /// Returns `None` once a limit is exceeded.
    fn apply(&mut self, index: usize, value: &Value, nesting: usize) -> Option<()> {
        let rules = self.rules;
        let rule = rules.get(index).filter(|_| nesting <= NESTING_MAX)?;
        let before = self.steps_left;
        self.pay(rule.weight.max(1))?;
        for inner in &rule.here {
            self.apply(*inner, value, nesting + 1)?;
        }
        match value {
            Value::Object(members) => self.apply_to_members(rule, members, nesting)?,
            Value::Array(items) => self.apply_to_items(rule, items, nesting)?,
            _ => {}
        }
        if rule.is_union {
            self.in_one = self.in_one.max(before - self.steps_left);
        }
        Some(())
    }

    fn pay(&mut self, steps: u64) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(steps)?;
        Some(())
    }

    fn apply_to_members(
        &mut self,
        rule: &Rule,
        members: &Map<String, Value>,
        nesting: usize,
    ) -> Option<()> {
        for (key, index) in &rule.members {
            if let Some(member) = members.get(key) {
                self.apply(*index, member, nesting + 1)?;
            }
        }
        if !rule.is_about_keys {
            return Some(());
        }
        self.pay(members.len() as u64)?;
        for member in members.values() {
            for inner in &rule.names {
                self.apply(*inner, &A_NAME, nesting + 1)?;
            }
            for inner in &rule.other_members {
                self.apply(*inner, member, nesting + 1)?;
            }
        }
        Some(())
    }

    fn apply_to_items(&mut self, rule: &Rule, items: &[Value], nesting: usize) -> Option<()> {
        for placed in &rule.placed_items {
            for (index, item) in placed.iter().zip(items) {
                self.apply(*index, item, nesting + 1)?;
            }
        }
        for index in &rule.every_item {
            for item in items {
                self.apply(*index, item, nesting + 1)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tests that the estimate covers every keyword that applies a schema.
    #[test]
    fn rehearsal_visits_every_schema_position() {
        for keyword in schema::keywords() {
            for schema in [
                json!({keyword: {"title": "it"}}),
                json!({keyword: [{"title": "it"}]}),
                json!({keyword: {"k": {"title": "it"}}}),
            ] {
                let fields = schema.as_object().unwrap();
                let inner = schema::inner(fields).into_iter();
                let inner = inner.filter(|(applies, it)| {
                    // No validator applies `contentSchema`: it describes a decoded text.
                    *applies != Applies::Never && it.is_object() && keyword != "contentSchema"
                });
                for (_, it) in inner {
                    let mut planner = Planner {
                        root: &schema,
                        indexes: HashMap::new(),
                        found: Vec::new(),
                    };
                    planner.rule(Some(fields));
                    let is_planned = planner.indexes.contains_key(&std::ptr::from_ref(it));
                    assert!(is_planned, "{schema}");
                }
            }
        }
    }
}
