//! The level of approval that a call needs. Rules and policies determine it, and a question to a
//! person contains it.

use serde::{Deserialize, Serialize};

/// The levels from the mildest to the strictest. The two in the middle need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Allow,
    /// A grant covers the call, or a human is asked.
    #[serde(rename = "ask")]
    AskRun,
    /// A human is asked about this single call. A grant cannot cover it.
    AskCall,
    Deny,
}

impl Level {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AskRun => "ask",
            Self::AskCall => "ask-call",
            Self::Deny => "deny",
        }
    }
}
