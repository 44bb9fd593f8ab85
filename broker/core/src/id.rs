//! Names and numbers that must not be mixed up.

use std::fmt;
use std::sync::Arc;

pub use codegen::canonical::Digest;
use serde::{Deserialize, Serialize};

/// The name of a server as our configuration has it, never what the server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerName(pub Arc<str>);

/// A tool's exact name on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolName(pub Arc<str>);

/// `server.tool`, the name of a tool everywhere a person or a rule speaks of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId {
    pub server: ServerName,
    pub tool: ToolName,
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server.0, self.tool.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId(pub Arc<str>);

/// The host's number of a call within its run: 1, 2, 3 … in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(pub u32);
