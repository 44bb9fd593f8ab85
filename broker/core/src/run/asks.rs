//! Questions to a human: put while other calls go on, answered in any order,
//! and withdrawn when they no longer matter.

use crate::decide::{Answer, Decision, reconsider, settle};
use crate::id::{CallId, Digest};
use crate::journal::{AnswerWord, Answered, Asked, Body};

use super::Run;
use super::calls::{Record, Stage};

impl Run {
    /// Puts the questions that are not out yet.
    pub(super) fn ask_open(&mut self) {
        if self.ending.is_some() || self.calls.asking == 0 {
            return;
        }
        let mut questions = Vec::new();
        for record in &mut self.calls.records {
            if let Stage::Asking {
                pending,
                open: open @ false,
                ..
            } = &mut record.stage
            {
                *open = true;
                questions.push(pending.question().clone());
            }
        }
        for question in questions {
            let asked = Asked {
                call: question.call,
                tool: question.tool.clone(),
                description: question.description_digest,
                args: question.args.clone(),
                args_digest: question.args.digest(),
                site: question.site,
                reasons: question.reasons.clone(),
                shown: question.shown_digest(),
            };
            self.append(Body::Asked(Box::new(asked)), false);
            self.out.ask(question);
        }
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
        self.latest_answer_ms = self.clock.host_ms();
        let (word, uses_max) = match answer {
            Answer::AllowOnce => (AnswerWord::AllowOnce, None),
            Answer::AllowTool { uses_max } => (AnswerWord::AllowTool, Some(uses_max.get())),
            Answer::Refuse => (AnswerWord::Refuse, None),
            Answer::Unanswered => (AnswerWord::Unanswered, None),
        };
        let shown = pending.question().shown_digest();
        self.record_answer(call, word, uses_max, shown, since_ms);
        let decision = settle(pending, answer, &mut self.grants);
        self.apply(call, decision);
        self.lift |= matches!(answer, Answer::AllowTool { .. });
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
        if !std::mem::take(&mut self.lift) || self.ending.is_some() {
            return;
        }
        let asking: Vec<_> = self.asking_calls();
        for call in asking {
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

    pub(super) fn asking_calls(&self) -> Vec<CallId> {
        let asking = |record: &&Record| matches!(record.stage, Stage::Asking { .. });
        self.calls
            .records
            .iter()
            .filter(asking)
            .map(|record| record.id)
            .collect()
    }

    /// A question is open from when it was put, or from the latest answer to
    /// any: whoever answers one after the other has the time for each.
    pub(super) fn asks_expire_at_ms(&self) -> Option<u64> {
        if self.calls.asking == 0 {
            return None;
        }
        self.calls
            .records
            .iter()
            .filter_map(|record| self.expires_at_ms(record))
            .min()
    }

    fn expires_at_ms(&self, record: &Record) -> Option<u64> {
        let Stage::Asking {
            since_ms,
            open: true,
            ..
        } = &record.stage
        else {
            return None;
        };
        let since_ms = self.latest_answer_ms.max(*since_ms);
        Some(since_ms.saturating_add(self.spec.limits.ask_wall_ms_max))
    }

    pub(super) fn expire_asks(&mut self) {
        let now_ms = self.clock.host_ms();
        if self.asks_expire_at_ms().is_none_or(|at_ms| at_ms > now_ms) {
            return;
        }
        let expired = |record: &&Record| self.expires_at_ms(record).is_some_and(|at| at <= now_ms);
        let calls: Vec<_> = self
            .calls
            .records
            .iter()
            .filter(expired)
            .map(|r| r.id)
            .collect();
        for call in calls {
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

fn is_open(record: &mut Record) -> bool {
    matches!(record.stage, Stage::Asking { open: true, .. })
}
