//! Examines a schema before it is compiled. Its size, depth and breadth must be within limits, and
//! its references must lead to existing places inside the schema, without endless loops.

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use crate::schema::{self, Applies};

const PATTERNS_MAX: usize = 1_000;
/// Maximum number of references by name; each requires a search of the whole document.
const NAMED_MAX: usize = 200;
const PATTERN_BYTES_MAX: usize = 2_000;
/// Maximum number of schemas on a path from the root, including references.
const PATH_MAX: usize = 200;
/// Maximum number of schemas that apply, including references. A schema counts again each time it
/// is reached. For a part that contains itself, the cost is computed for each value instead.
const UNFOLDED_MAX: u64 = 100_000;
/// Number of schemas that one pattern counts as.
const PATTERN_WEIGHT: u64 = 20;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    #[error("the schema is nested too deeply or too large")]
    TooLarge,
    #[error("the schema refers to `{reference}` outside the schema; airlock does not fetch it")]
    ExternalReference { reference: String },
    #[error("the schema refers to `{reference}`, which does not exist")]
    DeadReference { reference: String },
    #[error("the schema has a nested `$id` (`{id}`), so its references are ambiguous")]
    InnerId { id: String },
    #[error("the schema applies itself to the same value endlessly")]
    Endless,
    #[error("the schema expands to more than {UNFOLDED_MAX} parts")]
    TooBroad,
    #[error(
        "the schema has more than {PATTERNS_MAX} patterns, or one longer than {PATTERN_BYTES_MAX} bytes"
    )]
    TooManyPatterns,
    #[error("the schema is invalid{}: {why}", at(.path))]
    Invalid { path: String, why: String },
}

fn at(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" at {path}")
    }
}

/// Maximum cost of one check, per node of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    pub unfolded: u64,
    /// Whether the schema contains itself; the cost then depends on the value.
    pub recursive: bool,
}

pub(super) fn examine(root: &Value) -> Result<Weight, BadSchema> {
    if !schema::is_bounded(root) {
        return Err(BadSchema::TooLarge);
    }
    let mut survey = Survey {
        root,
        ..Survey::default()
    };
    let found = survey.visit(root, 0)?;
    let reached = std::mem::take(&mut survey.reached);
    for node in reached {
        survey.follow_in_place(node, 0)?;
    }
    Ok(Weight {
        unfolded: found.unfolded,
        recursive: survey.recursive,
    })
}

#[derive(Clone, Copy)]
struct Measure {
    unfolded: u64,
    /// Length of the longest path from here down.
    height: usize,
    /// Whether a schema that contains itself can be reached from here.
    recursive: bool,
}

/// A walk over the schema as a graph. Schemas are identified by their address.
#[derive(Default)]
struct Survey<'a> {
    root: &'a Value,
    reached: Vec<&'a Value>,
    measured: HashMap<*const Value, Measure>,
    open: HashSet<*const Value>,
    in_place_open: HashSet<*const Value>,
    in_place_done: HashSet<*const Value>,
    patterns: usize,
    named: usize,
    recursive: bool,
}

impl<'a> Survey<'a> {
    fn visit(&mut self, node: &'a Value, depth: usize) -> Result<Measure, BadSchema> {
        let identity = std::ptr::from_ref(node);
        if let Some(measure) = self.measured.get(&identity) {
            return Ok(*measure);
        }
        let leaf = Measure {
            unfolded: 1,
            height: 1,
            recursive: false,
        };
        let Value::Object(fields) = node else {
            return Ok(leaf);
        };
        if !self.open.insert(identity) {
            self.recursive = true;
            return Ok(Measure {
                recursive: true,
                ..leaf
            });
        }
        if depth > PATH_MAX {
            return Err(BadSchema::TooLarge);
        }
        self.reached.push(node);
        let mut total = Measure {
            unfolded: own_weight(fields),
            ..leaf
        };
        self.count_patterns(fields)?;
        let by_name = |it: &&str| !it.ends_with('#') && !it.contains("#/");
        self.named += schema::references(fields).filter(by_name).count();
        if self.named > NAMED_MAX {
            return Err(BadSchema::TooBroad);
        }
        if depth > 0 {
            refuse_inner_id(fields)?;
        }
        for (applies, next) in self.edges(fields)? {
            let inner = self.visit(next, depth + 1)?;
            total.height = total.height.max(inner.height + 1);
            if applies != Applies::Never {
                total.unfolded = total.unfolded.saturating_add(inner.unfolded);
                total.recursive |= inner.recursive;
            }
        }
        if total.unfolded > UNFOLDED_MAX && !total.recursive {
            return Err(BadSchema::TooBroad);
        }
        if total.height > PATH_MAX {
            return Err(BadSchema::TooLarge);
        }
        self.open.remove(&identity);
        self.measured.insert(identity, total);
        Ok(total)
    }

    /// Fails if a schema leads back to itself without a step into the value.
    fn follow_in_place(&mut self, node: &'a Value, depth: usize) -> Result<(), BadSchema> {
        let identity = std::ptr::from_ref(node);
        let Value::Object(fields) = node else {
            return Ok(());
        };
        if self.in_place_done.contains(&identity) {
            return Ok(());
        }
        if !self.in_place_open.insert(identity) || depth > PATH_MAX {
            return Err(BadSchema::Endless);
        }
        for (applies, next) in self.edges(fields)? {
            if applies == Applies::Here {
                self.follow_in_place(next, depth + 1)?;
            }
        }
        self.in_place_open.remove(&identity);
        self.in_place_done.insert(identity);
        Ok(())
    }

    fn edges(
        &self,
        fields: &'a Map<String, Value>,
    ) -> Result<Vec<(Applies, &'a Value)>, BadSchema> {
        let mut edges = schema::inner(fields);
        for reference in schema::references(fields) {
            edges.push((Applies::Here, self.target(reference)?));
        }
        Ok(edges)
    }

    fn target(&self, reference: &str) -> Result<&'a Value, BadSchema> {
        schema::resolve(self.root, reference).ok_or_else(|| {
            let shown = crate::text::clip(&crate::text::neutralise(reference), 120);
            if reference.starts_with('#') {
                BadSchema::DeadReference { reference: shown }
            } else {
                BadSchema::ExternalReference { reference: shown }
            }
        })
    }

    fn count_patterns(&mut self, fields: &Map<String, Value>) -> Result<(), BadSchema> {
        for pattern in patterns(fields) {
            self.patterns += 1;
            if self.patterns > PATTERNS_MAX || pattern.len() > PATTERN_BYTES_MAX {
                return Err(BadSchema::TooManyPatterns);
            }
        }
        Ok(())
    }
}

fn patterns(fields: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let named = fields.get("patternProperties").and_then(Value::as_object);
    let keys = named.into_iter().flat_map(Map::keys).map(String::as_str);
    keys.chain(fields.get("pattern").and_then(Value::as_str))
}

/// Returns the cost of applying one schema, without its inner schemas.
pub(super) fn own_weight(fields: &Map<String, Value>) -> u64 {
    /// Number of values compared in the time of one step.
    const COMPARED: u64 = 32;
    /// Number of keys looked up in the time of one step.
    const LOOKED_UP: u64 = 4;
    let compared = ["enum", "const"].iter().filter_map(|it| fields.get(*it));
    let required = fields.get("required").and_then(Value::as_array);
    let lists = ["dependentRequired", "dependencies"].iter();
    let dependent = lists
        .filter_map(|it| fields.get(*it)?.as_object())
        .flat_map(Map::values)
        .filter_map(Value::as_array);
    let names: usize = required.into_iter().chain(dependent).map(Vec::len).sum();
    let looked_up = fields.get("properties").and_then(Value::as_object);
    let names = names + looked_up.map_or(0, Map::len);
    1 + PATTERN_WEIGHT * patterns(fields).count() as u64
        + compared.map(super::nodes).sum::<u64>() / COMPARED
        + names as u64 / LOOKED_UP
}

/// Refuses an `$id` below the root, which would change the base of references. An `$id` that is
/// only an anchor is allowed.
fn refuse_inner_id(fields: &Map<String, Value>) -> Result<(), BadSchema> {
    match fields.get("$id").and_then(Value::as_str) {
        Some(id) if !id.starts_with('#') => Err(BadSchema::InnerId {
            id: crate::text::clip(id, 120),
        }),
        _ => Ok(()),
    }
}

/// Returns the schema with two common deviations replaced by standard keywords: `nullable: true`
/// together with a `type`, and a `$schema` that names no published draft.
pub(super) fn normalised(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(fields) = &mut schema {
        let known = |uri: &str| Draft::from_schema_uri(uri) != Draft::Unknown;
        if fields
            .get("$schema")
            .is_some_and(|uri| !uri.as_str().is_some_and(known))
        {
            fields.shift_remove("$schema");
        }
    }
    admit_null(&mut schema);
    schema
}

/// Recursion is safe, because the depth of the schema was limited before.
fn admit_null(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                widen_by_null(fields);
            }
            for (keyword, inner) in fields.iter_mut() {
                if !matches!(
                    keyword.as_str(),
                    "enum" | "const" | "default" | "examples" | "example"
                ) {
                    admit_null(inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(admit_null),
        _ => {}
    }
}

fn widen_by_null(fields: &mut Map<String, Value>) {
    let Some(Value::String(name)) = fields.get("type") else {
        return;
    };
    let widened = serde_json::json!([name, "null"]);
    fields.insert("type".to_owned(), widened);
    if let Some(Value::Array(values)) = fields.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}
