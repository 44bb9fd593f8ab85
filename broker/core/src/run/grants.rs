//! The grants of a run: those it starts with, those given during the run, and the uses of grants
//! that it shares with other runs.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::code::Code;
use crate::decide::{CoveredCall, Decision, PendingCall, claimed};
use crate::grant::{Grant, Scope, ScriptAndInput, Use};
use crate::id::{CallId, ToolId};
use crate::journal::{Body, GrantClaimedEntry, GrantGivenEntry, GrantHead, GrantVoidedEntry};
use crate::level::Level;
use crate::resume::matching::ReuseBlocker;

use super::Run;
use super::calls::{CallRecord, CallStage};
use super::entries::unsettled;

impl Run {
    /// Admits the grants that apply to this run. Every other grant is recorded as void and never
    /// used.
    pub(super) fn admit_grants(&mut self) {
        for grant in std::mem::take(&mut self.spec.grants.grants) {
            let tool = self.spec.decision_context.catalog.find(&grant.tool);
            let (id, tool_id) = (grant.id.clone(), grant.tool.clone());
            if let Err(why) = self.grants.admit(grant, tool.map(|tool| &**tool)) {
                let voided = GrantVoidedEntry {
                    grant: id,
                    tool: tool_id,
                    why: why.to_owned(),
                };
                self.append(Body::GrantVoided(Box::new(voided)), false);
            }
        }
    }

    /// Adds a proposal to a question. At this point all calls of the step are known, so the
    /// proposal can cover all of them.
    pub(super) fn propose(&self, pending: &mut PendingCall) {
        if pending.question().level != Level::AskRun {
            return;
        }
        let tool = &pending.question().tool;
        // The call of this question has been taken out of its stage, so it must be added.
        let waiting = self.calls.asking_of(tool).saturating_add(1);
        let proposal = self.grants.proposal(tool, waiting, self.text());
        pending.propose(proposal, &self.spec.grants.scopes);
    }

    fn text(&self) -> ScriptAndInput<'_> {
        ScriptAndInput {
            script: &self.spec.script,
            input: &self.spec.input,
        }
    }

    /// Records new grants before anything uses them, and stores those that other runs share.
    pub(super) fn record_given(&mut self, call: CallId) {
        for grant in self.grants.take_fresh() {
            let given = GrantGivenEntry {
                call,
                tool: grant.tool.clone(),
                grant: GrantHead {
                    id: grant.id.clone(),
                    scope: grant.scope,
                    uses_max: grant.uses_max.get(),
                    expires_at_ms: grant.expires_at_ms,
                    description: grant.description,
                    script: grant.script,
                    policy: grant.policy,
                    labels: grant.labels.clone(),
                },
                condition: grant.condition.clone(),
                shown: grant.shown,
                by: grant.by.clone(),
            };
            self.append(Body::GrantGiven(Box::new(given)), grant.scope != Scope::Run);
            if grant.scope != Scope::Run {
                self.out.keep(grant);
            }
        }
    }

    /// Returns one grant per tool that would have covered its unanswered calls.
    pub(super) fn grants_needed(&self) -> Vec<Grant> {
        let mut unanswered: BTreeMap<&ToolId, u32> = BTreeMap::new();
        for record in &self.calls.records {
            if record.code == Some(Code::Unanswered) {
                *unanswered.entry(&record.tool).or_default() += 1;
            }
        }
        let needed = |(id, calls): (&ToolId, u32)| {
            let tool = self.spec.decision_context.catalog.find(id)?;
            self.grants
                .needed(tool, NonZeroU32::new(calls)?, self.text())
        };
        unanswered.into_iter().filter_map(needed).collect()
    }

    /// Claims a use of a shared grant, now that the call can be sent. The call is sent after the
    /// claim.
    pub(super) fn claim(&mut self, call: CallId, covered: CoveredCall) {
        let question = covered.question();
        let tool = self.spec.decision_context.catalog.find(&question.tool);
        let blocker = tool.and_then(|tool| self.blocker(tool, &question.args));
        if let Some(by) = blocker {
            let entry = unsettled(question);
            return self.block(entry, by, ReuseBlocker::UnknownOutcome);
        }
        let grant = covered.grant().clone();
        // If the process dies after the claim, this entry shows which call the use was for.
        let claimed = GrantClaimedEntry {
            call,
            tool: covered.question().tool.clone(),
            grant: grant.clone(),
        };
        self.append(Body::GrantClaimed(Box::new(claimed)), false);
        self.calls.put(call, CallStage::Claiming(covered));
        self.out.claim(call, grant);
    }

    pub(super) fn claimed(&mut self, call: CallId, used: Result<Use, String>) {
        if !self.calls.record(call).is_some_and(is_claiming) {
            return;
        }
        let CallStage::Claiming(covered) = self.calls.take(call) else {
            return;
        };
        match claimed(covered, used, &mut self.grants) {
            Decision::Allow(authorized) => {
                self.tracker_allowed(&authorized);
                if let Some(record) = self.calls.record(call) {
                    record.reasons = authorized.reasons().to_vec();
                }
                self.send(call, authorized);
            }
            decision => self.apply(call, decision),
        }
    }
}

fn is_claiming(record: &mut CallRecord) -> bool {
    matches!(record.stage, CallStage::Claiming(_))
}
