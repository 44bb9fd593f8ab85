//! What a server says beside its answers, kept in small: the end of its
//! stderr, a few stray lines, and counts of the rest.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::news::{News, Newsdesk, Promised};
use crate::config::Secrets;

const STDERR_BYTES_KEPT: usize = 32 * 1024;
const STRAY_LINES_KEPT: usize = 8;
/// A list that holds for less is read again no sooner, and one that holds for longer no later.
const HOLDS_MIN: Duration = Duration::from_secs(30);
const HOLDS_MAX: Duration = Duration::from_secs(24 * 3_600);
const STRAY_LINE_CHARS_KEPT: usize = 240;

/// Collected by a connection, read by whoever wants to know why. It outlives reconnects.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    secrets: Secrets,
    stderr: Mutex<VecDeque<u8>>,
    stray: Mutex<Vec<String>>,
    stray_total: AtomicU64,
    notifications_total: AtomicU64,
    unmatched_total: AtomicU64,
    connects_total: AtomicU64,
    /// How often the list has, or may have, become another one.
    changes_total: AtomicU64,
    /// How many of these the list that was read last had seen.
    changes_read: AtomicU64,
    /// Reading it was begun over the connection that there is.
    is_list_begun: AtomicBool,
    /// How often a server has said that it will tell of changes.
    acknowledged: watch::Sender<u64>,
    watched: watch::Sender<BTreeSet<String>>,
    /// Waits until the list that was read holds no longer.
    holding: Mutex<Option<AbortHandle>>,
    /// Rung when the list that was read is no longer the server's.
    bell: Arc<Notify>,
    /// Where what it tells of besides its tools goes.
    newsdesk: Option<Newsdesk>,
}

/// A copy for showing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The end of what the server wrote to its stderr.
    pub stderr: String,
    /// The first lines on its stdout that were not JSON-RPC.
    pub stray_lines: Vec<String>,
    pub stray_total: u64,
    pub notifications_total: u64,
    /// Answers that nobody waited for: late, or to an id that we never sent.
    pub unmatched_total: u64,
    pub connects_total: u64,
    /// The server said that its list of tools is no longer the one that was read.
    pub list_changed: bool,
}

impl Diagnostics {
    pub(crate) fn new(secrets: Secrets) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    pub(crate) fn ringing(self, bell: Arc<Notify>) -> Self {
        Self { bell, ..self }
    }

    pub(crate) fn telling(self, newsdesk: Newsdesk) -> Self {
        Self {
            newsdesk: Some(newsdesk),
            ..self
        }
    }

    pub(super) fn newsdesk(&self) -> Option<&Newsdesk> {
        self.newsdesk.as_ref()
    }

    pub(crate) fn tell(&self, news: News) {
        if let Some(newsdesk) = &self.newsdesk {
            newsdesk.tell(news);
        }
    }

    /// What must not appear in any text about this server.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    fn masked(&self, text: &str) -> String {
        self.secrets.strike(text).unwrap_or_else(|| text.to_owned())
    }

    pub(crate) fn stderr(&self, bytes: &[u8]) {
        let mut kept = lock(&self.stderr);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(STDERR_BYTES_KEPT);
        kept.drain(..surplus);
    }

    pub(crate) fn stray(&self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        self.stray_total.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.stray);
        if kept.len() < STRAY_LINES_KEPT {
            // Masked before it is cut: what is cut off may be half of a secret.
            let line = self.masked(&String::from_utf8_lossy(line));
            kept.push(line.chars().take(STRAY_LINE_CHARS_KEPT).collect());
        }
    }

    pub(crate) fn notification(&self, method: &str) {
        self.notifications_total.fetch_add(1, Ordering::Relaxed);
        if method == "notifications/tools/list_changed" {
            self.outdate_list();
        }
    }

    /// From now on the server tells of changes. What changed since a list was begun to be read,
    /// if one was, it has told nobody.
    pub(crate) fn acknowledge(&self, promised: Promised) {
        if promised.tools && self.is_list_begun.load(Ordering::SeqCst) {
            self.outdate_list();
        }
        if let Some(uris) = promised.uris {
            self.watched.send_replace(uris);
        }
        self.acknowledged.send_modify(|count| *count += 1);
    }

    /// The addresses that a server has promised last to tell of.
    pub(super) fn watched(&self) -> watch::Receiver<BTreeSet<String>> {
        self.watched.subscribe()
    }

    /// Counts how often a server has said that it will tell of changes.
    pub(crate) fn acknowledged(&self) -> watch::Receiver<u64> {
        self.acknowledged.subscribe()
    }

    /// The list that was read may no longer be the server's.
    pub(crate) fn outdate_list(&self) {
        self.changes_total.fetch_add(1, Ordering::SeqCst);
        self.bell.notify_one();
    }

    /// To be asked before the list is read: what is told from here on is about a later one.
    pub(crate) fn changes(&self) -> u64 {
        self.is_list_begun.store(true, Ordering::SeqCst);
        self.changes_total.load(Ordering::SeqCst)
    }

    /// The list was read, with all changes until then in it.
    pub(crate) fn list_is_read(&self, changes: u64) {
        self.wait_with(None);
        self.changes_read.fetch_max(changes, Ordering::SeqCst);
    }

    /// The list that was read last does not hold longer, unless it is read again before.
    pub(crate) fn list_holds_for(self: &Arc<Self>, time: Duration) {
        let time = time.clamp(HOLDS_MIN, HOLDS_MAX);
        let kept = Arc::downgrade(self);
        let waiting = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(diagnostics) = kept.upgrade() {
                diagnostics.outdate_list();
            }
        });
        self.wait_with(Some(waiting.abort_handle()));
    }

    fn wait_with(&self, waiting: Option<AbortHandle>) {
        let before = std::mem::replace(&mut *lock(&self.holding), waiting);
        if let Some(before) = before {
            before.abort();
        }
    }

    pub(crate) fn is_list_outdated(&self) -> bool {
        self.changes_read.load(Ordering::SeqCst) < self.changes_total.load(Ordering::SeqCst)
    }

    pub(crate) fn unmatched(&self) {
        self.unmatched_total.fetch_add(1, Ordering::Relaxed);
    }

    /// A server that was started anew may have another list.
    pub(crate) fn connected(&self) {
        self.is_list_begun.store(false, Ordering::SeqCst);
        if self.connects_total.fetch_add(1, Ordering::Relaxed) > 0 {
            self.outdate_list();
            self.tell(News::Prompts);
            self.tell(News::Resources);
        }
    }

    /// What may explain why it cannot be used: the last line of stderr that says something, or
    /// else the first on its stdout that is no message.
    pub(crate) fn last_words(&self) -> Option<String> {
        let text = self.end_of_stderr();
        let mut lines = text.lines().rev().map(str::trim);
        if let Some(line) = lines.find(|line| !line.is_empty()) {
            return Some(format!("the last line on its stderr: {line}"));
        }
        let stray = lock(&self.stray).first()?.trim().to_owned();
        Some(format!(
            "a line on its stdout is not a JSON-RPC message: {stray}"
        ))
    }

    /// Masked. When its beginning was dropped, it may begin within a secret: then
    /// as much more is left out as a secret is long.
    fn end_of_stderr(&self) -> String {
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let masked = self.masked(&String::from_utf8_lossy(&bytes));
        if bytes.len() < STDERR_BYTES_KEPT {
            return masked;
        }
        let begin = (self.secrets.longest_bytes()..=masked.len())
            .find(|at| masked.is_char_boundary(*at))
            .unwrap_or(masked.len());
        masked.get(begin..).unwrap_or_default().to_owned()
    }

    pub(crate) fn report(&self) -> Report {
        Report {
            stderr: self.end_of_stderr(),
            stray_lines: lock(&self.stray).clone(),
            stray_total: self.stray_total.load(Ordering::Relaxed),
            notifications_total: self.notifications_total.load(Ordering::Relaxed),
            unmatched_total: self.unmatched_total.load(Ordering::Relaxed),
            connects_total: self.connects_total.load(Ordering::Relaxed),
            list_changed: self.is_list_outdated(),
        }
    }
}

/// Nothing that is done under these locks can leave a value half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_stderr_and_the_first_stray_lines_are_kept() {
        let diagnostics = Diagnostics::default();
        for n in 0..20_000 {
            diagnostics.stderr(format!("line {n}\n").as_bytes());
            diagnostics.stray(format!("stray {n}").as_bytes());
        }
        let report = diagnostics.report();
        assert_eq!(report.stderr.len(), STDERR_BYTES_KEPT);
        assert!(report.stderr.ends_with("line 19999\n"));
        assert_eq!(
            (report.stray_lines.len(), report.stray_total),
            (STRAY_LINES_KEPT, 20_000)
        );
        let words = diagnostics.last_words().unwrap();
        assert_eq!(words, "the last line on its stderr: line 19999");
        let silent = Diagnostics::default();
        assert_eq!(silent.last_words(), None);
        silent.stray(b" Welcome! \n");
        silent.stray(b"more\n");
        let words = silent.last_words().unwrap();
        assert_eq!(
            words,
            "a line on its stdout is not a JSON-RPC message: Welcome!"
        );
    }

    #[test]
    fn a_secret_that_lies_across_a_cut_leaves_nothing_behind() {
        let secret = "tok-0123456789";
        let diagnostics = Diagnostics::new(Secrets::new([secret]));
        for before in STRAY_LINE_CHARS_KEPT - 20..STRAY_LINE_CHARS_KEPT {
            let diagnostics = Diagnostics::new(Secrets::new([secret]));
            diagnostics.stray(format!("{}{secret} end", "x".repeat(before)).as_bytes());
            let kept = diagnostics.report().stray_lines.remove(0);
            assert!(!kept.contains("tok"), "{kept}");
        }
        diagnostics.stderr(secret.as_bytes());
        diagnostics.stderr(&vec![b'y'; STDERR_BYTES_KEPT - 2 * secret.len()]);
        for _ in 0..secret.len() {
            diagnostics.stderr(b"y");
            let kept = diagnostics.report().stderr;
            assert!(!kept.contains("456789"), "{kept}");
        }
        diagnostics.stderr(b"yyyyy");
        let kept = diagnostics.report().stderr;
        assert!(kept.bytes().all(|byte| byte == b'y'), "{kept}");
    }
}
