//! What a run wants of its host: an answer of the person there, a reply of its
//! model. It travels as a request in the words of the protocol, in whichever way
//! the era has for it; what a reply means is for whoever wanted it.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::asking;
use super::request::Request;
use crate::carrier::{Said, Still, Time};

/// Requests of ours that one run has open at its host at the same time, beside a question to
/// the person: those come one by one.
const CARRIED_MAX: usize = 8;

/// One request of ours, with the way back for its result.
#[derive(Debug)]
pub(super) struct Wish {
    /// Tells it from the others of its run, such as `call-1`.
    pub(super) key: String,
    pub(super) method: &'static str,
    pub(super) params: Value,
    reply: oneshot::Sender<Said>,
    clock: Clock,
}

/// Whether time passes for a wish, beside that of the run.
#[derive(Debug)]
pub(super) enum Clock {
    /// Nobody stops it.
    Runs,
    /// It begins when it is the turn of the wish.
    InTurn(#[expect(dead_code, reason = "held until its turn")] Still),
    /// It stands still while a host is away with the wish.
    InHand(Time),
    Away(#[expect(dead_code, reason = "held until the host is back")] Still),
}

/// Carries wishes from the thread of a run to whoever follows it. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Wishes(mpsc::UnboundedSender<Wish>);

/// How wishes reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Each as a request of ours, in the older era.
    Request,
    /// In a result that says that input is required, in the newer era.
    Return,
}

impl Wishes {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Wish>) {
        let (wishes, wanted) = mpsc::unbounded_channel();
        (Self(wishes), wanted)
    }

    /// What the host says. Dropping this withdraws the wish.
    pub(super) async fn want(&self, key: String, method: &'static str, params: Value) -> Said {
        self.want_by(key, (method, params), Clock::Runs).await
    }

    /// The same, with a time of its own.
    pub(super) async fn want_by(
        &self,
        key: String,
        (method, params): (&'static str, Value),
        clock: Clock,
    ) -> Said {
        let (reply, replied) = oneshot::channel();
        let wish = Wish {
            key,
            method,
            params,
            reply,
            clock,
        };
        if self.0.send(wish).is_err() {
            return Said::Nothing;
        }
        replied.await.unwrap_or(Said::Nothing)
    }
}

impl Wish {
    /// As one of the requests in a result that says that input is required.
    pub(super) fn as_request(&self) -> Value {
        json!({"method": self.method, "params": self.params})
    }

    /// It is its turn.
    fn begin(&mut self) {
        if matches!(self.clock, Clock::InTurn(_)) {
            self.clock = Clock::Runs;
        }
    }

    /// A host goes away with it.
    pub(super) fn leave(&mut self) {
        self.begin();
        if let Clock::InHand(time) = &self.clock {
            self.clock = Clock::Away(time.in_hand());
        }
    }

    /// Nobody waits any more when it was withdrawn meanwhile.
    pub(super) fn fulfil(self, result: Value) {
        let Self { reply, clock, .. } = self;
        drop(clock);
        let _ = reply.send(Said::Result(result));
    }

    /// Nobody wants it any more.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.reply.is_closed()
    }
}

type Open<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The wishes of one run that are on their way as requests of ours.
pub(super) struct Carrying<'a> {
    request: &'a Request,
    /// A person is asked one thing at a time: what airlock asks before what servers do.
    asking: Option<Open<'a>>,
    to_ask: [VecDeque<Wish>; 2],
    others: FuturesUnordered<Open<'a>>,
    to_carry: VecDeque<Wish>,
}

impl<'a> Carrying<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self {
            request,
            asking: None,
            to_ask: Default::default(),
            others: FuturesUnordered::new(),
            to_carry: VecDeque::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asking.is_none() && self.others.is_empty()
    }

    pub(super) fn carry(&mut self, wish: Wish) {
        let [approvals, forms] = &mut self.to_ask;
        match wish.method {
            asking::METHOD if asking::is_key(&wish.key) => approvals.push_back(wish),
            asking::METHOD => forms.push_back(wish),
            _ => self.to_carry.push_back(wish),
        }
        self.go_on();
    }

    /// One of them has come back, or was withdrawn.
    pub(super) async fn settled(&mut self) {
        let Self { asking, others, .. } = self;
        let answered = async {
            match asking.as_mut() {
                Some(asking) => asking.await,
                None => pending().await,
            }
        };
        let is_answer = tokio::select! {
            () = answered => true,
            Some(()) = others.next() => false,
        };
        if is_answer {
            self.asking = None;
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.asking.is_none() {
            let next = self.to_ask.iter_mut().find_map(next);
            self.asking = next.map(|wish| Box::pin(carry(self.request, wish)) as Open<'a>);
        }
        while self.others.len() < CARRIED_MAX
            && let Some(wish) = next(&mut self.to_carry)
        {
            self.others.push(Box::pin(carry(self.request, wish)));
        }
    }
}

/// The first that somebody still wants.
fn next(waiting: &mut VecDeque<Wish>) -> Option<Wish> {
    std::iter::from_fn(|| waiting.pop_front()).find(|wish| !wish.is_withdrawn())
}

async fn carry(request: &Request, mut wish: Wish) {
    wish.begin();
    let Wish {
        method,
        params,
        mut reply,
        ..
    } = wish;
    let asked = request.peer.ask(&request.session.open, method, &params);
    tokio::select! {
        biased;
        // Nobody waits for it any more.
        () = reply.closed() => {}
        said = asked => drop(reply.send(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_wants_something_hears_the_result_or_that_there_is_none() {
        let (wishes, mut wanted) = Wishes::new();
        let host = async {
            let wish = wanted.recv().await.unwrap();
            assert_eq!(
                wish.as_request(),
                json!({"method": "roots/list", "params": {"a": 1}})
            );
            wish.fulfil(json!({"b": 2}));
            drop(wanted.recv().await);
        };
        let script = async {
            let params = json!({"a": 1});
            let first = wishes.want("x-1".into(), "roots/list", params).await;
            let second = wishes.want("x-2".into(), "roots/list", json!({})).await;
            (first, second)
        };
        let (told, ()) = futures_util::join!(script, host);
        assert_eq!(told, (Said::Result(json!({"b": 2})), Said::Nothing));
        drop(wanted);
        let gone = wishes.want("x-3".into(), "roots/list", json!({})).await;
        assert_eq!(gone, Said::Nothing);
    }
}
