//! What servers ask of us in the middle of a call, taken to whoever stands behind
//! the call, and back. How it is read stands in `inquiry/read.rs`, what an answer
//! is in `inquiry/judge.rs`.

mod judge;
mod read;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use airlock_core::id::{CallId, ServerName};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use super::diagnostics::lock;
use super::jsonrpc::{self, METHOD_NOT_FOUND};
use super::wall::Wall;
use crate::carrier::{Abilities, Inquiry};

pub(crate) use judge::{judge, refused};

const INTERNAL: i64 = -32_603;
/// Inquiries of one run that are open at the same time.
const OPEN_MAX: usize = 16;
/// Inquiries of one server, whoever they are for.
const UNDER_WAY_MAX: usize = 64;

/// What a server is told instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// What the server is told in the end.
pub(crate) type Told = Result<Value, Refused>;

/// An inquiry on its way to the run that its call belongs to.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) call: CallId,
    pub(crate) inquiry: Inquiry,
    pub(crate) told: oneshot::Sender<Told>,
}

/// Where the inquiries of one run go. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct InquiryDesk {
    abilities: Abilities,
    raised: mpsc::UnboundedSender<Raised>,
    room: Arc<Semaphore>,
}

/// Whoever stands behind one call: its run, and the host of that.
#[derive(Debug, Clone)]
pub(crate) struct Behind {
    pub(crate) server: ServerName,
    pub(crate) call: CallId,
    pub(crate) desk: InquiryDesk,
    pub(crate) wall: Wall,
}

impl Refused {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// There is nobody whom it could be asked for.
    pub(crate) fn nobody() -> Self {
        let why = "no call is under way that somebody could be asked for";
        Self::new(METHOD_NOT_FOUND, why)
    }

    /// Nobody answered, for one reason or another.
    pub(crate) fn unanswered(why: &str) -> Self {
        Self::new(INTERNAL, why)
    }
}

impl InquiryDesk {
    pub(crate) fn new(abilities: Abilities) -> (Self, mpsc::UnboundedReceiver<Raised>) {
        let (raised, hears) = mpsc::unbounded_channel();
        let desk = Self {
            abilities,
            raised,
            room: Arc::new(Semaphore::new(OPEN_MAX)),
        };
        (desk, hears)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.raised.same_channel(&other.raised)
    }
}

impl Behind {
    /// Whoever runs these calls, when all of them are of one run. A server on stdio does not
    /// say which call its inquiry is about: where they are of several runs, nobody is asked.
    pub(crate) fn of_one_run<'a>(
        mut calls: impl Iterator<Item = &'a Self>,
    ) -> Result<Self, Refused> {
        let first = calls.next().ok_or_else(Refused::nobody)?;
        if calls.all(|other| other.desk.is_same(&first.desk)) {
            return Ok(first.clone());
        }
        let why = "calls of several runs are under way, and nothing says which of them it is for; \
                   call again";
        Err(Refused::unanswered(why))
    }

    pub(crate) fn abilities(&self) -> Abilities {
        self.desk.abilities
    }

    /// Takes what a server asks to the host, and brings back what the server is told. The
    /// call's time stands still meanwhile.
    pub(crate) async fn ask(&self, method: &str, params: Option<&RawValue>) -> Told {
        let inquiry = read::inquiry(&self.server, method, params, self.desk.abilities)?;
        let Ok(_place) = self.desk.room.try_acquire() else {
            return Err(Refused::unanswered("too much is asked at the same time"));
        };
        let _held = self.wall.hold();
        let (told, hears) = oneshot::channel();
        let raised = Raised {
            call: self.call,
            inquiry,
            told,
        };
        let gone = || Refused::unanswered("nobody waits for the call any more");
        self.desk.raised.send(raised).map_err(|_| gone())?;
        hears.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// What one server asks and is not told yet, by the ids that it gave.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(Mutex<HashMap<String, AbortHandle>>);

impl UnderWay {
    /// Asks on the side, and hands on the message that the server is told.
    pub(crate) fn begin<F>(
        self: &Arc<Self>,
        (id, method, params): (&RawValue, &str, Option<&RawValue>),
        behind: Result<Behind, Refused>,
        tell: impl FnOnce(Vec<u8>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let mut open = lock(&self.0);
        // A server that asks in a flood is not answered.
        if open.len() >= UNDER_WAY_MAX {
            return;
        }
        let (method, params) = (method.to_owned(), params.map(RawValue::to_owned));
        let (key, id, all) = (id.get().to_owned(), id.to_owned(), Arc::clone(self));
        let asking = async move {
            let told = match behind {
                Ok(behind) => behind.ask(&method, params.as_deref()).await,
                Err(refused) => Err(refused),
            };
            lock(&all.0).remove(id.get());
            tell(in_rpc(&id, &told)).await;
        };
        // What is over at once waits for the lock, and so is entered before it is removed.
        let asking = tokio::spawn(asking).abort_handle();
        if let Some(before) = open.insert(key, asking) {
            before.abort();
        }
    }

    /// The server does not want to be told any more.
    pub(crate) fn cancelled(&self, params: Option<&RawValue>) {
        #[derive(serde::Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        let cancelled = params.and_then(|it| serde_json::from_str::<Cancelled<'_>>(it.get()).ok());
        let open = cancelled.and_then(|it| lock(&self.0).remove(it.id.get()));
        if let Some(asking) = open {
            asking.abort();
        }
    }
}

fn in_rpc(id: &RawValue, told: &Told) -> Vec<u8> {
    match told {
        Ok(result) => jsonrpc::result(id, &result.to_string()),
        Err(refused) => jsonrpc::error(id, refused.code, &refused.message),
    }
}

/// Whether a method is one that asks something of a host.
pub(crate) fn is_one(method: &str) -> bool {
    matches!(
        method,
        "elicitation/create" | "sampling/createMessage" | "roots/list"
    )
}
