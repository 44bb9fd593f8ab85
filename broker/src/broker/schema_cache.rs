//! A cache of compiled schemas. When it is full, the schemas that were not used for the longest
//! time are dropped. They are compiled again when they are needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::id::Digest;
use codegen::lazy_json::LazyJson;
use codegen::validate::{BadSchema, Validator, nodes};

/// Maximum number of nodes in all compiled schemas together. A schema of a real tool has about
/// fifty. A schema that alone exceeds the maximum is kept as the only one.
const NODES_KEPT_MAX: u64 = 100_000;

/// A schema that can be compiled.
#[derive(Debug)]
pub(super) struct SchemaSource {
    pub(super) name: SchemaKey,
    pub(super) value: LazyJson,
}

/// The key of a schema: the digest of a description that contains it, and which of its schemas it
/// is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SchemaKey {
    Input(Digest),
    Output(Digest),
}

#[derive(Debug)]
pub(super) struct SchemaCache(Mutex<CacheState>);

#[derive(Debug)]
struct CacheState {
    nodes_max: u64,
    by_name: HashMap<SchemaKey, CacheEntry>,
    nodes: u64,
    /// A counter that increases with each use.
    now: u64,
}

#[derive(Debug)]
struct CacheEntry {
    validator: Result<Arc<Validator>, BadSchema>,
    nodes: u64,
    used: u64,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::of_at_most(NODES_KEPT_MAX)
    }
}

impl SchemaCache {
    fn of_at_most(nodes_max: u64) -> Self {
        Self(Mutex::new(CacheState {
            nodes_max,
            by_name: HashMap::new(),
            nodes: 0,
            now: 0,
        }))
    }

    /// Returns the compiled schema. Two threads that need the same schema for the first time may
    /// both compile it.
    pub(super) fn of(&self, schema: &SchemaSource) -> Result<Arc<Validator>, BadSchema> {
        if let Some(known) = self.lock().find(schema.name) {
            return known;
        }
        let validator = Validator::compile(&schema.value).map(Arc::new);
        let entry = CacheEntry {
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

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheState {
    fn find(&mut self, name: SchemaKey) -> Option<Result<Arc<Validator>, BadSchema>> {
        self.now += 1;
        let entry = self.by_name.get_mut(&name)?;
        entry.used = self.now;
        Some(entry.validator.clone())
    }

    fn keep(&mut self, name: SchemaKey, entry: CacheEntry) {
        self.nodes += entry.nodes;
        let used = self.now;
        if let Some(same) = self.by_name.insert(name, CacheEntry { used, ..entry }) {
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

    /// Returns a schema that accepts only its number, and has about `nodes` nodes.
    fn schema(number: u64, nodes: u64) -> SchemaSource {
        let filling: Vec<_> = (0..nodes).collect();
        let name = SchemaKey::Input(Digest::sha256(&number.to_le_bytes()));
        let value = json!({"const": number, "examples": filling}).into();
        SchemaSource { name, value }
    }

    #[test]
    fn least_recently_used_schema_is_evicted_and_recompiled() {
        let compiled = SchemaCache::of_at_most(300);
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
    fn schema_larger_than_cache_is_kept_alone() {
        let compiled = SchemaCache::of_at_most(300);
        compiled.of(&schema(0, 10)).unwrap();
        compiled.of(&schema(1, 400)).unwrap();
        assert_eq!(compiled.len(), 1);
    }

    #[test]
    fn uncompilable_schema_is_tried_once() {
        let compiled = SchemaCache::default();
        let name = SchemaKey::Output(Digest::sha256(b"bad"));
        let value = json!({"required": 7}).into();
        let bad = SchemaSource { name, value };
        let why = compiled.of(&bad).unwrap_err();
        assert_eq!(compiled.of(&bad).unwrap_err(), why);
        assert_eq!(compiled.len(), 1);
    }
}
