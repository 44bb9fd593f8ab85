//! Finds keys that a schema neither names nor forbids. Most schemas do not set
//! `additionalProperties`, so they accept a misspelt optional property; this is worth a warning.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::explain::{CANDIDATES_MAX, Segment, did_you_mean, list_of, quoted, written};
use super::finding::{Finding, Severity};
use crate::closest::closest;
use crate::schema::{self, Applies};

/// Maximum number of schemas examined for one value; then the search for warnings ends.
const STEPS_MAX: usize = 200_000;
const WARNINGS_MAX: usize = 10;

pub(super) fn warn<'a>(root: &'a Value, root_name: &'a str, value: &'a Value) -> Vec<Finding> {
    let mut search = Search {
        root,
        root_name,
        way: Vec::new(),
        steps_left: STEPS_MAX,
        found: Vec::new(),
    };
    search.look(&[root], value);
    search.found
}

/// Whether an object of the schema names keys and does not mention others. For a given value,
/// another part of the schema may still mention them.
pub(super) fn leaves_keys_unsaid(root: &Value) -> bool {
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        let Value::Object(fields) = schema else {
            continue;
        };
        if fields.contains_key("properties") && !is_open(fields) {
            return true;
        }
        open.extend(schema::inner(fields).into_iter().map(|(_, inner)| inner));
    }
    false
}

struct Search<'a> {
    root: &'a Value,
    root_name: &'a str,
    /// The path from the root to the current value; converted to text only for a finding.
    way: Vec<Segment<'a>>,
    steps_left: usize,
    found: Vec<Finding>,
}

impl<'a> Search<'a> {
    fn look(&mut self, schemas: &[&'a Value], value: &'a Value) {
        if schemas.is_empty() || self.is_over() {
            return;
        }
        match value {
            Value::Object(members) => {
                let applied = self.all_in_place(schemas);
                self.look_at_members(&applied, members);
            }
            Value::Array(items) => {
                let applied = self.all_in_place(schemas);
                for (at, item) in items.iter().enumerate() {
                    if self.is_over() {
                        return;
                    }
                    self.steps_left = self.steps_left.saturating_sub(applied.len());
                    self.way.push(Segment::Place(at));
                    self.look(&items_schemas(&applied, at), item);
                    self.way.pop();
                }
            }
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        self.found.len() >= WARNINGS_MAX || self.steps_left == 0
    }

    fn look_at_members(
        &mut self,
        applied: &[&'a Map<String, Value>],
        members: &'a Map<String, Value>,
    ) {
        let known = known_keys(applied);
        self.steps_left = self.steps_left.saturating_sub(known.len());
        let says_what_else = !known.is_empty() && !applied.iter().any(|fields| is_open(fields));
        let names: HashSet<&str> = known.iter().copied().collect();
        for (key, member) in members {
            if self.is_over() {
                return;
            }
            self.steps_left = self.steps_left.saturating_sub(applied.len());
            self.way.push(Segment::Key(key));
            if says_what_else && !names.contains(key.as_str()) {
                let unnamed = known
                    .iter()
                    .copied()
                    .filter(|it| !members.contains_key(*it))
                    .take(CANDIDATES_MAX);
                let suggestion = closest(key, unnamed).map(did_you_mean);
                self.found.push(Finding {
                    severity: Severity::Warning,
                    path: written(self.root_name, &self.way),
                    expected: list_of(known.iter().map(|it| quoted(it))),
                    got: "an unknown property".to_owned(),
                    suggestion,
                });
            }
            self.look(&member_schemas(applied, key), member);
            self.way.pop();
        }
    }

    /// Returns these schemas and all schemas that they apply to the same value, except those under
    /// `not`.
    fn all_in_place(&mut self, schemas: &[&'a Value]) -> Vec<&'a Map<String, Value>> {
        let mut seen: Vec<&'a Map<String, Value>> = Vec::new();
        let mut known: HashSet<*const Map<String, Value>> = HashSet::new();
        let mut open = schemas.to_vec();
        while let Some(node) = open.pop() {
            let Value::Object(fields) = node else {
                continue;
            };
            if self.steps_left == 0 || !known.insert(std::ptr::from_ref(fields)) {
                continue;
            }
            self.steps_left -= 1;
            seen.push(fields);
            let negated = fields.get("not");
            let inner = schema::inner(fields)
                .into_iter()
                .filter(|(applies, _)| *applies == Applies::Here);
            let inner = inner.map(|(_, next)| next);
            open.extend(inner.filter(|next| !negated.is_some_and(|not| std::ptr::eq(not, *next))));
            open.extend(schema::references(fields).filter_map(|it| schema::resolve(self.root, it)));
        }
        seen
    }
}

fn known_keys<'a>(applied: &[&'a Map<String, Value>]) -> Vec<&'a str> {
    let mut known = Vec::new();
    let mut seen = HashSet::new();
    for properties in applied
        .iter()
        .filter_map(|fields| fields.get("properties")?.as_object())
    {
        known.extend(
            properties
                .keys()
                .map(String::as_str)
                .filter(|key| seen.insert(*key)),
        );
    }
    known
}

/// Whether the schema mentions keys that it does not name, or accepts any object.
fn is_open(fields: &Map<String, Value>) -> bool {
    let speaks = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "propertyNames",
    ];
    let any_object = fields.get("type").is_some_and(|name| name == "object")
        && fields
            .keys()
            .all(|key| matches!(key.as_str(), "type" | "description" | "title" | "default"));
    any_object || speaks.iter().any(|keyword| fields.contains_key(*keyword))
}

fn member_schemas<'a>(applied: &[&'a Map<String, Value>], key: &str) -> Vec<&'a Value> {
    let of = |fields: &&'a Map<String, Value>| {
        let fields: &'a Map<String, Value> = fields;
        let own = fields
            .get("properties")
            .and_then(|properties| properties.get(key));
        own.or_else(|| fields.get("additionalProperties"))
    };
    applied.iter().filter_map(of).collect()
}

fn items_schemas<'a>(applied: &[&'a Map<String, Value>], at: usize) -> Vec<&'a Value> {
    let of = |fields: &&'a Map<String, Value>| {
        let fields: &'a Map<String, Value> = fields;
        let placed = fields.get("prefixItems").and_then(|items| items.get(at));
        placed.or_else(|| match fields.get("items")? {
            Value::Array(items) => items.get(at),
            every => Some(every),
        })
    };
    applied.iter().filter_map(of).collect()
}
