//! Tracks the pending requests of one connection, and finds the run that an inquiry of the server
//! belongs to. Abandoned requests count too, because the server may still be working on them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::jsonrpc::Answer;
use super::outgoing::LinkError;
use super::server_request::{CallOrigin, RequestError, RequestOwner};

/// Time after which a server counts as finished with an abandoned request. Most servers do not
/// report when they stop.
const GOES_ON_FOR: Duration = Duration::from_secs(600);
/// Maximum number of abandoned requests. If there are more, all inquiries on this connection are
/// refused.
const GIVEN_UP_MAX: usize = 256;

pub(super) type PendingAnswer = Result<Answer, LinkError>;

#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    by_id: BTreeMap<u64, PendingRequest>,
    given_up: BTreeMap<u64, AbandonedRequest>,
    /// Whether more requests were abandoned than are remembered.
    has_lost_count: bool,
    closed: Option<String>,
}

#[derive(Debug)]
struct PendingRequest {
    answer: oneshot::Sender<PendingAnswer>,
    owner: RequestOwner,
}

#[derive(Debug)]
struct AbandonedRequest {
    owner: RequestOwner,
    since: Instant,
}

impl PendingRequests {
    pub(super) fn enter(
        &mut self,
        id: u64,
        owner: RequestOwner,
    ) -> Result<oneshot::Receiver<PendingAnswer>, LinkError> {
        if let Some(why) = &self.closed {
            return Err(LinkError::NotSent { why: why.clone() });
        }
        let (answer, answered) = oneshot::channel();
        self.by_id.insert(id, PendingRequest { answer, owner });
        Ok(answered)
    }

    /// Delivers an answer. Returns `false` if no request waits for it.
    pub(super) fn settle(&mut self, id: u64, answer: PendingAnswer) -> bool {
        self.given_up.remove(&id);
        match self.by_id.remove(&id) {
            Some(waiter) => {
                // The receiver may have been dropped at this moment.
                drop(waiter.answer.send(answer));
                true
            }
            None => false,
        }
    }

    /// Removes a request that was dropped before it was sent.
    pub(super) fn take_back(&mut self, id: u64) {
        self.by_id.remove(&id);
    }

    /// Abandons a request that was sent to the server.
    pub(super) fn give_up(&mut self, id: u64) {
        let Some(PendingRequest { owner, .. }) = self.by_id.remove(&id) else {
            return;
        };
        self.given_up
            .retain(|_, it| it.since.elapsed() < GOES_ON_FOR);
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.has_lost_count = true;
            return;
        }
        let since = Instant::now();
        self.given_up.insert(id, AbandonedRequest { owner, since });
    }

    pub(super) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Fails all pending requests. The first reason is kept.
    pub(super) fn close(&mut self, error: &LinkError) {
        self.closed.get_or_insert_with(|| error.why());
        for (_, waiter) in std::mem::take(&mut self.by_id) {
            let _ = waiter.answer.send(Err(error.clone()));
        }
    }

    /// Returns the call with this progress token.
    pub(super) fn origin_of(&self, token: &str) -> Option<CallOrigin> {
        let origins = self.by_id.values().filter_map(|it| it.owner.origin());
        let mut origins = origins.filter(|it| it.progress_token().as_deref() == Some(token));
        origins.next().cloned()
    }

    /// Returns the run whose calls the server is working on. An inquiry does not name its request,
    /// so it is refused if it could belong to more than one run.
    pub(super) fn origin(&self) -> Result<CallOrigin, RequestError> {
        let mut runs: Option<CallOrigin> = None;
        let mut has_other = false;
        for waiter in self.by_id.values() {
            match &waiter.owner {
                RequestOwner::Broker => {}
                RequestOwner::NoHost => has_other = true,
                RequestOwner::Call(call) => match &mut runs {
                    None => runs = Some(call.clone()),
                    Some(run) => run.join(call)?,
                },
            }
        }
        let origin = runs.ok_or_else(RequestError::nobody)?;
        let goes_on = |it: &&AbandonedRequest| it.since.elapsed() < GOES_ON_FOR;
        let mut left = self.given_up.values().filter(goes_on);
        let is_clear = |it: &AbandonedRequest| match &it.owner {
            RequestOwner::Broker => true,
            RequestOwner::NoHost => false,
            RequestOwner::Call(call) => call.has_host_of(&origin),
        };
        if has_other || self.has_lost_count || !left.all(is_clear) {
            return Err(RequestError::unclear("requests of several hosts"));
        }
        Ok(origin)
    }
}
