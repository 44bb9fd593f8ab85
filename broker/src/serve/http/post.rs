//! One POST: one message of a host, and the answer to it, as one JSON object or,
//! when something is told before the end, as a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::coded::{decoded, text};
use super::oauth::Caller;
use super::{Hall, mirrored, sessions};
use crate::serve::handing;
use crate::serve::peer::{OUTBOX_MESSAGES, Peer};
use crate::serve::request::Request;
use crate::serve::rpc::{self, Refusal, SESSION_KEY};
use crate::serve::session::HostSession;
use crate::serve::stdio;
use crate::upstream::Era;
use crate::upstream::era::LEGACY_VERSIONS;
use crate::upstream::jsonrpc::{self, Incoming};

pub(super) const SESSION_HEADER: &str = "mcp-session-id";
pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
const HEADER_MISMATCH: i64 = -32_020;

/// A body for a refusal that answers no particular request.
pub(super) fn error_body(why: &str) -> Vec<u8> {
    Refusal::new(rpc::INVALID_REQUEST, why).message_to_nobody()
}

pub(super) async fn answer(
    hall: Arc<Hall>,
    caller: Caller,
    headers: &HeaderMap,
    body: &Bytes,
) -> Response {
    if !is_json(headers) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    match rpc::parse(body) {
        Incoming::Request { id, method, params } => {
            let read = rpc::params(params).and_then(|it| {
                same_version(headers, &it)?;
                Ok((rpc::era_of(&it)?, it))
            });
            let answered = match read {
                Ok((era, params)) => {
                    let asked = Asked {
                        id: id.to_owned(),
                        caller,
                        method: method.into_owned(),
                        era,
                        params,
                    };
                    asked.answer(hall, headers).await
                }
                Err(refusal) => Err(refusal),
            };
            answered.unwrap_or_else(|refusal| refused(id, &refusal))
        }
        Incoming::Notification { method, params } => {
            with_session(&hall, &caller, headers, |session| match &*method {
                "notifications/cancelled" => stdio::cancelled(session, params),
                "notifications/initialized" => session.listens(),
                _ => {}
            })
        }
        Incoming::Answer { id, answer } => with_session(&hall, &caller, headers, |session| {
            session.open.answered(id, answer)
        }),
        Incoming::Stray => {
            let refusal = stdio::stray(body).unwrap_or_else(|| {
                Refusal::new(rpc::INVALID_REQUEST, "not a valid JSON-RPC message")
            });
            json_response(StatusCode::BAD_REQUEST, refusal.message_to_nobody())
        }
    }
}

/// What a message says of its revision is what its header says, whether or not the
/// revision is spoken here.
fn same_version(headers: &HeaderMap, params: &Value) -> Result<(), Refusal> {
    let meta = params.get("_meta");
    let in_body = meta
        .and_then(|it| it.get(rpc::VERSION_KEY))
        .and_then(Value::as_str);
    match in_body {
        Some(_) if text(headers, VERSION_HEADER) != in_body => Err(mismatch(VERSION_HEADER)),
        _ => Ok(()),
    }
}

pub(super) fn mismatch(header: &str) -> Refusal {
    let message = format!("header `{header}` does not match the message");
    Refusal::new(HEADER_MISMATCH, message)
}

/// Messages that are not answered belong to a session, which the newer era has not.
fn with_session(
    hall: &Hall,
    caller: &Caller,
    headers: &HeaderMap,
    act: impl FnOnce(&HostSession),
) -> Response {
    let is_modern = text(headers, VERSION_HEADER).is_some_and(|it| !LEGACY_VERSIONS.contains(&it));
    match text(headers, SESSION_HEADER) {
        _ if is_modern => StatusCode::ACCEPTED.into_response(),
        None => json_response(
            StatusCode::BAD_REQUEST,
            error_body("the session id is missing"),
        ),
        Some(id) => match hall
            .sessions
            .find(caller, (Era::Legacy, id), hall.desk.now_ms())
        {
            Some(session) => {
                act(&session);
                StatusCode::ACCEPTED.into_response()
            }
            None => json_response(StatusCode::NOT_FOUND, error_body("the session is over")),
        },
    }
}

struct Asked {
    id: Box<RawValue>,
    caller: Caller,
    method: String,
    era: Era,
    params: Value,
}

impl Asked {
    async fn answer(self, hall: Arc<Hall>, headers: &HeaderMap) -> Result<Response, Refusal> {
        self.check_headers(headers)?;
        self.check_arguments(&hall, headers).await?;
        let now_ms = hall.desk.now_ms();
        let mut is_known = true;
        let session = match self.era {
            Era::Legacy if self.method == "initialize" => {
                let session = fresh(&hall)?;
                if !hall
                    .sessions
                    .enter((&self.caller, self.era), &session, now_ms)
                {
                    return Ok(too_many(&self.id));
                }
                session
            }
            Era::Legacy => {
                let Some(id) = text(headers, SESSION_HEADER) else {
                    let refusal = Refusal::new(rpc::INVALID_REQUEST, "the session id is missing");
                    return Ok(json_response(
                        StatusCode::BAD_REQUEST,
                        refusal.message(&self.id),
                    ));
                };
                match hall.sessions.find(&self.caller, (self.era, id), now_ms) {
                    Some(session) => session,
                    None => {
                        let refusal = Refusal::new(rpc::INVALID_REQUEST, "the session is over");
                        return Ok(json_response(
                            StatusCode::NOT_FOUND,
                            refusal.message(&self.id),
                        ));
                    }
                }
            }
            Era::Modern => match self.session_of_handle(&hall) {
                Some(session) => session,
                None => {
                    is_known = false;
                    fresh(&hall)?
                }
            },
        };
        let whose = match self.caller.name() {
            Some(name) => format!("caller {name}").into(),
            None if is_known => session.id.as_str().into(),
            // Whoever gives no session has its part together with all that give none.
            None => Arc::default(),
        };
        // Two requests of the newer era may carry the same id: each stands alone.
        let key = match self.era {
            Era::Legacy => self.id.get().to_owned(),
            Era::Modern => super::super::seal::token().map_err(no_chance)?,
        };
        self.work(hall, (session, whose), &key).await
    }

    /// In the newer era what stands in the headers is what stands in the message.
    fn check_headers(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let version = text(headers, VERSION_HEADER);
        if self.era == Era::Legacy {
            return match version {
                Some(version) if !LEGACY_VERSIONS.contains(&version) => {
                    if version == crate::upstream::era::MODERN_VERSION {
                        let message = format!("`_meta` lacks `{}`", rpc::VERSION_KEY);
                        return Err(Refusal::invalid(message));
                    }
                    Err(rpc::unsupported(version))
                }
                _ => Ok(()),
            };
        }
        let name = match self.method.as_str() {
            "tools/call" | "prompts/get" => self.params.get("name"),
            "resources/read" => self.params.get("uri"),
            _ => None,
        };
        let name = name.and_then(Value::as_str);
        for (header, expected) in [
            (METHOD_HEADER, Some(self.method.as_str())),
            (NAME_HEADER, name),
        ] {
            if expected.is_some() && decoded(headers, header).as_deref() != expected {
                return Err(mismatch(header));
            }
        }
        Ok(())
    }

    /// The same of arguments that are to be repeated, where a list says which.
    async fn check_arguments(&self, hall: &Hall, headers: &HeaderMap) -> Result<(), Refusal> {
        let is_call = self.era == Era::Modern && self.method == "tools/call";
        if is_call && hall.desk.settings().lists_whole() {
            let shelf = hall.desk.shelf().await?;
            return mirrored::check(&shelf, &self.params, headers);
        }
        Ok(())
    }

    fn session_of_handle(&self, hall: &Hall) -> Option<Arc<HostSession>> {
        let meta = self.params.get("_meta").and_then(|it| it.get(SESSION_KEY));
        let argument = self
            .params
            .get("arguments")
            .and_then(|it| it.get("session"));
        let state = self.params.get("requestState").and_then(Value::as_str);
        let handle = [meta, argument]
            .into_iter()
            .flatten()
            .find_map(Value::as_str);
        let id = match (handle, state) {
            (Some(handle), _) => sessions::opened(hall.desk.seal(), handle),
            (None, Some(state)) => handing::session_of(hall.desk.seal(), &self.params, state),
            (None, None) => None,
        };
        let (now_ms, era) = (hall.desk.now_ms(), self.era);
        hall.sessions.find(&self.caller, (era, &id?), now_ms)
    }

    async fn work(
        self,
        hall: Arc<Hall>,
        (session, whose): (Arc<HostSession>, Arc<str>),
        key: &str,
    ) -> Result<Response, Refusal> {
        let begun = session
            .begin(key)
            .map_err(|why| Refusal::new(rpc::INVALID_REQUEST, why))?;
        let (outbox, told) = mpsc::channel(OUTBOX_MESSAGES);
        let (finish, finished) = oneshot::channel();
        let gone = (self.era == Era::Modern).then(|| WhenGone {
            session: Arc::clone(&session),
            key: key.to_owned(),
        });
        let session_header =
            (self.era == Era::Legacy && self.method == "initialize").then(|| session.id.clone());
        let handle =
            (self.era == Era::Modern).then(|| sessions::handle(hall.desk.seal(), &session));
        let request = Request {
            session,
            caller: whose,
            handle,
            peer: Peer::new(outbox),
            id: self.id.clone(),
            era: self.era,
            params: self.params,
            cancel: begun.cancel.clone(),
        };
        let (id, method, caller) = (self.id, self.method, self.caller);
        tokio::spawn(async move {
            let answered = hall.desk.answer(&method, &request).await;
            let handle = entered(&hall, (&caller, &request), &method);
            let answered = answered.map(|result| with_handle(result, handle));
            let status = |refusal| status_of(request.era, refusal);
            let status = answered.as_ref().err().map_or(StatusCode::OK, status);
            let message = match answered {
                Ok(result) => jsonrpc::result(&id, &result.to_string()),
                Err(refusal) => refusal.message(&id),
            };
            let wanted = !begun.is_cancelled();
            drop(begun);
            let _ = finish.send(wanted.then_some((status, message)));
        });
        let mut response = Told::new(told, finished, gone).into_response().await;
        if let Some(Ok(id)) = session_header.map(|id| id.parse()) {
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        Ok(response)
    }
}

/// In the newer era a session is entered when there is something to find again. Its handle,
/// when it was.
fn entered(hall: &Hall, (caller, request): (&Caller, &Request), method: &str) -> Option<String> {
    let session = &request.session;
    let changes = matches!(method, "tools/call" | "resources/read" | "prompts/get");
    // An error may have told something too.
    let is_found = changes || session.has_heard();
    let handle = request.handle.as_ref().filter(|_| is_found)?;
    if !session.is_worth_finding() {
        return None;
    }
    let has_room = hall
        .sessions
        .enter((caller, request.era), session, hall.desk.now_ms());
    if !has_room {
        hall.sessions.remember(session);
    }
    has_room.then(|| handle.clone())
}

fn with_handle(mut result: Value, handle: Option<String>) -> Value {
    if let (Some(handle), Some(meta)) = (handle, result.get_mut("_meta")) {
        rpc::put(meta, SESSION_KEY, handle);
    }
    result
}

/// The answer; none to a request that was cancelled.
type Answered = Option<(StatusCode, Vec<u8>)>;

/// What is told before the end, and the end.
struct Told {
    told: mpsc::Receiver<Vec<u8>>,
    finished: Option<oneshot::Receiver<Answered>>,
    first: Option<Vec<u8>>,
    /// Whoever hangs up does not want the answer.
    _gone: Option<WhenGone>,
}

struct WhenGone {
    session: Arc<HostSession>,
    key: String,
}

impl Drop for WhenGone {
    fn drop(&mut self) {
        self.session.cancel(&self.key, "the host hung up");
    }
}

impl Told {
    fn new(
        told: mpsc::Receiver<Vec<u8>>,
        finished: oneshot::Receiver<Answered>,
        gone: Option<WhenGone>,
    ) -> Self {
        Self {
            told,
            finished: Some(finished),
            first: None,
            _gone: gone,
        }
    }

    /// One object when nothing is told before it; a stream that only ends when there is no answer.
    async fn into_response(mut self) -> Response {
        let Some(finished) = self.finished.as_mut() else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        tokio::select! {
            biased;
            Some(first) = self.told.recv() => self.first = Some(first),
            ended = finished => match ended {
                Ok(Some((status, message))) => return json_response(status, message),
                Ok(None) => self.finished = None,
                Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            },
        }
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        (headers, Body::from_stream(self)).into_response()
    }
}

impl Stream for Told {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(event(&first))));
        }
        if let Poll::Ready(Some(message)) = self.told.poll_recv(cx) {
            return Poll::Ready(Some(Ok(event(&message))));
        }
        let Some(finished) = self.finished.as_mut() else {
            return Poll::Ready(None);
        };
        match Pin::new(finished).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(ended) => {
                // What was told last may have arrived together with the end.
                if let Ok(message) = self.told.try_recv() {
                    let (again, finished) = oneshot::channel();
                    if let Ok(ended) = ended {
                        let _ = again.send(ended);
                    }
                    self.finished = Some(finished);
                    return Poll::Ready(Some(Ok(event(&message))));
                }
                self.finished = None;
                let answer = ended.ok().flatten();
                Poll::Ready(answer.map(|(_, message)| Ok(event(&message))))
            }
        }
    }
}

fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

fn fresh(hall: &Hall) -> Result<Arc<HostSession>, Refusal> {
    hall.sessions.fresh(hall.desk.now_ms()).map_err(no_chance)
}

fn no_chance(error: crate::serve::seal::NoKey) -> Refusal {
    Refusal::new(rpc::INTERNAL, error.to_string())
}

fn too_many(id: &RawValue) -> Response {
    let refusal = Refusal {
        data: Some(json!({"retry": true})),
        ..Refusal::new(rpc::INTERNAL, "there are too many sessions")
    };
    json_response(StatusCode::SERVICE_UNAVAILABLE, refusal.message(id))
}

/// A body that is longer than any message may be; what is left of it is not read.
pub(super) fn too_long(bytes_max: usize) -> Response {
    let close = [(header::CONNECTION, "close")];
    let message = Refusal::too_long(bytes_max).message_to_nobody();
    let refused = json_response(StatusCode::PAYLOAD_TOO_LARGE, message);
    (close, refused).into_response()
}

/// A body that does not come to its end; what may follow is not read.
pub(super) fn too_slow() -> Response {
    let close = [(header::CONNECTION, "close")];
    let refused = json_response(
        StatusCode::REQUEST_TIMEOUT,
        error_body("the message did not come to its end in time"),
    );
    (close, refused).into_response()
}

/// A message that was not even worked on.
fn refused(id: &RawValue, refusal: &Refusal) -> Response {
    json_response(StatusCode::BAD_REQUEST, refusal.message(id))
}

/// The newer era wants an unknown method seen in the status; in the older one that
/// status would mean that the session is over.
fn status_of(era: Era, refusal: &Refusal) -> StatusCode {
    match (era, refusal.code) {
        (Era::Modern, jsonrpc::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
