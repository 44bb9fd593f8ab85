//! What checking a value may cost, worked out before it is done. A schema that
//! contains itself twice doubles the work with every level of the value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::guard::Weight;
use crate::schema::{self, Applies};

/// Applications of a schema to a node; some tens of nanoseconds each.
const STEPS_MAX: u64 = 1_000_000;
/// The same, for each node of a large value.
const STEPS_PER_NODE_MAX: u64 = 32;
/// Nesting of applications, each of which takes stack in the validator.
const NESTING_MAX: usize = 600;

/// Number of JSON values in `value`.
pub(super) fn nodes(value: &Value) -> u64 {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    count
}

/// A schema reduced to which schema applies to which part of a value.
#[derive(Debug)]
pub(super) struct Plan {
    weight: Weight,
    rules: Vec<Rule>,
}

#[derive(Debug, Default)]
struct Rule {
    here: Vec<usize>,
    members: HashMap<String, usize>,
    other_members: Vec<usize>,
    placed_items: Vec<usize>,
    every_item: Vec<usize>,
}

impl Plan {
    /// `root` has been examined: it is bounded, and its references lead somewhere.
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

    /// Whether a check of `value`, which has so many `nodes`, stays within bounds.
    pub(super) fn affords(&self, value: &Value, nodes: u64) -> bool {
        let worst = self.weight.unfolded.saturating_mul(nodes);
        let steps_max = STEPS_MAX.max(nodes.saturating_mul(STEPS_PER_NODE_MAX));
        let is_small = !self.weight.recursive && worst <= steps_max;
        is_small
            || Rehearsal {
                rules: &self.rules,
                steps_left: steps_max,
            }
            .apply(0, value, 0)
            .is_some()
    }
}

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
        Rule {
            here: here.into_iter().map(|it| self.index(it)).collect(),
            members: named
                .map(|(key, it)| (key.clone(), self.index(it)))
                .collect(),
            other_members: by_pattern
                .chain(others.iter().filter_map(one))
                .map(|it| self.index(it))
                .collect(),
            placed_items: list("prefixItems")
                .or(list("items"))
                .into_iter()
                .flatten()
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

/// Goes where a validator would go, without ever stopping early, and counts.
struct Rehearsal<'a> {
    rules: &'a [Rule],
    steps_left: u64,
}

impl Rehearsal<'_> {
    /// `None` once the bounds are exceeded.
    fn apply(&mut self, index: usize, value: &Value, nesting: usize) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let rules = self.rules;
        let rule = rules.get(index).filter(|_| nesting <= NESTING_MAX)?;
        for inner in &rule.here {
            self.apply(*inner, value, nesting + 1)?;
        }
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    for inner in rule.members.get(key).into_iter().chain(&rule.other_members) {
                        self.apply(*inner, member, nesting + 1)?;
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for inner in rule
                        .placed_items
                        .get(at)
                        .into_iter()
                        .chain(&rule.every_item)
                    {
                        self.apply(*inner, item, nesting + 1)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }
}
