//! What a person says became of a call whose outcome is unknown.

use serde::{Deserialize, Serialize};

use crate::id::{CallRef, Digest};
use crate::json::{BadJson, Bounds};

/// Bounds of a stated result.
pub const STATED_RESULT: Bounds = Bounds {
    bytes_max: 1024 * 1024,
    depth_max: 64,
    nodes_max: 100_000,
};

/// What a person says became of a call. The recorded outcome of the call does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    pub about: CallRef,
    pub args_digest: Digest,
    #[serde(flatten)]
    pub outcome: StatedOutcome,
    /// Who made the statement, and through what, such as `the terminal, user id 1000`. The user id is
    /// that of the process of airlock.
    pub by: String,
    /// Digest of what the person was shown.
    pub shown: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stated", rename_all = "kebab-case")]
pub enum StatedOutcome {
    /// The call had its effect. Without a result, the script's promise rejects.
    Happened {
        /// JSON text of the value that the script gets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    },
    DidNotHappen,
}

/// Why a stated result cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableResult {
    #[error("the stated result cannot be read: {0}")]
    Json(#[from] BadJson),
    #[error("the stated result contains a credential, and airlock stores no credential")]
    Credential,
    #[error("the stated result does not fit the output schema: {0}")]
    Schema(String),
}

impl StatedOutcome {
    #[must_use]
    pub fn in_words(&self) -> &'static str {
        match self {
            Self::Happened { .. } => "happened",
            Self::DidNotHappen => "did not happen",
        }
    }

    /// Returns the JSON text of the stated result.
    #[must_use]
    pub fn result(&self) -> Option<&str> {
        match self {
            Self::Happened { result } => result.as_deref(),
            Self::DidNotHappen => None,
        }
    }
}
