//! Who waits for which answer on one connection, and whom a question of its server
//! may be about. What was given up is still with the server: it counts as well.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::inquiry::{Behind, Refused, Whose};
use super::jsonrpc::Answer;
use super::link::LinkError;

/// How long a server may go on with what it was told to leave. Most do not say when they stop.
const GOES_ON_FOR: Duration = Duration::from_secs(600);
/// Of what was given up; with more of it, nobody is asked any more on this connection.
const GIVEN_UP_MAX: usize = 256;

pub(super) type Answered = Result<Answer, LinkError>;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_id: BTreeMap<u64, Waiter>,
    given_up: BTreeMap<u64, GivenUp>,
    /// More was given up than is remembered.
    has_lost_count: bool,
    closed: Option<String>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Answered>,
    whose: Whose,
}

#[derive(Debug)]
struct GivenUp {
    whose: Whose,
    since: Instant,
}

impl Waiting {
    pub(super) fn enter(
        &mut self,
        id: u64,
        whose: Whose,
    ) -> Result<oneshot::Receiver<Answered>, LinkError> {
        if let Some(why) = &self.closed {
            return Err(LinkError::NotSent { why: why.clone() });
        }
        let (answer, answered) = oneshot::channel();
        self.by_id.insert(id, Waiter { answer, whose });
        Ok(answered)
    }

    /// False when nobody waits for it.
    pub(super) fn settle(&mut self, id: u64, answer: Answered) -> bool {
        self.given_up.remove(&id);
        match self.by_id.remove(&id) {
            Some(waiter) => {
                // Whoever waited may have gone in this moment.
                drop(waiter.answer.send(answer));
                true
            }
            None => false,
        }
    }

    /// Nobody waits for it any more, and it never left.
    pub(super) fn take_back(&mut self, id: u64) {
        self.by_id.remove(&id);
    }

    /// Nobody waits for it any more, and the server has it.
    pub(super) fn give_up(&mut self, id: u64) {
        let Some(Waiter { whose, .. }) = self.by_id.remove(&id) else {
            return;
        };
        self.given_up
            .retain(|_, it| it.since.elapsed() < GOES_ON_FOR);
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.has_lost_count = true;
            return;
        }
        let since = Instant::now();
        self.given_up.insert(id, GivenUp { whose, since });
    }

    pub(super) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Ends the waiting of everybody; the first reason stays.
    pub(super) fn close(&mut self, error: &LinkError) {
        self.closed.get_or_insert_with(|| error.why());
        for (_, waiter) in std::mem::take(&mut self.by_id) {
            let _ = waiter.answer.send(Err(error.clone()));
        }
    }

    /// Whoever runs the calls that are with the server. It does not say which request its
    /// question is about: where more than one run could be meant, nobody is asked.
    pub(super) fn behind(&self) -> Result<Behind, Refused> {
        let mut runs: Option<Behind> = None;
        let mut has_other = false;
        for waiter in self.by_id.values() {
            match &waiter.whose {
                Whose::Ours => {}
                Whose::Nobodys => has_other = true,
                Whose::Call(call) => match &mut runs {
                    None => runs = Some(call.clone()),
                    Some(run) => run.join(call)?,
                },
            }
        }
        let behind = runs.ok_or_else(Refused::nobody)?;
        let goes_on = |it: &&GivenUp| it.since.elapsed() < GOES_ON_FOR;
        let mut left = self.given_up.values().filter(goes_on);
        let is_clear = |it: &GivenUp| match &it.whose {
            Whose::Ours => true,
            Whose::Nobodys => false,
            Whose::Call(call) => call.has_host_of(&behind),
        };
        if has_other || self.has_lost_count || !left.all(is_clear) {
            return Err(Refused::unclear("requests of several hosts"));
        }
        Ok(behind)
    }
}
