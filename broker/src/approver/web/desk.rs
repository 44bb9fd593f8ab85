//! The questions on the page: put, answered once, or withdrawn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::decide::{Answer, Question};
use airlock_core::id::RunId;
use airlock_core::json::{self, Bounds};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::super::nonce;
use super::super::wire::{self, ANSWER_BYTES_MAX, NoAnswer};
use super::shown;
use crate::clock::Clock;

/// Questions that are over stay listed, the latest of them.
const OVER_MAX: usize = 30;

/// Its time was over, a grant came to cover it, or its run ended.
const WITHDRAWN: &str = "no longer asked";

#[derive(Default)]
pub(super) struct Desk(Arc<Inner>);

struct Inner {
    items: Mutex<BTreeMap<u64, Item>>,
    /// Grows with each change.
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

struct Item {
    question: Question,
    nonce: String,
    /// When it was put, or another one of its run was answered after that.
    since_ms: u64,
    state: State,
}

impl Item {
    /// How long it still waits.
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
pub(super) enum Refused {
    #[error("there is no such question")]
    Unknown,
    #[error("the answer does not belong to this question")]
    Nonce,
    #[error("this question is no longer open; nothing was allowed")]
    Over,
    #[error("{0}")]
    Unclear(String),
}

impl Desk {
    pub(super) fn put(&self, question: Question) -> Result<Waiting, getrandom::Error> {
        let nonce = nonce()?;
        let (sender, receiver) = oneshot::channel();
        let mut items = self.0.lock();
        let id = items.last_key_value().map_or(1, |(id, _)| id + 1);
        let state = State::Open(sender);
        items.insert(
            id,
            Item {
                question,
                nonce,
                since_ms: self.0.clock.now_ms(),
                state,
            },
        );
        drop(items);
        self.0.changed();
        Ok(Waiting {
            id,
            inner: Arc::clone(&self.0),
            receiver,
        })
    }

    /// What the page says: which question, its nonce, and the answer. The first one counts.
    pub(super) fn answer(&self, body: &[u8]) -> Result<(), Refused> {
        let unclear = |why: &str| Refused::Unclear(why.to_owned());
        let bounds = Bounds {
            bytes_max: ANSWER_BYTES_MAX,
            depth_max: 8,
            nodes_max: 4_000,
        };
        let mut said = json::parse_strict(body, bounds)
            .map_err(|bad| Refused::Unclear(format!("the answer is {bad}")))?;
        let members = said.as_object_mut().ok_or_else(|| unclear("no object"))?;
        let id = members.remove("id").and_then(|id| id.as_u64());
        let id = id.ok_or_else(|| unclear("the answer names no question"))?;
        let mut items = self.0.lock();
        let item = items.get_mut(&id).ok_or(Refused::Unknown)?;
        let text = said.to_string();
        let answer = wire::answer(text.as_bytes(), &item.nonce, &item.question);
        let answer = answer.map_err(|no| match no {
            NoAnswer::Nonce => Refused::Nonce,
            no => Refused::Unclear(no.to_string()),
        })?;
        let run = item.question.asker.clone().map(|asker| asker.run.clone());
        let word = match &answer {
            Answer::AllowOnce => "approved",
            Answer::Allow(_) => "approved, with others like it",
            _ => "refused",
        };
        match std::mem::replace(&mut item.state, State::Over(word)) {
            State::Open(sender) => {
                // Withdrawn at this very moment: then nothing was allowed.
                let sent = sender.send(answer).map_err(|_| Refused::Over);
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
                Err(Refused::Over)
            }
        }
    }

    /// Returns when there is something newer than what was seen.
    pub(super) async fn news(&self, seen: Option<u64>) {
        let mut version = self.0.version.subscribe();
        let _ = version.wait_for(|now| Some(*now) != seen).await;
    }

    pub(super) fn shown(&self) -> Value {
        // First the version: what changes after it is news again.
        let version = *self.0.version.borrow();
        let items = self.0.lock();
        let now_ms = self.0.clock.now_ms();
        let shown = items.iter().map(|(id, item)| match &item.state {
            State::Open(_) => {
                shown::open(*id, &item.question, &item.nonce, item.remaining_ms(now_ms))
            }
            State::Over(word) => shown::over(*id, &item.question, word),
        });
        json!({ "version": version, "questions": shown.collect::<Vec<_>>() })
    }
}

/// Whoever answers one question after the other has the time for each.
fn wait_on(items: &mut BTreeMap<u64, Item>, run: Option<&RunId>, now_ms: u64) {
    for item in items.values_mut() {
        if item.question.asker.as_deref().map(|asker| &asker.run) == run {
            item.since_ms = now_ms;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        let mut items = self.lock();
        let over = |item: &Item| matches!(item.state, State::Over(_));
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

/// A question that is on the page; dropping this takes it off.
pub(super) struct Waiting {
    id: u64,
    inner: Arc<Inner>,
    receiver: oneshot::Receiver<Answer>,
}

impl Waiting {
    pub(super) async fn answer(mut self) -> Answer {
        (&mut self.receiver).await.unwrap_or(Answer::Unanswered)
    }
}

impl Drop for Waiting {
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
    fn an_answer_gives_the_other_questions_of_its_run_their_time_anew() {
        let item = |run: &str| {
            let mut question = asked("{}");
            let mut asker = question.asker.as_deref().cloned().unwrap();
            asker.run = RunId(run.into());
            question.asker = Some(Arc::new(asker));
            Item {
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
