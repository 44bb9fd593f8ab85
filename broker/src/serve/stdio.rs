//! One host over stdin and stdout: the process is the session. Lines in, lines
//! out; requests are worked on side by side.

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

use super::desk::Desk;
use super::kept::Storeroom;
use super::news;
use super::peer::{OUTBOX_MESSAGES, Peer};
use super::request::Request;
use super::rpc::{self, Refusal};
use super::session::{Begun, HostSession};
use crate::upstream::jsonrpc::{self, Incoming};
use crate::upstream::lines::{Line, Lines};

/// How long hosts that say nothing more are still answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parting {
    /// What was read has this long to end by itself,
    pub(super) by_itself: Duration,
    /// then this long to end as cancelled,
    pub(super) as_cancelled: Duration,
    /// and the host this long to read what was said.
    pub(super) read: Duration,
}

impl Default for Parting {
    fn default() -> Self {
        Self {
            by_itself: Duration::from_secs(1),
            as_cancelled: Duration::from_millis(500),
            read: Duration::from_secs(2),
        }
    }
}

/// Serves until the input ends. What was read is answered; what takes too long for that is
/// answered as cancelled.
pub(super) async fn serve(
    desk: Desk,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    parting: Parting,
) -> io::Result<()> {
    let (outbox, queue) = mpsc::channel(OUTBOX_MESSAGES);
    let mut writer = tokio::spawn(write_all(output, queue));
    let session = HostSession::new(
        "stdio".into(),
        desk.settings(),
        &Storeroom::default(),
        desk.now_ms(),
    );
    let connection = Connection {
        desk,
        session: Arc::new(session),
        peer: Peer::new(outbox),
    };
    let ending = connection.desk.clone();
    let (read, is_over) = tokio::select! {
        read = connection.read_all(input) => (read, true),
        () = ending.runs_ended() => (Ok(()), false),
        () = connection.tell_changes() => (Ok(()), false),
    };
    let session = Arc::clone(&connection.session);
    // The writer ends when nobody has anything to say any more.
    drop(connection);
    let written = if is_over {
        last_words(&session, &mut writer, parting).await
    } else {
        writer.await
    };
    read.and(written.unwrap_or_else(|error| Err(io::Error::other(error))))
}

/// The host says nothing more and may still read.
async fn last_words(
    session: &HostSession,
    writer: &mut Writer,
    parting: Parting,
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
                // A host that does not read its answers keeps nobody here.
                writer.abort();
                Ok(Ok(()))
            }
        },
    }
}

const HOST_IS_GONE: &str = "the host is gone";

type Writer = JoinHandle<io::Result<()>>;

struct Connection {
    desk: Desk,
    session: Arc<HostSession>,
    peer: Peer,
}

impl Connection {
    /// Tells a host of the older era what changes; never ends.
    async fn tell_changes(&self) {
        let (mut lists, mut news) = (self.desk.lists(), self.desk.bulletin().read());
        loop {
            let told = tokio::select! {
                changed = lists.changed() => of_lists(changed),
                batch = news.next() => news::told_in(&self.session, &self.desk, &batch),
            };
            for (method, params) in told {
                if self.session.is_listening() {
                    self.peer.notify(method, &params).await;
                }
            }
        }
    }

    async fn read_all(&self, input: impl AsyncRead + Unpin) -> io::Result<()> {
        let bytes_max = self.desk.settings().message_bytes_max;
        let mut lines = Lines::new(input, bytes_max);
        while let Some(line) = lines.next().await? {
            let alive = match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => true,
                Line::Whole(line) => self.hear(line).await,
                Line::TooLong { .. } => {
                    let refusal = Refusal::too_long(bytes_max);
                    self.peer.send(refusal.message_to_nobody()).await
                }
                Line::Endless { .. } => return Err(io::Error::other("a line without end")),
            };
            if !alive {
                break;
            }
        }
        Ok(())
    }

    /// False when nobody reads our answers any more.
    async fn hear(&self, line: &[u8]) -> bool {
        match rpc::parse(line) {
            Incoming::Request { id, method, params } => self.request(id, method, params).await,
            Incoming::Notification { method, params } => {
                match &*method {
                    "notifications/cancelled" => cancelled(&self.session, params),
                    "notifications/initialized" => self.session.listens(),
                    _ => {}
                }
                true
            }
            Incoming::Answer { id, answer } => {
                self.session.open.answered(id, answer);
                true
            }
            Incoming::Stray => match stray(line) {
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
                let refusal = Refusal::new(rpc::INVALID_REQUEST, why);
                return self.peer.send(refusal.message(id)).await;
            }
        };
        let request = Request {
            session: Arc::clone(&self.session),
            caller: self.session.id.as_str().into(),
            peer: self.peer.clone(),
            id: id.to_owned(),
            era,
            params,
            cancel: begun.cancel.clone(),
            handle: None,
        };
        let (desk, method, id) = (self.desk.clone(), method.into_owned(), id.to_owned());
        if method == "initialize" {
            // What follows it relies on what it said.
            return answer(&desk, &method, request, &id, begun).await;
        }
        tokio::spawn(async move { answer(&desk, &method, request, &id, begun).await });
        true
    }
}

/// Lists that have become others, as a host is told of them.
pub(super) fn of_lists(methods: Vec<&'static str>) -> Vec<(&'static str, Value)> {
    let told = methods.into_iter();
    told.map(|method| (method, json!({}))).collect()
}

/// Answers one request, unless its host has cancelled it.
async fn answer(desk: &Desk, method: &str, request: Request, id: &RawValue, begun: Begun) -> bool {
    let message = match desk.answer(method, &request).await {
        Ok(result) => jsonrpc::result(id, &result.to_string()),
        Err(refusal) => refusal.message(id),
    };
    if begun.is_cancelled() {
        return true;
    }
    drop(begun);
    request.peer.send(message).await
}

/// The host does not want an answer any more.
pub(super) fn cancelled(session: &HostSession, params: Option<&RawValue>) {
    let Ok(params) = rpc::params(params) else {
        return;
    };
    if let Some(id) = params.get("requestId") {
        let why = params.get("reason").and_then(serde_json::Value::as_str);
        let why = why.map_or_else(
            || "the host cancelled it".to_owned(),
            |why| format!("the host cancelled it: {}", rpc::shown(why)),
        );
        session.cancel(&id.to_string(), &why);
    }
}

/// What is said to a message that is none. Nothing to what may be an answer: two
/// sides that answer each other's errors never end.
pub(super) fn stray(line: &[u8]) -> Option<Refusal> {
    let head = line.trim_ascii_start();
    let Ok(text) = std::str::from_utf8(head) else {
        return Some(Refusal::new(rpc::PARSE_ERROR, "the message is not UTF-8"));
    };
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Some(Refusal::new(rpc::PARSE_ERROR, "the message is not JSON"));
    }
    let is_request = !text.starts_with('{') || text.contains("\"method\"");
    is_request.then(|| {
        let message = "the message is no JSON-RPC 2.0 request: one object with `jsonrpc`, \
                       `method` and a short `id` that is a string or a number";
        Refusal::new(rpc::INVALID_REQUEST, message)
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
