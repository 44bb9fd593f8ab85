//! JSON-RPC over a pair of byte streams, one message a line.
//!
//! One task writes, one reads, one watches the child. A request knows whether
//! its bytes have begun to leave: what is still queued can be taken back.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::child::{self, Alive, One, Started};
use super::diagnostics::{Diagnostics, lock};
use super::inquiry::{self, UnderWay};
use super::jsonrpc::{self, Answer, Incoming};
use super::lines::{Line, Lines};
use super::link::{LinkError, Outgoing};
use super::waiting::{Answered, Waiting};
use super::wall::Wall;
use crate::process_group::ProcessGroup;

/// Messages that may wait to be written; more requests wait, other messages are dropped.
const OUTBOX_MESSAGES: usize = 256;
/// How long the ends of a dying process may take to be noticed, each after the other: that it
/// ended, and of each of its streams that there is nothing more. They are there at once, except
/// where the machine is busy or one of them is kept open.
const DEATH_SETTLES: Duration = Duration::from_secs(2);
/// The same where there is no process that could say how it ended.
const STREAMS_SETTLE: Duration = Duration::from_millis(250);

/// How long the writer may take for what is still queued when the link is closed.
const PARTING_WORDS: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct StdioLink {
    shared: Arc<Shared>,
    outbox: mpsc::Sender<Outbound>,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    next_id: AtomicU64,
    stop: watch::Sender<bool>,
    /// How the child ended.
    ended: watch::Sender<Option<String>>,
    /// Its stderr has been read to the end.
    has_said_all: watch::Sender<bool>,
    death_settles: Duration,
    diagnostics: Arc<Diagnostics>,
    message_bytes_max: usize,
    /// What the server asks of us.
    under_way: Arc<UnderWay>,
}

#[derive(Debug)]
struct Outbound {
    bytes: Vec<u8>,
    ticket: Option<Arc<Ticket>>,
}

/// Whether a request has begun to leave.
#[derive(Debug, Default)]
struct Ticket(AtomicU8);

impl Ticket {
    const QUEUED: u8 = 0;
    const LEFT: u8 = 1;
    const TAKEN_BACK: u8 = 2;

    fn leave(&self) -> bool {
        self.turn(Self::LEFT)
    }

    /// True when it will never leave.
    fn take_back(&self) -> bool {
        self.turn(Self::TAKEN_BACK) || self.0.load(Ordering::Acquire) == Self::TAKEN_BACK
    }

    /// Nothing of it could be written after all.
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
        started: Started,
        alive: &Alive,
        grace: Duration,
        message_bytes_max: usize,
        diagnostics: Arc<Diagnostics>,
    ) -> Self {
        let Started {
            stdin,
            stdout,
            stderr,
            group,
        } = started;
        let shared = Shared {
            has_said_all: watch::Sender::new(false),
            death_settles: DEATH_SETTLES,
            ..Shared::new(message_bytes_max, diagnostics)
        };
        let link = Self::between(stdout, stdin, shared);
        tokio::spawn(keep_stderr(stderr, link.shared.clone()));
        let watcher = tokio::spawn(watch_child(group, alive.one(), grace, link.shared.clone()));
        *lock(&link.watcher) = Some(watcher);
        link
    }

    /// Without a process: a test is at the other end.
    #[cfg(test)]
    pub(crate) fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        message_bytes_max: usize,
        diagnostics: Arc<Diagnostics>,
    ) -> Self {
        Self::between(reader, writer, Shared::new(message_bytes_max, diagnostics))
    }

    fn between(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        shared: Shared,
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
        outgoing: &Outgoing,
        wall: &Wall,
    ) -> Result<Answer, LinkError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let receiver = lock(&self.shared.waiting).enter(id, outgoing.whose.clone())?;
        let ticket = Arc::new(Ticket::default());
        let mut in_flight = InFlight {
            link: self,
            id,
            ticket: &ticket,
            cancellable: outgoing.cancellable,
            answered: false,
        };
        let bytes = jsonrpc::request(id, outgoing.method, &outgoing.params);
        let outbound = Outbound {
            bytes,
            ticket: Some(ticket.clone()),
        };
        let answered = async {
            // When the writer is gone, the sender in `waiting` tells why.
            let _ = self.outbox.send(outbound).await;
            receiver.await
        };
        let error = match wall.limit(answered).await {
            Ok(Ok(Ok(answer))) => {
                in_flight.answered = true;
                return Ok(answer);
            }
            Ok(Ok(Err(error))) => error,
            Ok(Err(_)) => LinkError::disconnected("the connection was closed"),
            Err(_) => LinkError::timed_out(wall.within()),
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
            .send(Outbound {
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

    /// Closes the server's stdin and waits until it and its children are gone.
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

/// A request that somebody waits for; dropped before its answer, it is cancelled.
struct InFlight<'a> {
    link: &'a StdioLink,
    id: u64,
    ticket: &'a Ticket,
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
                r#"{{"requestId":{},"reason":"the caller no longer waits for it"}}"#,
                self.id
            );
            let bytes = jsonrpc::notification("notifications/cancelled", &params);
            // A full queue means that the server does not listen anyway.
            let _ = self.link.outbox.try_send(Outbound {
                bytes,
                ticket: None,
            });
        }
    }
}

impl Shared {
    /// Of a server that is no process of ours.
    fn new(message_bytes_max: usize, diagnostics: Arc<Diagnostics>) -> Self {
        Self {
            waiting: Mutex::default(),
            next_id: AtomicU64::new(1),
            stop: watch::Sender::new(false),
            ended: watch::Sender::new(None),
            has_said_all: watch::Sender::new(true),
            death_settles: STREAMS_SETTLE,
            diagnostics,
            message_bytes_max,
            under_way: Arc::default(),
        }
    }

    fn settle(&self, id: u64, answer: Answered) {
        if !lock(&self.waiting).settle(id, answer) {
            self.diagnostics.unmatched();
        }
    }

    /// Ends the connection for everybody; the first reason stays.
    fn close(&self, why: &str) {
        self.close_with(&LinkError::disconnected(why));
    }

    fn close_with(&self, error: &LinkError) {
        lock(&self.waiting).close(error);
        self.stop.send_replace(true);
    }

    async fn stopped(&self) {
        // The sender lives in `self`, so that this cannot fail.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    async fn stopped_for(&self, time: Duration) {
        self.stopped().await;
        tokio::time::sleep(time).await;
    }

    /// What is known of the server's end, once one of its streams ended. Whoever hears it may
    /// look for its last words at once: then they are there.
    async fn death(&self) -> String {
        let mut ended = self.ended.subscribe();
        let has_ended = ended.wait_for(Option::is_some);
        let has_ended = timeout(self.death_settles, has_ended).await.is_ok();
        let Some(how) = self.ended.borrow().clone().filter(|_| has_ended) else {
            return "the server closed its output".to_owned();
        };
        let mut has_said_all = self.has_said_all.subscribe();
        let _ = timeout(self.death_settles, has_said_all.wait_for(|all| *all)).await;
        format!("the server ended ({how})")
    }
}

async fn write_all(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outbound>,
    shared: Arc<Shared>,
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
            // What has begun to leave may be finished, so that more can follow it.
            () = shared.stopped_for(PARTING_WORDS) => return,
        };
        if written.is_err() {
            // Its output may still hold answers, and a better reason.
            let _ = timeout(shared.death_settles * 2, shared.stopped()).await;
            shared.close("the server closed its input");
            return;
        }
    }
    queue.close();
    let parting = async {
        while let Some(outbound) = queue.recv().await {
            // No request leaves any more; cancellations of those that left do.
            if outbound.ticket.is_none() && write_one(&mut writer, outbound).await.is_err() {
                return;
            }
        }
    };
    let _ = timeout(PARTING_WORDS, parting).await;
}

async fn write_one(
    writer: &mut (impl AsyncWrite + Unpin),
    outbound: Outbound,
) -> std::io::Result<()> {
    let Outbound { mut bytes, ticket } = outbound;
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
    outbox: mpsc::Sender<Outbound>,
    shared: Arc<Shared>,
) {
    let mut lines = Lines::new(reader, shared.message_bytes_max);
    let reading = async {
        loop {
            match lines.next().await {
                Ok(Some(Line::Whole(line))) => hear(line, &outbox, &shared),
                Ok(Some(Line::TooLong { head, tail })) => hear_too_long(head, tail, &shared),
                Ok(Some(Line::Endless { .. })) => {
                    return shared.close_with(&LinkError::too_large(shared.message_bytes_max));
                }
                Ok(None) => return shared.close(&shared.death().await),
                Err(error) => return shared.close(&format!("its output cannot be read: {error}")),
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = shared.stopped() => {}
    }
}

fn hear(line: &[u8], outbox: &mpsc::Sender<Outbound>, shared: &Arc<Shared>) {
    match jsonrpc::parse(line) {
        Incoming::Answer { id, answer } => shared.settle(id, Ok(answer)),
        Incoming::Notification { method, params } => {
            let behind = || lock(&shared.waiting).behind().ok();
            let about = (&*method, params);
            inquiry::notified(about, &shared.diagnostics, &shared.under_way, behind);
        }
        Incoming::Request { id, method, params } if inquiry::is_one(&method) => {
            let outbox = outbox.clone();
            let tell = |bytes| async move {
                let ticket = None;
                let _ = outbox.send(Outbound { bytes, ticket }).await;
            };
            let asked = (id, &*method, params);
            let behind = lock(&shared.waiting).behind();
            shared.under_way.begin(asked, behind, tell);
        }
        Incoming::Request { id, method, .. } => {
            let bytes = jsonrpc::answer_request(id, &method);
            // A server that asks faster than it listens gets fewer answers.
            let _ = outbox.try_send(Outbound {
                bytes,
                ticket: None,
            });
        }
        Incoming::Stray => hear_stray(line, shared),
    }
}

/// A broken line may still be somebody's answer: whoever waits should not wait in vain.
fn hear_stray(line: &[u8], shared: &Shared) {
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

/// Without its id nobody knows whose answer was lost, so that nobody may go on waiting.
fn hear_too_long(head: &[u8], tail: &[u8], shared: &Shared) {
    if jsonrpc::is_no_answer(head) {
        return shared.diagnostics.stray(head);
    }
    let error = LinkError::too_large(shared.message_bytes_max);
    match jsonrpc::answered_id(head, tail) {
        Some(id) => shared.settle(id, Err(error)),
        None => shared.close_with(&error),
    }
}

async fn keep_stderr(mut stderr: impl AsyncRead + Unpin, shared: Arc<Shared>) {
    const READ_BYTES: usize = 8 * 1024;
    let mut buffer = vec![0; READ_BYTES];
    let reading = async {
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            shared
                .diagnostics
                .stderr(buffer.get(..read).unwrap_or_default());
        }
    };
    // Whoever closed the link may have done so because of what is still in the pipe.
    tokio::select! {
        biased;
        () = reading => {}
        () = shared.stopped_for(DEATH_SETTLES) => {}
    }
    shared.has_said_all.send_replace(true);
}

async fn watch_child(mut group: ProcessGroup, one: One, grace: Duration, shared: Arc<Shared>) {
    tokio::select! {
        status = group.child.wait() => {
            shared.ended.send_replace(Some(child::how(status)));
            group.sweep(grace).await;
            drop(one);
            // Its last answers may still be in the pipe; then the reader sees the end.
            let _ = timeout(DEATH_SETTLES, shared.stopped()).await;
            shared.close(&shared.death().await);
        }
        () = shared.stopped() => group.stop(grace).await,
    }
}
