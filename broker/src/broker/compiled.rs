//! Schemas that were compiled, as many as fit: those that were not used for longest make room,
//! and are compiled anew when they are needed again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::id::Digest;
use codegen::later::Later;
use codegen::validate::{BadSchema, Validator, nodes};

/// Nodes of all schemas together that are kept compiled; a schema of a real tool has about
/// fifty. One that has more than all may have is kept alone.
const NODES_KEPT_MAX: u64 = 100_000;

/// A schema that may be compiled.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: Name,
    pub(super) value: Later,
}

/// The digest of a description that has the schema, and which of its schemas it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Input(Digest),
    Output(Digest),
}

#[derive(Debug)]
pub(super) struct Compiled(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    nodes_max: u64,
    by_name: HashMap<Name, Entry>,
    nodes: u64,
    /// Goes up with each use.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    validator: Result<Arc<Validator>, BadSchema>,
    nodes: u64,
    used: u64,
}

impl Default for Compiled {
    fn default() -> Self {
        Self::of_at_most(NODES_KEPT_MAX)
    }
}

impl Compiled {
    fn of_at_most(nodes_max: u64) -> Self {
        Self(Mutex::new(Kept {
            nodes_max,
            by_name: HashMap::new(),
            nodes: 0,
            now: 0,
        }))
    }

    /// Two threads that need the same schema for the first time may both compile it.
    pub(super) fn of(&self, schema: &Schema) -> Result<Arc<Validator>, BadSchema> {
        if let Some(known) = self.lock().find(schema.name) {
            return known;
        }
        let validator = Validator::compile(&schema.value).map(Arc::new);
        let entry = Entry {
            validator: validator.clone(),
            nodes: nodes(&schema.value),
            used: 0,
        };
        self.lock().keep(schema.name, entry);
        validator
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().by_name.len()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, name: Name) -> Option<Result<Arc<Validator>, BadSchema>> {
        self.now += 1;
        let entry = self.by_name.get_mut(&name)?;
        entry.used = self.now;
        Some(entry.validator.clone())
    }

    fn keep(&mut self, name: Name, entry: Entry) {
        self.nodes += entry.nodes;
        let used = self.now;
        if let Some(same) = self.by_name.insert(name, Entry { used, ..entry }) {
            self.nodes -= same.nodes;
        }
        while self.nodes > self.nodes_max {
            let others = self.by_name.iter().filter(|(it, _)| **it != name);
            let oldest = others.min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(name, _)| *name) else {
                return;
            };
            if let Some(gone) = self.by_name.remove(&oldest) {
                self.nodes -= gone.nodes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Refuses everything but its number, and has about so many nodes.
    fn schema(number: u64, nodes: u64) -> Schema {
        let filling: Vec<_> = (0..nodes).collect();
        let name = Name::Input(Digest::of(&number.to_le_bytes()));
        let value = json!({"const": number, "examples": filling}).into();
        Schema { name, value }
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room_and_comes_back() {
        let compiled = Compiled::of_at_most(300);
        let schemas: Vec<_> = (0..4).map(|number| schema(number, 100)).collect();
        let first = compiled.of(&schemas[0]).unwrap();
        for at in [1, 0, 2, 0, 3] {
            compiled.of(&schemas[at]).unwrap();
            assert!(compiled.lock().nodes <= 300);
        }
        let again = compiled.of(&schemas[0]).unwrap();
        assert!(Arc::ptr_eq(&first, &again), "it was used all the time");
        assert_eq!(compiled.len(), 2);
        let back = compiled.of(&schemas[1]).unwrap();
        assert!(back.accepts(&json!(1)) && !back.accepts(&json!(0)));
    }

    #[test]
    fn a_schema_that_is_larger_than_all_may_be_is_kept_alone() {
        let compiled = Compiled::of_at_most(300);
        compiled.of(&schema(0, 10)).unwrap();
        compiled.of(&schema(1, 400)).unwrap();
        assert_eq!(compiled.len(), 1);
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_is_tried_once() {
        let compiled = Compiled::default();
        let name = Name::Output(Digest::of(b"bad"));
        let value = json!({"required": 7}).into();
        let bad = Schema { name, value };
        let why = compiled.of(&bad).unwrap_err();
        assert_eq!(compiled.of(&bad).unwrap_err(), why);
        assert_eq!(compiled.len(), 1);
    }
}
