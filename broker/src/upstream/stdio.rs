//! JSON-RPC over a pair of byte streams, one message per line.
//!
//! One task writes, one reads, and one watches the child. A request knows whether its bytes have
//! begun to leave, so a request that is still queued can be withdrawn.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::child::{self, ChildIo, LiveProcess, LiveProcesses};
use super::diagnostics::{Diagnostics, lock};
use super::jsonrpc::{self, Answer, IncomingMessage};
use super::lines::{Line, Lines};
use super::outgoing::{LinkError, OutgoingRequest};
use super::pending::{PendingAnswer, PendingRequests};
use super::server_request::{self, OpenServerRequests, RawRequest};
use crate::deadline::Deadline;
use crate::process_group::ProcessGroup;

/// Maximum number of messages that wait to be written. Further requests wait; other messages are
/// dropped.
const OUTBOX_MESSAGES: usize = 256;
/// Maximum time to notice each sign of a dying process: its exit, and the end of each of its
/// streams. All signs usually arrive at once, unless the machine is busy or another process keeps a
/// stream open.
const EXIT_WALL: Duration = Duration::from_secs(2);
/// The limit for a link without a process, which has no exit to notice.
const STREAMS_WALL: Duration = Duration::from_millis(250);

/// Maximum time for the writer to send queued messages when the link is closed.
const FLUSH_WALL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct StdioLink {
    shared: Arc<LinkState>,
    outbox: mpsc::Sender<OutboundMessage>,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct LinkState {
    waiting: Mutex<PendingRequests>,
    next_id: AtomicU64,
    stop: watch::Sender<bool>,
    /// How the child ended.
    ended: watch::Sender<Option<String>>,
    /// Whether the child's stderr has been read to the end.
    is_stderr_complete: watch::Sender<bool>,
    exit_wall: Duration,
    diagnostics: Arc<Diagnostics>,
    message_bytes_max: usize,
    /// The requests of the server that airlock has not answered.
    under_way: Arc<OpenServerRequests>,
}

#[derive(Debug)]
struct OutboundMessage {
    bytes: Vec<u8>,
    ticket: Option<Arc<SendTicket>>,
}

/// Whether a request has begun to leave.
#[derive(Debug, Default)]
struct SendTicket(AtomicU8);

impl SendTicket {
    const QUEUED: u8 = 0;
    const LEFT: u8 = 1;
    const TAKEN_BACK: u8 = 2;

    fn leave(&self) -> bool {
        self.turn(Self::LEFT)
    }

    /// Withdraws the request. Returns `true` if it will never leave.
    fn take_back(&self) -> bool {
        self.turn(Self::TAKEN_BACK) || self.0.load(Ordering::Acquire) == Self::TAKEN_BACK
    }

    /// Records that no byte of the request was written.
    fn unsent(&self) {
        self.0.store(Self::TAKEN_BACK, Ordering::Release);
    }

    fn turn(&self, to: u8) -> bool {
        self.0
            .compare_exchange(Self::QUEUED, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

impl StdioLink {
    pub(crate) fn over_child(
        started: ChildIo,
        alive: &LiveProcesses,
        grace: Duration,
        message_bytes_max: usize,
        diagnostics: Arc<Diagnostics>,
    ) -> Self {
        let ChildIo {
            stdin,
            stdout,
            stderr,
            group,
        } = started;
        diagnostics.process_started();
        let shared = LinkState {
            is_stderr_complete: watch::Sender::new(false),
            exit_wall: EXIT_WALL,
            ..LinkState::new(message_bytes_max, diagnostics)
        };
        let link = Self::between(stdout, stdin, shared);
        tokio::spawn(keep_stderr(stderr, link.shared.clone()));
        let watcher = tokio::spawn(watch_child(group, alive.one(), grace, link.shared.clone()));
        *lock(&link.watcher) = Some(watcher);
        link
    }

    /// Creates a link without a process, for tests.
    #[cfg(test)]
    pub(crate) fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        message_bytes_max: usize,
        diagnostics: Arc<Diagnostics>,
    ) -> Self {
        Self::between(
            reader,
            writer,
            LinkState::new(message_bytes_max, diagnostics),
        )
    }

    fn between(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        shared: LinkState,
    ) -> Self {
        let shared = Arc::new(shared);
        let (outbox, queue) = mpsc::channel(OUTBOX_MESSAGES);
        tokio::spawn(write_all(writer, queue, shared.clone()));
        tokio::spawn(read_all(reader, outbox.clone(), shared.clone()));
        Self {
            shared,
            outbox,
            watcher: Mutex::default(),
        }
    }

    pub(crate) async fn request(
        &self,
        outgoing: &OutgoingRequest,
        deadline: &Deadline,
    ) -> Result<Answer, LinkError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let receiver = lock(&self.shared.waiting).enter(id, outgoing.owner.clone())?;
        let ticket = Arc::new(SendTicket::default());
        let mut in_flight = InFlight {
            link: self,
            id,
            ticket: &ticket,
            cancellable: outgoing.cancellable,
            answered: false,
        };
        let bytes = jsonrpc::request(id, outgoing.method, &outgoing.params);
        let outbound = OutboundMessage {
            bytes,
            ticket: Some(ticket.clone()),
        };
        let answered = async {
            // If the writer has ended, the sender in `waiting` provides the reason.
            let _ = self.outbox.send(outbound).await;
            receiver.await
        };
        let error = match deadline.limit(answered).await {
            Ok(Ok(Ok(answer))) => {
                in_flight.answered = true;
                return Ok(answer);
            }
            Ok(Ok(Err(error))) => error,
            Ok(Err(_)) => LinkError::disconnected("the connection was closed"),
            Err(_) => LinkError::timed_out(deadline.within()),
        };
        match ticket.take_back() {
            true => Err(LinkError::NotSent { why: error.why() }),
            false => Err(error),
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: &str) -> Result<(), LinkError> {
        let bytes = jsonrpc::notification(method, params);
        let sent = self
            .outbox
            .send(OutboundMessage {
                bytes,
                ticket: None,
            })
            .await;
        sent.map_err(|_| LinkError::NotSent {
            why: "the connection was closed".to_owned(),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.shared.waiting).closed().is_some()
    }

    /// Closes the server's stdin, and waits until the server and its children have ended.
    pub(crate) async fn close(&self) {
        self.shared.close("the connection was closed");
        let watcher = lock(&self.watcher).take();
        if let Some(watcher) = watcher {
            let _ = watcher.await;
        }
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.shared.close("the connection was closed");
    }
}

/// A request that is being awaited, cancelled on drop.
struct InFlight<'a> {
    link: &'a StdioLink,
    id: u64,
    ticket: &'a SendTicket,
    cancellable: bool,
    answered: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let has_left = !self.ticket.take_back();
        let mut waiting = lock(&self.link.shared.waiting);
        match has_left {
            true => waiting.give_up(self.id),
            false => waiting.take_back(self.id),
        }
        drop(waiting);
        if has_left && self.cancellable {
            let params = format!(
                r#"{{"requestId":{},"reason":"the caller no longer waits for the answer"}}"#,
                self.id
            );
            let bytes = jsonrpc::notification("notifications/cancelled", &params);
            // A full queue means that the server is not reading anyway.
            let _ = self.link.outbox.try_send(OutboundMessage {
                bytes,
                ticket: None,
            });
        }
    }
}

impl LinkState {
    /// Creates the state of a link to a server that is not a child process.
    fn new(message_bytes_max: usize, diagnostics: Arc<Diagnostics>) -> Self {
        Self {
            waiting: Mutex::default(),
            next_id: AtomicU64::new(1),
            stop: watch::Sender::new(false),
            ended: watch::Sender::new(None),
            is_stderr_complete: watch::Sender::new(true),
            exit_wall: STREAMS_WALL,
            diagnostics,
            message_bytes_max,
            under_way: Arc::default(),
        }
    }

    fn settle(&self, id: u64, answer: PendingAnswer) {
        if !lock(&self.waiting).settle(id, answer) {
            self.diagnostics.unmatched();
        }
    }

    /// Closes the connection for all requests. The first reason is kept.
    fn close(&self, why: &str) {
        self.close_with(&LinkError::disconnected(why));
    }

    fn close_with(&self, error: &LinkError) {
        lock(&self.waiting).close(error);
        self.stop.send_replace(true);
    }

    async fn stopped(&self) {
        // Cannot fail, because the sender is a field of `self`.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    async fn stopped_for(&self, time: Duration) {
        self.stopped().await;
        tokio::time::sleep(time).await;
    }

    /// Returns how the server ended, once one of its streams has ended. When it returns, the
    /// server's last lines on stderr are available.
    async fn death(&self) -> String {
        let mut ended = self.ended.subscribe();
        let has_ended = ended.wait_for(Option::is_some);
        let has_ended = timeout(self.exit_wall, has_ended).await.is_ok();
        let Some(how) = self.ended.borrow().clone().filter(|_| has_ended) else {
            return "the server closed its output".to_owned();
        };
        let mut is_stderr_complete = self.is_stderr_complete.subscribe();
        let _ = timeout(self.exit_wall, is_stderr_complete.wait_for(|all| *all)).await;
        format!("the server ended ({how})")
    }
}

async fn write_all(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<OutboundMessage>,
    shared: Arc<LinkState>,
) {
    loop {
        let outbound = tokio::select! {
            biased;
            () = shared.stopped() => break,
            outbound = queue.recv() => outbound,
        };
        let Some(outbound) = outbound else { return };
        let written = tokio::select! {
            written = write_one(&mut writer, outbound) => written,
            // A message that has begun to leave is completed, so that others can follow.
            () = shared.stopped_for(FLUSH_WALL) => return,
        };
        if written.is_err() {
            // The server's output may still contain answers, and a better reason.
            let _ = timeout(shared.exit_wall * 2, shared.stopped()).await;
            shared.close("the server closed its input");
            return;
        }
    }
    queue.close();
    let parting = async {
        while let Some(outbound) = queue.recv().await {
            // Requests are no longer sent, but cancellations of sent requests are.
            if outbound.ticket.is_none() && write_one(&mut writer, outbound).await.is_err() {
                return;
            }
        }
    };
    let _ = timeout(FLUSH_WALL, parting).await;
}

async fn write_one(
    writer: &mut (impl AsyncWrite + Unpin),
    outbound: OutboundMessage,
) -> std::io::Result<()> {
    let OutboundMessage { mut bytes, ticket } = outbound;
    if ticket.as_ref().is_some_and(|ticket| !ticket.leave()) {
        return Ok(());
    }
    bytes.push(b'\n');
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match writer.write(rest).await {
            Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
            failed => {
                if let Some(ticket) = ticket.filter(|_| rest.len() == bytes.len()) {
                    ticket.unsent();
                }
                return Err(failed
                    .err()
                    .unwrap_or_else(|| std::io::ErrorKind::WriteZero.into()));
            }
        }
    }
    writer.flush().await
}

async fn read_all(
    reader: impl AsyncRead + Unpin,
    outbox: mpsc::Sender<OutboundMessage>,
    shared: Arc<LinkState>,
) {
    let mut lines = Lines::new(reader, shared.message_bytes_max);
    let reading = async {
        loop {
            match lines.next().await {
                Ok(Some(Line::Whole(line))) => handle_line(line, &outbox, &shared),
                Ok(Some(Line::TooLong { head, tail })) => handle_overlong_line(head, tail, &shared),
                Ok(Some(Line::Endless { .. })) => {
                    return shared.close_with(&LinkError::too_large(shared.message_bytes_max));
                }
                Ok(None) => return shared.close(&shared.death().await),
                Err(error) => {
                    let why = format!("the server's output could not be read: {error}");
                    return shared.close(&why);
                }
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = shared.stopped() => {}
    }
}

fn handle_line(line: &[u8], outbox: &mpsc::Sender<OutboundMessage>, shared: &Arc<LinkState>) {
    match jsonrpc::parse(line) {
        IncomingMessage::Answer { id, answer } => shared.settle(id, Ok(answer)),
        IncomingMessage::Notification { method, params } => {
            let origin = |token: Option<&str>| match token {
                Some(token) => lock(&shared.waiting).origin_of(token),
                None => lock(&shared.waiting).origin().ok(),
            };
            let (diagnostics, open) = (&shared.diagnostics, &shared.under_way);
            server_request::notified(&method, params, diagnostics, open, origin);
        }
        IncomingMessage::Request { id, method, params } if server_request::is_one(&method) => {
            let outbox = outbox.clone();
            let tell = |bytes| async move {
                let ticket = None;
                let _ = outbox.send(OutboundMessage { bytes, ticket }).await;
            };
            let asked = RawRequest {
                id,
                method: &method,
                params,
            };
            let origin = lock(&shared.waiting).origin();
            shared.under_way.begin(asked, origin, tell);
        }
        IncomingMessage::Request { id, method, .. } => {
            let bytes = jsonrpc::answer_request(id, &method);
            // A server that sends requests faster than it reads answers gets only some of the
            // answers.
            let _ = outbox.try_send(OutboundMessage {
                bytes,
                ticket: None,
            });
        }
        IncomingMessage::Stray => handle_invalid_line(line, shared),
    }
}

/// Handles an invalid line. It may be the answer to a pending request, which then fails instead of
/// waiting.
fn handle_invalid_line(line: &[u8], shared: &LinkState) {
    const END_BYTES: usize = 512;
    let tail = line
        .get(line.len().saturating_sub(END_BYTES)..)
        .unwrap_or_default();
    let head = line.get(..END_BYTES).unwrap_or(line);
    let looks_like_rpc = [head, tail]
        .iter()
        .any(|end| String::from_utf8_lossy(end).contains("\"jsonrpc\""));
    let id = jsonrpc::answered_id(head, tail).filter(|_| looks_like_rpc);
    match id {
        Some(id) => shared.settle(
            id,
            Err(LinkError::unreadable(
                "the answer is not valid JSON in UTF-8",
            )),
        ),
        None => shared.diagnostics.stray(line),
    }
}

/// Handles a line that is too long. If it has no readable id, it is unknown which answer was lost,
/// so all pending requests fail.
fn handle_overlong_line(head: &[u8], tail: &[u8], shared: &LinkState) {
    if jsonrpc::is_no_answer(head) {
        return shared.diagnostics.stray(head);
    }
    let error = LinkError::too_large(shared.message_bytes_max);
    match jsonrpc::answered_id(head, tail) {
        Some(id) => shared.settle(id, Err(error)),
        None => shared.close_with(&error),
    }
}

async fn keep_stderr(mut stderr: impl AsyncRead + Unpin, shared: Arc<LinkState>) {
    const READ_BYTES: usize = 8 * 1024;
    let mut buffer = vec![0; READ_BYTES];
    let reading = async {
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            shared
                .diagnostics
                .stderr(buffer.get(..read).unwrap_or_default());
        }
    };
    // If the link was closed, the reason may be in the rest of the pipe, so reading continues for a
    // short time.
    tokio::select! {
        biased;
        () = reading => {}
        () = shared.stopped_for(EXIT_WALL) => {}
    }
    shared.is_stderr_complete.send_replace(true);
}

async fn watch_child(
    mut group: ProcessGroup,
    one: LiveProcess,
    grace: Duration,
    shared: Arc<LinkState>,
) {
    tokio::select! {
        status = group.child.wait() => {
            shared.ended.send_replace(Some(child::how(status)));
            group.sweep(grace).await;
            drop(one);
            // The last answers may still be in the pipe, so the reader gets time to reach its end.
            let _ = timeout(EXIT_WALL, shared.stopped()).await;
            shared.close(&shared.death().await);
        }
        () = shared.stopped() => group.stop(grace).await,
    }
}
