//! One configured server over its whole life: connected, lost, connected again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::json::{self, Bounds};
use airlock_core::outcome::{LostCause, Reply};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore, watch};
use tokio::time::Instant;

use super::caps::Caps;
use super::child::Alive;
use super::connection::{Called, Connection, Given};
use super::decode;
use super::diagnostics::{Diagnostics, lock};
use super::era::EraMemory;
use super::error::ConnectError;
use super::handshake::{self, Dial};
use super::headers::{Mirrored, headers_for};
use super::inquiry::Behind;
use super::jsonrpc::Answer;
use super::link::LinkError;
use super::list::{Listing, list};
use super::rounds;
use super::spec::{ServerSpec, Transport};
use super::wall::Wall;
use crate::carrier::{Abilities, Declared};
use crate::config::Secrets;

/// What goes along with a call.
#[derive(Debug, Default)]
pub(crate) struct Surrounded {
    /// The `traceparent` that the request carries.
    pub(crate) trace: Option<String>,
    /// Who is asked what the server asks in the middle of it.
    pub(crate) behind: Option<Behind>,
}

pub(crate) struct Server {
    spec: ServerSpec,
    caps: Caps,
    eras: EraMemory,
    dial: Box<Dial>,
    secrets: Secrets,
    slot: Arc<AsyncMutex<Slot>>,
    places: Semaphore,
    mirrored: Mutex<HashMap<String, Vec<Mirrored>>>,
    diagnostics: Arc<Diagnostics>,
    /// When a call last began or ended.
    used: Mutex<Instant>,
    closing: watch::Sender<bool>,
    alive: Alive,
    /// What servers of the older era are told that can be asked; nobody connects before it
    /// is known.
    declared: Declared,
}

/// The connection of the moment, or how often and when making one failed.
#[derive(Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    failures: u32,
    last_failure: Option<(String, Instant)>,
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
            places: Semaphore::new(spec.concurrency_max.clamp(1, Semaphore::MAX_PERMITS)),
            slot: Arc::default(),
            mirrored: Mutex::default(),
            used: Mutex::new(Instant::now()),
            closing: watch::Sender::new(false),
            alive,
            declared,
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

    fn masked(&self, text: &str) -> String {
        self.secrets.strike(text).unwrap_or_else(|| text.to_owned())
    }

    /// A text that may be the server's, as others may see it: masked, then cut.
    fn shown(&self, text: &str) -> String {
        const SHOWN_CHARS_MAX: usize = 300;
        cut(self.masked(text), SHOWN_CHARS_MAX)
    }

    /// Reads the list of tools, and keeps what calling them needs.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<(Arc<Connection>, Listing), ConnectError> {
        let connection = self.connection().await?;
        self.diagnostics.list_is_read();
        let mut listing = list(&connection, self.spec.timeouts.list)
            .await
            .map_err(|error| ConnectError::List {
                why: self.shown(&error.why()),
            })?;
        if let Some(time) = listing.holds_for {
            self.diagnostics.list_holds_for(time);
        }
        for problem in &mut listing.problems {
            *problem = problem.clone().map_texts(|text| self.shown(text));
        }
        *lock(&self.mirrored) = std::mem::take(&mut listing.mirrored);
        Ok((connection, listing))
    }

    /// One call, within one deadline: waiting for a place, connecting, and the answer.
    pub(crate) async fn call(
        self: Arc<Self>,
        tool: String,
        arguments: Vec<u8>,
        surroundings: Surrounded,
        wall: Wall,
    ) -> Reply {
        let not_sent = |why: &str| Reply::NotSent {
            why: why.to_owned(),
        };
        let Ok(arguments) = String::from_utf8(arguments) else {
            return not_sent("the arguments are not UTF-8");
        };
        if arguments.contains('\n') {
            return not_sent("the arguments are not one line");
        }
        let Ok(Ok(_place)) = wall.limit(self.places.acquire()).await else {
            return not_sent("no call of this server ended in time to make place");
        };
        *lock(&self.used) = Instant::now();
        let called = Called {
            tool: &tool,
            arguments: &arguments,
            trace: surroundings.trace.as_deref(),
            behind: surroundings.behind.as_ref(),
        };
        let answer = self.converse(&called, &wall).await;
        *lock(&self.used) = Instant::now();
        self.without_secrets(decode::reply(answer, self.caps.result_bytes_max))
    }

    /// A call is made again with what its server asked for, as often as it asks.
    async fn converse(
        self: &Arc<Self>,
        called: &Called<'_>,
        wall: &Wall,
    ) -> Result<Answer, LinkError> {
        let mut given: Option<Given> = None;
        for _ in 0..rounds::MAX {
            let answer = self.exchange(called, given.as_ref(), wall).await?;
            let Some(asked) = rounds::asked(&answer) else {
                return Ok(answer);
            };
            match rounds::answered(asked, called.behind).await {
                Some(answers) => given = Some(answers),
                // What the server said last is all that there is.
                None => return Ok(answer),
            }
        }
        Err(LinkError::Lost {
            why: format!("it asked for input more than {} times", rounds::MAX),
            cause: LostCause::InputRequired,
        })
    }

    /// A call that provably did not arrive, because the connection had ended, is made once more.
    async fn exchange(
        self: &Arc<Self>,
        called: &Called<'_>,
        given: Option<&Given>,
        wall: &Wall,
    ) -> Result<Answer, LinkError> {
        let headers = self.headers(called.tool, called.arguments);
        let mut first = true;
        loop {
            let connection = match wall.limit(self.connection()).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(error)) => {
                    return Err(LinkError::NotSent {
                        why: error.to_string(),
                    });
                }
                Err(_) => {
                    return Err(LinkError::NotSent {
                        why: "the server is still starting".to_owned(),
                    });
                }
            };
            let answer = connection.call(called, given, headers.clone(), wall).await;
            let ended = match &answer {
                Err(LinkError::SessionGone) => true,
                Err(LinkError::NotSent { .. }) => connection.link.is_closed(),
                _ => false,
            };
            if !(ended && std::mem::take(&mut first)) {
                return answer;
            }
            // Whoever holds the slot is connecting anew already, and will replace it.
            let _ = wall.limit(self.forget(&connection)).await;
        }
    }

    fn headers(&self, tool: &str, arguments: &str) -> Vec<(String, String)> {
        let mirrored = lock(&self.mirrored).get(tool).cloned().unwrap_or_default();
        if mirrored.is_empty() {
            return Vec::new();
        }
        match json::read(arguments.as_bytes(), Bounds::WIDEST) {
            Ok(Value::Object(arguments)) => headers_for(&mirrored, &arguments),
            _ => Vec::new(),
        }
    }

    async fn forget(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot.lock().await;
        if slot
            .connection
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            slot.connection = None;
        }
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
        slot.connection = None;
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
                *slot = Slot {
                    connection: Some(connection.clone()),
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
        Ok(Arc::new(Connection {
            link,
            agreed: agreed.reduced(self.caps.instructions_bytes_max),
            caps: self.caps,
        }))
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
        let connection = self.slot.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.link.close().await;
        }
        self.alive.none(self.spec.timeouts.stop_max()).await;
    }

    /// How long nobody has called it; nothing while somebody does.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let all = self.spec.concurrency_max.clamp(1, Semaphore::MAX_PERMITS);
        let idle = self.places.available_permits() == all;
        idle.then(|| lock(&self.used).elapsed())
    }
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

impl Slot {
    /// A server that cannot be reached is tried again after a while that grows.
    fn check_patience(&self) -> Result<(), ConnectError> {
        const WAIT: Duration = Duration::from_millis(250);
        const DOUBLINGS_MAX: u32 = 7;
        let Some((last, at)) = &self.last_failure else {
            return Ok(());
        };
        let wait = WAIT * 2_u32.pow(self.failures.min(DOUBLINGS_MAX));
        if at.elapsed() >= wait {
            return Ok(());
        }
        Err(ConnectError::GivenUp {
            failures: self.failures,
            last: last.clone(),
        })
    }
}
