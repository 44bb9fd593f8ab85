//! Questions to a human: put while other calls go on, answered in any order,
//! and withdrawn when they no longer matter.

use crate::decide::{Answer, Asker, Decision, Pending, reconsider, settle};
use crate::id::{CallId, Digest};
use crate::journal::{AnswerWord, Answered, Asked, Body};
use crate::limits::ASKS_OPEN_MAX;
use crate::rules::Level;

use super::Run;
use super::calls::{Record, Stage};

impl Run {
    /// Puts the questions that are not out yet, as many as may be open at one time. Once
    /// one has expired nobody is there: no more are put until somebody answers another.
    pub(super) fn ask_open(&mut self) {
        while self.ending.is_none() && (self.nobody_is_there || self.may_ask()) {
            let Some(call) = self.calls.to_ask.pop_front() else {
                return;
            };
            if !self.calls.record(call).is_some_and(is_unasked) {
                continue;
            }
            let Stage::Asking { pending, .. } = self.calls.take(call) else {
                continue;
            };
            if self.nobody_is_there {
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

    fn put_question(&mut self, call: CallId, mut pending: Pending) {
        self.propose(&mut pending);
        let limits = &self.spec.limits;
        pending.asked_by(Asker {
            run: self.spec.run.clone(),
            script_name: self.spec.script_name.clone(),
            script: self.grants.binding().script,
            waits_ms: limits.ask_wall_ms_max.min(self.clock.humans_left_ms()),
        });
        let question = pending.question().clone();
        let asked = Asked {
            call: question.call,
            tool: question.tool.clone(),
            description: question.description_digest,
            args: question.args.clone(),
            args_digest: question.args.digest(),
            facts: question.facts.clone(),
            site: question.site,
            reasons: question.reasons.clone(),
            shown: question.shown_digest(),
        };
        let stage = Stage::Asking {
            pending,
            since_ms: self.clock.host_ms(),
            open: true,
        };
        self.calls.put(call, stage);
        self.append(Body::Asked(Box::new(asked)), false);
        self.out.ask(question);
    }

    /// An answer to a question that is not open (unknown, answered, late) is ignored.
    pub(super) fn answered(&mut self, call: CallId, answer: Answer) {
        if !self.calls.record(call).is_some_and(is_open) {
            return;
        }
        let Stage::Asking {
            pending, since_ms, ..
        } = self.calls.take(call)
        else {
            return;
        };
        if answer != Answer::Unanswered {
            self.latest_answer_ms = self.clock.host_ms();
            self.nobody_is_there = false;
        }
        let is_about_more = pending.question().level == Level::AskRun;
        let (word, uses_max) = match &answer {
            Answer::Allow(terms) if is_about_more => {
                (AnswerWord::AllowTool, Some(terms.uses_max.get()))
            }
            Answer::AllowOnce | Answer::Allow(_) => (AnswerWord::AllowOnce, None),
            Answer::Refuse => (AnswerWord::Refuse, None),
            Answer::Unanswered => (AnswerWord::Unanswered, None),
            Answer::Invalid { .. } => (AnswerWord::Invalid, None),
        };
        let shown = pending.question().shown_digest();
        self.record_answer(call, word, uses_max, shown, since_ms);
        self.lift |= matches!(answer, Answer::Allow(_));
        let decision = settle(pending, answer, &mut self.grants);
        self.record_given(call);
        self.apply(call, decision);
    }

    fn record_answer(
        &mut self,
        call: CallId,
        answer: AnswerWord,
        uses_max: Option<u32>,
        shown: Digest,
        since_ms: u64,
    ) {
        let ms = self.clock.host_ms().saturating_sub(since_ms);
        self.append(
            Body::Answered(Answered {
                call,
                answer,
                uses_max,
                shown,
                ms,
            }),
            false,
        );
    }

    /// A new grant may cover calls that are still asked about, in their order.
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
            let Stage::Asking {
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
                        Stage::Asking {
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
        let Some(Stage::Asking { pending, .. }) = self.calls.get(call).map(|it| &it.stage) else {
            return false;
        };
        pending.question().level == Level::AskRun && self.grants.covers(pending.call())
    }

    /// A question is open from when it was put, or from the latest answer to
    /// any, or from when a server last put something to the person that is open still:
    /// whoever answers one after the other has the time for each. They are put in the order
    /// of their calls, so the first one is the first to expire. None outlasts the run's
    /// patience with humans.
    pub(super) fn asks_expire_at_ms(&self) -> Option<u64> {
        let first = *self.calls.asking.first()?;
        let Stage::Asking {
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
        let patience = self.clock.patience_ends_at_ms();
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
            self.nobody_is_there = true;
            self.out.withdraw_ask(call);
            self.answered(call, Answer::Unanswered);
        }
    }

    /// At the end of the run: the question is withdrawn, and the record says so.
    pub(super) fn withdraw(&mut self, call: CallId, shown: Digest, since_ms: u64) {
        self.out.withdraw_ask(call);
        self.record_answer(call, AnswerWord::Withdrawn, None, shown, since_ms);
    }
}

fn is_unasked(record: &mut Record) -> bool {
    matches!(record.stage, Stage::Asking { open: false, .. })
}

fn is_open(record: &mut Record) -> bool {
    matches!(record.stage, Stage::Asking { open: true, .. })
}
