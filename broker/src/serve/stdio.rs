//! Serves one host over stdin and stdout. The session lasts as long as the process, each line is a
//! message, and requests are handled concurrently.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::context::ServeContext;
use super::listen::ListChanges;
use super::method::Method;
use super::peer::{OUTBOX_MESSAGES, Peer};
use super::request::Request;
use super::result_store::ResultStore;
use super::rpc::{self, RpcErrorResponse};
use super::session::{HostSession, RequestGuard};
use super::sessions::{self, SessionOwner, Sessions};
use super::{router, subscriptions};
use crate::upstream::Era;
use crate::upstream::jsonrpc::{self, IncomingMessage};
use crate::upstream::lines::{Line, Lines};

/// How often the record of a session notes that the host is still connected.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// How long airlock continues to answer requests after the host has closed its side.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrainTimeouts {
    /// Time for requests to finish normally.
    pub(super) by_itself: Duration,
    /// The time for cancelled requests to finish, after `by_itself`.
    pub(super) as_cancelled: Duration,
    /// The time for the host to read the answers, after `as_cancelled`.
    pub(super) read: Duration,
}

impl Default for DrainTimeouts {
    fn default() -> Self {
        Self {
            by_itself: Duration::from_secs(1),
            as_cancelled: Duration::from_millis(500),
            read: Duration::from_secs(2),
        }
    }
}

/// Serves until the input ends. Every request that was read gets an answer. A request that takes
/// too long is cancelled and answered as cancelled.
pub(super) async fn serve(
    context: ServeContext,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    parting: DrainTimeouts,
) -> io::Result<()> {
    let (outbox, queue) = mpsc::channel(OUTBOX_MESSAGES);
    let mut writer = tokio::spawn(write_all(output, queue));
    let session = HostSession::new(
        "stdio".into(),
        context.settings(),
        &ResultStore::default(),
        context.now_ms(),
    );
    let sessions = Sessions::new(context.settings());
    let connection = Connection {
        context,
        session: Arc::new(session),
        sessions,
        peer: Peer::new(outbox),
    };
    let (ending, context) = (connection.context.clone(), connection.context.clone());
    let (read, is_over) = tokio::select! {
        read = connection.read_all(input) => (read, true),
        () = ending.runs_ended() => (Ok(()), false),
        () = connection.tell_changes() => (Ok(()), false),
        () = connection.keep_record() => (Ok(()), false),
    };
    let session = Arc::clone(&connection.session);
    // The writer ends when the last sender is dropped.
    drop(connection);
    let written = if is_over {
        last_words(&session, &mut writer, parting).await
    } else {
        writer.await
    };
    // The next process of the host starts with the labels that its caller keeps. If this fails, the
    // session stays open until its idle time is over.
    let _ = sessions::end(&context, &session).await;
    read.and(written.unwrap_or_else(|error| Err(io::Error::other(error))))
}

/// Finishes the answers after the host has closed its side, because the host may still read.
async fn last_words(
    session: &HostSession,
    writer: &mut Writer,
    parting: DrainTimeouts,
) -> <Writer as Future>::Output {
    session.fall_silent();
    let mut written = timeout(parting.by_itself, &mut *writer).await;
    if written.is_err() {
        session.end_all(HOST_IS_GONE);
        written = timeout(parting.as_cancelled, &mut *writer).await;
    }
    session.cancel_all(HOST_IS_GONE);
    match written {
        Ok(written) => written,
        Err(_) => match timeout(parting.read, &mut *writer).await {
            Ok(written) => written,
            Err(_) => {
                // A host that does not read its answers must not delay the exit.
                writer.abort();
                Ok(Ok(()))
            }
        },
    }
}

const HOST_IS_GONE: &str = "the host disconnected";

type Writer = JoinHandle<io::Result<()>>;

struct Connection {
    context: ServeContext,
    session: Arc<HostSession>,
    /// The sessions that requests name by a handle.
    sessions: Sessions,
    peer: Peer,
}

impl Connection {
    /// Sends changes to a host of the older era. Never returns.
    async fn tell_changes(&self) {
        let (mut lists, mut news) = (
            ListChanges::new(&self.context),
            self.context.notifications().read(),
        );
        loop {
            let told = tokio::select! {
                changed = lists.changed() => of_lists(changed),
                batch = news.next() => subscriptions::told_in(&self.session, &self.context, &batch),
            };
            if sessions::save(&self.context, &self.session).await.is_err() {
                continue;
            }
            for (method, params) in told {
                if self.session.wants(method) {
                    self.peer.notify(method, &params).await;
                }
            }
        }
    }

    /// Records that the session is in use for as long as the host is connected, and removes records
    /// of earlier sessions. Never returns.
    async fn keep_record(&self) {
        sessions::clean_up_records(&self.context).await;
        let mut every = tokio::time::interval(KEEP_EVERY);
        loop {
            every.tick().await;
            // If this fails, the next request fails too, and reports the error.
            let _ = sessions::save(&self.context, &self.session).await;
        }
    }

    /// Returns the session of a request: the one that it names, or the session of the process,
    /// whose caller the first request names.
    async fn session_of(
        &self,
        era: Era,
        params: &Value,
    ) -> Result<Arc<HostSession>, RpcErrorResponse> {
        let owner = SessionOwner::of_client(params);
        if self.session.record().is_none() {
            sessions::attach(&self.context, &self.session, &owner).await?;
        }
        let names_process = |state: &str| state.split('~').next() == Some(&*self.session.id);
        let state = params.get("requestState").and_then(Value::as_str);
        if era == Era::Legacy || state.is_some_and(names_process) {
            return Ok(Arc::clone(&self.session));
        }
        let named = self.sessions.named(&self.context, &owner, params).await?;
        Ok(named.unwrap_or_else(|| Arc::clone(&self.session)))
    }

    async fn read_all(&self, input: impl AsyncRead + Unpin) -> io::Result<()> {
        let bytes_max = self.context.settings().message_bytes_max;
        let mut lines = Lines::new(input, bytes_max);
        while let Some(line) = lines.next().await? {
            let alive = match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => true,
                Line::Whole(line) => self.hear(line).await,
                Line::TooLong { .. } => {
                    let refusal = RpcErrorResponse::too_long(bytes_max);
                    self.peer.send(refusal.message_to_nobody()).await
                }
                Line::Endless { .. } => {
                    return Err(io::Error::other(
                        "the host sent a line that is too long to skip",
                    ));
                }
            };
            if !alive {
                break;
            }
        }
        Ok(())
    }

    /// Handles one line. Returns `false` if the host no longer reads answers.
    async fn hear(&self, line: &[u8]) -> bool {
        match rpc::parse(line) {
            IncomingMessage::Request { id, method, params } => {
                self.request(id, method, params).await
            }
            IncomingMessage::Notification { method, params } => {
                match &*method {
                    "notifications/cancelled" => cancelled(&self.session, params),
                    "notifications/initialized" => self.session.listens(),
                    _ => {}
                }
                true
            }
            IncomingMessage::Answer { id, answer } => {
                self.session.open.answered(id, answer);
                true
            }
            IncomingMessage::Stray => match stray(line) {
                Some(refusal) => self.peer.send(refusal.message_to_nobody()).await,
                None => true,
            },
        }
    }

    async fn request(
        &self,
        id: &RawValue,
        method: Cow<'_, str>,
        params: Option<&RawValue>,
    ) -> bool {
        let read = rpc::params(params).and_then(|params| Ok((rpc::era_of(&params)?, params)));
        let (era, params) = match read {
            Ok(read) => read,
            Err(refusal) => return self.peer.send(refusal.message(id)).await,
        };
        let begun = match self.session.begin(id.get()) {
            Ok(begun) => begun,
            Err(why) => {
                let refusal = RpcErrorResponse::new(rpc::INVALID_REQUEST, why);
                return self.peer.send(refusal.message(id)).await;
            }
        };
        let session = match self.session_of(era, &params).await {
            Ok(session) => session,
            Err(refusal) => return self.peer.send(refusal.message(id)).await,
        };
        let is_own_session = !Arc::ptr_eq(&session, &self.session);
        let handle =
            is_own_session.then(|| sessions::sealed(self.context.seal(), era, &session.id));
        let request = Request {
            session,
            caller: self.session.id.as_str().into(),
            peer: self.peer.clone(),
            id: id.to_owned(),
            era,
            method: Method::parse(&method),
            params,
            cancel: begun.cancel.clone(),
            handle,
            is_own_session,
        };
        let context = self.context.clone();
        if request.method == Method::Initialize {
            // Later messages depend on the handshake, so `initialize` is answered before the next
            // line is read.
            return answer(&context, request, begun).await;
        }
        tokio::spawn(async move { answer(&context, request, begun).await });
        true
    }
}

/// Returns the notifications for lists that have changed.
pub(super) fn of_lists(methods: Vec<&'static str>) -> Vec<(&'static str, Value)> {
    let told = methods.into_iter();
    told.map(|method| (method, json!({}))).collect()
}

/// Answers one request, unless the host has cancelled the request.
async fn answer(context: &ServeContext, request: Request, begun: RequestGuard) -> bool {
    let answered = router::answer(context, &request).await;
    let saved = sessions::save(context, &request.session).await;
    let message = match saved.and(answered) {
        Ok(result) => {
            let result = sessions::with_handle(result, &request);
            jsonrpc::result(&request.id, &result.to_string())
        }
        Err(refusal) => refusal.message(&request.id),
    };
    if begun.is_cancelled() {
        return true;
    }
    drop(begun);
    request.peer.send(message).await
}

/// Handles `notifications/cancelled`.
pub(super) fn cancelled(session: &HostSession, params: Option<&RawValue>) {
    let Ok(params) = rpc::params(params) else {
        return;
    };
    if let Some(id) = params.get("requestId") {
        let why = params.get("reason").and_then(serde_json::Value::as_str);
        let why = why.map_or_else(
            || "the host cancelled the request".to_owned(),
            |why| format!("the host cancelled the request: {}", rpc::sanitize(why)),
        );
        session.cancel(&id.to_string(), &why);
    }
}

/// Returns the error for an invalid message. A message that may be an answer gets no error: two
/// sides that answer each other's errors would never stop.
pub(super) fn stray(line: &[u8]) -> Option<RpcErrorResponse> {
    let head = line.trim_ascii_start();
    let Ok(text) = std::str::from_utf8(head) else {
        return Some(RpcErrorResponse::new(
            rpc::PARSE_ERROR,
            "the message is not UTF-8",
        ));
    };
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Some(RpcErrorResponse::new(
            rpc::PARSE_ERROR,
            "the message is not JSON",
        ));
    }
    let is_request = !text.starts_with('{') || text.contains("\"method\"");
    is_request.then(|| {
        let message = "not a valid JSON-RPC 2.0 request; expected one object with `jsonrpc`, \
                       `method` and a short `id` that is a string or a number";
        RpcErrorResponse::new(rpc::INVALID_REQUEST, message)
    })
}

async fn write_all(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(mut message) = queue.recv().await {
        message.push(b'\n');
        output.write_all(&message).await?;
        output.flush().await?;
    }
    Ok(())
}
