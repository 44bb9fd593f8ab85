//! The questions on the page. Each one is answered once or withdrawn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::decide::{Answer, Question};
use airlock_core::id::RunId;
use airlock_core::json::{self, Bounds};
use airlock_core::report::ReportedOutcome;
use airlock_core::resume::CallRef;
use airlock_core::statement::StatedOutcome;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::super::wire::{self, ANSWER_BYTES_MAX, BadAnswer};
use super::super::{SettledCall, nonce};
use super::{PLACE, card};
use airlock_sandbox::clock::Clock;

/// Maximum number of finished questions that the page lists. The latest ones are kept.
const OVER_MAX: usize = 30;

/// Maximum number of questions of suspended runs on the page. The oldest ones are shown first.
const SUSPENDED_MAX: usize = 100;

/// What becomes of an answered question of a suspended run.
const GOES_ON: &str = "the run goes on when it is resumed";
/// The state of a question that timed out, whose call a grant now covers, or whose run ended.
const WITHDRAWN: &str = "no longer asked";

/// Cheap to clone; all clones share the same questions.
#[derive(Clone, Default)]
pub(super) struct OpenQuestions(Arc<Inner>);

struct Inner {
    items: Mutex<BTreeMap<u64, OpenQuestion>>,
    /// Increases with each change.
    version: watch::Sender<u64>,
    clock: Clock,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            items: Mutex::default(),
            version: watch::Sender::new(1),
            clock: Clock::start(),
        }
    }
}

struct OpenQuestion {
    question: Question,
    nonce: String,
    /// The time when the question was shown, or when another question of its run was answered last.
    since_ms: u64,
    state: State,
    /// The call, if the question is that of a suspended run.
    suspended: Option<CallRef>,
}

impl OpenQuestion {
    /// Returns how long the question still waits.
    fn remaining_ms(&self, now_ms: u64) -> Option<u64> {
        let asker = self.question.asker.as_deref()?;
        let until_ms = self.since_ms.saturating_add(asker.waits_ms);
        Some(until_ms.saturating_sub(now_ms))
    }
}

enum State {
    Open(oneshot::Sender<Answer>),
    /// The question of a suspended run.
    Suspended,
    /// The answer to the question of a suspended run is being recorded.
    Recording(&'static str),
    /// The answer in words and, once the call has ended, its outcome.
    Over(&'static str, Option<&'static str>),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("unknown question")]
    Unknown,
    #[error("the answer is for another question")]
    Nonce,
    #[error("this question is no longer open; nothing was allowed")]
    Over,
    #[error("the answer could not be recorded: {0}")]
    NotRecorded(String),
    #[error("{0}")]
    Unclear(String),
}

/// An answer to the question of a suspended run, which still has to be recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SuspendedAnswer {
    pub(super) id: u64,
    pub(super) about: CallRef,
    pub(super) answer: Answer,
}

impl OpenQuestions {
    pub(super) fn put(&self, question: Question) -> Result<PendingQuestion, getrandom::Error> {
        let nonce = nonce()?;
        let (sender, receiver) = oneshot::channel();
        let mut items = self.0.lock();
        let id = next_id(&items);
        let state = State::Open(sender);
        items.insert(
            id,
            OpenQuestion {
                question,
                nonce,
                since_ms: self.0.clock.now_ms(),
                state,
                suspended: None,
            },
        );
        drop(items);
        self.0.changed();
        Ok(PendingQuestion {
            id,
            inner: Arc::clone(&self.0),
            receiver,
        })
    }

    /// Replaces the questions of suspended runs.
    pub(super) fn set_suspended(&self, suspended: Vec<(CallRef, Question)>) {
        let mut items = self.0.lock();
        let mut is_changed = false;
        for item in items.values_mut() {
            let is_open = suspended
                .iter()
                .any(|(about, _)| item.suspended.as_ref() == Some(about));
            if matches!(item.state, State::Suspended) && !is_open {
                item.state = State::Over(WITHDRAWN, None);
                is_changed = true;
            }
        }
        for (about, question) in suspended.into_iter().take(SUSPENDED_MAX) {
            let is_shown = |item: &OpenQuestion| {
                let is_withdrawn = matches!(item.state, State::Over(WITHDRAWN, _));
                item.suspended.as_ref() == Some(&about) && !is_withdrawn
            };
            if items.values().any(is_shown) {
                continue;
            }
            let Ok(nonce) = nonce() else { break };
            let item = OpenQuestion {
                question,
                nonce,
                since_ms: self.0.clock.now_ms(),
                state: State::Suspended,
                suspended: Some(about),
            };
            let id = next_id(&items);
            items.insert(id, item);
            is_changed = true;
        }
        drop(items);
        if is_changed {
            self.0.changed();
        }
    }

    /// Notes whether the answer to the question of a suspended run was recorded.
    pub(super) fn recorded(&self, id: u64, is_recorded: bool) {
        let mut items = self.0.lock();
        let Some(item) = items.get_mut(&id) else {
            return;
        };
        item.state = match (&item.state, is_recorded) {
            (State::Recording(word), true) => State::Over(word, Some(GOES_ON)),
            (State::Recording(_), false) => State::Suspended,
            _ => return,
        };
        drop(items);
        self.0.changed();
    }

    /// Handles an answer from the page: the question's id, its nonce and the answer. Only the first
    /// answer counts. An answer to the question of a suspended run is returned, to be recorded.
    pub(super) fn answer(&self, body: &[u8]) -> Result<Option<SuspendedAnswer>, AnswerError> {
        let unclear = |why: &str| AnswerError::Unclear(why.to_owned());
        let bounds = Bounds {
            bytes_max: ANSWER_BYTES_MAX,
            depth_max: 8,
            nodes_max: 4_000,
        };
        let mut said = json::parse_strict(body, bounds)
            .map_err(|bad| AnswerError::Unclear(format!("invalid answer: {bad}")))?;
        let members = said.as_object_mut();
        let members = members.ok_or_else(|| unclear("the answer is not an object"))?;
        let id = members.remove("id").and_then(|id| id.as_u64());
        let id = id.ok_or_else(|| unclear("the answer has no `id`"))?;
        let mut items = self.0.lock();
        let item = items.get_mut(&id).ok_or(AnswerError::Unknown)?;
        let text = said.to_string();
        let answer = wire::answer(text.as_bytes(), &item.nonce, &item.question, PLACE);
        let answer = answer.map_err(|no| match no {
            BadAnswer::Nonce => AnswerError::Nonce,
            no => AnswerError::Unclear(no.to_string()),
        })?;
        let run = item.question.asker.clone().map(|asker| asker.run.clone());
        let word = match &answer {
            Answer::AllowOnce => "approved",
            Answer::AllowDeclassified => "approved, and its result declassified",
            Answer::Allow(_) => "approved, with similar calls",
            Answer::Stated { outcome, .. } => match outcome {
                StatedOutcome::Happened { result: Some(_) } => "stated: it happened, with a result",
                StatedOutcome::Happened { result: None } => "stated: it happened",
                StatedOutcome::DidNotHappen => "stated: it did not happen",
            },
            _ if item.question.outcome_of.is_some() => "left unknown",
            _ => "refused",
        };
        let stored = answer.clone();
        match std::mem::replace(&mut item.state, State::Over(word, None)) {
            State::Open(sender) => {
                // Without a receiver, the question was just withdrawn, so nothing was allowed.
                let sent = sender.send(answer).map_err(|_| AnswerError::Over);
                match &sent {
                    Ok(()) => wait_on(&mut items, run.as_ref(), self.0.clock.now_ms()),
                    Err(_) => item.state = State::Over(WITHDRAWN, None),
                }
                drop(items);
                self.0.changed();
                sent.map(|()| None)
            }
            State::Suspended => {
                item.state = State::Recording(word);
                let about = item.suspended.clone().ok_or(AnswerError::Unknown)?;
                let answer = stored;
                Ok(Some(SuspendedAnswer { id, about, answer }))
            }
            over @ (State::Over(..) | State::Recording(_)) => {
                item.state = over;
                Err(AnswerError::Over)
            }
        }
    }

    /// Records how an approved call ended.
    pub(super) fn settled(&self, settled: &SettledCall<'_>) {
        let outcome = match settled.outcome {
            ReportedOutcome::Returned => "the call was made",
            ReportedOutcome::Failed => "the call was made and failed",
            ReportedOutcome::Unknown => "it is not known whether the call was made",
            ReportedOutcome::NotSent => "the call was not made",
            // The answer already says it.
            ReportedOutcome::Denied | ReportedOutcome::Refused => return,
        };
        let mut items = self.0.lock();
        let item = items.values_mut().rev().find(|it| {
            let asker = it.question.asker.as_deref();
            it.question.call == settled.call && asker.is_some_and(|it| it.run == *settled.run)
        });
        match item.map(|it| &mut it.state) {
            Some(State::Over(_, told @ None)) => *told = Some(outcome),
            _ => return,
        }
        drop(items);
        self.0.changed();
    }

    /// Waits until the version differs from the one that the page has seen.
    pub(super) async fn news(&self, seen: Option<u64>) {
        let mut version = self.0.version.subscribe();
        let _ = version.wait_for(|now| Some(*now) != seen).await;
    }

    pub(super) fn shown(&self) -> Value {
        // The version is read first, so that later changes count as new.
        let version = *self.0.version.borrow();
        let items = self.0.lock();
        let now_ms = self.0.clock.now_ms();
        let shown = items.iter().map(|(id, item)| match &item.state {
            State::Open(_) => {
                let remaining_ms = item.remaining_ms(now_ms);
                card::open(*id, &item.question, &item.nonce, remaining_ms, false)
            }
            State::Suspended | State::Recording(_) => {
                card::open(*id, &item.question, &item.nonce, None, true)
            }
            State::Over(word, outcome) => {
                let outcome = outcome.map(|it| format!("; {it}")).unwrap_or_default();
                card::over(*id, &item.question, &format!("{word}{outcome}"))
            }
        });
        json!({ "version": version, "questions": shown.collect::<Vec<_>>() })
    }
}

fn next_id(items: &BTreeMap<u64, OpenQuestion>) -> u64 {
    items.last_key_value().map_or(1, |(id, _)| id + 1)
}

/// Restarts the time of a run's open questions. A person who answers several questions in turn then
/// has the full time for each.
fn wait_on(items: &mut BTreeMap<u64, OpenQuestion>, run: Option<&RunId>, now_ms: u64) {
    for item in items.values_mut() {
        if item.question.asker.as_deref().map(|asker| &asker.run) == run {
            item.since_ms = now_ms;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, OpenQuestion>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        let mut items = self.lock();
        let over = |item: &OpenQuestion| matches!(item.state, State::Over(..));
        let count = items.values().filter(|item| over(item)).count();
        let mut surplus = count.saturating_sub(OVER_MAX);
        items.retain(|_, item| {
            let goes = surplus > 0 && over(item);
            surplus -= usize::from(goes);
            !goes
        });
        drop(items);
        self.version.send_modify(|version| *version += 1);
    }
}

/// A question on the page. Dropping it removes the question.
pub(super) struct PendingQuestion {
    id: u64,
    inner: Arc<Inner>,
    receiver: oneshot::Receiver<Answer>,
}

impl PendingQuestion {
    pub(super) async fn answer(mut self) -> Answer {
        (&mut self.receiver).await.unwrap_or(Answer::Unanswered)
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        let mut items = self.inner.lock();
        let open = items
            .get_mut(&self.id)
            .filter(|item| matches!(item.state, State::Open(_)));
        let Some(item) = open else { return };
        item.state = State::Over(WITHDRAWN, None);
        drop(items);
        self.inner.changed();
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::wire::tests::asked;
    use super::*;

    #[test]
    fn answer_restarts_deadline_of_other_questions_of_same_run() {
        let item = |run: &str| {
            let mut question = asked("{}");
            let mut asker = question.asker.as_deref().cloned().unwrap();
            asker.run = RunId(run.into());
            question.asker = Some(Arc::new(asker));
            OpenQuestion {
                question,
                nonce: String::new(),
                since_ms: 1_000,
                state: State::Over(WITHDRAWN, None),
                suspended: None,
            }
        };
        let mut items = BTreeMap::from([(1, item("a")), (2, item("b"))]);
        wait_on(&mut items, Some(&RunId("a".into())), 31_000);
        let remaining: Vec<_> = items.values().map(|it| it.remaining_ms(31_000)).collect();
        assert_eq!(remaining, [Some(60_000), Some(30_000)]);
        assert_eq!(items[&2].remaining_ms(99_000), Some(0));
    }
}
