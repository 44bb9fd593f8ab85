//! What servers log while their tools are called, as a host gets it: under the
//! server's name, with nothing hidden in it, and from the level on that the host
//! wants. A host of the older era says which once, one of the newer with each request.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::inquiring::SERVER_KEY;
use super::request::Request;
use super::rpc::Refusal;
use crate::carrier::{LogLevel, Remark};
use crate::render::escape;
use crate::upstream::Era;

/// What a host of the older era hears that has not said how much it wants.
const UNSAID: LogLevel = LogLevel::Info;
/// Remarks of one run; more are left out, and the last one says so.
const REMARKS_MAX: usize = 1_000;
const DATA_BYTES_MAX: usize = 16 * 1024;
const DATA_CHARS_SHOWN: usize = 2_000;
const LOGGER_CHARS_MAX: usize = 100;
const METHOD: &str = "notifications/message";
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// The remarks of one run on their way to whoever follows it.
#[derive(Debug)]
pub(super) struct Remarked {
    remarks: Option<mpsc::Receiver<Remark>>,
    told: usize,
}

impl Remarked {
    pub(super) fn new(remarks: Option<mpsc::Receiver<Remark>>) -> Self {
        Self { remarks, told: 0 }
    }

    /// The next one; never when there will be none.
    pub(super) async fn next(&mut self) -> Remark {
        let next = match &mut self.remarks {
            Some(remarks) => remarks.recv().await,
            None => None,
        };
        match next {
            Some(next) => next,
            None => {
                self.remarks = None;
                std::future::pending().await
            }
        }
    }

    /// What has come before the end of the run, so that it is told before that.
    pub(super) async fn tell_rest(&mut self, request: &Request) {
        while let Some(Ok(remark)) = self.remarks.as_mut().map(mpsc::Receiver::try_recv) {
            self.tell(request, remark).await;
        }
    }

    pub(super) async fn tell(&mut self, request: &Request, remark: Remark) {
        let is_wanted = level_of(request).is_some_and(|wanted| remark.level >= wanted);
        if !is_wanted || self.told > REMARKS_MAX {
            return;
        }
        self.told += 1;
        let params = if self.told > REMARKS_MAX {
            let data = format!("more than {REMARKS_MAX} messages in one run; the rest is left out");
            json!({"level": "warning", "logger": "airlock", "data": data})
        } else {
            params(remark)
        };
        request.peer.notify(METHOD, &params).await;
    }
}

/// From which level on the host of a request wants to hear what is logged; none when not at all.
pub(super) fn level_of(request: &Request) -> Option<LogLevel> {
    match request.era {
        Era::Legacy => Some(request.session.log_level().unwrap_or(UNSAID)),
        Era::Modern => {
            let level = request.params.get("_meta")?.get(LEVEL_KEY)?;
            LogLevel::of(level.as_str()?)
        }
    }
}

/// `logging/setLevel` of the older era.
pub(super) fn set_level(request: &Request) -> Result<Value, Refusal> {
    let level = request.params.get("level").and_then(Value::as_str);
    let level = level.and_then(LogLevel::of).ok_or_else(|| {
        let why =
            "`level` is none of debug, info, notice, warning, error, critical, alert, emergency";
        Refusal::invalid(why)
    })?;
    request.session.set_log_level(level);
    Ok(json!({}))
}

fn params(remark: Remark) -> Value {
    let server = &*remark.server.0;
    let logger = match &remark.logger {
        Some(theirs) => format!("{server}: {}", escape::brief(theirs, LOGGER_CHARS_MAX)),
        None => server.to_owned(),
    };
    json!({
        "level": remark.level.word(),
        "logger": logger,
        "data": shown(remark.data),
        "_meta": { SERVER_KEY: server },
    })
}

/// The same value with texts that hide nothing; of a large one only its beginning, as text.
fn shown(mut data: Value) -> Value {
    let text = data.to_string();
    if text.len() > DATA_BYTES_MAX {
        let cut: String = escape::line(&text).chars().take(DATA_CHARS_SHOWN).collect();
        return format!("{cut}… and more, {} bytes in all", text.len()).into();
    }
    escape_texts(&mut data);
    data
}

/// The data is of bounded depth.
fn escape_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape::block(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(escape_texts),
        Value::Object(members) => {
            let all = std::mem::take(members).into_iter();
            members.extend(all.map(|(key, mut value)| {
                escape_texts(&mut value);
                (escape::line(&key).into_owned(), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlock_core::id::ServerName;

    fn told(logger: Option<&str>, data: Value) -> Value {
        params(Remark {
            server: ServerName("files".into()),
            level: LogLevel::Notice,
            logger: logger.map(str::to_owned),
            data,
        })
    }

    #[test]
    fn a_remark_says_whose_it_is_and_hides_nothing() {
        let data = json!({"a\u{202e}": ["b\u{1b}[2J\nc", 1]});
        let remark = told(Some("d\u{200b}b"), data);
        let expected = json!({
            "level": "notice",
            "logger": "files: d\\u{200b}b",
            "data": {"a\\u{202e}": ["b\\u{1b}[2J\nc", 1]},
            "_meta": {SERVER_KEY: "files"},
        });
        assert_eq!(remark, expected);
        assert_eq!(told(None, Value::Null)["logger"], "files");
    }

    #[test]
    fn a_long_remark_is_cut_and_says_so() {
        let remark = told(None, json!(["x".repeat(20_000)]));
        let said = remark["data"].as_str().unwrap();
        assert!(said.ends_with("… and more, 20004 bytes in all"), "{said}");
        assert!(said.len() < 3_000);
    }
}
