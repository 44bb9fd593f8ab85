//! What a journal says of grants: given, used, and void in this run.

use serde::{Deserialize, Serialize};

use crate::flow::Labels;
use crate::grant::{Condition, Scope};
use crate::id::{CallId, Digest, GrantId, ToolId};

/// A human's yes to more than one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantGiven {
    /// The call that was asked about.
    pub call: CallId,
    pub tool: ToolId,
    pub grant: GrantHead,
    /// Which arguments it covers.
    #[serde(rename = "where")]
    pub condition: Condition,
    /// Digest of what was said yes to.
    pub shown: Digest,
    /// Who said yes.
    pub by: String,
}

/// What a grant is bound to, in our own words and numbers.
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

/// A grant that the run started with, and cannot use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantVoided {
    pub grant: GrantId,
    pub tool: ToolId,
    pub why: String,
}

/// A use of a grant that other runs share is about to be counted where they see it. What
/// follows for the call says what came of it; where nothing does, the use may be spent and
/// nothing left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantClaimed {
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

/// For the tests of the whole journal.
#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::journal::Body;
    use crate::testing::args;

    pub(in crate::journal) fn given() -> Body {
        let digest = Digest::of(b"x");
        Body::GrantGiven(Box::new(GrantGiven {
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
        Body::GrantClaimed(Box::new(GrantClaimed {
            call: CallId(call),
            tool: ToolId::parse("fs.read").unwrap(),
            grant: GrantId("r1.1".into()),
        }))
    }

    pub(in crate::journal) fn voided() -> Body {
        Body::GrantVoided(Box::new(GrantVoided {
            grant: GrantId("r0.1".into()),
            tool: ToolId::parse("fs.read").unwrap(),
            why: "it has expired".into(),
        }))
    }
}
