//! A run that resumes an earlier one: it reuses recorded outcomes, or replays recorded steps.

use std::sync::Arc;

use sandbox_protocol::Outcome;
use serde_json::json;

use crate::call::{Args, Call, EarlierCall};
use crate::catalog::{Tool, ToolOwner};
use crate::code::Code;
use crate::decide::{Answer, DecisionContext, Question, is_denied};
use crate::id::{CallId, CallRef, Digest, ServerName};
use crate::journal::{Body, ChainPosition, DecidedEntry, ReusedEntry};
use crate::json::parse;
use crate::limits::Limit;
use crate::report::{ReportedDecision, ReportedOutcome};
use crate::resume::chain::{StoredAnswer, StoredAnswerWord};
use crate::resume::ledger::{DeliveredAt, EntryState, Ledger, LedgerEntry};
use crate::resume::matching::{
    CallMatch, Matcher, StepCall, has_same_description, not_known, reused_outcome,
};
use crate::resume::recording::{OutcomeSource, RecordedConditions, RecordedOutcome, Recording};
use crate::resume::{ResumeMode, ResumeSpec};
use crate::statement::StatedOutcome;

use super::calls::{CallOrigin, ParsedCall};
use super::run_end::RunEnd;
use super::{Guest, Run};

#[derive(Debug)]
pub(super) struct Resuming {
    pub(super) position: ChainPosition,
    pub(super) matcher: Matcher,
    /// Present until the recorded steps are replayed.
    replay: Option<Replay>,
    /// The servers that are the same, according to a person.
    pub(super) same_servers: Vec<ServerName>,
    /// Reused outcomes that the script has not got yet.
    waiting: Vec<ReusedOutcome>,
    conditions: RecordedConditions,
    /// Answers that people gave while no process ran, and that no run has used.
    answers: Vec<StoredAnswer>,
    /// Whether the rules are those under which the answers were given.
    has_same_rules: bool,
}

/// An answer that was recorded while no process ran, for a question that is put now.
#[derive(Debug)]
pub(super) enum RecordedAnswer {
    Counts(Answer),
    /// The answer does not count, for this reason.
    Void(String),
}

#[derive(Debug)]
struct Replay {
    recording: Box<Recording>,
    /// Calls that got no outcome in the recording. They are decided when the replay is over.
    held: Vec<Call>,
}

#[derive(Debug)]
struct ReusedOutcome {
    call: CallId,
    outcome: Outcome,
    told: Option<DeliveredAt>,
}

impl Run {
    pub(super) fn begin_resuming(&mut self, resume: ResumeSpec) {
        let ResumeSpec {
            position,
            records: _,
            seed,
            started_ms,
            mode,
            mut conditions,
            mut ledger,
            labels: _,
            same_servers,
            answers,
            reads_max_age_ms,
        } = resume;
        self.spec.seed = seed;
        self.clock.stand_at(started_ms);
        for server in &same_servers {
            let target = self.spec.decision_context.catalog.target_of(server);
            ledger.accept_target(server, target);
            conditions.accept_target(server, target);
        }
        let context = &self.spec.decision_context;
        let has_same_rules = conditions.has_same_rules(&context.rules);
        let replay = match mode {
            ResumeMode::Continue(recording)
                if may_replay(&recording, &conditions, &ledger, context) =>
            {
                Some(Replay {
                    recording,
                    held: Vec::new(),
                })
            }
            ResumeMode::Continue(_) | ResumeMode::Edited => None,
        };
        self.resuming = Some(Resuming {
            position,
            matcher: Matcher::new(ledger, reads_max_age_ms),
            replay,
            same_servers,
            waiting: Vec::new(),
            conditions,
            answers,
            has_same_rules,
        });
    }

    /// Matches the calls of a step with the ledger. Empty if the run resumes no other, or while it
    /// replays recorded steps.
    pub(super) fn match_step(&mut self, calls: &[ParsedCall]) -> Vec<Option<CallMatch>> {
        let catalog = Arc::clone(&self.spec.decision_context.catalog);
        let parsed = calls.iter().map(|call| {
            let (tool, args) = (call.tool(&catalog)?, call.args.as_ref().ok()?);
            Some((&**tool, args))
        });
        self.match_parsed(&parsed.collect::<Vec<_>>())
    }

    pub(super) fn match_parsed(
        &mut self,
        calls: &[Option<(&Tool, &Args)>],
    ) -> Vec<Option<CallMatch>> {
        if self.resuming.as_ref().is_none_or(|it| it.replay.is_some()) {
            return Vec::new();
        }
        let catalog = Arc::clone(&self.spec.decision_context.catalog);
        let key_of = |(tool, args): (&Tool, &Args)| self.key_of(tool, args);
        let keys: Vec<_> = calls.iter().map(|call| call.map(key_of)).collect();
        let mut step = Vec::new();
        for ((tool, _), (key, is_masked)) in calls.iter().flatten().zip(keys.into_iter().flatten())
        {
            step.push(StepCall {
                key,
                is_masked,
                tool,
                target: catalog.target_of(&tool.id.server),
            });
        }
        let now_ms = self.clock.host_ms();
        let Some(resuming) = &mut self.resuming else {
            return Vec::new();
        };
        let mut matches = resuming.matcher.match_step(&step, now_ms).into_iter();
        let matched = |call: &Option<_>| call.as_ref().and_then(|_| matches.next());
        calls.iter().map(matched).collect()
    }

    /// Decides on a call, or answers it with a recorded outcome.
    pub(super) fn place(&mut self, call: Call, tool: &Tool, matched: Option<CallMatch>) {
        if self.resuming.as_ref().is_some_and(|it| it.replay.is_some()) {
            return self.replay_call(call, tool);
        }
        let Some(matched) = matched else {
            return self.decide_call(call, tool);
        };
        match matched {
            CallMatch::Reuse(at) => self.reuse(call, tool, at),
            CallMatch::Indeterminate { entry, why } => match self.entry_at(entry) {
                Some(LedgerEntry { at, .. }) => {
                    let by = at.clone();
                    self.ask_or_block(call, tool, by, why);
                }
                None => self.decide_call(call, tool),
            },
            CallMatch::Again(at) => {
                let entry = self.entry_at(at);
                let origin = entry.map(|entry| CallOrigin::Again {
                    from: entry.at.clone(),
                    earlier: (entry.state == EntryState::Returned).then_some(entry.payload_digest),
                    changed: None,
                });
                self.decide_with(call, tool, origin, Vec::new());
            }
            CallMatch::Doubtful(near) => {
                let resuming = self.resuming.as_ref();
                let near = resuming.map_or_else(Vec::new, |it| it.matcher.earlier(&near));
                let origin = CallOrigin::Doubtful(near.iter().map(|it| it.at.clone()).collect());
                self.decide_with(call, tool, Some(origin), near);
            }
            CallMatch::New => self.decide_with(call, tool, None, Vec::new()),
        }
    }

    fn decide_with(
        &mut self,
        mut call: Call,
        tool: &Tool,
        origin: Option<CallOrigin>,
        near: Vec<EarlierCall>,
    ) {
        if let (Some(origin), Some(record)) = (origin, self.calls.record(call.id)) {
            record.origin = origin;
        }
        let (key, _) = self.key_of(tool, &call.args);
        let resuming = self.resuming.as_ref();
        call.history.refusals = resuming.map_or(0, |it| it.matcher.ledger().refusals(&key));
        call.history.near = near;
        self.decide_call(call, tool);
    }

    fn entry_at(&self, at: usize) -> Option<&LedgerEntry> {
        self.resuming.as_ref()?.matcher.entry(at)
    }

    /// Answers a call with the recorded outcome of an earlier one. The rules of now must not deny
    /// the call.
    fn reuse(&mut self, call: Call, tool: &Tool, at: usize) {
        let Some(resuming) = &mut self.resuming else {
            return;
        };
        if is_denied(&call, &self.spec.decision_context) {
            resuming.matcher.put_back(at);
            return self.decide_call(call, tool);
        }
        let Some(entry) = resuming.matcher.entry(at) else {
            return;
        };
        let stated = match &entry.stated {
            Some(StatedOutcome::Happened { result }) => Some(result.as_deref()),
            _ => None,
        };
        let is_fit = stated.flatten().is_none_or(|text| is_fit(text, tool));
        let outcome = match is_fit {
            true => reused_outcome(entry),
            false => not_known(entry),
        };
        if stated == Some(None) {
            let at = entry.at.clone();
            self.without_result.insert(entry.key.clone(), at);
        }
        let (reported, code) = match (&entry.stated, &outcome) {
            (None, _) => (entry.outcome, entry.code),
            (Some(_), Outcome::Value(_)) => (ReportedOutcome::Returned, None),
            (Some(_), Outcome::Failure(_)) => (ReportedOutcome::Failed, Some(Code::ResultInvalid)),
        };
        let (from, told) = (entry.at.clone(), entry.told);
        let reused = ReusedEntry {
            call: call.id,
            tool: call.tool.clone(),
            args_digest: entry.key.args,
            site: call.site,
            from: from.clone(),
            outcome: reported,
            code,
            stated: stated.is_some(),
            payload_digest: entry.payload_digest,
        };
        resuming.waiting.push(ReusedOutcome {
            call: call.id,
            outcome: outcome.clone(),
            told,
        });
        self.note_reused(reused);
        if let Some(tracker) = &mut self.tracker {
            tracker.count_reused(tool, call.args.bytes().len());
            tracker.record_outcome(call.id, tool, &outcome);
        }
    }

    pub(super) fn note_reused(&mut self, reused: ReusedEntry) {
        if let Some(record) = self.calls.record(reused.call) {
            record.decision = ReportedDecision::Allow;
            record.reasons = vec![reused.why()];
            record.outcome = Some(reused.outcome);
            record.code = reused.code;
            record.origin = CallOrigin::Reused(reused.from.clone());
        }
        self.append(Body::Reused(Box::new(reused)), false);
    }

    /// Lets the script see the host's time from now on, because it makes a call that is not
    /// recorded.
    pub(super) fn goes_live(&mut self, owner: ToolOwner) {
        if owner != ToolOwner::OwnLocal {
            self.clock.go_live();
        }
    }

    /// Takes reused outcomes for the next resume of the guest. While the script sees recorded times,
    /// outcomes come in the groups and in the order in which they were told, and timers go off
    /// between them. Returns whether the guest is to be resumed.
    pub(super) fn take_reused(&mut self, wake_at_ms: Option<u64>) -> bool {
        let Some(resuming) = self.resuming.as_mut().filter(|it| !it.waiting.is_empty()) else {
            return false;
        };
        let place = |it: &ReusedOutcome| match it.told {
            Some(told) => (told.run, told.step, told.index),
            None => (usize::MAX, u64::MAX, usize::MAX),
        };
        resuming.waiting.sort_by_key(place);
        let mut taken = std::mem::take(&mut resuming.waiting);
        if self.clock.is_recorded() {
            let first = taken.first().and_then(|it| it.told);
            let is_first = |it: &ReusedOutcome| match (it.told, first) {
                (Some(told), Some(first)) => (told.run, told.step) == (first.run, first.step),
                (None, None) => true,
                _ => false,
            };
            let now_ms = first.map_or(self.clock.run_ms(), |first| first.now_ms);
            let split = taken.partition_point(is_first);
            resuming.waiting = taken.split_off(split);
            if let Some(at_ms) = wake_at_ms.filter(|at_ms| *at_ms <= now_ms) {
                resuming.waiting.splice(0..0, taken);
                self.clock.jump_to(at_ms);
                return true;
            }
            self.clock.replay_to(now_ms);
        }
        for ReusedOutcome { call, outcome, .. } in taken {
            self.tell(call, outcome);
        }
        true
    }

    /// Whether recorded resumes are still to be replayed.
    pub(super) fn is_replaying(&self) -> bool {
        let replay = self.resuming.as_ref().and_then(|it| it.replay.as_ref());
        replay.is_some_and(|replay| self.steps < replay.recording.last_step())
    }

    /// Compares a call with the recorded one of the same number.
    fn replay_call(&mut self, call: Call, tool: &Tool) {
        let (key, is_masked) = self.key_of(tool, &call.args);
        let Some(Resuming {
            matcher,
            replay: Some(replay),
            ..
        }) = &mut self.resuming
        else {
            return;
        };
        let Some(recorded) = replay.recording.call(call.id) else {
            replay.held.push(call);
            return;
        };
        // What the script got belongs to arguments without secrets.
        if recorded.key != key || (is_masked && recorded.told.is_some()) {
            let why = format!(
                "call {} is not the recorded one; the recorded call is one of `{}`",
                call.id.0, recorded.key.tool
            );
            replay.held.push(call);
            return self.end(RunEnd::Diverged { why });
        }
        match &recorded.told {
            None => replay.held.push(call),
            Some(RecordedOutcome {
                source: OutcomeSource::Denial(denied),
                ..
            }) => {
                let denied = DecidedEntry::clone(denied);
                self.deny_again(denied);
            }
            Some(RecordedOutcome {
                source: OutcomeSource::Call { at, outcome, code },
                ..
            }) => {
                let position = matcher.ledger().position(at);
                let entry = position.and_then(|at| Some((at, matcher.entry(at)?)));
                let Some((position, entry)) = entry else {
                    replay.held.push(call);
                    return;
                };
                let reused = ReusedEntry {
                    call: call.id,
                    tool: call.tool,
                    args_digest: entry.key.args,
                    site: call.site,
                    from: entry.at.clone(),
                    outcome: *outcome,
                    code: *code,
                    stated: entry.stated.is_some(),
                    payload_digest: entry.payload_digest,
                };
                // An unknown outcome stays in the ledger: it blocks equal calls.
                if !entry.is_indeterminate() {
                    matcher.take(position);
                }
                if let Some(tracker) = &mut self.tracker {
                    tracker.count_reused(tool, call.args.bytes().len());
                }
                self.note_reused(reused);
            }
        }
    }

    /// Resumes the guest as recorded.
    pub(super) fn replay_step(&mut self, wake_at_ms: Option<u64>) {
        let step = self.steps + 1;
        let replay = self.resuming.as_ref().and_then(|it| it.replay.as_ref());
        let Some(recording) = replay.map(|replay| &replay.recording) else {
            return;
        };
        let Some(frame) = recording.frame(step).cloned() else {
            return match wake_at_ms {
                Some(at_ms) => {
                    self.clock.jump_to(at_ms);
                    match self.clock.is_over() {
                        true => self.end(RunEnd::Limit(Limit::Time)),
                        false => self.resume(false),
                    }
                }
                None => {
                    let why = format!("the script does not sleep before step {step}");
                    self.end(RunEnd::Diverged { why })
                }
            };
        };
        let mut told = Vec::new();
        for call in &frame.calls {
            let recorded = recording.call(*call).and_then(|it| it.told.as_ref());
            let (Some(recorded), true) = (recorded, self.calls.get(*call).is_some()) else {
                let why = format!("the script did not make call {} before step {step}", call.0);
                return self.end(RunEnd::Diverged { why });
            };
            told.push((*call, recorded.clone()));
        }
        for (call, RecordedOutcome { outcome, source }) in told {
            let tool = self.calls.get(call).map(|record| record.tool.clone());
            let catalog = &self.spec.decision_context.catalog;
            let tool = tool.and_then(|tool| catalog.find(&tool));
            if let (Some(tool), OutcomeSource::Call { .. }, Some(tracker)) =
                (tool, source, &mut self.tracker)
            {
                tracker.record_outcome(call, tool, &outcome);
            }
            self.tell(call, outcome);
        }
        self.clock.replay_to(frame.now_ms);
        self.resume(true);
    }

    /// Decides on the calls that got no outcome in the recording, once its last step is replayed.
    pub(super) fn end_replay(&mut self) {
        if !matches!(self.guest, Guest::Waiting { .. }) || self.is_replaying() {
            return;
        }
        let Some(replay) = self.resuming.as_mut().and_then(|it| it.replay.take()) else {
            return;
        };
        let catalog = Arc::clone(&self.spec.decision_context.catalog);
        let known: Vec<_> = replay
            .held
            .iter()
            .map(|call| Some((&**catalog.find(&call.tool)?, &call.args)))
            .collect();
        let matches = self.match_parsed(&known);
        for (call, matched) in replay.held.into_iter().zip(matches) {
            if let Some(tool) = catalog.find(&call.tool) {
                self.place(call, tool, matched);
            }
        }
    }

    /// Returns the calls that were held back when the run ended during a replay.
    pub(super) fn take_held(&mut self) -> Vec<Call> {
        let replay = self.resuming.as_mut().and_then(|it| it.replay.take());
        replay.map_or_else(Vec::new, |replay| replay.held)
    }

    /// Takes the answer that a person gave to this question of an earlier run. It counts if the rules,
    /// the server and everything that the person was shown are the same.
    pub(super) fn take_answer(&mut self, question: &Question) -> Option<RecordedAnswer> {
        let catalog = &self.spec.decision_context.catalog;
        let resuming = self.resuming.as_mut()?;
        let shown = question.shown_digest();
        let mut answers = resuming.answers.iter();
        let is_same = |it: &StoredAnswer| it.about.call == question.call && it.shown == shown;
        let same = answers.position(is_same);
        let mut answers = resuming.answers.iter();
        let at = same.or_else(|| answers.position(|it| it.about.call == question.call))?;
        let given = resuming.answers.remove(at);
        let server = &question.tool.server;
        let changed = if !resuming.has_same_rules {
            "the rules have changed".to_owned()
        } else if !resuming.conditions.has_same_target(&question.tool, catalog) {
            format!(
                "the command, address, variables or headers of the server `{}` have changed",
                server.0
            )
        } else if same.is_none() {
            "the call, its description or its facts have changed".to_owned()
        } else {
            return Some(RecordedAnswer::Counts(match given.answer {
                StoredAnswerWord::AllowOnce => Answer::AllowOnce,
                StoredAnswerWord::AllowDeclassified => Answer::AllowDeclassified,
                StoredAnswerWord::Refuse => Answer::Refuse,
            }));
        };
        let answer = match given.answer {
            StoredAnswerWord::AllowOnce | StoredAnswerWord::AllowDeclassified => "allow",
            StoredAnswerWord::Refuse => "refuse",
        };
        Some(RecordedAnswer::Void(format!(
            "an earlier answer to this question, `{answer}`, no longer counts, because {changed} since \
             then"
        )))
    }

    /// Notes whether the result of a repeated call differs from the earlier one.
    pub(super) fn note_refreshed(
        &mut self,
        call: CallId,
        outcome: ReportedOutcome,
        payload: Digest,
    ) {
        let Some(record) = self.calls.record(call) else {
            return;
        };
        if let CallOrigin::Again {
            earlier: Some(earlier),
            changed,
            ..
        } = &mut record.origin
            && outcome == ReportedOutcome::Returned
        {
            *changed = Some(*earlier != payload);
        }
    }

    fn deny_again(&mut self, denied: DecidedEntry) {
        let message = denied.told.clone().unwrap_or_default();
        self.deny(denied, message);
        // The script gets the outcome with its recorded step.
        self.outcomes.pop();
    }

    /// Suspends the run if it has been waiting for people for too long.
    pub(super) fn check_rest(&mut self) {
        let now_ms = self.clock.host_ms();
        if self.suspend_at_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            self.end(RunEnd::Suspended);
        }
    }

    /// Notes since when only answers of people can advance the run.
    pub(super) fn note_rest(&mut self) {
        let is_sleeping = !matches!(self.guest, Guest::Waiting { wake_at_ms: None });
        let calls = &self.calls;
        let is_resting = calls.asks_open > 0
            && calls.in_flight + calls.claiming == 0
            && calls.queue.is_empty()
            && !is_sleeping;
        let now_ms = self.clock.host_ms();
        self.resting_since_ms = match is_resting {
            true => self.resting_since_ms.or(Some(now_ms)),
            false => None,
        };
    }

    pub(super) fn suspend_at_ms(&self) -> Option<u64> {
        let since_ms = self.resting_since_ms?;
        Some(since_ms.saturating_add(self.spec.suspend_after_ms?))
    }

    /// Returns the calls of this run and of its chain that block equal calls, with their tools.
    pub(super) fn indeterminate_calls(&self) -> Vec<(CallRef, String)> {
        let own = self.indeterminate.iter();
        let own = own.flat_map(|(key, calls)| {
            let tool = key.tool.to_string();
            calls.iter().map(move |at| (at.clone(), tool.clone()))
        });
        let catalog = &self.spec.decision_context.catalog;
        let earlier = self.resuming.iter().flat_map(|it| it.matcher.left_over());
        let earlier = earlier.filter(|entry| {
            let tool = catalog.find(&entry.key.tool);
            entry.is_indeterminate() && tool.is_none_or(|tool| !tool.is_repeatable())
        });
        let earlier = earlier.map(|entry| (entry.at.clone(), entry.key.tool.to_string()));
        own.chain(earlier).collect()
    }
}

/// Whether recorded steps may be replayed: the rules are the same, and so are the servers and the
/// tools of the calls whose outcomes the script got. Otherwise, calls are matched by content.
fn may_replay(
    recording: &Recording,
    conditions: &RecordedConditions,
    ledger: &Ledger,
    context: &DecisionContext,
) -> bool {
    let is_usable = |at: &CallRef| {
        let entry = ledger.entry(at);
        entry.is_some_and(|entry| may_reach_script(entry, context))
    };
    let has_same_target = |tool| conditions.has_same_target(tool, &context.catalog);
    conditions.has_same_rules(&context.rules)
        && recording.tools().all(has_same_target)
        && recording.told_calls().all(is_usable)
}

/// Whether a recorded outcome may reach the script again, as far as its tool is concerned.
fn may_reach_script(entry: &LedgerEntry, context: &DecisionContext) -> bool {
    let id = &entry.key.tool;
    let Some(tool) = context.catalog.find(id) else {
        return false;
    };
    context.disclosed.objection(tool).is_none()
        && tool.pinned != Some(false)
        && !tool.stale
        && entry.target.as_deref() == context.catalog.target_of(&id.server)
        && has_same_description(entry, tool)
}

/// Whether a result that a person stated fits the output schema of its tool.
fn is_fit(text: &str, tool: &Tool) -> bool {
    stated_findings(text, tool).is_empty()
}

/// Returns why a stated result does not fit the output schema of its tool.
pub(super) fn stated_findings(text: &str, tool: &Tool) -> Vec<String> {
    let Ok(value) = parse(text.as_bytes()) else {
        return vec!["not JSON".into()];
    };
    let value = match tool.unwrap {
        true => json!({ "result": value }),
        false => value,
    };
    let check = tool.result_check.as_ref();
    let check = check.filter(|check| check.unusable().is_none());
    check.map_or_else(Vec::new, |check| check.findings(&value))
}
