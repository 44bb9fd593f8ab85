//! One configured server. It is connected when needed, and reconnected when the connection is lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use airlock_core::json::{self, Bounds};
use airlock_core::outcome::Reply;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::child::LiveProcesses;
use super::connection::{CallRequest, Connection};
use super::connection_slot::ConnectionSlot;
use super::decode;
use super::diagnostics::{Diagnostics, lock};
use super::era::EraMemory;
use super::error::ConnectError;
use super::fetch::{Fetch, FetchError, FetchResponse};
use super::handshake::{Connect, Handshake, HandshakeError};
use super::headers::{MirroredHeader, headers_for};
use super::http::challenge_of;
use super::input_required;
use super::jsonrpc::Answer;
use super::link::Link;
use super::list::{ListError, Listing, list};
use super::list_subscription::ListSubscription;
use super::login_request;
use super::message_limits::MessageLimits;
use super::outgoing::LinkError;
use super::server_request::CallOrigin;
use super::spec::{ServerSpec, Transport};
use super::subscription_sync::SubscriptionSync;
use super::subscriptions::{ResourceSubscription, ServerSubscriptions, TooManySubscriptions};
use crate::client_bridge::{ClientCapabilities, DeclaredCapabilities};
use crate::deadline::Deadline;
use crate::login::{LoginVersion, ServerLogin};
use crate::secrets::Secrets;

pub(crate) struct UpstreamServer {
    spec: ServerSpec,
    message_limits: MessageLimits,
    eras: EraMemory,
    connect: Box<Connect>,
    /// The credentials to mask in results and errors.
    secrets: Secrets,
    slot: Arc<AsyncMutex<ConnectionSlot>>,
    /// One permit per call in progress.
    places: Arc<Semaphore>,
    /// The list that was last read.
    reading: Mutex<Option<Arc<ListRevision>>>,
    /// Number of reads of the list that have begun.
    readings: AtomicU64,
    diagnostics: Arc<Diagnostics>,
    /// When a call last began or ended.
    used: Mutex<Instant>,
    closing: watch::Sender<bool>,
    alive: LiveProcesses,
    /// The client capabilities for servers of the older era. No connection is made before they are
    /// known.
    declared: DeclaredCapabilities,
    /// The hosts' subscriptions to changes of prompts and resources.
    pub(super) watching: ServerSubscriptions,
}

/// One read of the list: its connection, and the data that calls of the listed tools need.
struct ListRevision {
    number: u64,
    /// Calls leave only over this connection.
    connection: Weak<Connection>,
    mirrored: HashMap<String, Vec<MirroredHeader>>,
}

/// A call as it is sent: the arguments are canonical JSON text.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    pub(crate) arguments: Vec<u8>,
    /// The `traceparent` of the request.
    pub(crate) trace: Option<String>,
    /// The origin of the call, which answers the server's inquiries.
    pub(crate) origin: Option<CallOrigin>,
    pub(crate) deadline: Deadline,
}

/// The read of the list that a call was checked against, and the number of reads when the call
/// began. A read that began after `since` is accepted, even if the server reports another change in
/// the meantime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallRevision {
    pub(crate) reading: u64,
    pub(crate) since: u64,
}

/// The outcome of a call that was checked against a read of the list.
#[derive(Debug)]
pub(crate) enum SendOutcome {
    Answered(Reply),
    /// Nothing was sent. The list must be read again, and the call checked against it.
    Unread,
    /// The connection had ended and nothing arrived. The list must be read again, as for `Unread`.
    Ended(Reply),
}

impl UpstreamServer {
    pub(crate) fn new(
        spec: ServerSpec,
        message_limits: MessageLimits,
        eras: EraMemory,
        connect: Box<Connect>,
        diagnostics: Arc<Diagnostics>,
        alive: LiveProcesses,
        declared: DeclaredCapabilities,
    ) -> Self {
        Self {
            secrets: spec.secrets_in_results(diagnostics.secrets()),
            places: Arc::new(Semaphore::new(places(&spec) as usize)),
            slot: Arc::default(),
            reading: Mutex::default(),
            readings: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
            closing: watch::Sender::new(false),
            alive,
            declared,
            watching: ServerSubscriptions::default(),
            spec,
            message_limits,
            eras,
            connect,
            diagnostics,
        }
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    pub(crate) fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    fn masked(&self, text: &str) -> String {
        self.secrets.redact(text).unwrap_or_else(|| text.to_owned())
    }

    /// Prepares a text that may come from the server for display: masks it, then cuts it.
    fn shown(&self, text: &str) -> String {
        const SHOWN_CHARS_MAX: usize = 300;
        cut(self.masked(text), SHOWN_CHARS_MAX)
    }

    /// Reads the list of tools and keeps the data that calls need. Also returns the number of this
    /// read.
    pub(crate) async fn list(
        self: &Arc<Self>,
    ) -> Result<(Arc<Connection>, u64, Listing), ConnectError> {
        let connection = self.connection().await?;
        let number = self.readings.fetch_add(1, Ordering::SeqCst) + 1;
        let changes = self.diagnostics.changes();
        let login = self.login_version();
        let mut listing = match list(&connection, self.spec.timeouts.list).await {
            Ok(listing) => listing,
            Err(ListError::Link(refused @ LinkError::LoginRequired { .. })) => {
                return Err(self.login_required(&connection, refused, login).await);
            }
            Err(error) => return Err(self.no_list(&connection, &error.why())),
        };
        for problem in &mut listing.problems {
            *problem = problem.clone().map_texts(|text| self.shown(text));
        }
        let reading = ListRevision {
            number,
            connection: Arc::downgrade(&connection),
            mirrored: std::mem::take(&mut listing.mirrored),
        };
        *lock(&self.reading) = Some(Arc::new(reading));
        self.diagnostics.list_is_read(changes);
        if let Some(time) = listing.holds_for {
            self.diagnostics.list_holds_for(time);
        }
        Ok((connection, number, listing))
    }

    /// Ends a connection whose handshake needed no login, and whose list does. This counts as a failed
    /// attempt to connect, so that a login leads to the next one.
    async fn login_required(
        &self,
        connection: &Arc<Connection>,
        refused: LinkError,
        login: Option<LoginVersion>,
    ) -> ConnectError {
        let error = self.explained(HandshakeError::Link(refused));
        let mut slot = self.slot.lock().await;
        let is_it = |it: &Arc<Connection>| Arc::ptr_eq(it, connection);
        if slot.connection.as_ref().is_some_and(is_it) {
            slot.clear();
            slot.note_failure(error.clone(), login);
        }
        drop(slot);
        connection.link.close().await;
        error
    }

    fn login_version(&self) -> Option<LoginVersion> {
        self.spec.login.as_ref().and_then(ServerLogin::version)
    }

    fn no_list(&self, connection: &Connection, why: &str) -> ConnectError {
        let has_ended = connection.link.is_closed();
        let last_words = self.diagnostics.last_words().filter(|_| has_ended);
        ConnectError::List {
            why: self.shown(why),
            last_words: last_words.map(|words| self.shown(&words)),
        }
    }

    /// Subscribes to changes of the lists of prompts and resources.
    pub(crate) fn want_lists(&self) {
        self.watching.want_lists();
    }

    /// Whether the server reported a change, or was reconnected, since its tools were read.
    pub(crate) fn is_outdated(&self) -> bool {
        self.diagnostics.is_list_outdated()
    }

    /// Returns how often a read of the list was begun.
    pub(crate) fn readings(&self) -> u64 {
        self.readings.load(Ordering::SeqCst)
    }

    /// Whether a call that was checked against this read may leave now.
    pub(crate) fn is_current(&self, against: CallRevision) -> bool {
        self.reading_for(against).is_some()
    }

    fn reading_for(&self, against: CallRevision) -> Option<(Arc<ListRevision>, Arc<Connection>)> {
        let reading = lock(&self.reading).clone()?;
        let is_fresh = reading.number > against.since || !self.diagnostics.is_list_outdated();
        if reading.number != against.reading || !is_fresh {
            return None;
        }
        let connection = reading.connection.upgrade()?;
        (!connection.link.is_closed()).then_some((reading, connection))
    }

    /// Makes one call over the connection from which its list was read. The deadline includes the
    /// wait for a permit and the answer.
    pub(crate) async fn call(
        self: Arc<Self>,
        asked: &ToolCall,
        against: CallRevision,
    ) -> SendOutcome {
        let not_sent = |why: &str| {
            SendOutcome::Answered(Reply::NotSent {
                why: why.to_owned(),
            })
        };
        let Ok(arguments) = std::str::from_utf8(&asked.arguments) else {
            return not_sent("the arguments are not UTF-8");
        };
        if arguments.contains('\n') {
            return not_sent("the arguments contain a line break");
        }
        let Ok(Ok(_place)) = asked.deadline.limit(self.places.acquire()).await else {
            return not_sent("all call slots of this server stayed in use");
        };
        // With the permit held, the connection is not closed for being idle.
        let Some((reading, connection)) = self.reading_for(against) else {
            return SendOutcome::Unread;
        };
        *lock(&self.used) = Instant::now();
        let called = CallRequest {
            tool: &asked.tool,
            arguments,
            trace: asked.trace.as_deref(),
            origin: asked.origin.as_ref(),
            login: self.spec.login.as_ref(),
            notifier: self.diagnostics.notifier(),
        };
        let headers = reading.headers(&asked.tool, arguments);
        let answer = input_required::converse(&connection, &called, headers, &asked.deadline).await;
        *lock(&self.used) = Instant::now();
        let ended = self.note_end(&connection, &answer).await;
        let reply = decode::reply(answer, self.message_limits.result_bytes_max);
        let reply = self.without_secrets(reply);
        if ended {
            SendOutcome::Ended(reply)
        } else {
            SendOutcome::Answered(reply)
        }
    }

    /// Lets a person log in if the last attempt to connect failed for want of a login. Returns
    /// `None` if it did not, and the reply to the call if nobody has logged in.
    pub(crate) async fn log_in_to_connect(&self, origin: &CallOrigin) -> Option<Result<(), Reply>> {
        let deadline = &origin.deadline;
        let slot = deadline.limit(self.slot.lock()).await.ok()?;
        let last = slot.last_failure.as_ref()?;
        let ConnectError::LoginRequired { why, .. } = &last.error else {
            return None;
        };
        let login = self.spec.login.as_ref()?;
        let (why, used) = (why.clone(), last.login);
        drop(slot);
        // The handshake was refused some time ago, so the server is asked again what it requires.
        let challenge = deadline.limit(challenge_of(&self.spec)).await.ok()?;
        let challenge = challenge.unwrap_or_default();
        let refused = LinkError::LoginRequired {
            why,
            next: login.command(&challenge),
            challenge: Box::new(challenge),
        };
        let asking = login_request::after_refusal(refused, used, Some(login), Some(origin));
        let logged_in = asking.await;
        Some(
            logged_in.map_err(|refused| {
                decode::reply(Err(refused), self.message_limits.result_bytes_max)
            }),
        )
    }

    /// Sends a request over the existing connection. The caller makes sure that there is one.
    pub(crate) async fn fetch(
        &self,
        fetch: &Fetch,
        deadline: &Deadline,
    ) -> Result<FetchResponse, FetchError> {
        let late = |_| FetchError::Failed("the request took too long".to_owned());
        let place = deadline.limit(self.places.acquire()).await.map_err(late)?;
        let _place = place.map_err(|_| FetchError::Failed("the broker is closing".to_owned()))?;
        // With the permit held, the connection is not closed for being idle.
        let Some(connection) = deadline.limit(self.connected()).await.map_err(late)? else {
            return Err(FetchError::Ended(
                "each new connection ends immediately".to_owned(),
            ));
        };
        *lock(&self.used) = Instant::now();
        let answer = connection.fetch(fetch, deadline).await;
        *lock(&self.used) = Instant::now();
        let ended = self.note_end(&connection, &answer).await;
        match answer {
            Ok(answer) => self.fetched(&answer, fetch.bytes_max),
            Err(error) => {
                let why = self.masked(&error.why());
                Err(if ended {
                    FetchError::Ended(why)
                } else {
                    FetchError::Failed(why)
                })
            }
        }
    }

    /// Subscribes to changes of a resource. Returns when the server has confirmed the subscription,
    /// which lasts until it is dropped.
    pub(crate) async fn watch(
        &self,
        uri: &str,
        deadline: &Deadline,
    ) -> Result<ResourceSubscription, FetchError> {
        let many = |TooManySubscriptions(max)| {
            FetchError::Failed(format!("too many subscriptions; the maximum is {max}"))
        };
        let watched = self.watching.watch(uri).map_err(many)?;
        let late = |_| FetchError::Failed("the request took too long".to_owned());
        match deadline.limit(watched.standing()).await.map_err(late)? {
            None => Ok(watched),
            Some(error) => Err(FetchError::Refused {
                code: error.code,
                message: self.masked(&error.message),
            }),
        }
    }

    fn fetched(&self, answer: &Answer, bytes_max: usize) -> Result<FetchResponse, FetchError> {
        let failed = |why: String| Err(FetchError::Failed(why));
        let result = match answer {
            Answer::Result(result) => result,
            Answer::Error(error) => {
                return Err(FetchError::Refused {
                    code: error.code,
                    message: self.masked(&error.message),
                });
            }
            Answer::Unreadable(why) => return failed(self.masked(why)),
        };
        let bytes = result.get().len();
        let bytes_max = self.message_limits.result_bytes_max.min(bytes_max);
        let bounds = Bounds {
            bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX),
            depth_max: 64,
            nodes_max: 500_000,
        };
        match json::read(result.get().as_bytes(), bounds) {
            Ok(value) if value.is_object() => Ok(FetchResponse { value, bytes }),
            Ok(_) => failed("the answer is not an object".to_owned()),
            Err(bad) => failed(format!("invalid answer: {bad}")),
        }
    }

    /// Updates the state after an answer. Returns `true` if nothing arrived because the connection
    /// had ended. If requests over HTTP fail, another server may have taken over the address, so
    /// the list counts as outdated.
    async fn note_end(
        &self,
        connection: &Arc<Connection>,
        answer: &Result<Answer, LinkError>,
    ) -> bool {
        let Err(error) = answer else {
            return false;
        };
        if matches!(connection.link, Link::Http(_)) && error.is_connection_error() {
            self.diagnostics.outdate_list();
        }
        match error {
            LinkError::SessionGone => {
                self.forget(connection).await;
                true
            }
            LinkError::NotSent { .. } => connection.link.is_closed(),
            _ => false,
        }
    }

    async fn forget(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot.lock().await;
        if slot
            .connection
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            slot.clear();
        }
    }

    /// Returns the existing connection, and never creates one.
    async fn connected(&self) -> Option<Arc<Connection>> {
        let slot = self.slot.lock().await;
        let connection = slot.connection.as_ref();
        connection.filter(|it| !it.link.is_closed()).cloned()
    }

    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, ConnectError> {
        let slot = self.slot.clone().lock_owned().await;
        if let Some(connection) = slot
            .connection
            .as_ref()
            .filter(|connection| !connection.link.is_closed())
        {
            return Ok(connection.clone());
        }
        // The attempt continues if this call is dropped, so that the next call finds the
        // connection.
        let server = self.clone();
        let connecting = tokio::spawn(async move { server.reconnect(slot).await });
        connecting.await.unwrap_or_else(|error| {
            Err(ConnectError::NotMcp {
                why: error.to_string(),
            })
        })
    }

    async fn reconnect(
        &self,
        mut slot: OwnedMutexGuard<ConnectionSlot>,
    ) -> Result<Arc<Connection>, ConnectError> {
        slot.clear();
        let login = self.login_version();
        slot.check_patience(login)?;
        let connecting = async {
            // Two processes of one server could compete for the same lock, port or file.
            self.alive.none(self.spec.timeouts.stop_max()).await;
            self.connect().await
        };
        let connected = tokio::select! {
            biased;
            () = self.closed() => return Err(closing()),
            connected = connecting => connected,
        };
        match connected {
            Ok(connection) => {
                let listening = ListSubscription::begin(&connection, &self.diagnostics).await;
                let following =
                    SubscriptionSync::begin(&connection, &self.watching, &self.diagnostics);
                *slot = ConnectionSlot {
                    connection: Some(connection.clone()),
                    listening,
                    following: Some(following),
                    ..ConnectionSlot::default()
                };
                Ok(connection)
            }
            Err(error) => {
                slot.note_failure(error.clone(), login);
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, ConnectError> {
        let timeouts = &self.spec.timeouts;
        let digest = self.spec.digest();
        let abilities = self.abilities().await;
        let remembered = self.eras.load(&digest);
        let handshake = Handshake {
            connect: &self.connect,
            timeouts,
            abilities,
        };
        let negotiating = handshake.negotiate(self.spec.era, remembered);
        let connected = tokio::time::timeout(timeouts.connect, negotiating).await;
        let (link, negotiated) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(refusal)) => return Err(self.explained(refusal)),
            Err(_) => {
                let timed_out = ConnectError::TimedOut {
                    within: timeouts.connect,
                    last_words: self.diagnostics.last_words(),
                };
                return Err(timed_out.map_texts(|text| self.shown(text)));
            }
        };
        self.eras.store(&digest, negotiated.era);
        self.diagnostics.connected();
        let negotiated = negotiated.reduced(self.message_limits.instructions_bytes_max);
        Ok(Arc::new(Connection::new(
            link,
            negotiated,
            self.message_limits,
        )))
    }

    /// Waits until the capabilities of the hosts are known.
    async fn abilities(&self) -> ClientCapabilities {
        let mut declared = self.declared.clone();
        let known = declared.wait_for(Option::is_some).await;
        known.ok().and_then(|it| *it).unwrap_or_default()
    }

    fn explained(&self, refusal: HandshakeError) -> ConnectError {
        let place = match &self.spec.transport {
            Transport::Http { url, .. } => Some(url.to_string()),
            Transport::Stdio { .. } => None,
        };
        let error = refusal.explained(
            place.as_deref(),
            self.spec.timeouts.connect,
            self.diagnostics.last_words(),
        );
        match (error.map_texts(|text| self.shown(text)), &self.spec.login) {
            (ConnectError::LoginRequired { url, why, next }, Some(login)) => {
                let next = next.map(|command| command + login.flags());
                ConnectError::LoginRequired { url, why, next }
            }
            (error, _) => error,
        }
    }

    fn without_secrets(&self, reply: Reply) -> Reply {
        /// Maximum length of an error message. Error messages should not contain results.
        const MESSAGE_CHARS_MAX: usize = 4_000;
        match reply {
            Reply::Refused { code, message } => Reply::Refused {
                code,
                message: cut(self.masked(&message), MESSAGE_CHARS_MAX),
            },
            Reply::NotSent { why } => Reply::NotSent {
                why: self.shown(&why),
            },
            Reply::Lost { why, cause } => Reply::Lost {
                why: self.shown(&why),
                cause,
            },
            same @ (Reply::Result { .. } | Reply::Changed | Reply::Failed { .. }) => same,
        }
    }

    /// Begins to close: no new connection is made, and attempts in progress are aborted.
    pub(crate) fn begin_closing(&self) {
        self.closing.send_replace(true);
    }

    async fn closed(&self) {
        // Cannot fail, because the sender is a field of `self`.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    pub(crate) async fn close(&self) {
        self.begin_closing();
        self.disconnect().await;
    }

    /// Closes the connection. The next call connects again.
    pub(crate) async fn disconnect(&self) {
        let mut slot = self.slot.lock().await;
        let connection = slot.connection.take();
        slot.clear();
        drop(slot);
        if let Some(connection) = connection {
            connection.link.close().await;
        }
        self.alive.none(self.spec.timeouts.stop_max()).await;
    }

    /// Returns how long the server has not been called. Returns `None` during a call or while a
    /// host subscribes to its resources.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let idle = self.places.available_permits() == places(&self.spec) as usize;
        (idle && !self.watching.is_needed()).then(|| lock(&self.used).elapsed())
    }

    /// Holds back all calls until the permit is dropped. Returns `None` during a call.
    pub(crate) fn still(&self) -> Option<OwnedSemaphorePermit> {
        let all = places(&self.spec);
        Arc::clone(&self.places).try_acquire_many_owned(all).ok()
    }
}

impl ListRevision {
    fn headers(&self, tool: &str, arguments: &str) -> Vec<(String, String)> {
        let Some(mirrored) = self.mirrored.get(tool).filter(|it| !it.is_empty()) else {
            return Vec::new();
        };
        match json::read(arguments.as_bytes(), Bounds::WIDEST) {
            Ok(Value::Object(arguments)) => headers_for(mirrored, &arguments),
            _ => Vec::new(),
        }
    }
}

/// Returns the maximum number of calls in progress at a server.
fn places(spec: &ServerSpec) -> u32 {
    const PLACES_MAX: u32 = 1 << 24;
    let places = u32::try_from(spec.concurrency_max).unwrap_or(PLACES_MAX);
    places.clamp(1, PLACES_MAX)
}

fn cut(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn closing() -> ConnectError {
    ConnectError::NotMcp {
        why: "the broker is closing".to_owned(),
    }
}
