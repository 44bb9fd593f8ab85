//! Requests that a run sends to its host: a question to the person, or a sampling request to the
//! model. Each is an MCP request, delivered as the host's era requires. The part of airlock that
//! sends the request interprets the reply.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::peer::{OpenRequest, OpenRequests, Peer};
use crate::client_bridge::{AnswerDeadline, AnswerDeadlinePause, ClientReply};

/// Maximum number of requests that one run has open at its host at the same time. Questions to the
/// person are not counted; they are sent one at a time.
const CARRIED_MAX: usize = 8;
/// The method that asks a person.
pub(super) const ELICITATION: &str = "elicitation/create";
/// The method that asks the host's model.
pub(super) const SAMPLING: &str = "sampling/createMessage";
/// Prefix of the keys of airlock's own questions to the person.
pub(super) const APPROVAL_KEY: &str = "call-";
/// Prefix of the keys of extraction requests to the host's model.
pub(super) const EXTRACTION_KEY: &str = "extract-";

/// One request to the host, with the channel for its reply.
#[derive(Debug)]
pub(super) struct ClientRequest {
    /// Identifies the request within its run, for example `call-1`.
    pub(super) key: String,
    pub(super) method: &'static str,
    pub(super) params: Value,
    reply: oneshot::Sender<ClientReply>,
    clock: RequestClock,
}

/// State of the time limit for a reply. It is independent of the run's time limit.
#[derive(Debug)]
pub(super) enum RequestClock {
    /// The time limit always runs.
    Runs,
    /// The time limit starts when the request is sent.
    InTurn(#[expect(dead_code, reason = "held until its turn")] AnswerDeadlinePause),
    /// The time limit runs, and pauses while the host holds the request.
    InHand(AnswerDeadline),
    Away(#[expect(dead_code, reason = "held until the host is back")] AnswerDeadlinePause),
}

/// Sends requests from the thread of a run to the task that follows the run for the host. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub(super) struct ClientRequestQueue(mpsc::UnboundedSender<ClientRequest>);

/// How requests reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    /// Each request is sent as a JSON-RPC request, in the older era.
    Request,
    /// All requests are returned in an `input_required` result, in the newer era.
    Return,
}

impl ClientRequestQueue {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<ClientRequest>) {
        let (client_requests, wanted) = mpsc::unbounded_channel();
        (Self(client_requests), wanted)
    }

    /// Sends a request and returns the host's reply. Dropping the future withdraws the request.
    pub(super) async fn want(
        &self,
        key: String,
        method: &'static str,
        params: Value,
    ) -> ClientReply {
        self.want_by(key, method, params, RequestClock::Runs).await
    }

    /// Sends a request like [`Self::want`], with the given time limit.
    pub(super) async fn want_by(
        &self,
        key: String,
        method: &'static str,
        params: Value,
        clock: RequestClock,
    ) -> ClientReply {
        let (reply, replied) = oneshot::channel();
        let client_request = ClientRequest {
            key,
            method,
            params,
            reply,
            clock,
        };
        if self.0.send(client_request).is_err() {
            return ClientReply::Nothing;
        }
        replied.await.unwrap_or(ClientReply::Nothing)
    }
}

impl ClientRequest {
    /// Formats the request for an `input_required` result.
    pub(super) fn as_request(&self) -> Value {
        json!({"method": self.method, "params": self.params})
    }

    /// Starts the time limit, because the request is sent now.
    fn begin(&mut self) {
        if matches!(self.clock, RequestClock::InTurn(_)) {
            self.clock = RequestClock::Runs;
        }
    }

    /// Pauses the time limit while the host holds the request.
    pub(super) fn leave(&mut self) {
        self.begin();
        if let RequestClock::InHand(time) = &self.clock {
            self.clock = RequestClock::Away(time.in_hand());
        }
    }

    /// Delivers the result, unless the request was withdrawn in the meantime.
    pub(super) fn fulfil(self, result: Value) {
        let Self { reply, clock, .. } = self;
        drop(clock);
        let _ = reply.send(ClientReply::Result(result));
    }

    /// Whether the sender no longer waits for a reply.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.reply.is_closed()
    }
}

/// A request that the run has withdrawn while the host held it.
#[derive(Debug)]
pub(super) struct WithdrawnRequest {
    pub(super) key: String,
    /// Dropping it withdraws the request at the host too.
    pub(super) request: OpenRequest,
}

type RequestFuture<'a> = Pin<Box<dyn Future<Output = Option<WithdrawnRequest>> + Send + 'a>>;

/// The requests of one run that are sent to the host as JSON-RPC requests, or wait to be sent.
pub(super) struct InFlightClientRequests<'a> {
    peer: &'a Peer,
    open: &'a Arc<OpenRequests>,
    /// A person is asked one question at a time. airlock's own questions come before questions of
    /// servers.
    asking: Option<RequestFuture<'a>>,
    to_ask: [VecDeque<ClientRequest>; 2],
    others: FuturesUnordered<RequestFuture<'a>>,
    to_carry: VecDeque<ClientRequest>,
}

impl<'a> InFlightClientRequests<'a> {
    pub(super) fn new(peer: &'a Peer, open: &'a Arc<OpenRequests>) -> Self {
        Self {
            peer,
            open,
            asking: None,
            to_ask: Default::default(),
            others: FuturesUnordered::new(),
            to_carry: VecDeque::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asking.is_none() && self.others.is_empty()
    }

    pub(super) fn carry(&mut self, client_request: ClientRequest) {
        let [approvals, forms] = &mut self.to_ask;
        match client_request.method {
            ELICITATION if client_request.key.starts_with(APPROVAL_KEY) => {
                approvals.push_back(client_request)
            }
            ELICITATION => forms.push_back(client_request),
            _ => self.to_carry.push_back(client_request),
        }
        self.go_on();
    }

    /// Waits until one request has been answered or withdrawn, and sends the next. Returns a question
    /// to the person that was withdrawn.
    pub(super) async fn settled(&mut self) -> Option<WithdrawnRequest> {
        let Self { asking, others, .. } = self;
        let answered = async {
            match asking.as_mut() {
                Some(asking) => asking.await,
                None => pending().await,
            }
        };
        let (is_question, withdrawn) = tokio::select! {
            withdrawn = answered => (true, withdrawn),
            Some(_) = others.next() => (false, None),
        };
        if is_question {
            self.asking = None;
        }
        self.go_on();
        withdrawn
    }

    /// Returns the question that the host still holds, after the run has withdrawn it.
    pub(super) async fn last_question(mut self) -> Option<WithdrawnRequest> {
        self.asking.take()?.await
    }

    fn go_on(&mut self) {
        if self.asking.is_none() {
            let next = self.to_ask.iter_mut().find_map(next);
            self.asking = next.map(|it| self.carried(it));
        }
        while self.others.len() < CARRIED_MAX
            && let Some(client_request) = next(&mut self.to_carry)
        {
            self.others.push(self.carried(client_request));
        }
    }

    fn carried(&self, client_request: ClientRequest) -> RequestFuture<'a> {
        Box::pin(carry(self.peer, self.open, client_request))
    }
}

/// Takes the first request that was not withdrawn.
fn next(waiting: &mut VecDeque<ClientRequest>) -> Option<ClientRequest> {
    std::iter::from_fn(|| waiting.pop_front()).find(|client_request| !client_request.is_withdrawn())
}

/// Sends a request to the host and delivers the reply. Returns the request if it is withdrawn before.
async fn carry(
    peer: &Peer,
    open: &Arc<OpenRequests>,
    mut client_request: ClientRequest,
) -> Option<WithdrawnRequest> {
    client_request.begin();
    let ClientRequest {
        key,
        method,
        params,
        mut reply,
        ..
    } = client_request;
    let mut request = tokio::select! {
        biased;
        () = reply.closed() => return None,
        sent = peer.ask(open, method, &params) => sent?,
    };
    tokio::select! {
        biased;
        () = reply.closed() => return Some(WithdrawnRequest { key, request }),
        said = request.reply() => drop(reply.send(said)),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn client_request_resolves_to_result_or_nothing() {
        let (client_requests, mut wanted) = ClientRequestQueue::new();
        let host = async {
            let client_request = wanted.recv().await.unwrap();
            assert_eq!(
                client_request.as_request(),
                json!({"method": "roots/list", "params": {"a": 1}})
            );
            client_request.fulfil(json!({"b": 2}));
            drop(wanted.recv().await);
        };
        let script = async {
            let params = json!({"a": 1});
            let first = client_requests
                .want("x-1".into(), "roots/list", params)
                .await;
            let second = client_requests
                .want("x-2".into(), "roots/list", json!({}))
                .await;
            (first, second)
        };
        let (told, ()) = futures_util::join!(script, host);
        assert_eq!(
            told,
            (ClientReply::Result(json!({"b": 2})), ClientReply::Nothing)
        );
        drop(wanted);
        let gone = client_requests
            .want("x-3".into(), "roots/list", json!({}))
            .await;
        assert_eq!(gone, ClientReply::Nothing);
    }
}
