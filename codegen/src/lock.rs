//! The lock file: the servers and the tool descriptions that a person last accepted. It contains
//! whole descriptions, so that a change can be shown and not only detected. This module does no
//! I/O: it reads and writes text, and returns changes.

mod diff;
mod order;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical::{self, Digest};
use crate::description::{self, Description};

pub use diff::{Change, ChangeKind, diff};
pub use order::{ReorderedList, settle, settle_all};

/// Version of the format. A reader refuses every other version.
pub const VERSION: u32 = 1;

/// A whole lock file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    pub version: u32,
    pub servers: BTreeMap<String, LockedServer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    /// The command or the address in the configuration, without credentials.
    pub target: String,
    /// The name and version that the server reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    pub tools: BTreeMap<String, LockedTool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTool {
    pub digest: Digest,
    /// All members that the digest covers. A reader of the description relies on no other members.
    pub description: Map<String, Value>,
    /// JSON pointers to lists of the description whose order does not count. A person adds them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub exempt: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLock {
    #[error("{0}")]
    Form(String),
    #[error("unsupported version {0}; expected {VERSION}")]
    Version(u32),
    #[error("`exempt` of `{tool}` names `{field}`, which is no list of the description")]
    Exempt { tool: String, field: String },
    #[error("the digest of `{0}` does not match its description: it was edited by hand")]
    Digest(String),
}

impl Default for Lock {
    fn default() -> Self {
        Self {
            version: VERSION,
            servers: BTreeMap::new(),
        }
    }
}

impl Lock {
    /// Reads the output of [`Lock::text`]. `value` is the parsed text.
    pub fn read(value: &Value) -> Result<Self, BadLock> {
        let version = value.get("version").and_then(Value::as_u64);
        if let Some(version) = version.and_then(|it| u32::try_from(it).ok())
            && version != VERSION
        {
            return Err(BadLock::Version(version));
        }
        let lock = Self::deserialize(value).map_err(|error| BadLock::Form(error.to_string()))?;
        for (server, locked) in &lock.servers {
            for (name, tool) in &locked.tools {
                let description = Value::Object(tool.description.clone());
                let is_own = tool.description.get("name").and_then(Value::as_str) == Some(name);
                if canonical::digest(&description) != tool.digest || !is_own {
                    return Err(BadLock::Digest(format!("{server}.{name}")));
                }
                if let Some(field) = tool.unfit_exemption() {
                    let (tool, field) = (format!("{server}.{name}"), field.to_owned());
                    return Err(BadLock::Exempt { tool, field });
                }
            }
        }
        Ok(lock)
    }

    /// Writes the lock: sorted, indented, with every invisible character as an escape. Equal locks
    /// give equal texts.
    #[must_use]
    pub fn text(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        crate::text::visible(&text) + "\n"
    }

    /// Whether a tool is unchanged; `None` if the lock does not contain the tool.
    #[must_use]
    pub fn holds(&self, server: &str, tool: &str, upstream: Digest) -> Option<bool> {
        let locked = self.servers.get(server)?.tools.get(tool)?;
        Some(locked.digest == upstream)
    }
}

impl LockedTool {
    /// Creates an entry; `said` is the tool as the server listed it.
    #[must_use]
    pub fn new(said: &Value, description: &Description) -> Self {
        let pinned = said.as_object().map(description::pinned);
        Self {
            digest: description.upstream,
            description: sorted(pinned.unwrap_or_default()),
            exempt: BTreeSet::new(),
        }
    }
}

/// Sorts the members of every object. The digest does not depend on their order, and a review
/// should not either.
fn sorted(mut members: Map<String, Value>) -> Map<String, Value> {
    members.sort_keys();
    for value in members.values_mut() {
        sort(value);
    }
    members
}

fn sort(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.sort_keys();
            members.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
