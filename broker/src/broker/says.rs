//! What each server says of its tools, as it was read last, whether or not that could be taken
//! in: what a call is held against before it leaves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::id::{Digest, ServerName, ToolName};

/// Cheap to clone; all clones know the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Says(Arc<Mutex<HashMap<ServerName, Said>>>);

/// One reading of one server's list.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) reading: u64,
    digests: Arc<Digests>,
}

/// Of what a server itself says of its tools, by their names.
pub(super) type Digests = HashMap<String, Digest>;

impl Says {
    pub(super) fn put(&self, server: ServerName, reading: u64, digests: Digests) {
        let digests = Arc::new(digests);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(server, Said { reading, digests });
    }

    pub(super) fn of(&self, server: &ServerName) -> Option<Said> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(server).cloned()
    }
}

impl Said {
    /// Nothing for a tool that is not in the list, or not as a tool has to be.
    pub(super) fn digest(&self, tool: &ToolName) -> Option<Digest> {
        self.digests.get(&*tool.0).copied()
    }
}
