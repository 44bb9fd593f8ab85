//! Collects diagnostics of a server, with bounded size: the end of its stderr, some invalid lines,
//! and counters.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::notifications::{NotificationSender, PromisedNotifications, ServerNotification};
use crate::secrets::Secrets;

const STDERR_BYTES_KEPT: usize = 32 * 1024;
const STRAY_LINES_KEPT: usize = 8;
/// Parts of lines that say why a program ended. Package managers and interpreters print other lines
/// after them.
const ERROR_MARKS: [&str; 2] = ["404 Not Found", "Error: "];
/// Minimum and maximum lifetime of a list. A shorter or longer lifetime sent by the server is
/// clamped to them.
const HOLDS_MIN: Duration = Duration::from_secs(30);
const HOLDS_MAX: Duration = Duration::from_secs(24 * 3_600);
const STRAY_LINE_CHARS_KEPT: usize = 240;
/// The notifications after which the tools, their groups and their tags are read again.
const TOOLS_CHANGED: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/groups/list_changed",
    "notifications/tags/list_changed",
];

/// Diagnostics of one server. Connections write them, and error messages use them. They outlive
/// reconnects.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    secrets: Secrets,
    stderr: Mutex<VecDeque<u8>>,
    stray: Mutex<Vec<String>>,
    stray_total: AtomicU64,
    notifications_total: AtomicU64,
    unmatched_total: AtomicU64,
    connects_total: AtomicU64,
    /// Number of changes of the list that were reported or may have happened, for example during a
    /// reconnect.
    changes_total: AtomicU64,
    /// Value of `changes_total` that the last read of the list includes.
    changes_read: AtomicU64,
    /// Whether the list is being read, or was read, over the current connection.
    is_list_begun: AtomicBool,
    /// Number of acknowledged subscriptions.
    acknowledged: watch::Sender<u64>,
    watched: watch::Sender<BTreeSet<String>>,
    /// The timer that ends the lifetime of the list that was last read.
    holding: Mutex<Option<AbortHandle>>,
    /// Notified when the list that was last read is outdated.
    wake: Arc<Notify>,
    /// Publishes the server's notifications other than those about its tools.
    notifier: Option<NotificationSender>,
}

/// A copy of the diagnostics for display.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiagnosticsReport {
    /// The end of the server's stderr output.
    pub stderr: String,
    /// The first lines on the server's stdout that were not JSON-RPC.
    pub stray_lines: Vec<String>,
    pub stray_total: u64,
    pub notifications_total: u64,
    /// Number of answers without a waiting request: late answers, or answers with an id that was
    /// never sent.
    pub unmatched_total: u64,
    pub connects_total: u64,
    /// Whether the server reported that its list of tools has changed since it was read.
    pub list_changed: bool,
}

impl Diagnostics {
    pub(crate) fn new(secrets: Secrets) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    pub(crate) fn ringing(self, wake: Arc<Notify>) -> Self {
        Self { wake, ..self }
    }

    pub(crate) fn telling(self, notifier: NotificationSender) -> Self {
        Self {
            notifier: Some(notifier),
            ..self
        }
    }

    pub(super) fn notifier(&self) -> Option<&NotificationSender> {
        self.notifier.as_ref()
    }

    pub(crate) fn tell(&self, news: ServerNotification) {
        if let Some(notifier) = &self.notifier {
            notifier.tell(news);
        }
    }

    /// Returns the credentials to mask in every text about this server.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    fn masked(&self, text: &str) -> String {
        self.secrets.redact(text).unwrap_or_else(|| text.to_owned())
    }

    /// Forgets what an earlier process of the server wrote to its stderr.
    pub(crate) fn process_started(&self) {
        lock(&self.stderr).clear();
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
            // The line is masked before it is cut, because the cut could leave half of a secret.
            let line = self.masked(&String::from_utf8_lossy(line));
            kept.push(line.chars().take(STRAY_LINE_CHARS_KEPT).collect());
        }
    }

    pub(crate) fn notification(&self, method: &str) {
        self.notifications_total.fetch_add(1, Ordering::Relaxed);
        if TOOLS_CHANGED.contains(&method) {
            self.outdate_list();
        }
    }

    /// Records that the server will report changes from now on. A read of the list that has already
    /// begun may have missed earlier changes, so the list then counts as outdated.
    pub(crate) fn acknowledge(&self, promised: PromisedNotifications) {
        if promised.tools && self.is_list_begun.load(Ordering::SeqCst) {
            self.outdate_list();
        }
        if let Some(uris) = promised.uris {
            self.watched.send_replace(uris);
        }
        self.acknowledged.send_modify(|count| *count += 1);
    }

    /// Returns the addresses whose changes the server last promised to report.
    pub(super) fn watched(&self) -> watch::Receiver<BTreeSet<String>> {
        self.watched.subscribe()
    }

    /// Returns the number of acknowledged subscriptions.
    pub(crate) fn acknowledged(&self) -> watch::Receiver<u64> {
        self.acknowledged.subscribe()
    }

    /// Marks the list that was read as outdated.
    pub(crate) fn outdate_list(&self) {
        self.changes_total.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// Returns the number of changes. Must be called before the list is read: later changes are not
    /// included in that list.
    pub(crate) fn changes(&self) -> u64 {
        self.is_list_begun.store(true, Ordering::SeqCst);
        self.changes_total.load(Ordering::SeqCst)
    }

    /// Records that the list was read, and that it includes all changes up to this number.
    pub(crate) fn list_is_read(&self, changes: u64) {
        self.wait_with(None);
        self.changes_read.fetch_max(changes, Ordering::SeqCst);
    }

    /// Marks the list as outdated after this time, unless it is read again before.
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

    /// Counts a connection. A restarted server may have another list, so the list counts as
    /// outdated.
    pub(crate) fn connected(&self) {
        self.is_list_begun.store(false, Ordering::SeqCst);
        if self.connects_total.fetch_add(1, Ordering::Relaxed) > 0 {
            self.outdate_list();
            self.tell(ServerNotification::Prompts);
            self.tell(ServerNotification::Resources);
        }
    }

    /// Returns a line that may explain a failure: the first line of stderr that names an error, or
    /// the last non-empty one, or else the first invalid line on stdout.
    pub(crate) fn last_words(&self) -> Option<String> {
        let text = self.end_of_stderr();
        let of_error = ERROR_MARKS
            .iter()
            .find_map(|mark| text.lines().find(|line| line.contains(mark)));
        if let Some(line) = of_error {
            return Some(format!("a line on its stderr: {}", line.trim()));
        }
        let mut lines = text.lines().rev().map(str::trim);
        if let Some(line) = lines.find(|line| !line.is_empty()) {
            return Some(format!("the last line on its stderr: {line}"));
        }
        let stray = lock(&self.stray).first()?.trim().to_owned();
        Some(format!(
            "a line on its stdout is not a JSON-RPC message: {stray}"
        ))
    }

    /// Returns the end of stderr, with credentials masked. If its beginning was dropped, the text
    /// may start within a secret that masking cannot recognise. Then as many bytes as the longest
    /// configured secret are dropped too. So is the rest of the word after them, because a token
    /// can have any length.
    fn end_of_stderr(&self) -> String {
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let masked = self.masked(&String::from_utf8_lossy(&bytes));
        if bytes.len() < STDERR_BYTES_KEPT {
            return masked;
        }
        let begin = (self.secrets.longest_bytes()..=masked.len())
            .find(|at| masked.is_char_boundary(*at))
            .unwrap_or(masked.len());
        let rest = masked.get(begin..).unwrap_or_default();
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest.get(word..).unwrap_or_default().to_owned()
    }

    pub(crate) fn report(&self) -> DiagnosticsReport {
        DiagnosticsReport {
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

/// Locks a mutex and ignores poisoning: no code under these locks can leave a value in an
/// inconsistent state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_names_the_error_explains_more_than_the_last_one() {
        for (text, expected) in [
            (
                "npm error code E404\nnpm error 404 Not Found - GET /x\nnpm error A complete log",
                "a line on its stderr: npm error 404 Not Found - GET /x",
            ),
            (
                "node:1\nError: Cannot find module 'x'\n    at a\n",
                "a line on its stderr: Error: Cannot find module 'x'",
            ),
            ("one\ntwo\n\n", "the last line on its stderr: two"),
        ] {
            let diagnostics = Diagnostics::default();
            diagnostics.stderr(text.as_bytes());
            assert_eq!(diagnostics.last_words().unwrap(), expected);
        }
    }

    #[test]
    fn stderr_tail_and_first_stray_lines_are_kept() {
        let diagnostics = Diagnostics::default();
        for n in 0..20_000 {
            diagnostics.stderr(format!("line {n}\n").as_bytes());
            diagnostics.stray(format!("stray {n}").as_bytes());
        }
        let report = diagnostics.report();
        let kept = STDERR_BYTES_KEPT - "line 19999".len()..=STDERR_BYTES_KEPT;
        assert!(kept.contains(&report.stderr.len()));
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
    fn secret_across_cut_is_redacted() {
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
        diagnostics.stderr(b"yyyyy end");
        let kept = diagnostics.report().stderr;
        assert_eq!(kept, " end");
    }
}
