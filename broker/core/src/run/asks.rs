//! Questions to a human. A run sends them while other calls continue. The answers come in any
//! order, and questions that are no longer needed are withdrawn.

use crate::decide::{Answer, Asker, Decision, PendingCall, reconsider, settle};
use crate::id::{CallId, Digest};
use crate::journal::{AnswerWord, AnsweredEntry, AskedEntry, Body};
use crate::level::Level;
use crate::limits::ASKS_OPEN_MAX;

use super::Run;
use super::calls::{CallRecord, CallStage};
use super::resuming::RecordedAnswer;
use super::run_end::RunEnd;

impl Run {
    /// Sends the waiting questions, up to the maximum number of open ones. After a question has
    /// expired, waiting questions count as unanswered until another open question is answered.
    pub(super) fn ask_open(&mut self) {
        while self.ending.is_none() && (self.is_approver_absent || self.may_ask()) {
            let Some(call) = self.calls.to_ask.pop_front() else {
                return;
            };
            if !self.calls.record(call).is_some_and(is_unasked) {
                continue;
            }
            let CallStage::Asking { pending, .. } = self.calls.take(call) else {
                continue;
            };
            if self.is_approver_absent && pending.question().outcome_of.is_some() {
                self.block_asked(pending);
            } else if self.is_approver_absent {
                let decision = settle(pending, Answer::Unanswered, &mut self.grants);
                self.apply(call, decision);
            } else {
                self.put_question(call, pending);
            }
        }
    }

    fn may_ask(&self) -> bool {
        self.calls.asks_open < ASKS_OPEN_MAX
    }

    fn put_question(&mut self, call: CallId, mut pending: PendingCall) {
        self.propose(&mut pending);
        let limits = &self.spec.limits;
        pending.asked_by(Asker {
            run: self.spec.run.clone(),
            script_name: self.spec.script_name.clone(),
            script: self.grants.binding().script,
            waits_ms: limits.ask_wall_ms_max.min(self.clock.humans_left_ms()),
        });
        let answer = match self.take_answer(pending.question()) {
            Some(RecordedAnswer::Counts(answer)) => Some(answer),
            Some(RecordedAnswer::Void(why)) => {
                pending.note_unused_answer(why);
                None
            }
            None => None,
        };
        let question = pending.question().clone();
        let asked = AskedEntry {
            call: question.call,
            tool: question.tool.clone(),
            description: question.description_digest,
            args: question.args.clone(),
            args_digest: question.args.digest(),
            facts: question.facts.clone(),
            site: question.site,
            reasons: question.reasons.clone(),
            prompts: question.prompts.clone(),
            reads: question.reads.clone(),
            effects: question.effects,
            shown: question.shown_digest(),
            near: question.earlier.iter().map(|it| it.at.clone()).collect(),
            outcome_of: question.outcome_of.clone(),
            masked: false,
        };
        let stage = CallStage::Asking {
            pending,
            since_ms: self.clock.host_ms(),
            open: true,
        };
        self.calls.put(call, stage);
        self.append(Body::Asked(Box::new(asked)), false);
        match answer {
            Some(answer) => self.answered(call, answer),
            None => self.out.ask(question),
        }
    }

    /// Handles an answer. An answer to a question that is not open (unknown, answered, late) is
    /// ignored.
    pub(super) fn answered(&mut self, call: CallId, answer: Answer) {
        if !self.calls.record(call).is_some_and(is_open) {
            return;
        }
        let CallStage::Asking {
            pending, since_ms, ..
        } = self.calls.take(call)
        else {
            return;
        };
        // The run acts on the answer now, so it no longer only waits for people.
        self.resting_since_ms = None;
        if answer != Answer::Unanswered {
            self.latest_answer_ms = self.clock.host_ms();
            self.is_approver_absent = false;
        }
        if matches!(self.ending, Some(RunEnd::Suspended)) {
            return self.store_answer(pending, answer, since_ms);
        }
        if pending.question().outcome_of.is_some() {
            return self.outcome_answered(pending, answer, since_ms);
        }
        let is_about_more = pending.question().level == Level::AskRun;
        let (word, uses_max) = match &answer {
            Answer::Allow(terms) if is_about_more => {
                (AnswerWord::AllowTool, Some(terms.uses_max.get()))
            }
            Answer::AllowDeclassified => (AnswerWord::AllowDeclassified, None),
            Answer::AllowOnce | Answer::Allow(_) => (AnswerWord::AllowOnce, None),
            Answer::Refuse => (AnswerWord::Refuse, None),
            Answer::Unanswered => (AnswerWord::Unanswered, None),
            Answer::Stated { .. } | Answer::Invalid { .. } => (AnswerWord::Invalid, None),
        };
        let shown = pending.question().shown_digest();
        self.record_answer(call, word, uses_max, shown, since_ms);
        self.lift |= matches!(answer, Answer::Allow(_));
        let decision = settle(pending, answer, &mut self.grants);
        self.record_given(call);
        self.apply(call, decision);
    }

    /// Records an answer that arrives as the run is suspended. The run that resumes this one acts on
    /// it. The answer is about one call.
    fn store_answer(&mut self, pending: PendingCall, answer: Answer, since_ms: u64) {
        let (call, shown) = (pending.question().call, pending.question().shown_digest());
        let is_about_outcome = pending.question().outcome_of.is_some();
        let word = match (answer, is_about_outcome) {
            (Answer::AllowOnce | Answer::Allow(_), false) => AnswerWord::AllowOnce,
            (Answer::AllowDeclassified, false) => AnswerWord::AllowDeclassified,
            (Answer::Refuse, false) => AnswerWord::Refuse,
            (Answer::Stated { outcome, by }, true)
                if self.objection(&outcome, &pending).is_none() =>
            {
                self.record_answer(call, AnswerWord::Stated, None, shown, since_ms);
                return self.record_statement(&pending, outcome, by);
            }
            // The question stays open.
            _ => {
                let open = true;
                let stage = CallStage::Asking {
                    pending,
                    since_ms,
                    open,
                };
                return self.calls.put(call, stage);
            }
        };
        self.record_answer(call, word, None, shown, since_ms);
    }

    pub(super) fn record_answer(
        &mut self,
        call: CallId,
        answer: AnswerWord,
        uses_max: Option<u32>,
        shown: Digest,
        since_ms: u64,
    ) {
        let ms = self.clock.host_ms().saturating_sub(since_ms);
        self.append(
            Body::Answered(AnsweredEntry {
                call,
                answer,
                uses_max,
                shown,
                ms,
            }),
            false,
        );
    }

    /// Applies a new grant to the calls that are still being asked about, in their order.
    pub(super) fn lift_others(&mut self) {
        let lift = std::mem::take(&mut self.lift) && !self.grants.is_used_up();
        if !lift || self.ending.is_some() {
            return;
        }
        let asking: Vec<_> = self.calls.asking.iter().copied().collect();
        for call in asking {
            if self.grants.is_used_up() {
                return;
            }
            if !self.is_covered(call) {
                continue;
            }
            let CallStage::Asking {
                pending,
                since_ms,
                open,
            } = self.calls.take(call)
            else {
                continue;
            };
            let shown = pending.question().shown_digest();
            match reconsider(pending, &mut self.grants) {
                Decision::Ask(pending) => {
                    self.calls.put(
                        call,
                        CallStage::Asking {
                            pending,
                            since_ms,
                            open,
                        },
                    );
                }
                decision => {
                    if open {
                        self.out.withdraw_ask(call);
                        self.record_answer(call, AnswerWord::Withdrawn, None, shown, since_ms);
                    }
                    self.apply(call, decision);
                }
            }
        }
    }

    fn is_covered(&self, call: CallId) -> bool {
        let Some(CallStage::Asking { pending, .. }) = self.calls.get(call).map(|it| &it.stage)
        else {
            return false;
        };
        pending.question().level == Level::AskRun && self.grants.covers(pending.call())
    }

    /// Returns when the first open question expires. The time of a question starts at the latest of
    /// three points: when the question was sent, at the latest answer to any question, or when a
    /// server last asked the person something that is still open. So a person who answers one
    /// question after the other has the full time for each. Questions are sent in the order of
    /// their calls, so the first one expires first. No question stays open longer than the run may
    /// wait for humans.
    pub(super) fn asks_expire_at_ms(&self) -> Option<u64> {
        let first = *self.calls.asking.first()?;
        let CallStage::Asking {
            since_ms,
            open: true,
            ..
        } = &self.calls.get(first)?.stage
        else {
            return None;
        };
        let busy_since_ms = self.inquiries.person_busy_since_ms().unwrap_or_default();
        let since_ms = self.latest_answer_ms.max(busy_since_ms).max(*since_ms);
        let at_ms = since_ms.saturating_add(self.spec.limits.ask_wall_ms_max);
        let patience = self.clock.human_time_ends_at_ms();
        Some(patience.map_or(at_ms, |ends_ms| at_ms.min(ends_ms)))
    }

    pub(super) fn expire_asks(&mut self) {
        let now_ms = self.clock.host_ms();
        while self
            .asks_expire_at_ms()
            .is_some_and(|at_ms| at_ms <= now_ms)
        {
            let Some(call) = self.calls.asking.first().copied() else {
                return;
            };
            self.is_approver_absent = true;
            self.out.withdraw_ask(call);
            self.answered(call, Answer::Unanswered);
        }
    }

    /// Withdraws a question at the end of the run, and records this.
    pub(super) fn withdraw(&mut self, call: CallId, shown: Digest, since_ms: u64) {
        self.out.withdraw_ask(call);
        self.record_answer(call, AnswerWord::Withdrawn, None, shown, since_ms);
    }
}

fn is_unasked(record: &mut CallRecord) -> bool {
    matches!(record.stage, CallStage::Asking { open: false, .. })
}

fn is_open(record: &mut CallRecord) -> bool {
    matches!(record.stage, CallStage::Asking { open: true, .. })
}
