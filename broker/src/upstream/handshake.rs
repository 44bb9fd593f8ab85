//! Agreeing with a server on an era and a revision.
//!
//! The newer era is probed first; on any refusal, on silence, and on the death
//! of a server that cannot stand the question, the older handshake follows.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::era::{Era, EraChoice, LEGACY_VERSIONS, MODERN_VERSION};
use super::error::ConnectError;
use super::jsonrpc::{Answer, RpcError, UNSUPPORTED_VERSION};
use super::link::{Link, LinkError, Outgoing};
use super::raw;
use super::spec::Timeouts;
use super::wall::Wall;
use crate::carrier::Abilities;
use airlock_core::outcome::LostCause;

const MODERN_META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"airlock","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""},"io.modelcontextprotocol/clientCapabilities":"#
);

const INITIALIZE_PARAMS: &str = concat!(
    r#"{"protocolVersion":"2025-11-25","clientInfo":{"name":"airlock","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""},"capabilities":"#
);

/// The members of `_meta` in every request of the newer era, where it is also said what can
/// be asked of whoever stands behind the request.
pub(crate) fn modern_meta(abilities: Abilities) -> String {
    format!("{MODERN_META}{}", abilities.declared())
}

fn initialize_params(abilities: Abilities) -> String {
    format!("{INITIALIZE_PARAMS}{}}}", abilities.declared())
}

/// Pictures in `icons` make the largest answers, and they are not kept.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Makes a new link to the server: starts the child, or takes note of the address.
pub(crate) type Dial = dyn Fn() -> Result<Link, ConnectError> + Send + Sync;

/// What the server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Agreed {
    pub(crate) era: Era,
    pub(crate) version: String,
    pub(crate) server_info: Option<Map<String, Value>>,
    pub(crate) instructions: Option<String>,
    pub(crate) has: Has,
}

/// What of its abilities matters here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Has {
    /// It logs, and lets itself be told from which level on.
    pub(crate) logging: bool,
    /// It says when a resource has changed, to whoever wants to know.
    pub(crate) subscriptions: bool,
    /// It says when its list of tools has changed; in the newer era to whoever listens.
    pub(crate) list_changes: bool,
    /// The same of its prompts, and of its resources.
    pub(crate) prompt_changes: bool,
    pub(crate) resource_changes: bool,
}

impl Has {
    fn of(capabilities: Option<&Value>) -> Self {
        let has = |pointer: &str| capabilities.and_then(|it| it.pointer(pointer));
        let is_true = |pointer: &str| has(pointer) == Some(&Value::Bool(true));
        Self {
            logging: has("/logging").is_some_and(Value::is_object),
            subscriptions: is_true("/resources/subscribe"),
            list_changes: is_true("/tools/listChanged"),
            prompt_changes: is_true("/prompts/listChanged"),
            resource_changes: is_true("/resources/listChanged"),
        }
    }
}

impl Agreed {
    /// Only what is shown, and little more of it than is shown: credentials are struck out
    /// later, and half of one would stay.
    pub(crate) fn reduced(mut self, instructions_bytes_max: usize) -> Self {
        const INFO_BYTES_MAX: usize = 4 * 1024;
        if let Some(text) = &mut self.instructions {
            truncate(text, instructions_bytes_max);
        }
        if let Some(info) = &mut self.server_info {
            // Without icons, which are pictures in text.
            info.retain(|key, _| matches!(key.as_str(), "name" | "title" | "version"));
            info.retain(|_, value| value.is_string());
            for value in info.values_mut() {
                if let Value::String(text) = value {
                    truncate(text, INFO_BYTES_MAX);
                }
            }
        }
        self
    }
}

fn truncate(text: &mut String, bytes_max: usize) {
    let fits = (0..=bytes_max.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text.truncate(fits.unwrap_or_default());
}

/// Why one way of beginning did not work.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no link to begin on.
    Dial(ConnectError),
    /// The server answered: not like this.
    Error(RpcError),
    Unreadable(String),
    Version(String),
    Link(LinkError),
}

impl Refusal {
    fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Link(LinkError::Lost {
                cause: LostCause::TimedOut,
                ..
            })
        )
    }

    /// The server, or the way to it, ended.
    fn is_end(&self) -> bool {
        matches!(
            self,
            Self::Link(
                LinkError::NotSent { .. }
                    | LinkError::Lost {
                        cause: LostCause::Disconnected,
                        ..
                    }
            )
        )
    }

    /// The server refused a revision that it names as spoken: it wants to be asked again.
    fn wants_repetition(&self) -> bool {
        match self {
            Self::Error(error) => {
                error.code == UNSUPPORTED_VERSION
                    && error
                        .supported
                        .iter()
                        .any(|version| version == MODERN_VERSION)
            }
            _ => false,
        }
    }

    /// No other way of beginning can work either.
    fn is_final(&self) -> bool {
        match self {
            Self::Dial(_) => true,
            Self::Link(LinkError::Status { status, .. }) => matches!(status, 401 | 403 | 407),
            _ => false,
        }
    }
}

pub(crate) async fn connect(
    dial: &Dial,
    choice: EraChoice,
    remembered: Option<Era>,
    (timeouts, abilities): (&Timeouts, Abilities),
) -> Result<(Link, Agreed), Refusal> {
    let link = dial()?;
    let beginning = Beginning {
        dial,
        timeouts,
        abilities,
    };
    match (choice, remembered) {
        (EraChoice::Pinned(era), _) => {
            let begun = beginning.begin(&link, era).await;
            settle(link, begun).await
        }
        (EraChoice::Auto, Some(Era::Legacy)) => beginning.as_remembered(link).await,
        // The probe is how the newer era begins: a memory of it spares nothing.
        (EraChoice::Auto, Some(Era::Modern) | None) => beginning.probe(link).await,
    }
}

/// A link that was not agreed on is ended before anybody dials again.
async fn settle(link: Link, begun: Result<Agreed, Refusal>) -> Result<(Link, Agreed), Refusal> {
    match begun {
        Ok(agreed) => Ok((link, agreed)),
        Err(refusal) => {
            link.close().await;
            Err(refusal)
        }
    }
}

/// What every way of beginning needs.
struct Beginning<'a> {
    dial: &'a Dial,
    timeouts: &'a Timeouts,
    /// What a server of the older era is told once and for all.
    abilities: Abilities,
}

impl Beginning<'_> {
    async fn begin(&self, link: &Link, era: Era) -> Result<Agreed, Refusal> {
        match era {
            Era::Modern => discover(link, self.timeouts.connect).await,
            Era::Legacy => self.initialize(link, self.timeouts.connect).await,
        }
    }

    /// `initialize` at once. A server that is silent about it may be a slow one: it
    /// is asked otherwise on the same link, in the time that is left.
    async fn as_remembered(&self, link: Link) -> Result<(Link, Agreed), Refusal> {
        const SHARE_OF_CONNECT: u32 = 2;
        let within = self.timeouts.connect / SHARE_OF_CONNECT;
        match self.initialize(&link, within).await {
            Ok(agreed) => Ok((link, agreed)),
            Err(refusal) if refusal.is_final() => settle(link, Err(refusal)).await,
            Err(refusal) if refusal.is_silence() => self.probe(link).await,
            Err(_) => {
                link.close().await;
                self.probe((self.dial)()?).await
            }
        }
    }

    async fn probe(&self, link: Link) -> Result<(Link, Agreed), Refusal> {
        let refusal = match discover(&link, self.timeouts.probe).await {
            Ok(agreed) => return Ok((link, agreed)),
            Err(refusal) if refusal.is_final() => return settle(link, Err(refusal)).await,
            Err(refusal) => refusal,
        };
        let within = self.timeouts.connect;
        // Some servers of the older era end when the first message is not `initialize`;
        // some answer it before they end.
        let mut link = link;
        let mut initialized = Err(Refusal::Link(LinkError::disconnected("it ended")));
        if !link.is_closed() {
            initialized = self.initialize(&link, within).await;
        }
        if matches!(&initialized, Err(refusal) if refusal.is_end()) {
            link.close().await;
            link = (self.dial)()?;
            initialized = self.initialize(&link, within).await;
        }
        // It was only slow to start, and speaks the newer era alone.
        if refusal.is_silence() && matches!(initialized, Err(Refusal::Error(_))) {
            initialized = discover(&link, within).await;
        }
        settle(link, initialized).await
    }

    async fn initialize(&self, link: &Link, within: Duration) -> Result<Agreed, Refusal> {
        initialize(link, initialize_params(self.abilities), within).await
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Option<Value>,
    #[serde(default)]
    instructions: Option<Value>,
    #[serde(default, rename = "_meta")]
    meta: Option<Map<String, Value>>,
    #[serde(default)]
    server_info: Option<Value>,
}

async fn discover(link: &Link, within: Duration) -> Result<Agreed, Refusal> {
    match discover_once(link, within).await {
        Err(refusal) if refusal.wants_repetition() => discover_once(link, within).await,
        discovered => discovered,
    }
}

async fn discover_once(link: &Link, within: Duration) -> Result<Agreed, Refusal> {
    const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    if let Link::Http(link) = link {
        link.speak(Era::Modern, Some(MODERN_VERSION));
    }
    let meta = modern_meta(Abilities::default());
    let params = format!(r#"{{"_meta":{{{meta}}}}}"#);
    let discovered: Discovered = ask(link, "server/discover", params, within).await?;
    if !discovered
        .supported_versions
        .iter()
        .any(|version| version == MODERN_VERSION)
    {
        return Err(Refusal::Version(discovered.supported_versions.join(", ")));
    }
    let info = discovered
        .meta
        .and_then(|mut meta| meta.remove(SERVER_INFO))
        .or(discovered.server_info);
    Ok(Agreed {
        era: Era::Modern,
        version: MODERN_VERSION.to_owned(),
        server_info: info.and_then(into_object),
        instructions: discovered.instructions.and_then(into_text),
        has: Has::of(discovered.capabilities.as_ref()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: String,
    #[serde(default)]
    capabilities: Option<Value>,
    #[serde(default)]
    server_info: Option<Value>,
    #[serde(default)]
    instructions: Option<Value>,
}

async fn initialize(link: &Link, params: String, within: Duration) -> Result<Agreed, Refusal> {
    if let Link::Http(link) = link {
        link.speak(Era::Legacy, None);
    }
    let initialized: Initialized = ask(link, "initialize", params, within).await?;
    let version = initialized.protocol_version;
    if !LEGACY_VERSIONS.contains(&version.as_str()) {
        return Err(Refusal::Version(version));
    }
    if let Link::Http(link) = link {
        link.speak(Era::Legacy, Some(&version));
    }
    link.notify("notifications/initialized", "{}")
        .await
        .map_err(Refusal::Link)?;
    Ok(Agreed {
        era: Era::Legacy,
        version,
        server_info: initialized.server_info.and_then(into_object),
        instructions: initialized.instructions.and_then(into_text),
        has: Has::of(initialized.capabilities.as_ref()),
    })
}

async fn ask<T: serde::de::DeserializeOwned>(
    link: &Link,
    method: &'static str,
    params: String,
    within: Duration,
) -> Result<T, Refusal> {
    let outgoing = Outgoing {
        method,
        params,
        ..Outgoing::default()
    };
    match link
        .request(&outgoing, &Wall::new(within))
        .await
        .map_err(Refusal::Link)?
    {
        Answer::Result(result) if result.get().len() > ANSWER_BYTES_MAX => {
            let error = LinkError::too_large(ANSWER_BYTES_MAX);
            Err(Refusal::Link(error))
        }
        Answer::Result(result) => raw::read_object(result.get()).map_err(|error| {
            Refusal::Unreadable(format!("its answer to {method} cannot be read: {error}"))
        }),
        Answer::Error(error) => Err(Refusal::Error(error)),
        Answer::Unreadable(why) => Err(Refusal::Unreadable(why)),
    }
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn into_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

impl From<ConnectError> for Refusal {
    fn from(error: ConnectError) -> Self {
        Self::Dial(error)
    }
}

impl Refusal {
    /// For the person, once masked and cut. `place` is the address, when there is one.
    pub(crate) fn explained(
        self,
        place: Option<&str>,
        within: Duration,
        last_words: Option<String>,
    ) -> ConnectError {
        match (self, place) {
            (Self::Dial(error), _) => error,
            (Self::Error(error), _) => ConnectError::NotMcp {
                why: format!(
                    "it answers with the error {}: {}",
                    error.code, error.message
                ),
            },
            (Self::Unreadable(why), _) => ConnectError::NotMcp { why },
            (Self::Version(theirs), _) => ConnectError::Version { theirs },
            (
                Self::Link(LinkError::Status {
                    status: status @ (401 | 403 | 407),
                    ..
                }),
                Some(url),
            ) => ConnectError::Unauthorized {
                url: url.to_owned(),
                status,
            },
            (Self::Link(LinkError::Status { why, .. }), _) => ConnectError::NotMcp { why },
            (
                Self::Link(LinkError::Lost {
                    cause: LostCause::TimedOut,
                    ..
                }),
                _,
            ) => ConnectError::TimedOut { within, last_words },
            (
                Self::Link(LinkError::Lost {
                    cause: LostCause::Unreadable | LostCause::TooLarge,
                    why,
                }),
                _,
            ) => ConnectError::NotMcp { why },
            (Self::Link(error), Some(url)) => ConnectError::Unreachable {
                url: url.to_owned(),
                why: error.why(),
            },
            (Self::Link(error), None) => ConnectError::Ended {
                how: error.why(),
                last_words,
            },
        }
    }
}
