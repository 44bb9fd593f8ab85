//! What servers ask of us in the middle of a call, taken to whoever stands behind
//! the call, and back. How it is read stands in `inquiry/read.rs`, what an answer
//! is in `inquiry/judge.rs`.

mod judge;
mod read;
mod remark;

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
use crate::carrier::{Abilities, Inquiry, Remarks};

pub(crate) use judge::{judge, may_be_empty, refused, unfit};
pub(crate) use remark::notified;

const INVALID_PARAMS: i64 = -32_602;
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
    /// Calls of the same run that it may be about as well.
    pub(crate) or: Vec<CallId>,
    pub(crate) inquiry: Inquiry,
    /// The call is made again when this is answered, and when its server has said that it was
    /// done with. None of one that is answered to a server that waits.
    pub(crate) first: Option<oneshot::Receiver<()>>,
    pub(crate) told: oneshot::Sender<Told>,
}

/// Where the inquiries of one run go. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct InquiryDesk {
    abilities: Abilities,
    /// Whom everything comes before; none where that is not known.
    host: Option<Arc<str>>,
    raised: mpsc::UnboundedSender<Raised>,
    room: Arc<Semaphore>,
    /// Where what servers log goes.
    remarks: Option<Remarks>,
}

/// Whoever stands behind one call: its run, and the host of that.
#[derive(Debug, Clone)]
pub(crate) struct Behind {
    pub(crate) server: ServerName,
    pub(crate) call: CallId,
    pub(crate) desk: InquiryDesk,
    pub(crate) wall: Wall,
    /// Further calls of the same run that a question may be about.
    others: Vec<(CallId, Wall)>,
}

/// For whom a request is made.
#[derive(Debug, Clone, Default)]
pub(crate) enum Whose {
    /// The broker itself: the handshake, a list of tools.
    #[default]
    Ours,
    /// A run, whose host can be asked.
    Call(Behind),
    /// Somebody who cannot be asked anything for it.
    Nobodys,
}

impl Whose {
    pub(crate) fn behind(&self) -> Option<&Behind> {
        match self {
            Self::Call(behind) => Some(behind),
            Self::Ours | Self::Nobodys => None,
        }
    }
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
        let why = "no call is in progress that a person could be asked about";
        Self::new(METHOD_NOT_FOUND, why)
    }

    /// It could be about something of somebody else.
    pub(crate) fn unclear(what: &str) -> Self {
        let why = format!(
            "{what} are in progress, and the request does not say to which one it belongs; call again"
        );
        Self::unanswered(&why)
    }

    /// Nobody answered, for one reason or another.
    pub(crate) fn unanswered(why: &str) -> Self {
        Self::new(INTERNAL, why)
    }
}

impl InquiryDesk {
    pub(crate) fn new(
        abilities: Abilities,
        host: Option<Arc<str>>,
        remarks: Option<Remarks>,
    ) -> (Self, mpsc::UnboundedReceiver<Raised>) {
        let (raised, hears) = mpsc::unbounded_channel();
        let desk = Self {
            abilities,
            host,
            raised,
            room: Arc::new(Semaphore::new(OPEN_MAX)),
            remarks,
        };
        (desk, hears)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.raised.same_channel(&other.raised)
    }
}

impl Behind {
    pub(crate) fn new(server: ServerName, call: CallId, desk: InquiryDesk, wall: Wall) -> Self {
        Self {
            server,
            call,
            desk,
            wall,
            others: Vec::new(),
        }
    }

    /// A question may be about this other call too, when it is of the same run.
    pub(super) fn join(&mut self, other: &Self) -> Result<(), Refused> {
        if !other.desk.is_same(&self.desk) {
            return Err(Refused::unclear("calls of several runs"));
        }
        self.others.push((other.call, other.wall.clone()));
        Ok(())
    }

    /// Whether the same host stands behind both.
    pub(super) fn has_host_of(&self, other: &Self) -> bool {
        let (host, others) = (&self.desk.host, &other.desk.host);
        self.desk.is_same(&other.desk) || (host.is_some() && host == others)
    }

    pub(crate) fn abilities(&self) -> Abilities {
        self.desk.abilities
    }

    /// What a server asks, when the host can be asked that.
    pub(crate) fn read(&self, method: &str, params: Option<&RawValue>) -> Result<Inquiry, Refused> {
        read::inquiry(&self.server, method, params, self.desk.abilities)
    }

    /// Takes what a server asks to the host, and brings back what the server is told. The
    /// time of all calls that it may be about stands still meanwhile.
    pub(crate) async fn ask(&self, inquiry: Inquiry) -> Told {
        self.raise(inquiry, None).await
    }

    /// The same before the call is made again. After a yes it is waited, for a while, for `done`.
    pub(super) async fn ask_first(&self, inquiry: Inquiry, done: oneshot::Receiver<()>) -> Told {
        self.raise(inquiry, Some(done)).await
    }

    async fn raise(&self, inquiry: Inquiry, first: Option<oneshot::Receiver<()>>) -> Told {
        let Ok(_place) = self.desk.room.try_acquire() else {
            return Err(Refused::unanswered("too much is asked at the same time"));
        };
        let walls = self.others.iter().map(|(_, wall)| wall);
        let _held: Vec<_> = walls.chain([&self.wall]).map(Wall::hold).collect();
        let (told, hears) = oneshot::channel();
        let raised = Raised {
            call: self.call,
            or: self.others.iter().map(|(call, _)| *call).collect(),
            inquiry,
            first,
            told,
        };
        let gone = || Refused::unanswered("the caller no longer waits for the call");
        self.desk.raised.send(raised).map_err(|_| gone())?;
        hears.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// What one server asks and is not told yet, by the ids that it gave.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(Mutex<HashMap<String, AbortHandle>>);

impl UnderWay {
    /// Asks on the side, and hands on the message that the server is told. It is under way
    /// until the server has taken that: one that asks in a flood and does not listen gets no
    /// further answers.
    pub(crate) fn begin<F>(
        self: &Arc<Self>,
        (id, method, params): (&RawValue, &str, Option<&RawValue>),
        behind: Result<Behind, Refused>,
        tell: impl FnOnce(Vec<u8>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let mut open = lock(&self.0);
        if open.len() >= UNDER_WAY_MAX {
            return;
        }
        let asked = behind.and_then(|behind| Ok((behind.read(method, params)?, behind)));
        let (key, id, all) = (id.get().to_owned(), id.to_owned(), Arc::clone(self));
        let asking = async move {
            let told = match asked {
                Ok((inquiry, behind)) => behind.ask(inquiry).await,
                Err(refused) => Err(refused),
            };
            tell(in_rpc(&id, &told)).await;
            lock(&all.0).remove(id.get());
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
