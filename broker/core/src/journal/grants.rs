//! The journal entries about grants: given, claimed, used, and void in this run.

use serde::{Deserialize, Serialize};

use crate::grant::{Condition, Scope};
use crate::id::{CallId, Digest, GrantId, ToolId};
use crate::labels::Labels;

/// A human allowed more than one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantGivenEntry {
    /// The call that was asked about.
    pub call: CallId,
    pub tool: ToolId,
    pub grant: GrantHead,
    /// The arguments that the grant covers.
    #[serde(rename = "where")]
    pub condition: Condition,
    /// Digest of the question that the approver was shown.
    pub shown: Digest,
    /// The approver.
    pub by: String,
}

/// The terms of a grant. They are never redacted, because they contain no text from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantHead {
    pub id: GrantId,
    pub scope: Scope,
    pub uses_max: u32,
    pub expires_at_ms: u64,
    pub description: Digest,
    pub script: Option<Digest>,
    pub policy: Digest,
    pub labels: Labels,
}

/// A grant that the run started with and cannot use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantVoidedEntry {
    pub grant: GrantId,
    pub tool: ToolId,
    pub why: String,
}

/// A use of a shared grant is about to be counted. The next entry of the call shows whether the
/// claim succeeded. If the journal ends without such an entry, the use may be spent although no
/// call was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantClaimedEntry {
    pub call: CallId,
    pub tool: ToolId,
    pub grant: GrantId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantUse {
    pub id: GrantId,
    pub number: u32,
    pub uses_max: u32,
}

/// Entries for the tests of the whole journal.
#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::journal::Body;
    use crate::testing::args;

    pub(in crate::journal) fn given() -> Body {
        let digest = Digest::sha256(b"x");
        Body::GrantGiven(Box::new(GrantGivenEntry {
            call: CallId(1),
            tool: ToolId::parse("fs.read").unwrap(),
            grant: GrantHead {
                id: GrantId("r1.1".into()),
                scope: Scope::Session,
                uses_max: 3,
                expires_at_ms: 9,
                description: digest,
                script: Some(digest),
                policy: digest,
                labels: Labels::worst(),
            },
            condition: Condition::exactly(args(r#"{"path":"a"}"#).value()).unwrap(),
            shown: digest,
            by: "terminal".into(),
        }))
    }

    pub(in crate::journal) fn claimed(call: u32) -> Body {
        Body::GrantClaimed(Box::new(GrantClaimedEntry {
            call: CallId(call),
            tool: ToolId::parse("fs.read").unwrap(),
            grant: GrantId("r1.1".into()),
        }))
    }

    pub(in crate::journal) fn voided() -> Body {
        Body::GrantVoided(Box::new(GrantVoidedEntry {
            grant: GrantId("r0.1".into()),
            tool: ToolId::parse("fs.read").unwrap(),
            why: "the grant has expired".into(),
        }))
    }
}
