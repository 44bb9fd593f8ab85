//! Tracks the reads of offered servers' lists that are in progress. Concurrent requests for one
//! list share one read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::id::ServerName;
use serde_json::Value;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

/// The items that one server lists, reduced to the fields that are shown.
#[derive(Debug, Default)]
pub(super) struct ItemPages {
    pub(super) items: Vec<Value>,
    /// Whether the list is complete: all pages arrived, and no limit was reached.
    pub(super) is_whole: bool,
}

/// One lock per server and method.
type Turns = HashMap<(ServerName, &'static str), Arc<Turn<LatestReading>>>;

#[derive(Debug, Default)]
pub(super) struct ListReads(Mutex<Turns>);

/// The read that started last. Its result is kept while any request waits for it.
#[derive(Debug, Default)]
pub(super) struct LatestReading {
    pub(super) begun: Option<Instant>,
    pub(super) pages: Option<Arc<ItemPages>>,
}

impl ListReads {
    /// Returns the lock under which the list is read.
    pub(super) fn turn(
        &self,
        server: &ServerName,
        method: &'static str,
    ) -> Arc<Turn<LatestReading>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry((server.clone(), method)).or_default();
        Arc::clone(turn)
    }
}
