//! Newtypes for names and numbers, so that they cannot be mixed up.

use std::fmt;
use std::sync::Arc;

pub use codegen::canonical::Digest;
use serde::{Deserialize, Serialize};

/// The name of a server in the configuration, never a name that the server reports.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerName(pub Arc<str>);

impl ServerName {
    pub const CHARS_MAX: usize = 64;

    /// Parses a letter followed by letters, digits, `_` and `-`. A dot is not allowed, so
    /// `server.tool` can be split in only one way.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let mut chars = text.chars();
        let fits = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            && text.len() <= Self::CHARS_MAX;
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(BadName::Server(shortened(text)))
        }
    }
}

/// A tool's exact name in MCP messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolName(pub Arc<str>);

/// `server.tool`, the name of a tool for people and rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId {
    pub server: ServerName,
    pub tool: ToolName,
}

impl ToolId {
    /// Parses the form that `Display` writes. The tool's own name may contain dots.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let (server, tool) = text
            .split_once('.')
            .ok_or_else(|| BadName::Tool(shortened(text)))?;
        if tool.is_empty() {
            return Err(BadName::Tool(shortened(text)));
        }
        Ok(Self {
            server: ServerName::parse(server)?,
            tool: ToolName(tool.into()),
        })
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server.0, self.tool.0)
    }
}

impl Serialize for ToolId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId(pub Arc<str>);

/// The host's number of a call within its run: 1, 2, 3 … in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(pub u32);

/// One call of one run of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallRef {
    pub run: RunId,
    pub call: CallId,
}

impl CallRef {
    /// Parses the form `RUN:CALL` that `Display` writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (run, call) = text.rsplit_once(':')?;
        let call = call.parse().ok().filter(|call| *call > 0)?;
        (!run.is_empty()).then(|| Self {
            run: RunId(run.into()),
            call: CallId(call),
        })
    }
}

impl fmt::Display for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.run.0, self.call.0)
    }
}

/// The id of a grant. Grants for one run are numbered within the run: 1, 2, 3 … in the order in
/// which they were given. A shared grant has a globally unique id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GrantId(pub Arc<str>);

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error(
        "invalid server name `{0}`; expected a letter, then at most 63 letters, digits, `_` or `-`"
    )]
    Server(String),
    #[error("invalid tool name `{0}`; expected the form `server.tool`")]
    Tool(String),
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_has_no_dot_and_starts_with_letter() {
        for good in ["fs", "Git-Hub_2"] {
            assert!(ServerName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "2fs", "a.b", "ä", "a b", &"a".repeat(65)] {
            assert!(ServerName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn call_ref_parses_what_it_displays() {
        let at = CallRef {
            run: RunId("01m8".into()),
            call: CallId(7),
        };
        assert_eq!(at.to_string(), "01m8:7");
        assert_eq!(CallRef::parse("01m8:7"), Some(at));
        for bad in ["01m8", "01m8:", "01m8:0", ":7", "01m8:x"] {
            assert_eq!(CallRef::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn tool_id_splits_at_first_dot() {
        let id = ToolId::parse("fs.read.all").unwrap();
        assert_eq!((&*id.server.0, &*id.tool.0), ("fs", "read.all"));
        assert_eq!(ToolId::parse(&id.to_string()), Ok(id));
        assert!(ToolId::parse("fs.").is_err() && ToolId::parse("fs").is_err());
    }
}
