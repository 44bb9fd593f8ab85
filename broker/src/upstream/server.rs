//! One configured server over its whole life: connected, lost, connected again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use airlock_core::json::{self, Bounds};
use airlock_core::outcome::Reply;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::caps::Caps;
use super::child::Alive;
use super::connection::{Called, Connection};
use super::decode;
use super::diagnostics::{Diagnostics, lock};
use super::era::EraMemory;
use super::error::ConnectError;
use super::following::Following;
use super::handshake::{self, Dial};
use super::headers::{Mirrored, headers_for};
use super::inquiry::Behind;
use super::jsonrpc::Answer;
use super::link::{Link, LinkError};
use super::list::{Listing, list};
use super::listening::Listening;
use super::rounds;
use super::slot::Slot;
use super::spec::{ServerSpec, Transport};
use super::wall::Wall;
use super::watching::Watching;
use crate::carrier::{Abilities, Declared};
use crate::config::Secrets;

pub(crate) struct Server {
    spec: ServerSpec,
    pub(super) caps: Caps,
    eras: EraMemory,
    dial: Box<Dial>,
    secrets: Secrets,
    slot: Arc<AsyncMutex<Slot>>,
    /// Each call has one while it goes on.
    pub(super) places: Arc<Semaphore>,
    /// The list as it was read last.
    reading: Mutex<Option<Arc<Reading>>>,
    /// How often reading it was begun.
    readings: AtomicU64,
    diagnostics: Arc<Diagnostics>,
    /// When a call last began or ended.
    pub(super) used: Mutex<Instant>,
    closing: watch::Sender<bool>,
    alive: Alive,
    /// What servers of the older era are told that can be asked; nobody connects before it
    /// is known.
    declared: Declared,
    /// What hosts want to be told of it besides its tools.
    pub(super) watching: Watching,
}

/// One reading of the list: over which connection, and what calling its tools needs.
struct Reading {
    number: u64,
    /// Nothing leaves over another one.
    connection: Weak<Connection>,
    mirrored: HashMap<String, Vec<Mirrored>>,
}

/// A call as it is sent: the arguments are canonical JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) tool: String,
    pub(crate) arguments: Vec<u8>,
    /// The `traceparent` that the request carries.
    pub(crate) trace: Option<String>,
    /// Who is asked what the server asks in the middle of it.
    pub(crate) behind: Option<Behind>,
    pub(crate) wall: Wall,
}

/// Which reading of the list a call was held against, and how often the list had been read when
/// the call began: a reading that was begun for it is good enough, whatever is told meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Against {
    pub(crate) reading: u64,
    pub(crate) since: u64,
}

/// What became of a call that was held against a reading of the list.
#[derive(Debug)]
pub(crate) enum Sent {
    Answered(Reply),
    /// Nothing left. The list has to be read, and the call held against it, first.
    Unread,
    /// The same, but something was tried: the connection had ended, and nothing arrived.
    Ended(Reply),
}

impl Server {
    pub(crate) fn new(
        spec: ServerSpec,
        caps: Caps,
        eras: EraMemory,
        dial: Box<Dial>,
        diagnostics: Arc<Diagnostics>,
        alive: Alive,
        declared: Declared,
    ) -> Self {
        Self {
            secrets: diagnostics.secrets().clone(),
            places: Arc::new(Semaphore::new(places(&spec) as usize)),
            slot: Arc::default(),
            reading: Mutex::default(),
            readings: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
            closing: watch::Sender::new(false),
            alive,
            declared,
            watching: Watching::default(),
            spec,
            caps,
            eras,
            dial,
            diagnostics,
        }
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    pub(crate) fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    pub(super) fn masked(&self, text: &str) -> String {
        self.secrets.strike(text).unwrap_or_else(|| text.to_owned())
    }

    /// A text that may be the server's, as others may see it: masked, then cut.
    pub(super) fn shown(&self, text: &str) -> String {
        const SHOWN_CHARS_MAX: usize = 300;
        cut(self.masked(text), SHOWN_CHARS_MAX)
    }

    /// Reads the list of tools, and keeps what calling them needs. The number is that of the
    /// reading.
    pub(crate) async fn list(
        self: &Arc<Self>,
    ) -> Result<(Arc<Connection>, u64, Listing), ConnectError> {
        let connection = self.connection().await?;
        let number = self.readings.fetch_add(1, Ordering::SeqCst) + 1;
        let changes = self.diagnostics.changes();
        let mut listing = list(&connection, self.spec.timeouts.list)
            .await
            .map_err(|error| self.no_list(&connection, &error.why()))?;
        for problem in &mut listing.problems {
            *problem = problem.clone().map_texts(|text| self.shown(text));
        }
        let reading = Reading {
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

    fn no_list(&self, connection: &Connection, why: &str) -> ConnectError {
        let has_ended = connection.link.is_closed();
        let last_words = self.diagnostics.last_words().filter(|_| has_ended);
        ConnectError::List {
            why: self.shown(why),
            last_words: last_words.map(|words| self.shown(&words)),
        }
    }

    /// How often reading the list was begun.
    pub(crate) fn readings(&self) -> u64 {
        self.readings.load(Ordering::SeqCst)
    }

    /// Whether a call may go out now that was held against this reading.
    pub(crate) fn is_current(&self, against: Against) -> bool {
        self.reading_for(against).is_some()
    }

    fn reading_for(&self, against: Against) -> Option<(Arc<Reading>, Arc<Connection>)> {
        let reading = lock(&self.reading).clone()?;
        let is_fresh = reading.number > against.since || !self.diagnostics.is_list_outdated();
        if reading.number != against.reading || !is_fresh {
            return None;
        }
        let connection = reading.connection.upgrade()?;
        (!connection.link.is_closed()).then_some((reading, connection))
    }

    /// One call over the connection that its list was read over, within one deadline: waiting
    /// for a place, and the answer.
    pub(crate) async fn call(self: Arc<Self>, asked: &Asked, against: Against) -> Sent {
        let not_sent = |why: &str| {
            Sent::Answered(Reply::NotSent {
                why: why.to_owned(),
            })
        };
        let Ok(arguments) = std::str::from_utf8(&asked.arguments) else {
            return not_sent("the arguments are not UTF-8");
        };
        if arguments.contains('\n') {
            return not_sent("the arguments are not one line");
        }
        let Ok(Ok(_place)) = asked.wall.limit(self.places.acquire()).await else {
            return not_sent("no call of this server ended in time to make place");
        };
        // From here on nobody ends the connection for want of calls.
        let Some((reading, connection)) = self.reading_for(against) else {
            return Sent::Unread;
        };
        *lock(&self.used) = Instant::now();
        let called = Called {
            tool: &asked.tool,
            arguments,
            trace: asked.trace.as_deref(),
            behind: asked.behind.as_ref(),
            newsdesk: self.diagnostics.newsdesk(),
        };
        let headers = reading.headers(&asked.tool, arguments);
        let answer = rounds::converse(&connection, &called, headers, &asked.wall).await;
        *lock(&self.used) = Instant::now();
        let ended = self.note_end(&connection, &answer).await;
        let reply = decode::reply(answer, self.caps.result_bytes_max);
        let reply = self.without_secrets(reply);
        if ended {
            Sent::Ended(reply)
        } else {
            Sent::Answered(reply)
        }
    }

    /// True when nothing arrived because the connection had ended. Where no connection ends,
    /// behind HTTP, one server may have taken the place of another while nobody answered.
    pub(super) async fn note_end(
        &self,
        connection: &Arc<Connection>,
        answer: &Result<Answer, LinkError>,
    ) -> bool {
        let Err(error) = answer else {
            return false;
        };
        if matches!(connection.link, Link::Http(_)) && error.is_of_the_way() {
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

    /// The connection that there is; none is made.
    pub(super) async fn connected(&self) -> Option<Arc<Connection>> {
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
        // Connecting goes on when this call gives up: the next one finds it done.
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
        mut slot: OwnedMutexGuard<Slot>,
    ) -> Result<Arc<Connection>, ConnectError> {
        slot.clear();
        slot.check_patience()?;
        let connecting = async {
            // Two processes of one server may be after the same lock, port or file.
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
                let listening = Listening::begin(&connection, &self.diagnostics).await;
                let following = Following::begin(&connection, &self.watching, &self.diagnostics);
                *slot = Slot {
                    connection: Some(connection.clone()),
                    listening,
                    following: Some(following),
                    ..Slot::default()
                };
                Ok(connection)
            }
            Err(error) => {
                slot.failures = slot.failures.saturating_add(1);
                slot.last_failure = Some((error.to_string(), Instant::now()));
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<Arc<Connection>, ConnectError> {
        let timeouts = &self.spec.timeouts;
        let digest = self.spec.digest();
        let abilities = self.abilities().await;
        let remembered = self.eras.load(&digest);
        let told = (timeouts, abilities);
        let handshake = handshake::connect(&self.dial, self.spec.era, remembered, told);
        let connected = tokio::time::timeout(timeouts.connect, handshake).await;
        let (link, agreed) = match connected {
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
        self.eras.store(&digest, agreed.era);
        self.diagnostics.connected();
        let agreed = agreed.reduced(self.caps.instructions_bytes_max);
        Ok(Arc::new(Connection::new(link, agreed, self.caps)))
    }

    /// Waits until it is known what can be asked of hosts.
    async fn abilities(&self) -> Abilities {
        let mut declared = self.declared.clone();
        let known = declared.wait_for(Option::is_some).await;
        known.ok().and_then(|it| *it).unwrap_or_default()
    }

    fn explained(&self, refusal: handshake::Refusal) -> ConnectError {
        let place = match &self.spec.transport {
            Transport::Http { url, .. } => Some(url.to_string()),
            Transport::Stdio { .. } => None,
        };
        refusal
            .explained(
                place.as_deref(),
                self.spec.timeouts.connect,
                self.diagnostics.last_words(),
            )
            .map_texts(|text| self.shown(text))
    }

    fn without_secrets(&self, reply: Reply) -> Reply {
        /// An error says what is wrong; it is no place for a result.
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

    /// From now on nothing is connected; what is being connected is given up.
    pub(crate) fn begin_closing(&self) {
        self.closing.send_replace(true);
    }

    async fn closed(&self) {
        // The sender lives in `self`, so that this cannot fail.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    pub(crate) async fn close(&self) {
        self.begin_closing();
        self.disconnect().await;
    }

    /// Nothing is connected until the next call.
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

    /// How long nobody has called it; nothing while somebody does, or waits for its news.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let idle = self.places.available_permits() == places(&self.spec) as usize;
        (idle && !self.watching.is_needed()).then(|| lock(&self.used).elapsed())
    }

    /// Keeps all calls waiting as long as it is held; nothing while somebody calls.
    pub(crate) fn still(&self) -> Option<OwnedSemaphorePermit> {
        let all = places(&self.spec);
        Arc::clone(&self.places).try_acquire_many_owned(all).ok()
    }
}

impl Reading {
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

/// Calls that a server may have at the same time.
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
