//! The proof that a call may leave. Only the parent module can make one, it
//! cannot be cloned, and performing the call consumes it.

use std::sync::Arc;

use crate::call::{Args, Call, Site};
use crate::catalog::Tool;
use crate::facts::Facts;
use crate::grant::Use;
use crate::id::{CallId, Digest, ToolId};

/// A call that was decided on and may leave, once.
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

/// What the shell sends: the tool, and the bytes that were decided on.
#[derive(Debug)]
pub struct CallParts {
    pub id: CallId,
    pub tool: ToolId,
    /// Of what its server said of the tool when the call was decided.
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

    /// The canonical arguments object, as JSON text.
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

    /// The digest of the description that the decision was made on.
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

    /// The use of a grant that allowed it, when one did.
    #[must_use]
    pub fn used(&self) -> Option<&Use> {
        self.used.as_ref()
    }

    /// Back to what it was before it was decided.
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
