//! The questions on the page. Each one is answered once or withdrawn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::decide::{Answer, Question};
use airlock_core::id::RunId;
use airlock_core::json::{self, Bounds};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::super::nonce;
use super::super::wire::{self, ANSWER_BYTES_MAX, BadAnswer};
use super::card;
use airlock_sandbox::clock::Clock;

/// Maximum number of finished questions that the page lists. The latest ones are kept.
const OVER_MAX: usize = 30;

/// The state of a question that timed out, whose call a grant now covers, or whose run ended.
const WITHDRAWN: &str = "no longer asked";

#[derive(Default)]
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
    Over(&'static str),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("unknown question")]
    Unknown,
    #[error("the answer is for another question")]
    Nonce,
    #[error("this question is no longer open; nothing was allowed")]
    Over,
    #[error("{0}")]
    Unclear(String),
}

impl OpenQuestions {
    pub(super) fn put(&self, question: Question) -> Result<PendingQuestion, getrandom::Error> {
        let nonce = nonce()?;
        let (sender, receiver) = oneshot::channel();
        let mut items = self.0.lock();
        let id = items.last_key_value().map_or(1, |(id, _)| id + 1);
        let state = State::Open(sender);
        items.insert(
            id,
            OpenQuestion {
                question,
                nonce,
                since_ms: self.0.clock.now_ms(),
                state,
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

    /// Handles an answer from the page: the question's id, its nonce and the answer. Only the first
    /// answer counts.
    pub(super) fn answer(&self, body: &[u8]) -> Result<(), AnswerError> {
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
        let answer = wire::answer(text.as_bytes(), &item.nonce, &item.question);
        let answer = answer.map_err(|no| match no {
            BadAnswer::Nonce => AnswerError::Nonce,
            no => AnswerError::Unclear(no.to_string()),
        })?;
        let run = item.question.asker.clone().map(|asker| asker.run.clone());
        let word = match &answer {
            Answer::AllowOnce => "approved",
            Answer::AllowDeclassified => "approved, and its result declassified",
            Answer::Allow(_) => "approved, with similar calls",
            _ => "refused",
        };
        match std::mem::replace(&mut item.state, State::Over(word)) {
            State::Open(sender) => {
                // Without a receiver, the question was just withdrawn, so nothing was allowed.
                let sent = sender.send(answer).map_err(|_| AnswerError::Over);
                match &sent {
                    Ok(()) => wait_on(&mut items, run.as_ref(), self.0.clock.now_ms()),
                    Err(_) => item.state = State::Over(WITHDRAWN),
                }
                drop(items);
                self.0.changed();
                sent
            }
            State::Over(before) => {
                item.state = State::Over(before);
                Err(AnswerError::Over)
            }
        }
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
                card::open(*id, &item.question, &item.nonce, item.remaining_ms(now_ms))
            }
            State::Over(word) => card::over(*id, &item.question, word),
        });
        json!({ "version": version, "questions": shown.collect::<Vec<_>>() })
    }
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
        let over = |item: &OpenQuestion| matches!(item.state, State::Over(_));
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
        item.state = State::Over(WITHDRAWN);
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
                state: State::Over(WITHDRAWN),
            }
        };
        let mut items = BTreeMap::from([(1, item("a")), (2, item("b"))]);
        wait_on(&mut items, Some(&RunId("a".into())), 31_000);
        let remaining: Vec<_> = items.values().map(|it| it.remaining_ms(31_000)).collect();
        assert_eq!(remaining, [Some(60_000), Some(30_000)]);
        assert_eq!(items[&2].remaining_ms(99_000), Some(0));
    }
}
