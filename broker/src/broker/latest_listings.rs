//! The latest tool list of each server, as digests, even if the list could not be used. Before a
//! call is sent, its tool's digest is compared with this list.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::id::{Digest, ServerName, ToolName};

/// The latest lists of all servers. Cheap to clone; all clones share the same lists.
#[derive(Debug, Clone, Default)]
pub(super) struct LatestListings(Arc<Mutex<HashMap<ServerName, ListedDigests>>>);

/// The digests of one reading of one server's list.
#[derive(Debug, Clone)]
pub(super) struct ListedDigests {
    pub(super) reading: u64,
    digests: Arc<Digests>,
}

/// The digests of a server's own tool descriptions, by tool name.
pub(super) type Digests = HashMap<String, Digest>;

impl LatestListings {
    pub(super) fn put(&self, server: ServerName, reading: u64, digests: Digests) {
        let digests = Arc::new(digests);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(server, ListedDigests { reading, digests });
    }

    pub(super) fn of(&self, server: &ServerName) -> Option<ListedDigests> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(server).cloned()
    }
}

impl ListedDigests {
    /// Returns `None` for a tool that is not in the list, or that is invalid.
    pub(super) fn digest(&self, tool: &ToolName) -> Option<Digest> {
        self.digests.get(&*tool.0).copied()
    }
}
