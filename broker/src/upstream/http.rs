//! Streamable HTTP: each message is a POST, and the answer is JSON or a stream of events.
//!
//! Redirects are not followed, because the new address would receive the configured headers. No
//! proxy is taken from the environment.

mod build;
mod events;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::login::Challenge;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::diagnostics::{Diagnostics, lock};
use super::era::Era;
use super::error::ConnectError;
use super::jsonrpc::{self, Answer, IncomingMessage};
use super::outgoing::{LinkError, OutgoingRequest};
use super::server_request::{self, CallOrigin, OpenServerRequests, RawRequest, RequestError};
use super::spec::{ServerSpec, Transport};
use crate::deadline::Deadline;
use crate::http_client::innermost_cause;
use crate::login::{LoginFailure, ServerLogin};
use crate::secret::Secret;
use crate::server_url::ServerUrl;
pub(crate) use build::client;
use build::{header_map, method_headers};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Maximum time to send a message without waiting for an answer.
const ASIDE: Duration = Duration::from_secs(5);
const ASIDE_MAX: usize = 32;
/// Pauses before the attempts to deliver airlock's answer to a request of the server.
const DELIVERED_AGAIN_AFTER: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(10),
];

/// A connection to a server over HTTP. Cheap to clone; all clones share one connection.
#[derive(Debug, Clone)]
pub(crate) struct HttpLink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    url: ServerUrl,
    headers: HeaderMap,
    /// The login, if the configuration sets no `Authorization` header.
    login: Option<ServerLogin>,
    /// The token of the last request. Messages that are sent without waiting use it too.
    token: Mutex<Option<Secret>>,
    spoken: Mutex<NegotiatedHeaders>,
    closed: AtomicBool,
    next_id: AtomicU64,
    diagnostics: Arc<Diagnostics>,
    message_bytes_max: usize,
    /// One permit per message that is sent without waiting for an answer.
    aside: Arc<Semaphore>,
    /// The requests of the server that airlock has not answered.
    under_way: Arc<OpenServerRequests>,
    runtime: Handle,
}

/// The result of the handshake, which every message repeats in its headers.
#[derive(Debug, Clone, Default)]
struct NegotiatedHeaders {
    era: Option<Era>,
    version: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

impl HttpLink {
    pub(crate) fn new(
        url: &ServerUrl,
        headers: &[(String, Secret)],
        login: Option<ServerLogin>,
        connect_timeout: Duration,
        message_bytes_max: usize,
        diagnostics: Arc<Diagnostics>,
    ) -> Result<Self, ConnectError> {
        Ok(Self(Arc::new(Inner {
            client: client(url, connect_timeout)?,
            url: url.clone(),
            headers: header_map(headers)?,
            login,
            token: Mutex::default(),
            spoken: Mutex::default(),
            closed: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
            diagnostics,
            message_bytes_max,
            aside: Arc::new(Semaphore::new(ASIDE_MAX)),
            under_way: Arc::default(),
            runtime: Handle::current(),
        })))
    }

    /// Sets the era and version for the headers of all later messages. In the older era, there is
    /// no version before the handshake is complete.
    pub(crate) fn speak(&self, era: Era, version: Option<&str>) {
        let mut spoken = lock(&self.0.spoken);
        spoken.era = Some(era);
        spoken.version = version.and_then(|version| HeaderValue::from_str(version).ok());
    }

    pub(crate) async fn request(
        &self,
        outgoing: &OutgoingRequest,
        deadline: &Deadline,
    ) -> Result<Answer, LinkError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let mut in_flight = InFlight {
            link: self,
            id,
            cancellable: outgoing.cancellable,
            over: false,
        };
        // Spawned on the runtime, so that reading does not use the time of the run's thread.
        let (link, outgoing) = (self.clone(), outgoing.clone());
        let exchange = async move { link.exchange(id, &outgoing).await };
        let mut exchange = AbortOnDrop(self.0.runtime.spawn(exchange));
        let answer = deadline.limit(&mut exchange.0).await;
        in_flight.over = answer.is_ok();
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(LinkError::disconnected("the connection was closed")),
            Err(_) => Err(LinkError::timed_out(deadline.within())),
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: &str) -> Result<(), LinkError> {
        let body = jsonrpc::notification(method, params);
        let response = self.post(body).headers(method_headers(method, None)).send();
        match tokio::time::timeout(ASIDE, response).await {
            Ok(Ok(response)) => self.accepted(&response),
            Ok(Err(error)) => Err(send_error(&error)),
            Err(_) => Err(LinkError::timed_out(ASIDE)),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&self) {
        const ASIDE_FLUSHES: Duration = Duration::from_secs(1);
        self.0.closed.store(true, Ordering::Relaxed);
        // Cancellations in progress should arrive before the session ends.
        let flushed = self.0.aside.acquire_many(ASIDE_MAX as u32);
        let _ = tokio::time::timeout(ASIDE_FLUSHES, flushed).await;
        let session = lock(&self.0.spoken).session.is_some();
        if session {
            let request = self.0.client.delete(self.0.url.url().clone());
            // A server may refuse to end a session; airlock ignores that.
            let _ = tokio::time::timeout(ASIDE, self.with_headers(request).send()).await;
        }
    }

    async fn exchange(&self, id: u64, outgoing: &OutgoingRequest) -> Result<Answer, LinkError> {
        let body = jsonrpc::request(id, outgoing.method, &outgoing.params);
        let mut headers = method_headers(outgoing.method, outgoing.name.as_deref());
        for (name, value) in &outgoing.headers {
            let header = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            );
            let (Ok(name), Ok(value)) = header else {
                return Err(LinkError::NotSent {
                    why: format!("invalid name or value of the header `{name}`"),
                });
            };
            headers.insert(name, value);
        }
        let response = self.send_logged_in(body, headers).await?;
        if !response.status().is_success() {
            return self.refused(response, id).await;
        }
        if let Some(session) = response
            .headers()
            .get(SESSION)
            .filter(|_| outgoing.method == "initialize")
        {
            lock(&self.0.spoken).session = Some(session.clone());
        }
        self.read_answer(response, id, outgoing.owner.origin())
            .await
    }

    /// Sends a message with the token of the login. A status of 401 proves that nothing was done, so
    /// the same bytes are sent once more with a renewed token.
    async fn send_logged_in(
        &self,
        body: Vec<u8>,
        headers: HeaderMap,
    ) -> Result<Response, LinkError> {
        let send = |body: Vec<u8>, headers: HeaderMap| {
            let sent = self.post(body).headers(headers).send();
            async move { sent.await.map_err(|error| send_error(&error)) }
        };
        let Some(login) = &self.0.login else {
            return send(body, headers).await;
        };
        let unusable = |error: LoginFailure| match error.needs_login() {
            true => LinkError::LoginRequired {
                why: error.to_string(),
                next: login.command(&Challenge::default()),
                challenge: Box::default(),
            },
            false => LinkError::LoginUnusable {
                why: error.to_string(),
                next: error.next(),
            },
        };
        let used = login.token().await.map_err(unusable)?;
        *lock(&self.0.token) = used.clone();
        let mut response = send(body.clone(), headers.clone()).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(used) = used
            && let Some(renewed) = login.token_after_refusal(&used).await.map_err(unusable)?
        {
            *lock(&self.0.token) = Some(renewed);
            response = send(body, headers).await?;
        }
        let challenge = challenge(&response);
        let why = match response.status() {
            StatusCode::UNAUTHORIZED => "the server requires a login",
            StatusCode::FORBIDDEN if challenge.is_insufficient_scope() => {
                "the login lacks a scope that the server requires"
            }
            _ => return Ok(response),
        };
        Err(LinkError::LoginRequired {
            why: why.to_owned(),
            next: login.command(&challenge),
            challenge: Box::new(challenge),
        })
    }

    fn post(&self, body: Vec<u8>) -> RequestBuilder {
        let request = self
            .0
            .client
            .post(self.0.url.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        self.with_headers(request)
    }

    fn with_headers(&self, request: RequestBuilder) -> RequestBuilder {
        let spoken = lock(&self.0.spoken).clone();
        let mut headers = self.0.headers.clone();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        let token = lock(&self.0.token).clone();
        let bearer = token.and_then(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        for (name, value) in [
            (VERSION, spoken.version),
            (SESSION, spoken.session),
            (AUTHORIZATION, bearer),
        ] {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        request.headers(headers)
    }

    fn has_session(&self) -> bool {
        lock(&self.0.spoken).session.is_some()
    }

    fn accepted(&self, response: &Response) -> Result<(), LinkError> {
        match response.status() {
            StatusCode::NOT_FOUND if self.has_session() => Err(LinkError::SessionGone),
            status if status.is_success() => Ok(()),
            status => Err(self.status_error(status, "")),
        }
    }

    fn status_error(&self, status: StatusCode, detail: &str) -> LinkError {
        let colon = if detail.is_empty() { "" } else { ": " };
        LinkError::Status {
            status: status.as_u16(),
            why: format!(
                "{} answered with HTTP status {status}{colon}{detail}",
                self.0.url
            ),
        }
    }

    async fn refused(&self, response: Response, id: u64) -> Result<Answer, LinkError> {
        const DETAIL_BYTES: usize = 64 * 1024;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.has_session() {
            return Err(LinkError::SessionGone);
        }
        if status.is_redirection() {
            return Err(self.status_error(
                status,
                "airlock does not follow redirects; configure the target address",
            ));
        }
        // A gateway that lost its server may answer with a body that looks like the server's.
        if matches!(status.as_u16(), 502..=504) {
            return Err(self.status_error(status, ""));
        }
        let body = read_body(response, DETAIL_BYTES).await.unwrap_or_default();
        match jsonrpc::parse(&body) {
            IncomingMessage::Answer {
                id: answered,
                answer,
            } if answered == id => {
                if self.has_session() && is_session_error(status, &answer) {
                    // The next call begins a new session; this call is not repeated.
                    self.0.closed.store(true, Ordering::Relaxed);
                }
                Ok(answer)
            }
            IncomingMessage::Answer { .. } => Err(self.status_error(status, "")),
            // An error without an id can only belong to this request, unless the status shows that
            // no MCP server wrote the error.
            _ => match jsonrpc::parse_bare_error(&body) {
                Some(error) if may_be_from_server(status) => Ok(Answer::Error(error)),
                _ => Err(self.status_error(status, "")),
            },
        }
    }

    fn era(&self) -> Option<Era> {
        lock(&self.0.spoken).era
    }

    async fn read_answer(
        &self,
        response: Response,
        id: u64,
        origin: Option<&CallOrigin>,
    ) -> Result<Answer, LinkError> {
        if events::is_events(&response) {
            return self.read_events(response, id, origin).await;
        }
        let body = read_body(response, self.0.message_bytes_max).await?;
        match self.handle_message(&body, id, origin) {
            Some(answer) => Ok(answer),
            None => Err(LinkError::unreadable(
                "the HTTP body is not the answer to this request",
            )),
        }
    }

    /// Returns the answer if this message answers `id`. Handles all other messages.
    fn handle_message(
        &self,
        message: &[u8],
        id: u64,
        origin: Option<&CallOrigin>,
    ) -> Option<Answer> {
        match jsonrpc::parse(message) {
            IncomingMessage::Answer {
                id: answered,
                answer,
            } if answered == id => return Some(answer),
            IncomingMessage::Answer { .. } => self.0.diagnostics.unmatched(),
            IncomingMessage::Notification { method, params } => {
                let Inner {
                    diagnostics,
                    under_way,
                    ..
                } = &*self.0;
                server_request::notified(&method, params, diagnostics, under_way, |_| {
                    origin.cloned()
                });
            }
            IncomingMessage::Request { id, method, params } if server_request::is_one(&method) => {
                // The server's request arrives on the stream of the call that it belongs to.
                let origin = origin.cloned().ok_or_else(RequestError::nobody);
                let link = self.clone();
                let tell = |body| async move { link.deliver(body).await };
                let asked = RawRequest {
                    id,
                    method: &method,
                    params,
                };
                self.0.under_way.begin(asked, origin, tell);
            }
            IncomingMessage::Request { id, method, .. } => {
                self.post_aside(jsonrpc::answer_request(id, &method))
            }
            IncomingMessage::Stray => {
                if let Some(error) = jsonrpc::parse_bare_error(message) {
                    return Some(Answer::Error(error));
                }
                self.0.diagnostics.stray(message);
            }
        }
        None
    }

    /// Delivers an answer to a server's request, and retries until the server accepts it. A server
    /// ignores a second copy of an answer.
    async fn deliver(&self, body: Vec<u8>) {
        for pause in DELIVERED_AGAIN_AFTER {
            tokio::time::sleep(pause).await;
            let sent = tokio::time::timeout(ASIDE, self.post(body.clone()).send()).await;
            let may_pass = match sent {
                Ok(Ok(response)) if response.status().is_success() => return,
                Ok(Ok(response)) => {
                    let status = response.status();
                    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
                }
                Ok(Err(_)) | Err(_) => true,
            };
            if !may_pass {
                return;
            }
        }
    }

    /// Sends a message without waiting for the answer. The number of such messages in progress is
    /// limited, so a server that floods airlock with requests gets no answers.
    fn post_aside(&self, body: Vec<u8>) {
        let Ok(place) = self.0.aside.clone().try_acquire_owned() else {
            return;
        };
        let link = self.clone();
        self.0.runtime.spawn(async move {
            let _ = tokio::time::timeout(ASIDE, link.post(body).send()).await;
            drop(place);
        });
    }
}

/// A task that is aborted on drop.
struct AbortOnDrop(JoinHandle<Result<Answer, LinkError>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request that is being awaited, cancelled on drop. In the newer era, closing its stream cancels
/// it; in the older era, a notification does.
struct InFlight<'a> {
    link: &'a HttpLink,
    id: u64,
    cancellable: bool,
    over: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.over && self.cancellable && self.link.era() == Some(Era::Legacy) {
            let params = format!(
                r#"{{"requestId":{},"reason":"the caller no longer waits for the answer"}}"#,
                self.id
            );
            self.link
                .post_aside(jsonrpc::notification("notifications/cancelled", &params));
        }
    }
}

/// Whether this error means that the session has ended. Some servers do not answer 404 for a
/// missing session, as the specification requires.
fn is_session_error(status: StatusCode, answer: &Answer) -> bool {
    const SERVER_ERROR: i64 = -32_000;
    status == StatusCode::BAD_REQUEST
        && matches!(answer, Answer::Error(error) if error.code == SERVER_ERROR)
}

/// Whether the status suggests that the server itself wrote an error without an id, because it
/// could not parse the request or refused it.
fn may_be_from_server(status: StatusCode) -> bool {
    status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 407 | 408 | 409 | 425 | 499)
}

/// Asks a server without a token, and returns its challenge. The request changes nothing at the
/// server.
pub(crate) async fn challenge_of(spec: &ServerSpec) -> Result<Challenge, ConnectError> {
    let Transport::Http { url, headers } = &spec.transport else {
        return Ok(Challenge::default());
    };
    let body = jsonrpc::request(1, "server/discover", "{}");
    let sent = client(url, spec.timeouts.connect)?
        .post(url.url().clone())
        .headers(header_map(headers)?)
        .headers(method_headers("server/discover", None))
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .header(VERSION, Era::Modern.version())
        .body(body)
        .send();
    let unreachable = |why: String| ConnectError::Unreachable {
        url: url.to_string(),
        why,
    };
    match tokio::time::timeout(spec.timeouts.probe, sent).await {
        Ok(Ok(response)) => Ok(challenge(&response)),
        Ok(Err(error)) => Err(unreachable(innermost_cause(&error))),
        Err(_) => Err(unreachable("no answer".to_owned())),
    }
}

/// Returns what the server says about the login that it requires.
fn challenge(response: &Response) -> Challenge {
    let values = response.headers().get_all(WWW_AUTHENTICATE);
    Challenge::parse(values.iter().filter_map(|value| value.to_str().ok()))
}

async fn read_body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, LinkError> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| LinkError::disconnected(innermost_cause(&error)))?
    {
        if body.len() + chunk.len() > bytes_max {
            return Err(LinkError::too_large(bytes_max));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn send_error(error: &reqwest::Error) -> LinkError {
    let why = innermost_cause(error);
    if error.is_connect() || error.is_builder() {
        return LinkError::NotSent { why };
    }
    LinkError::disconnected(why)
}
