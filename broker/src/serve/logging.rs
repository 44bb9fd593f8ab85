//! Forwards servers' log messages to the host during a call. Each message names its server, and
//! invisible characters are escaped. Messages below the level that the host wants are dropped. A
//! host of the older era sets the level once; a host of the newer era sends it with each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airlock_core::id::ServerName;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::peer::Peer;
use super::rpc::SERVER_KEY;
use crate::client_bridge::{LogLevel, LogMessage, LogSink};
use crate::render::escape;

/// Maximum number of log messages per run. Further messages are dropped, and one last message
/// reports this.
const LOG_MESSAGES_MAX: usize = 1_000;
const DATA_BYTES_MAX: usize = 16 * 1024;
const DATA_CHARS_SHOWN: usize = 2_000;
const LOGGER_CHARS_MAX: usize = 100;
const METHOD: &str = "notifications/message";

/// The receiver of log messages.
pub(super) struct LogTarget<'a> {
    pub(super) peer: &'a Peer,
    /// The lowest level that the host wants; `None` if it wants no messages.
    pub(super) level: Option<LogLevel>,
    /// Called with the server's name before one of its messages is sent to the host.
    pub(super) before_send: &'a (dyn Fn(&ServerName) + Sync),
}

/// Forwards the log messages of one run to the host that follows the run.
#[derive(Debug)]
pub(super) struct LogForwarder {
    log_sink: Option<mpsc::Receiver<LogMessage>>,
    told: usize,
    /// Number of messages dropped because they were not read in time.
    lost: Arc<AtomicU64>,
}

impl LogForwarder {
    /// Creates a forwarder and, if the host wants log messages, the sink that receives servers'
    /// messages of at least this level.
    pub(super) fn new(level: Option<LogLevel>) -> (Self, Option<LogSink>) {
        let (log_sink, told) = level.map(LogSink::new).unzip();
        let forwarder = Self {
            log_sink: told,
            told: 0,
            lost: log_sink.as_ref().map(LogSink::lost).unwrap_or_default(),
        };
        (forwarder, log_sink)
    }

    /// Returns the next message. Never returns if there are no more.
    pub(super) async fn next(&mut self) -> LogMessage {
        let next = match &mut self.log_sink {
            Some(log_sink) => log_sink.recv().await,
            None => None,
        };
        match next {
            Some(next) => next,
            None => {
                self.log_sink = None;
                std::future::pending().await
            }
        }
    }

    /// Sends the remaining messages before the end of the run, and reports how many were dropped.
    pub(super) async fn tell_rest(&mut self, target: &LogTarget<'_>) {
        while let Some(Ok(log_message)) = self.log_sink.as_mut().map(mpsc::Receiver::try_recv) {
            self.tell(target, log_message);
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if let Some(words) = lost_in_words(target, lost) {
            // The run has already ended, so a wait for the host does not delay it.
            target.peer.notify(METHOD, &words).await;
        }
    }

    /// Sends one message. A log never delays a run, so a message that the host does not read in
    /// time is dropped and counted.
    pub(super) fn tell(&mut self, target: &LogTarget<'_>, log_message: LogMessage) {
        let is_wanted = target
            .level
            .is_some_and(|wanted| log_message.level >= wanted);
        if !is_wanted || self.told > LOG_MESSAGES_MAX {
            return;
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if let Some(words) = lost_in_words(target, lost) {
            if !target.peer.try_notify(METHOD, &words) {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            self.lost.fetch_sub(lost, Ordering::Relaxed);
        }
        self.told += 1;
        let params = if self.told > LOG_MESSAGES_MAX {
            of_ours(&format!(
                "more than {LOG_MESSAGES_MAX} messages in one run; further messages are dropped"
            ))
        } else {
            (target.before_send)(&log_message.server);
            params(log_message)
        };
        if !target.peer.try_notify(METHOD, &params) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn lost_in_words(target: &LogTarget<'_>, lost: u64) -> Option<Value> {
    let is_wanted = target
        .level
        .is_some_and(|wanted| wanted <= LogLevel::Warning);
    let words = format!("log messages dropped because the client read too slowly: {lost}");
    (lost > 0 && is_wanted).then(|| of_ours(&words))
}

fn of_ours(text: &str) -> Value {
    json!({"level": "warning", "logger": "airlock", "data": text})
}

fn params(log_message: LogMessage) -> Value {
    let server = &*log_message.server.0;
    let logger = match &log_message.logger {
        Some(theirs) => format!("{server}: {}", escape::brief(theirs, LOGGER_CHARS_MAX)),
        None => server.to_owned(),
    };
    json!({
        "level": log_message.level.word(),
        "logger": logger,
        "data": sanitize(log_message.data),
        "_meta": { SERVER_KEY: server },
    })
}

/// Returns the value with all texts escaped. A large value is reduced to its beginning, as text.
fn sanitize(mut data: Value) -> Value {
    let text = data.to_string();
    if text.len() > DATA_BYTES_MAX {
        let cut: String = escape::line(&text).chars().take(DATA_CHARS_SHOWN).collect();
        return format!("{cut}… (cut; {} bytes in total)", text.len()).into();
    }
    escape::texts(&mut data);
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    fn told(logger: Option<&str>, data: Value) -> Value {
        params(LogMessage {
            server: ServerName("files".into()),
            level: LogLevel::Notice,
            logger: logger.map(str::to_owned),
            data,
        })
    }

    #[test]
    fn log_message_names_server_and_is_escaped() {
        let data = json!({"a\u{202e}": ["b\u{1b}[2J\nc", 1]});
        let log_message = told(Some("d\u{200b}b"), data);
        let expected = json!({
            "level": "notice",
            "logger": "files: d\\u{200b}b",
            "data": {"a\\u{202e}": ["b\\u{1b}[2J\nc", 1]},
            "_meta": {SERVER_KEY: "files"},
        });
        assert_eq!(log_message, expected);
        assert_eq!(told(None, Value::Null)["logger"], "files");
        let alike = told(None, json!({"a\\u{202e}": 1, "a\u{202e}": 2}));
        assert_eq!(alike["data"], json!({"a\\u{202e}": 1, "a\\u{202e} (1)": 2}));
    }

    #[test]
    fn long_log_message_is_truncated_with_notice() {
        let log_message = told(None, json!(["x".repeat(20_000)]));
        let said = log_message["data"].as_str().unwrap();
        assert!(said.ends_with("… (cut; 20004 bytes in total)"), "{said}");
        assert!(said.len() < 3_000);
    }

    #[tokio::test]
    async fn slow_host_does_not_block_and_learns_missed_count() {
        // The channel holds two messages.
        let (outbox, mut told) = mpsc::channel(2);
        let target = LogTarget {
            peer: &Peer::new(outbox),
            level: Some(LogLevel::Info),
            before_send: &|_| {},
        };
        let (mut forwarder, log_sink) = LogForwarder::new(target.level);
        let log_message = |n: u64| LogMessage {
            server: ServerName("files".into()),
            level: LogLevel::Info,
            logger: None,
            data: n.into(),
        };
        for n in 1..=5 {
            forwarder.tell(&target, log_message(n));
        }
        let mut said = || {
            let message: Value = serde_json::from_slice(&told.try_recv().unwrap()).unwrap();
            message["params"]["data"].to_string()
        };
        assert_eq!([said(), said()], ["1", "2"]);
        // The channel has room again.
        forwarder.tell(&target, log_message(6));
        let lost = "\"log messages dropped because the client read too slowly: 3\"";
        assert_eq!([said(), said()], [lost, "6"]);
        // More messages arrive than the buffer holds.
        let log_sink = log_sink.unwrap();
        (0..300).for_each(|n| log_sink.add(log_message(n)));
        drop(log_sink);
        let rest = forwarder.tell_rest(&target);
        let hears = async {
            let (mut heard, mut lost) = (0, 0);
            while heard + lost < 300 {
                let message: Value = serde_json::from_slice(&told.recv().await.unwrap()).unwrap();
                let data = &message["params"]["data"];
                let number = data
                    .as_str()
                    .and_then(|it| it.rsplit_once(' ')?.1.parse().ok());
                heard += u64::from(data.is_number());
                lost += number.unwrap_or(0);
            }
            (heard, lost)
        };
        let ((), (heard, lost)) = futures_util::join!(rest, hears);
        assert_eq!((heard, lost), (1, 299));
    }
}
