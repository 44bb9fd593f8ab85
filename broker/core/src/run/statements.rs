//! A person states during a run what became of a call whose outcome is unknown. The person is asked
//! when the script makes an equal call. Without a statement, that call is denied.

use std::sync::Arc;

use sandbox_protocol::Outcome;

use crate::call::Call;
use crate::catalog::Tool;
use crate::code::Code;
use crate::decide::{Answer, PendingCall, is_denied};
use crate::id::{CallId, CallRef, Digest};
use crate::journal::{AnswerWord, Body, ReusedEntry, StatedEntry, payload};
use crate::json;
use crate::report::ReportedOutcome;
use crate::resume::matching::{ReuseBlocker, result_not_known};
use crate::statement::{STATED_RESULT, StatedOutcome, Statement, UnusableResult};

use super::Run;
use super::calls::CallStage;
use super::resuming::stated_findings;

/// How often a question is put again because the stated result cannot be used.
const RETRIES_MAX: usize = 3;

impl Run {
    /// Asks a person what became of the earlier call because of which this one must not leave. Denies
    /// the call if that call is known to have happened, or if no person can be asked.
    pub(super) fn ask_or_block(&mut self, call: Call, tool: &Tool, by: CallRef, why: ReuseBlocker) {
        let (_, is_masked) = self.key_of(tool, &call.args);
        let context = &self.spec.decision_context;
        let tool = context.catalog.find(&tool.id);
        let (true, Some(tool)) = (
            why == ReuseBlocker::UnknownOutcome
                && self.spec.reaches_person
                // Two calls with masked arguments may differ.
                && !is_masked
                && !is_denied(&call, context),
            tool,
        ) else {
            let entry = self.entry_of(call);
            return self.block(entry, by, why);
        };
        let id = call.id;
        let stage = CallStage::Asking {
            pending: PendingCall::about_outcome(call, Arc::clone(tool), by),
            since_ms: self.clock.host_ms(),
            open: false,
        };
        self.calls.put(id, stage);
    }

    /// Handles the answer to the question what became of an earlier call.
    pub(super) fn outcome_answered(
        &mut self,
        mut pending: PendingCall,
        answer: Answer,
        since_ms: u64,
    ) {
        let (call, shown) = (pending.question().call, pending.question().shown_digest());
        let (outcome, by) = match answer {
            Answer::Stated { outcome, by } => (outcome, by),
            answer => {
                let word = match answer {
                    Answer::Refuse => AnswerWord::Refuse,
                    Answer::Unanswered => AnswerWord::Unanswered,
                    // No answer allows a call while the outcome is unknown.
                    _ => AnswerWord::Invalid,
                };
                self.record_answer(call, word, None, shown, since_ms);
                return self.block_asked(pending);
            }
        };
        let Some(bad) = self.objection(&outcome, &pending) else {
            self.record_answer(call, AnswerWord::Stated, None, shown, since_ms);
            return self.state(pending, outcome, by);
        };
        self.record_answer(call, AnswerWord::Invalid, None, shown, since_ms);
        if pending.question().reasons.len() >= RETRIES_MAX {
            return self.block_asked(pending);
        }
        pending.note_unused_answer(bad.to_string());
        let stage = CallStage::Asking {
            pending,
            since_ms: self.clock.host_ms(),
            open: false,
        };
        self.calls.put(call, stage);
    }

    /// Returns why a stated result cannot be used.
    pub(super) fn objection(
        &self,
        outcome: &StatedOutcome,
        pending: &PendingCall,
    ) -> Option<UnusableResult> {
        let text = outcome.result()?;
        if let Err(bad) = json::parse_strict(text.as_bytes(), STATED_RESULT) {
            return Some(bad.into());
        }
        if self.spec.redact.is_secret(text) {
            return Some(UnusableResult::Credential);
        }
        let findings = stated_findings(text, pending.tool());
        (!findings.is_empty()).then(|| UnusableResult::Schema(findings.join("; ")))
    }

    /// Denies a call, because no person said whether the earlier equal call happened.
    pub(super) fn block_asked(&mut self, pending: PendingCall) {
        let Some(by) = pending.question().outcome_of.clone() else {
            return;
        };
        let (call, _) = pending.into_parts();
        let entry = self.entry_of(call);
        self.block(entry, by, ReuseBlocker::UnknownOutcome);
    }

    /// Records a statement. It is on disk before anything acts on it.
    pub(super) fn record_statement(
        &mut self,
        pending: &PendingCall,
        outcome: StatedOutcome,
        by: String,
    ) {
        let Some(earlier) = &pending.question().outcome_of else {
            return;
        };
        let (key, _) = self.key_of(pending.tool(), &pending.call().args);
        let statement = Statement {
            about: earlier.clone(),
            args_digest: key.args,
            outcome,
            by,
            shown: pending.question().shown_digest(),
        };
        let stated = StatedEntry {
            call: pending.question().call,
            statement,
        };
        self.append(Body::Stated(Box::new(stated)), true);
    }

    /// Records a statement, and lets every call that was asked about for the same reason go on.
    fn state(&mut self, pending: PendingCall, outcome: StatedOutcome, by: String) {
        let Some(about) = pending.question().outcome_of.clone() else {
            return;
        };
        self.record_statement(&pending, outcome.clone(), by);
        let (call, tool) = pending.into_parts();
        let (key, _) = self.key_of(&tool, &call.args);
        let is_own = about.run == self.spec.run;
        if is_own {
            if let Some(calls) = self.indeterminate.get_mut(&key) {
                calls.retain(|it| *it != about);
            }
            self.indeterminate.retain(|_, calls| !calls.is_empty());
            if outcome == (StatedOutcome::Happened { result: None }) {
                self.without_result.insert(key, about.clone());
            }
        } else if let Some(resuming) = &mut self.resuming {
            resuming.matcher.state_call(&about, outcome.clone());
        }
        match (
            &outcome,
            is_own && !is_denied(&call, &self.spec.decision_context),
        ) {
            (StatedOutcome::Happened { result }, true) => {
                self.tell_stated(&call, &tool, about.clone(), result.as_deref());
            }
            _ => self.place_again(call, &tool),
        }
        for other in self.asked_about(&about) {
            let CallStage::Asking {
                pending,
                since_ms,
                open,
            } = self.calls.take(other)
            else {
                continue;
            };
            if open {
                self.withdraw(other, pending.question().shown_digest(), since_ms);
            }
            let (call, tool) = pending.into_parts();
            self.place_again(call, &tool);
        }
    }

    /// Gives the script the stated result of a call of this run.
    fn tell_stated(&mut self, call: &Call, tool: &Tool, from: CallRef, result: Option<&str>) {
        let (outcome, reported, code) = match result {
            Some(text) => (
                Outcome::Value(text.as_bytes().to_vec()),
                ReportedOutcome::Returned,
                None,
            ),
            None => (
                result_not_known(&tool.id),
                ReportedOutcome::Failed,
                Some(Code::ResultInvalid),
            ),
        };
        let (key, _) = self.key_of(tool, &call.args);
        self.note_reused(ReusedEntry {
            call: call.id,
            tool: call.tool.clone(),
            args_digest: key.args,
            site: call.site,
            from,
            outcome: reported,
            code,
            stated: true,
            payload_digest: Digest::sha256(payload(&outcome).as_bytes()),
        });
        if let Some(tracker) = &mut self.tracker {
            tracker.count_reused(tool, call.args.bytes().len());
            tracker.record_outcome(call.id, tool, &outcome);
        }
        self.tell(call.id, outcome);
    }

    /// Matches and decides on a call again, because something about an earlier call was stated.
    fn place_again(&mut self, call: Call, tool: &Tool) {
        let matched = self.match_parsed(&[Some((tool, &call.args))]);
        self.place(call, tool, matched.into_iter().next().flatten());
    }

    /// Returns the calls that wait for a statement about this call.
    fn asked_about(&self, about: &CallRef) -> Vec<CallId> {
        let asking = self.calls.asking.iter().copied();
        let is_about = |call: &CallId| match self.calls.get(*call).map(|it| &it.stage) {
            Some(CallStage::Asking { pending, .. }) => {
                pending.question().outcome_of.as_ref() == Some(about)
            }
            _ => false,
        };
        asking.filter(is_about).collect()
    }
}
