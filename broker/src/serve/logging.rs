//! What servers log while their tools are called, as a host gets it: under the
//! server's name, with nothing hidden in it, and from the level on that the host
//! wants. A host of the older era says which once, one of the newer with each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::inquiring::SERVER_KEY;
use super::request::Request;
use super::rpc::Refusal;
use crate::broker::Broker;
use crate::carrier::{LogLevel, Remark, Remarks};
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
    broker: Broker,
    remarks: Option<mpsc::Receiver<Remark>>,
    told: usize,
    /// What nobody read in time.
    lost: Arc<AtomicU64>,
}

impl Remarked {
    /// Nothing where nobody wants to hear any; otherwise also where servers bring theirs.
    pub(super) fn of(request: &Request, broker: &Broker, passes: bool) -> (Self, Option<Remarks>) {
        let level = level_of(request).filter(|_| passes);
        let (remarks, told) = level.map(Remarks::new).unzip();
        let remarked = Self {
            broker: broker.clone(),
            remarks: told,
            told: 0,
            lost: remarks.as_ref().map(Remarks::lost).unwrap_or_default(),
        };
        (remarked, remarks)
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

    /// What has come before the end of the run, so that it is told before that; and how much
    /// was not.
    pub(super) async fn tell_rest(&mut self, request: &Request) {
        while let Some(Ok(remark)) = self.remarks.as_mut().map(mpsc::Receiver::try_recv) {
            self.tell(request, remark);
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if let Some(words) = lost_in_words(request, lost) {
            // The run is over, and waits for nobody.
            request.peer.notify(METHOD, &words).await;
        }
    }

    /// A log holds up no run: what the host does not read in time is counted.
    pub(super) fn tell(&mut self, request: &Request, remark: Remark) {
        let is_wanted = level_of(request).is_some_and(|wanted| remark.level >= wanted);
        if !is_wanted || self.told > REMARKS_MAX {
            return;
        }
        let lost = self.lost.load(Ordering::Relaxed);
        if let Some(words) = lost_in_words(request, lost) {
            if !request.peer.try_notify(METHOD, &words) {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            self.lost.fetch_sub(lost, Ordering::Relaxed);
        }
        self.told += 1;
        let params = if self.told > REMARKS_MAX {
            of_ours(&format!(
                "more than {REMARKS_MAX} messages in one run; the rest is left out"
            ))
        } else {
            request.session.hear_from(&self.broker, &remark.server);
            params(remark)
        };
        if !request.peer.try_notify(METHOD, &params) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn lost_in_words(request: &Request, lost: u64) -> Option<Value> {
    let is_wanted = level_of(request).is_some_and(|wanted| wanted <= LogLevel::Warning);
    let words = format!("log messages dropped because the client read too slowly: {lost}");
    (lost > 0 && is_wanted).then(|| of_ours(&words))
}

fn of_ours(text: &str) -> Value {
    json!({"level": "warning", "logger": "airlock", "data": text})
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
            "invalid `level`; expected one of debug, info, notice, warning, error, critical, alert, emergency";
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
            for (at, (key, mut value)) in std::mem::take(members).into_iter().enumerate() {
                escape_texts(&mut value);
                let mut shown = escape::line(&key).into_owned();
                // Two that look alike now stay two.
                while members.contains_key(&shown) {
                    shown.push_str(&format!(" ({at})"));
                }
                members.insert(shown, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::Cancel;
    use crate::scratch::Scratch;
    use crate::serve::kept::Storeroom;
    use crate::serve::peer::Peer;
    use crate::serve::session::HostSession;
    use crate::serve::settings::Settings;
    use airlock_core::id::ServerName;
    use serde_json::value::RawValue;

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
        let alike = told(None, json!({"a\\u{202e}": 1, "a\u{202e}": 2}));
        assert_eq!(alike["data"], json!({"a\\u{202e}": 1, "a\\u{202e} (1)": 2}));
    }

    #[test]
    fn a_long_remark_is_cut_and_says_so() {
        let remark = told(None, json!(["x".repeat(20_000)]));
        let said = remark["data"].as_str().unwrap();
        assert!(said.ends_with("… and more, 20004 bytes in all"), "{said}");
        assert!(said.len() < 3_000);
    }

    /// A host that has not read anything, and has room for two messages.
    fn deaf() -> (Request, mpsc::Receiver<Vec<u8>>) {
        let (outbox, told) = mpsc::channel(2);
        let session = HostSession::new("s".into(), &Settings::default(), &Storeroom::default(), 0);
        let request = Request {
            caller: Arc::default(),
            session: Arc::new(session),
            peer: Peer::new(outbox),
            id: RawValue::from_string("1".into()).unwrap(),
            era: Era::Legacy,
            params: json!({}),
            cancel: Cancel::new(),
            handle: None,
        };
        (request, told)
    }

    #[tokio::test]
    async fn a_host_that_does_not_read_holds_up_nothing_and_hears_how_much_it_missed() {
        let scratch = Scratch::new();
        let builder = Broker::builder().state_dir(scratch.path());
        let broker = builder.build().await.unwrap();
        let (request, mut told) = deaf();
        let (mut remarked, remarks) = Remarked::of(&request, &broker, true);
        let remark = |n: u64| Remark {
            server: ServerName("files".into()),
            level: LogLevel::Info,
            logger: None,
            data: n.into(),
        };
        for n in 1..=5 {
            remarked.tell(&request, remark(n));
        }
        let mut said = || {
            let message: Value = serde_json::from_slice(&told.try_recv().unwrap()).unwrap();
            message["params"]["data"].to_string()
        };
        assert_eq!([said(), said()], ["1", "2"]);
        // The way is free again.
        remarked.tell(&request, remark(6));
        let lost = "\"log messages dropped because the client read too slowly: 3\"";
        assert_eq!([said(), said()], [lost, "6"]);
        // More than wait for anybody.
        let remarks = remarks.unwrap();
        (0..300).for_each(|n| remarks.add(remark(n)));
        drop(remarks);
        let rest = remarked.tell_rest(&request);
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
