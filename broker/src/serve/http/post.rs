//! Handles one POST: one message of a host and its answer. The answer is one JSON object, or a
//! stream of events if other messages precede the answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::caller::Caller;
use super::header_value::{SESSION_HEADER, VERSION_HEADER, decoded, text};
use super::response::{error_body, json_response, mismatch};
use super::{HttpState, mirrored};
use crate::serve::method::Method;
use crate::serve::peer::{OUTBOX_MESSAGES, Peer};
use crate::serve::request::Request;
use crate::serve::rpc::{self, RpcErrorResponse};
use crate::serve::seal::{self, SealKeyError};
use crate::serve::session::HostSession;
use crate::serve::{router, sessions, stdio};
use crate::upstream::Era;
use crate::upstream::era::LEGACY_VERSIONS;
use crate::upstream::jsonrpc::{self, IncomingMessage};

const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
pub(super) async fn answer(
    http: Arc<HttpState>,
    caller: Caller,
    headers: &HeaderMap,
    body: &Bytes,
) -> Response {
    if !is_json(headers) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    match rpc::parse(body) {
        IncomingMessage::Request { id, method, params } => {
            let read = rpc::params(params).and_then(|it| {
                same_version(headers, &it)?;
                Ok((rpc::era_of(&it)?, it))
            });
            let answered = match read {
                Ok((era, params)) => {
                    let asked = PostedRequest {
                        id: id.to_owned(),
                        caller,
                        method: Method::parse(&method),
                        era,
                        params,
                    };
                    asked.answer(http, headers).await
                }
                Err(refusal) => Err(refusal),
            };
            answered.unwrap_or_else(|refusal| refused(id, &refusal))
        }
        IncomingMessage::Notification { method, params } => {
            with_session(&http, &caller, headers, |session| match &*method {
                "notifications/cancelled" => stdio::cancelled(session, params),
                "notifications/initialized" => session.listens(),
                _ => {}
            })
            .await
        }
        IncomingMessage::Answer { id, answer } => {
            with_session(&http, &caller, headers, |session| {
                session.open.answered(id, answer)
            })
            .await
        }
        IncomingMessage::Stray => {
            let refusal = stdio::stray(body).unwrap_or_else(|| {
                RpcErrorResponse::new(rpc::INVALID_REQUEST, "not a valid JSON-RPC message")
            });
            json_response(StatusCode::BAD_REQUEST, refusal.message_to_nobody())
        }
    }
}

/// Checks that the header names the same protocol version as the message, whether or not airlock
/// supports that version.
fn same_version(headers: &HeaderMap, params: &Value) -> Result<(), RpcErrorResponse> {
    let meta = params.get("_meta");
    let in_body = meta
        .and_then(|it| it.get(rpc::VERSION_KEY))
        .and_then(Value::as_str);
    match in_body {
        Some(_) if text(headers, VERSION_HEADER) != in_body => Err(mismatch(VERSION_HEADER)),
        _ => Ok(()),
    }
}

/// Handles a message that needs no answer. A header names its session. Messages of the newer era
/// have no such header, so airlock accepts and ignores them.
async fn with_session(
    http: &HttpState,
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
        Some(id) => {
            let owner = caller.owner(&Value::Null);
            match http.sessions.find(&http.context, &owner, id).await {
                Ok(Some(session)) => {
                    act(&session);
                    StatusCode::ACCEPTED.into_response()
                }
                Ok(None) => json_response(StatusCode::NOT_FOUND, error_body("the session is over")),
                Err(refusal) => {
                    let body = error_body(&refusal.message);
                    json_response(StatusCode::INTERNAL_SERVER_ERROR, body)
                }
            }
        }
    }
}

struct PostedRequest {
    id: Box<RawValue>,
    caller: Caller,
    method: Method,
    era: Era,
    params: Value,
}

impl PostedRequest {
    async fn answer(
        self,
        http: Arc<HttpState>,
        headers: &HeaderMap,
    ) -> Result<Response, RpcErrorResponse> {
        self.check_headers(headers)?;
        self.check_arguments(&http, headers).await?;
        let session = match self.session(&http, headers).await {
            Ok(found) => found,
            Err((StatusCode::OK, refusal)) => return Err(refusal),
            Err((status, refusal)) => {
                return Ok(json_response(status, refusal.message(&self.id)));
            }
        };
        let whose = match self.caller.name() {
            Some(name) => format!("caller {name}").into(),
            None => session.id.as_str().into(),
        };
        // Requests of the newer era are independent, so two of them may have the same id.
        let key = match self.era {
            Era::Legacy => self.id.get().to_owned(),
            Era::Modern => seal::token().map_err(no_chance)?,
        };
        self.work(http, session, whose, &key).await
    }

    /// Checks that the headers agree with the message, as the newer era requires.
    fn check_headers(&self, headers: &HeaderMap) -> Result<(), RpcErrorResponse> {
        let version = text(headers, VERSION_HEADER);
        if self.era == Era::Legacy {
            return match version {
                Some(version) if !LEGACY_VERSIONS.contains(&version) => {
                    if version == crate::upstream::era::MODERN_VERSION {
                        let message = format!("`_meta` lacks `{}`", rpc::VERSION_KEY);
                        return Err(RpcErrorResponse::invalid(message));
                    }
                    Err(rpc::unsupported(version))
                }
                _ => Ok(()),
            };
        }
        let name = self.method.name_param().and_then(|it| self.params.get(it));
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

    /// Checks the headers that repeat arguments. Hosts know which headers to send only if lists
    /// contain full schemas.
    async fn check_arguments(
        &self,
        http: &HttpState,
        headers: &HeaderMap,
    ) -> Result<(), RpcErrorResponse> {
        let is_call = self.era == Era::Modern && self.method == Method::CallTool;
        if is_call && http.context.settings().lists_whole() {
            let tool_index = http.context.tool_index().await?;
            return mirrored::check(&tool_index, &self.params, headers);
        }
        Ok(())
    }

    /// Returns the session of the request. An error comes with the HTTP status of its response.
    /// `OK` means the status that other refused requests get.
    async fn session(
        &self,
        http: &HttpState,
        headers: &HeaderMap,
    ) -> Result<Arc<HostSession>, (StatusCode, RpcErrorResponse)> {
        let owner = self.caller.owner(&self.params);
        let (sessions, context) = (&http.sessions, &http.context);
        let is_over = |why| RpcErrorResponse::new(rpc::INVALID_REQUEST, why);
        let found = match self.era {
            Era::Legacy if self.method == Method::Initialize => {
                sessions.begin(context, &owner).await.map(Some)
            }
            Era::Legacy => match text(headers, SESSION_HEADER) {
                Some(id) => sessions.find(context, &owner, id).await,
                None => {
                    let refusal = is_over("the session id is missing");
                    return Err((StatusCode::BAD_REQUEST, refusal));
                }
            },
            Era::Modern => match sessions.named(context, &owner, &self.params).await {
                Ok(None) => sessions.shared(context, &owner).await.map(Some),
                named => named,
            },
        };
        match found.map_err(with_status)? {
            Some(session) => Ok(session),
            None => Err((StatusCode::NOT_FOUND, is_over("the session is over"))),
        }
    }

    async fn work(
        self,
        http: Arc<HttpState>,
        session: Arc<HostSession>,
        whose: Arc<str>,
        key: &str,
    ) -> Result<Response, RpcErrorResponse> {
        let begun = session
            .begin(key)
            .map_err(|why| RpcErrorResponse::new(rpc::INVALID_REQUEST, why))?;
        let (outbox, told) = mpsc::channel(OUTBOX_MESSAGES);
        let (finish, finished) = oneshot::channel();
        let gone = (self.era == Era::Modern).then(|| CancelOnDisconnect {
            session: Arc::clone(&session),
            key: key.to_owned(),
        });
        let session_header = (self.era == Era::Legacy && self.method == Method::Initialize)
            .then(|| sessions::sealed(http.context.seal(), self.era, &session.id));
        let handle = (self.era == Era::Modern)
            .then(|| sessions::sealed(http.context.seal(), self.era, &session.id));
        let is_own_session = !session.is_shared();
        let request = Request {
            session,
            caller: whose,
            handle,
            peer: Peer::new(outbox),
            id: self.id.clone(),
            era: self.era,
            method: self.method,
            params: self.params,
            cancel: begun.cancel.clone(),
            is_own_session,
        };
        let id = self.id;
        tokio::spawn(async move {
            let answered = router::answer(&http.context, &request).await;
            let saved = sessions::save(&http.context, &request.session).await;
            let answered = saved.and(answered);
            let answered = answered.map(|result| sessions::with_handle(result, &request));
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
        let mut response = SseResponse::new(told, finished, gone).into_response().await;
        if let Some(Ok(id)) = session_header.map(|id| id.parse()) {
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        Ok(response)
    }
}

/// The HTTP status and the answer, or `None` for a request that was cancelled.
type PostAnswer = Option<(StatusCode, Vec<u8>)>;

/// The response to one request: the messages before the answer, and the answer.
struct SseResponse {
    told: mpsc::Receiver<Vec<u8>>,
    finished: Option<oneshot::Receiver<PostAnswer>>,
    first: Option<Vec<u8>>,
    /// Cancels the request when the client disconnects.
    _gone: Option<CancelOnDisconnect>,
}

struct CancelOnDisconnect {
    session: Arc<HostSession>,
    key: String,
}

impl Drop for CancelOnDisconnect {
    fn drop(&mut self) {
        self.session.cancel(&self.key, "the host disconnected");
    }
}

impl SseResponse {
    fn new(
        told: mpsc::Receiver<Vec<u8>>,
        finished: oneshot::Receiver<PostAnswer>,
        gone: Option<CancelOnDisconnect>,
    ) -> Self {
        Self {
            told,
            finished: Some(finished),
            first: None,
            _gone: gone,
        }
    }

    /// Returns one JSON object if no message precedes the answer, and otherwise a stream. A
    /// cancelled request gets a stream without an answer.
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

impl Stream for SseResponse {
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
                // The last message may have arrived together with the answer.
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

fn no_chance(error: SealKeyError) -> RpcErrorResponse {
    RpcErrorResponse::new(rpc::INTERNAL, error.to_string())
}

/// Adds the HTTP status of a session that could not be found.
fn with_status(refusal: RpcErrorResponse) -> (StatusCode, RpcErrorResponse) {
    let is_full = refusal
        .data
        .as_ref()
        .is_some_and(|it| it.get("retry").is_some());
    let status = match refusal.code {
        _ if is_full => StatusCode::SERVICE_UNAVAILABLE,
        rpc::INTERNAL => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    };
    (status, refusal)
}

/// Builds the response to a request that was refused before airlock began to handle it.
fn refused(id: &RawValue, refusal: &RpcErrorResponse) -> Response {
    json_response(StatusCode::BAD_REQUEST, refusal.message(id))
}

/// Returns the HTTP status of an error. The newer era requires 404 for an unknown method. In the
/// older era, 404 would mean that the session has ended.
fn status_of(era: Era, refusal: &RpcErrorResponse) -> StatusCode {
    match (era, refusal.code) {
        (Era::Modern, jsonrpc::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
