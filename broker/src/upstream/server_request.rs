//! Inquiries of servers during a call: routes them to the origin of the call and returns the
//! answers. `server_request/parse.rs` parses an inquiry, and `server_request/validate_answer.rs`
//! checks an answer.

mod log_message;
mod parse;
mod validate_answer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use airlock_core::id::{CallId, ServerName};
use airlock_core::inquiry::InquiryLogin;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::diagnostics::lock;
use super::jsonrpc::{self, METHOD_NOT_FOUND};
use crate::client_bridge::{ClientCapabilities, LogSink, ProgressSink, ServerRequest};
use crate::deadline::Deadline;
use crate::login::Person;

pub(crate) use log_message::notified;
pub(crate) use validate_answer::{judge, may_be_empty, refused, unfit};

const INVALID_PARAMS: i64 = -32_602;
const INTERNAL: i64 = -32_603;
/// Maximum number of inquiries of one run that are open at the same time.
const OPEN_MAX: usize = 16;
/// Maximum number of open inquiries of one server, for all runs.
const UNDER_WAY_MAX: usize = 64;

/// The error that a server gets in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// The final answer to a server.
pub(crate) type RequestResult = Result<Value, RequestError>;

/// An inquiry on its way to the run of its call.
#[derive(Debug)]
pub(crate) struct RaisedRequest {
    pub(crate) call: CallId,
    /// Other calls of the same run that the inquiry may belong to.
    pub(crate) or: Vec<CallId>,
    pub(crate) inquiry: ServerRequest,
    /// Set if the call is repeated after the answer and its completion. `None` if the server waits
    /// for the answer during the call.
    pub(crate) first: Option<Completion>,
    pub(crate) told: oneshot::Sender<RequestResult>,
}

/// How airlock learns that the person has done what an address asks for.
#[derive(Debug)]
pub(crate) enum Completion {
    /// The server reports it after the person has agreed, if it reports it at all.
    Reported(oneshot::Receiver<()>),
    /// airlock itself logs in, and knows it also without an answer. The sender is dropped if the
    /// login fails.
    Login(oneshot::Receiver<InquiryLogin>),
}

/// Routes servers' inquiries to one run. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RequestRouter {
    abilities: ClientCapabilities,
    /// Whether a person can be asked to log in to a server.
    can_log_in: bool,
    /// The host that sees the inquiries; `None` if unknown.
    host: Option<Arc<str>>,
    raised: mpsc::UnboundedSender<RaisedRequest>,
    room: Arc<Semaphore>,
    /// Receives the log messages of servers.
    log_sink: Option<LogSink>,
    /// Receives the servers' reports of progress.
    progress_sink: Option<ProgressSink>,
    /// Distinguishes the run in the progress tokens of its calls.
    number: u64,
    /// Whether the run is ending. Calls that wait are not sent any more.
    is_ending: Arc<watch::Sender<bool>>,
}

/// The origin of one call: its run and the host of that run.
#[derive(Debug, Clone)]
pub(crate) struct CallOrigin {
    pub(crate) server: ServerName,
    pub(crate) call: CallId,
    pub(crate) router: RequestRouter,
    pub(crate) deadline: Deadline,
    /// Other calls of the same run that an inquiry may belong to.
    others: Vec<(CallId, Deadline)>,
}

/// The owner of a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum RequestOwner {
    /// The broker itself, for the handshake or for a list of tools.
    #[default]
    Broker,
    /// A run, whose host can be asked.
    Call(CallOrigin),
    /// A caller that cannot be asked, so no inquiry can be made.
    NoHost,
}

impl RequestOwner {
    pub(crate) fn origin(&self) -> Option<&CallOrigin> {
        match self {
            Self::Call(origin) => Some(origin),
            Self::Broker | Self::NoHost => None,
        }
    }
}

impl RequestError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Builds the error for an inquiry that can belong to no call in progress.
    pub(crate) fn nobody() -> Self {
        let why = "no call is in progress that the request could belong to";
        Self::new(METHOD_NOT_FOUND, why)
    }

    /// Builds the error for an inquiry that could belong to another run or host.
    pub(crate) fn unclear(what: &str) -> Self {
        let why = format!(
            "{what} are in progress, and it is unclear to which one the request belongs; call again"
        );
        Self::unanswered(&why)
    }

    /// Builds the error for an inquiry without an answer.
    pub(crate) fn unanswered(why: &str) -> Self {
        Self::new(INTERNAL, why)
    }
}

static ROUTERS: AtomicU64 = AtomicU64::new(0);

impl RequestRouter {
    pub(crate) fn new(
        abilities: ClientCapabilities,
        host: Option<Arc<str>>,
        log_sink: Option<LogSink>,
    ) -> (Self, mpsc::UnboundedReceiver<RaisedRequest>) {
        let (raised, hears) = mpsc::unbounded_channel();
        let router = Self {
            abilities,
            can_log_in: false,
            host,
            raised,
            room: Arc::new(Semaphore::new(OPEN_MAX)),
            log_sink,
            progress_sink: None,
            number: ROUTERS.fetch_add(1, Ordering::Relaxed),
            is_ending: Arc::default(),
        };
        (router, hears)
    }

    pub(crate) fn with_progress(self, progress_sink: Option<ProgressSink>) -> Self {
        Self {
            progress_sink,
            ..self
        }
    }

    pub(crate) fn with_logins(self, can_log_in: bool) -> Self {
        Self { can_log_in, ..self }
    }

    /// Tells the calls that the run is ending.
    pub(crate) fn begin_ending(&self) {
        self.is_ending
            .send_if_modified(|it| !std::mem::replace(it, true));
    }

    fn is_same(&self, other: &Self) -> bool {
        self.raised.same_channel(&other.raised)
    }
}

impl CallOrigin {
    pub(crate) fn new(
        server: ServerName,
        call: CallId,
        router: RequestRouter,
        deadline: Deadline,
    ) -> Self {
        Self {
            server,
            call,
            router,
            deadline,
            others: Vec::new(),
        }
    }

    /// Adds another call of the same run that an inquiry may belong to. Fails if the call is of
    /// another run.
    pub(super) fn join(&mut self, other: &Self) -> Result<(), RequestError> {
        if !other.router.is_same(&self.router) {
            return Err(RequestError::unclear("calls of several runs"));
        }
        self.others.push((other.call, other.deadline.clone()));
        Ok(())
    }

    /// Whether both calls have the same host.
    pub(super) fn has_host_of(&self, other: &Self) -> bool {
        let (host, others) = (&self.router.host, &other.router.host);
        self.router.is_same(&other.router) || (host.is_some() && host == others)
    }

    pub(crate) fn abilities(&self) -> ClientCapabilities {
        self.router.abilities
    }

    /// Identifies the person who is asked: by the host, or else by the run.
    pub(super) fn person(&self) -> Person {
        match &self.router.host {
            Some(host) => Person::Host(host.clone()),
            None => Person::Run(self.router.number),
        }
    }

    /// Whether the run of the call is ending.
    pub(crate) fn is_ending(&self) -> bool {
        *self.router.is_ending.borrow()
    }

    /// Waits until the run of the call is ending.
    pub(super) async fn ending(&self) {
        let mut changes = self.router.is_ending.subscribe();
        // This never fails, because the sender lives in `self`.
        let _ = changes.wait_for(|it| *it).await;
    }

    /// Whether the caller of the run can be asked to log in.
    pub(crate) fn can_log_in(&self) -> bool {
        self.router.can_log_in
    }

    /// Parses an inquiry. Fails if the host does not support it.
    pub(crate) fn read(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<ServerRequest, RequestError> {
        parse::inquiry(&self.server, method, params, self.router.abilities)
    }

    /// Passes an inquiry to the host and returns the answer. Meanwhile, the deadlines of all calls
    /// that the inquiry may belong to are paused.
    pub(crate) async fn ask(&self, inquiry: ServerRequest) -> RequestResult {
        self.raise(inquiry, None).await
    }

    /// Passes an inquiry to the host before the call is repeated. If the person agrees, the run
    /// waits for the completion for a limited time.
    pub(super) async fn ask_first(
        &self,
        inquiry: ServerRequest,
        completion: Completion,
    ) -> RequestResult {
        self.raise(inquiry, Some(completion)).await
    }

    async fn raise(&self, inquiry: ServerRequest, first: Option<Completion>) -> RequestResult {
        let Ok(_place) = self.router.room.try_acquire() else {
            return Err(RequestError::unanswered(
                "too many requests of this run are open",
            ));
        };
        let walls = self.others.iter().map(|(_, deadline)| deadline);
        let _held: Vec<_> = walls.chain([&self.deadline]).map(Deadline::hold).collect();
        let (told, hears) = oneshot::channel();
        let raised = RaisedRequest {
            call: self.call,
            or: self.others.iter().map(|(call, _)| *call).collect(),
            inquiry,
            first,
            told,
        };
        let gone = || RequestError::unanswered("the caller no longer waits for the call");
        self.router.raised.send(raised).map_err(|_| gone())?;
        hears.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// The open inquiries of one server, by the server's ids.
#[derive(Debug, Default)]
pub(crate) struct OpenServerRequests(Mutex<HashMap<String, AbortHandle>>);

/// A request of a server that is not parsed yet.
pub(crate) struct RawRequest<'a> {
    pub(crate) id: &'a RawValue,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
}

impl OpenServerRequests {
    /// Handles an inquiry in the background and passes the message with the answer to `tell`. The
    /// inquiry stays open until the server has accepted the answer. If too many inquiries of the
    /// server are open, further ones are ignored.
    pub(crate) fn begin<F>(
        self: &Arc<Self>,
        asked: RawRequest<'_>,
        origin: Result<CallOrigin, RequestError>,
        tell: impl FnOnce(Vec<u8>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let mut open = lock(&self.0);
        if open.len() >= UNDER_WAY_MAX {
            return;
        }
        let RawRequest { id, method, params } = asked;
        let asked = origin.and_then(|origin| Ok((origin.read(method, params)?, origin)));
        let (key, id, all) = (id.get().to_owned(), id.to_owned(), Arc::clone(self));
        let asking = async move {
            let told = match asked {
                Ok((inquiry, origin)) => origin.ask(inquiry).await,
                Err(refused) => Err(refused),
            };
            tell(in_rpc(&id, &told)).await;
            lock(&all.0).remove(id.get());
        };
        // The lock is held: a task that ends at once removes its entry only after the entry was
        // inserted.
        let asking = tokio::spawn(asking).abort_handle();
        if let Some(before) = open.insert(key, asking) {
            before.abort();
        }
    }

    /// Handles `notifications/cancelled` from the server: aborts the request that it had sent.
    pub(crate) fn cancelled(&self, params: Option<&RawValue>) {
        #[derive(serde::Deserialize)]
        struct CancelledParams<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        let cancelled =
            params.and_then(|it| serde_json::from_str::<CancelledParams<'_>>(it.get()).ok());
        let open = cancelled.and_then(|it| lock(&self.0).remove(it.id.get()));
        if let Some(asking) = open {
            asking.abort();
        }
    }
}

fn in_rpc(id: &RawValue, told: &RequestResult) -> Vec<u8> {
    match told {
        Ok(result) => jsonrpc::result(id, &result.to_string()),
        Err(refused) => jsonrpc::error(id, refused.code, &refused.message),
    }
}

/// Whether a method is an inquiry to the host.
pub(crate) fn is_one(method: &str) -> bool {
    matches!(
        method,
        "elicitation/create" | "sampling/createMessage" | "roots/list"
    )
}
