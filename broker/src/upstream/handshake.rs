//! Performs the handshake with a server, which selects an era and a protocol version.
//!
//! The newer era is probed first. If the server refuses, does not answer or ends because of the
//! probe, the older handshake follows.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::era::{Era, EraChoice, LEGACY_VERSIONS, MODERN_VERSION};
use super::error::ConnectError;
use super::jsonrpc::{Answer, RpcError, UNSUPPORTED_VERSION};
use super::link::Link;
use super::outgoing::{LinkError, OutgoingRequest};
use super::raw;
use super::spec::Timeouts;
use crate::client_bridge::ClientCapabilities;
use crate::deadline::Deadline;
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

/// Returns the members of `_meta` in every request of the newer era, including the client
/// capabilities for the origin of the request.
pub(crate) fn modern_meta(abilities: ClientCapabilities) -> String {
    format!("{MODERN_META}{}", abilities.declared())
}

fn initialize_params(abilities: ClientCapabilities) -> String {
    format!("{INITIALIZE_PARAMS}{}}}", abilities.declared())
}

/// Maximum length of the answer, in bytes. Most of it may be images in `icons`, which airlock
/// drops.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Creates a link to the server: starts the child process, or prepares the HTTP client.
pub(crate) type Connect = dyn Fn() -> Result<Link, ConnectError> + Send + Sync;

/// The result of the handshake, with the server's data about itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Negotiated {
    pub(crate) era: Era,
    pub(crate) version: String,
    pub(crate) server_info: Option<Map<String, Value>>,
    pub(crate) instructions: Option<String>,
    pub(crate) has: ServerCapabilities,
}

/// The capabilities of the server that airlock uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServerCapabilities {
    /// Whether the server logs and accepts a log level.
    pub(crate) logging: bool,
    /// Whether the server reports changes of a resource to subscribers.
    pub(crate) subscriptions: bool,
    /// Whether the server reports changes of its list of tools; in the newer era only to
    /// subscribers.
    pub(crate) list_changes: bool,
    /// Whether the server reports changes of its list of prompts.
    pub(crate) prompt_changes: bool,
    pub(crate) resource_changes: bool,
    /// Whether the server describes its groups and tags (SEP-1300).
    pub(crate) filtering: bool,
}

impl ServerCapabilities {
    fn from_capabilities(capabilities: Option<&Value>) -> Self {
        let has = |pointer: &str| capabilities.and_then(|it| it.pointer(pointer));
        let is_true = |pointer: &str| has(pointer) == Some(&Value::Bool(true));
        Self {
            logging: has("/logging").is_some_and(Value::is_object),
            subscriptions: is_true("/resources/subscribe"),
            list_changes: is_true("/tools/listChanged"),
            prompt_changes: is_true("/prompts/listChanged"),
            resource_changes: is_true("/resources/listChanged"),
            filtering: has("/filtering").is_some_and(Value::is_object),
        }
    }
}

impl Negotiated {
    /// Shortens the data to little more than is shown. The exact cut comes after credentials are
    /// redacted, because a cut could leave half of a credential.
    pub(crate) fn reduced(mut self, instructions_bytes_max: usize) -> Self {
        const INFO_BYTES_MAX: usize = 4 * 1024;
        if let Some(text) = &mut self.instructions {
            truncate(text, instructions_bytes_max);
        }
        if let Some(info) = &mut self.server_info {
            // Icons are removed, because they are images as text.
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

/// The reason why a handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// No link could be created.
    Connect(ConnectError),
    /// The server answered with an error.
    Error(RpcError),
    Unreadable(String),
    Version(String),
    Link(LinkError),
}

impl HandshakeError {
    fn is_silence(&self) -> bool {
        matches!(
            self,
            Self::Link(LinkError::Lost {
                cause: LostCause::TimedOut,
                ..
            })
        )
    }

    /// Whether the server or the link ended.
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

    /// Whether the server refused a version that it also lists as supported. The request should
    /// then be repeated.
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

    /// Whether every other handshake would fail too.
    fn is_final(&self) -> bool {
        match self {
            Self::Connect(_) => true,
            Self::Link(LinkError::Status { status, .. }) => matches!(status, 401 | 403 | 407),
            Self::Link(LinkError::LoginRequired { .. } | LinkError::LoginUnusable { .. }) => true,
            _ => false,
        }
    }
}

/// Closes the link if the handshake failed, before another link is created.
async fn settle(
    link: Link,
    begun: Result<Negotiated, HandshakeError>,
) -> Result<(Link, Negotiated), HandshakeError> {
    match begun {
        Ok(negotiated) => Ok((link, negotiated)),
        Err(refusal) => {
            link.close().await;
            Err(refusal)
        }
    }
}

/// The inputs of a handshake.
pub(crate) struct Handshake<'a> {
    pub(crate) connect: &'a Connect,
    pub(crate) timeouts: &'a Timeouts,
    /// The client capabilities to send to a server of the older era, once per connection.
    pub(crate) abilities: ClientCapabilities,
}

impl Handshake<'_> {
    /// Connects and performs the handshake.
    pub(crate) async fn negotiate(
        &self,
        choice: EraChoice,
        remembered: Option<Era>,
    ) -> Result<(Link, Negotiated), HandshakeError> {
        let link = (self.connect)()?;
        match (choice, remembered) {
            (EraChoice::Pinned(era), _) => {
                let begun = self.begin(&link, era).await;
                settle(link, begun).await
            }
            (EraChoice::Auto, Some(Era::Legacy)) => self.as_remembered(link).await,
            // Detection begins with the probe of the newer era, so a remembered newer era changes
            // nothing.
            (EraChoice::Auto, Some(Era::Modern) | None) => self.probe(link).await,
        }
    }

    async fn begin(&self, link: &Link, era: Era) -> Result<Negotiated, HandshakeError> {
        match era {
            Era::Modern => discover(link, self.timeouts.connect).await,
            Era::Legacy => self.initialize(link, self.timeouts.connect).await,
        }
    }

    /// Sends `initialize` at once. A server that does not answer may be slow, so it is probed on
    /// the same link in the remaining time.
    async fn as_remembered(&self, link: Link) -> Result<(Link, Negotiated), HandshakeError> {
        const SHARE_OF_CONNECT: u32 = 2;
        let within = self.timeouts.connect / SHARE_OF_CONNECT;
        match self.initialize(&link, within).await {
            Ok(negotiated) => Ok((link, negotiated)),
            Err(refusal) if refusal.is_final() => settle(link, Err(refusal)).await,
            Err(refusal) if refusal.is_silence() => self.probe(link).await,
            Err(_) => {
                link.close().await;
                self.probe((self.connect)()?).await
            }
        }
    }

    async fn probe(&self, link: Link) -> Result<(Link, Negotiated), HandshakeError> {
        let refusal = match discover(&link, self.timeouts.probe).await {
            Ok(negotiated) => return Ok((link, negotiated)),
            Err(refusal) if refusal.is_final() => return settle(link, Err(refusal)).await,
            Err(refusal) => refusal,
        };
        let within = self.timeouts.connect;
        // Some servers of the older era end if the first message is not `initialize`. Some of them
        // answer before they end.
        let mut link = link;
        let ended = LinkError::disconnected("the server ended");
        let mut initialized = Err(HandshakeError::Link(ended));
        if !link.is_closed() {
            initialized = self.initialize(&link, within).await;
        }
        if matches!(&initialized, Err(refusal) if refusal.is_end()) {
            link.close().await;
            link = (self.connect)()?;
            initialized = self.initialize(&link, within).await;
        }
        // The server was only slow to start and supports only the newer era.
        if refusal.is_silence() && matches!(initialized, Err(HandshakeError::Error(_))) {
            initialized = discover(&link, within).await;
        }
        settle(link, initialized).await
    }

    async fn initialize(
        &self,
        link: &Link,
        within: Duration,
    ) -> Result<Negotiated, HandshakeError> {
        initialize(link, initialize_params(self.abilities), within).await
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
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

async fn discover(link: &Link, within: Duration) -> Result<Negotiated, HandshakeError> {
    match discover_once(link, within).await {
        Err(refusal) if refusal.wants_repetition() => discover_once(link, within).await,
        discovered => discovered,
    }
}

async fn discover_once(link: &Link, within: Duration) -> Result<Negotiated, HandshakeError> {
    const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    if let Link::Http(link) = link {
        link.speak(Era::Modern, Some(MODERN_VERSION));
    }
    let meta = modern_meta(ClientCapabilities::default());
    let params = format!(r#"{{"_meta":{{{meta}}}}}"#);
    let discovered: DiscoverResult = ask(link, "server/discover", params, within).await?;
    if !discovered
        .supported_versions
        .iter()
        .any(|version| version == MODERN_VERSION)
    {
        return Err(HandshakeError::Version(
            discovered.supported_versions.join(", "),
        ));
    }
    let info = discovered
        .meta
        .and_then(|mut meta| meta.remove(SERVER_INFO))
        .or(discovered.server_info);
    Ok(Negotiated {
        era: Era::Modern,
        version: MODERN_VERSION.to_owned(),
        server_info: info.and_then(into_object),
        instructions: discovered.instructions.and_then(into_text),
        has: ServerCapabilities::from_capabilities(discovered.capabilities.as_ref()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    capabilities: Option<Value>,
    #[serde(default)]
    server_info: Option<Value>,
    #[serde(default)]
    instructions: Option<Value>,
}

async fn initialize(
    link: &Link,
    params: String,
    within: Duration,
) -> Result<Negotiated, HandshakeError> {
    if let Link::Http(link) = link {
        link.speak(Era::Legacy, None);
    }
    let initialized: InitializeResult = ask(link, "initialize", params, within).await?;
    let version = initialized.protocol_version;
    if !LEGACY_VERSIONS.contains(&version.as_str()) {
        return Err(HandshakeError::Version(version));
    }
    if let Link::Http(link) = link {
        link.speak(Era::Legacy, Some(&version));
    }
    link.notify("notifications/initialized", "{}")
        .await
        .map_err(HandshakeError::Link)?;
    Ok(Negotiated {
        era: Era::Legacy,
        version,
        server_info: initialized.server_info.and_then(into_object),
        instructions: initialized.instructions.and_then(into_text),
        has: ServerCapabilities::from_capabilities(initialized.capabilities.as_ref()),
    })
}

async fn ask<T: serde::de::DeserializeOwned>(
    link: &Link,
    method: &'static str,
    params: String,
    within: Duration,
) -> Result<T, HandshakeError> {
    let outgoing = OutgoingRequest {
        method,
        params,
        ..OutgoingRequest::default()
    };
    match link
        .request(&outgoing, &Deadline::new(within))
        .await
        .map_err(HandshakeError::Link)?
    {
        Answer::Result(result) if result.get().len() > ANSWER_BYTES_MAX => {
            let error = LinkError::too_large(ANSWER_BYTES_MAX);
            Err(HandshakeError::Link(error))
        }
        Answer::Result(result) => raw::read_object(result.get()).map_err(|error| {
            HandshakeError::Unreadable(format!("invalid answer to `{method}`: {error}"))
        }),
        Answer::Error(error) => Err(HandshakeError::Error(error)),
        Answer::Unreadable(why) => Err(HandshakeError::Unreadable(why)),
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

impl From<ConnectError> for HandshakeError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl HandshakeError {
    /// Converts the error for display. The caller masks and shortens its texts. `place` is the
    /// server's address, if it has one.
    pub(crate) fn explained(
        self,
        place: Option<&str>,
        within: Duration,
        last_words: Option<String>,
    ) -> ConnectError {
        match (self, place) {
            (Self::Connect(error), _) => error,
            (Self::Error(error), _) => ConnectError::NotMcp {
                why: format!(
                    "it answered the handshake with error {}: {}",
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
            (Self::Link(LinkError::LoginUnusable { why, next }), _) => {
                ConnectError::LoginUnusable { why, next }
            }
            (Self::Link(LinkError::LoginRequired { why, next, .. }), place) => {
                ConnectError::LoginRequired {
                    url: place.unwrap_or_default().to_owned(),
                    why,
                    next,
                }
            }
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
