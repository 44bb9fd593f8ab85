//! Blocks calls whose effect an earlier call may already have had.
//!
//! If the outcome of a call is unknown and the call is not repeatable, no call with the same tool and
//! arguments leaves: neither in the same run nor in a later run of its chain. A person can state what
//! became of the earlier call, during the run ([`super::statements`]) or between two runs of a chain.

use crate::call::Args;
use crate::catalog::Tool;
use crate::code::Code;
use crate::decide::AuthorizedCall;
use crate::id::{CallId, CallRef};
use crate::journal::{DecidedEntry, Verdict};
use crate::resume::ledger::CallKey;
use crate::resume::matching::ReuseBlocker;

use super::Run;
use super::entries::decided;

impl Run {
    /// Returns the identity of a call in the ledger of the run's chain, and whether its arguments
    /// are recorded with masked secrets.
    pub(super) fn key_of(&self, tool: &Tool, args: &Args) -> (CallKey, bool) {
        let (args, is_masked) = self.spec.redact.args_digest(args);
        let tool = tool.id.clone();
        (CallKey { tool, args }, is_masked)
    }

    pub(super) fn call_ref(&self, call: CallId) -> CallRef {
        CallRef {
            run: self.spec.run.clone(),
            call,
        }
    }

    /// Returns the call of this run that blocks an equal call.
    pub(super) fn blocker(&self, tool: &Tool, args: &Args) -> Option<CallRef> {
        if self.indeterminate.is_empty() || tool.is_repeatable() {
            return None;
        }
        let (key, _) = self.key_of(tool, args);
        self.indeterminate.get(&key)?.first().cloned()
    }

    /// Returns the call that had its effect according to a person, and whose result is not known. The
    /// script may catch this error and try again.
    pub(super) fn known_effect(&self, tool: &Tool, args: &Args) -> Option<CallRef> {
        if self.without_result.is_empty() || tool.is_repeatable() {
            return None;
        }
        let (key, _) = self.key_of(tool, args);
        self.without_result.get(&key).cloned()
    }

    /// Denies a call because of an earlier one that may have had its effect.
    pub(super) fn block(&mut self, entry: DecidedEntry, by: CallRef, blocker: ReuseBlocker) {
        let earlier = match by.run == self.spec.run {
            true => format!("call {}", by.call.0),
            false => format!("call {by}"),
        };
        let (why, remedy) = (blocker.why(), blocker.remedy());
        let message = format!(
            "the call to `{}` was not made, because {earlier} had the same arguments, and {why}. \
             {remedy}",
            entry.tool
        );
        let mut reasons = entry.reasons.clone();
        reasons.push(format!("{earlier} has the same arguments; {why}"));
        let entry = DecidedEntry {
            decision: Verdict::Deny,
            code: Some(Code::OutcomeUnknown),
            reasons,
            blocked_by: Some(by),
            ..entry
        };
        self.deny(entry, message);
    }

    /// Denies an allowed call, if an equal call has become indeterminate since the decision. Returns
    /// whether the call is denied. A person is asked if the script makes the call again.
    pub(super) fn is_blocked(&mut self, call: &AuthorizedCall) -> bool {
        let (tool, args) = (call.catalog_tool(), call.canonical_args());
        let unknown = self.blocker(tool, args);
        let unknown = unknown.map(|by| (by, ReuseBlocker::UnknownOutcome));
        let known = self.known_effect(tool, args);
        let known = known.map(|by| (by, ReuseBlocker::ResultNotKnown));
        let Some((by, why)) = unknown.or(known) else {
            return false;
        };
        let entry = decided(call, Verdict::Deny);
        self.block(entry, by, why);
        true
    }
}
