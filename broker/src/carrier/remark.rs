//! What a server logs while a call of its tools is worked on, on its way to the host
//! behind that call.

use airlock_core::id::ServerName;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Remarks that wait for a host to read them; what is logged meanwhile is dropped.
const WAITING_MAX: usize = 256;

/// How much something matters, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// One thing that a server has logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    pub server: ServerName,
    pub level: LogLevel,
    /// Which part of the server says so.
    pub logger: Option<String>,
    /// Anything; known credentials are struck.
    pub data: Value,
}

/// Where the remarks of one run go, and from which level on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Remarks {
    level: LogLevel,
    to: mpsc::Sender<Remark>,
    lost: Arc<AtomicU64>,
}

impl LogLevel {
    const ALL: [(&str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(it, _)| *it == word);
        found.map(|(_, level)| level)
    }

    #[must_use]
    pub fn word(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, it)| *it == self);
        found.map_or("emergency", |(word, _)| word)
    }
}

impl Remarks {
    #[must_use]
    pub fn new(level: LogLevel) -> (Self, mpsc::Receiver<Remark>) {
        let (to, remarks) = mpsc::channel(WAITING_MAX);
        let lost = Arc::default();
        (Self { level, to, lost }, remarks)
    }

    /// How many were dropped because nobody read them in time.
    #[must_use]
    pub fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    pub(crate) fn level(&self) -> LogLevel {
        self.level
    }

    /// Nobody waits for a host that does not read.
    pub(crate) fn add(&self, remark: Remark) {
        if remark.level >= self.level && self.to.try_send(remark).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_enough_is_passed_on_and_only_so_much_waits() {
        let (remarks, mut passed) = Remarks::new(LogLevel::Warning);
        let remark = |level| Remark {
            server: ServerName("s".into()),
            level,
            logger: None,
            data: Value::Null,
        };
        for word in ["debug", "notice", "warning", "emergency"] {
            let level = LogLevel::of(word).unwrap();
            assert_eq!(level.word(), word);
            remarks.add(remark(level));
        }
        let mut levels = || passed.try_recv().ok().map(|it| it.level);
        assert_eq!(levels(), Some(LogLevel::Warning));
        assert_eq!(levels(), Some(LogLevel::Emergency));
        assert_eq!(levels(), None);
        assert_eq!(LogLevel::of("Warning"), None);
        for _ in 0..2 * WAITING_MAX {
            remarks.add(remark(LogLevel::Error));
        }
        assert_eq!(passed.len(), WAITING_MAX);
        assert_eq!(remarks.lost().load(Ordering::Relaxed), WAITING_MAX as u64);
    }
}
