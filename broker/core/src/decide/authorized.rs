//! [`AuthorizedCall`] is the proof that a call may be sent. Only the parent module can create one,
//! it cannot be cloned, and sending the call consumes it.

use std::sync::Arc;

use crate::call::{Args, Call, Site};
use crate::catalog::Tool;
use crate::facts::Facts;
use crate::grant::Use;
use crate::id::{CallId, Digest, ToolId};

/// An allowed call, which may be sent once.
///
/// ```compile_fail
/// fn twice(call: airlock_core::decide::AuthorizedCall) {
///     let _again = call.clone();
/// }
/// ```
///
/// ```compile_fail
/// fn undecided(call: airlock_core::call::Call) -> airlock_core::decide::AuthorizedCall {
///     airlock_core::decide::AuthorizedCall { call, ..unimplemented!() }
/// }
/// ```
#[derive(Debug)]
#[must_use = "a call that was allowed and is not made must be recorded as not sent"]
pub struct AuthorizedCall {
    call: Call,
    tool: Arc<Tool>,
    reasons: Vec<String>,
    used: Option<Use>,
}

/// The parts that the shell sends: the tool, and the exact bytes that the decision was about.
#[derive(Debug)]
pub struct CallParts {
    pub id: CallId,
    pub tool: ToolId,
    /// Digest of the server's description of the tool at the time of the decision.
    pub upstream_digest: Digest,
    pub args: Args,
}

impl AuthorizedCall {
    pub(super) fn new(
        call: Call,
        tool: Arc<Tool>,
        reasons: Vec<String>,
        used: Option<Use>,
    ) -> Self {
        Self {
            call,
            tool,
            reasons,
            used,
        }
    }

    #[must_use]
    pub fn id(&self) -> CallId {
        self.call.id
    }

    #[must_use]
    pub fn tool(&self) -> &ToolId {
        &self.tool.id
    }

    /// Returns the canonical arguments object as JSON text.
    #[must_use]
    pub fn args(&self) -> &[u8] {
        self.call.args.bytes()
    }

    #[must_use]
    pub fn canonical_args(&self) -> &Args {
        &self.call.args
    }

    #[must_use]
    pub fn facts(&self) -> Option<&Arc<Facts>> {
        self.call.facts.as_ref()
    }

    #[must_use]
    pub fn site(&self) -> Site {
        self.call.site
    }

    /// Returns the digest of the description that the decision was based on.
    #[must_use]
    pub fn description_digest(&self) -> Digest {
        self.tool.description_digest
    }

    #[must_use]
    pub fn catalog_tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    #[must_use]
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Returns the use of the grant that allowed the call, if a grant did.
    #[must_use]
    pub fn used(&self) -> Option<&Use> {
        self.used.as_ref()
    }

    /// Turns the call back into an undecided one.
    pub(super) fn into_call(self) -> Call {
        self.call
    }

    #[must_use]
    pub fn into_parts(self) -> CallParts {
        CallParts {
            id: self.call.id,
            tool: self.call.tool,
            upstream_digest: self.tool.upstream_digest,
            args: self.call.args,
        }
    }
}
