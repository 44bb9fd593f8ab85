//! Grants in the life of a run: those it starts with, those that are given in
//! it, and the uses of those that it shares with other runs.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::code::Code;
use crate::decide::{Covered, Decision, Pending, claimed};
use crate::grant::{Grant, Scope, Use};
use crate::id::{CallId, ToolId};
use crate::journal::{Body, GrantClaimed, GrantGiven, GrantHead, GrantVoided};
use crate::rules::Level;

use super::Run;
use super::calls::{Record, Stage};

impl Run {
    /// What does not fit this run is recorded as void, and used for nothing.
    pub(super) fn admit_grants(&mut self) {
        for grant in std::mem::take(&mut self.spec.grants.grants) {
            let tool = self.spec.standing.catalog.find(&grant.tool);
            let (id, tool_id) = (grant.id.clone(), grant.tool.clone());
            if let Err(why) = self.grants.admit(grant, tool.map(|tool| &**tool)) {
                let voided = GrantVoided {
                    grant: id,
                    tool: tool_id,
                    why: why.to_owned(),
                };
                self.append(Body::GrantVoided(Box::new(voided)), false);
            }
        }
    }

    /// By now all calls of this step are known, and so what they share.
    pub(super) fn propose(&self, pending: &mut Pending) {
        if pending.question().level != Level::AskRun {
            return;
        }
        let tool = &pending.question().tool;
        // The one that is asked about is in no stage now.
        let waiting = self.calls.asking_of(tool).saturating_add(1);
        let proposal = self.grants.proposal(tool, waiting, &self.spec.script);
        pending.propose(proposal, &self.spec.grants.scopes);
    }

    /// A grant is on record before anything uses it, and kept where others find it.
    pub(super) fn record_given(&mut self, call: CallId) {
        for grant in self.grants.take_fresh() {
            let given = GrantGiven {
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

    /// Per tool of which calls stayed unanswered that a grant could have covered.
    pub(super) fn grants_needed(&self) -> Vec<Grant> {
        let mut unanswered: BTreeMap<&ToolId, u32> = BTreeMap::new();
        for record in &self.calls.records {
            if record.code == Some(Code::Unanswered) {
                *unanswered.entry(&record.tool).or_default() += 1;
            }
        }
        let needed = |(id, calls): (&ToolId, u32)| {
            let tool = self.spec.standing.catalog.find(id)?;
            self.grants
                .needed(tool, NonZeroU32::new(calls)?, &self.spec.script)
        };
        unanswered.into_iter().filter_map(needed).collect()
    }

    /// There is room for the call: its use is counted where all see it, and then it leaves.
    pub(super) fn claim(&mut self, call: CallId, covered: Covered) {
        let grant = covered.grant().clone();
        // A use that was counted by a process that died then is known to have been for this call.
        let claimed = GrantClaimed {
            call,
            tool: covered.question().tool.clone(),
            grant: grant.clone(),
        };
        self.append(Body::GrantClaimed(Box::new(claimed)), false);
        self.calls.put(call, Stage::Claiming(covered));
        self.out.claim(call, grant);
    }

    pub(super) fn claimed(&mut self, call: CallId, used: Result<Use, String>) {
        if !self.calls.record(call).is_some_and(is_claiming) {
            return;
        }
        let Stage::Claiming(covered) = self.calls.take(call) else {
            return;
        };
        match claimed(covered, used, &mut self.grants) {
            Decision::Allow(authorized) => {
                self.watch_allowed(&authorized);
                if let Some(record) = self.calls.record(call) {
                    record.reasons = authorized.reasons().to_vec();
                }
                self.send(call, authorized);
            }
            decision => self.apply(call, decision),
        }
    }
}

fn is_claiming(record: &mut Record) -> bool {
    matches!(record.stage, Stage::Claiming(_))
}
