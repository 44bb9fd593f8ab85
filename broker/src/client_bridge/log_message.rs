//! Passes log messages of a server during a call to the host that made the call.

use airlock_core::id::ServerName;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Maximum number of messages that wait to be read by a host. Further messages are dropped.
const WAITING_MAX: usize = 256;

/// The log levels of the protocol.
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

/// One log message of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct LogMessage {
    pub server: ServerName,
    pub level: LogLevel,
    /// The part of the server that logged the message.
    pub logger: Option<String>,
    /// Any value, with known credentials masked.
    pub data: Value,
}

/// Receives the log messages of one run, from a minimum level on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LogSink {
    level: LogLevel,
    to: mpsc::Sender<LogMessage>,
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
    pub fn from_word(word: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(it, _)| *it == word);
        found.map(|(_, level)| level)
    }

    #[must_use]
    pub fn word(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, it)| *it == self);
        found.map_or("emergency", |(word, _)| word)
    }
}

impl LogSink {
    #[must_use]
    pub fn new(level: LogLevel) -> (Self, mpsc::Receiver<LogMessage>) {
        let (to, log_sink) = mpsc::channel(WAITING_MAX);
        let lost = Arc::default();
        (Self { level, to, lost }, log_sink)
    }

    /// Returns the number of messages that were dropped because they were not read in time.
    #[must_use]
    pub fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    pub(crate) fn level(&self) -> LogLevel {
        self.level
    }

    /// Adds a message without waiting. If the host does not read, the message is dropped.
    pub(crate) fn add(&self, log_message: LogMessage) {
        if log_message.level >= self.level && self.to.try_send(log_message).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_level_and_queue_bound_limit_messages() {
        let (log_sink, mut passed) = LogSink::new(LogLevel::Warning);
        let log_message = |level| LogMessage {
            server: ServerName("s".into()),
            level,
            logger: None,
            data: Value::Null,
        };
        for word in ["debug", "notice", "warning", "emergency"] {
            let level = LogLevel::from_word(word).unwrap();
            assert_eq!(level.word(), word);
            log_sink.add(log_message(level));
        }
        let mut levels = || passed.try_recv().ok().map(|it| it.level);
        assert_eq!(levels(), Some(LogLevel::Warning));
        assert_eq!(levels(), Some(LogLevel::Emergency));
        assert_eq!(levels(), None);
        assert_eq!(LogLevel::from_word("Warning"), None);
        for _ in 0..2 * WAITING_MAX {
            log_sink.add(log_message(LogLevel::Error));
        }
        assert_eq!(passed.len(), WAITING_MAX);
        assert_eq!(log_sink.lost().load(Ordering::Relaxed), WAITING_MAX as u64);
    }
}
