//! The lock file: which servers there are and what they said of their tools when
//! somebody last looked. It holds the descriptions themselves, so that a change can
//! be shown and not only noticed. Pure: text in, text and changes out.

mod diff;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical::{self, Digest};
use crate::description::{self, Description};

pub use diff::{Change, Kind, diff};

/// Version of the format. A reader refuses every other.
pub const VERSION: u32 = 1;

/// A whole lock file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    pub version: u32,
    pub servers: BTreeMap<String, Server>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The command or the address, as our configuration has it, without any credential.
    pub target: String,
    /// What the server says it is: its name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    pub tools: BTreeMap<String, Tool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub digest: Digest,
    /// What the digest is of: everything that a reader of the description relies on.
    pub description: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLock {
    #[error("{0}")]
    Form(String),
    #[error("it has version {0}, and this program knows {VERSION}")]
    Version(u32),
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
    /// Reads what [`Lock::text`] writes. `value` is what the text spells.
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
            }
        }
        Ok(lock)
    }

    /// The one text of a lock: sorted, indented, every invisible character spelled out.
    #[must_use]
    pub fn text(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        crate::text::visible(&text) + "\n"
    }

    /// Whether a tool is what it was: `None` says that the lock does not know it.
    #[must_use]
    pub fn holds(&self, server: &str, tool: &str, upstream: Digest) -> Option<bool> {
        let locked = self.servers.get(server)?.tools.get(tool)?;
        Some(locked.digest == upstream)
    }
}

impl Tool {
    /// `said` is the tool as its server listed it.
    #[must_use]
    pub fn of(said: &Value, description: &Description) -> Self {
        let pinned = said.as_object().map(description::pinned);
        Self {
            digest: description.upstream,
            description: sorted(pinned.unwrap_or_default()),
        }
    }
}

/// The members of every object in one order: the digest does not depend on it, and a review
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
