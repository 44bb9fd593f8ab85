//! Handles calls that a server refuses until URLs have been opened. The person is asked to open the
//! URLs, and the call is repeated once.

use std::time::Duration;

use airlock_core::json::{self, Bounds};
use futures_util::future::try_join_all;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::connection::{CallRequest, Connection};
use super::era::Era;
use super::jsonrpc::{Answer, RpcError};
use super::outgoing::LinkError;
use super::server_request::{CallOrigin, Completion};
use crate::client_bridge::ServerRequest;

/// Error code of a server that has done nothing and requires URLs to be opened first.
const CODE: i64 = -32_042;
const ADDRESSES_MAX: usize = 16;
/// Maximum time to wait for the server to report completion after the person has agreed. Not every
/// server reports completion.
pub(crate) const DONE_WALL: Duration = Duration::from_secs(60);
const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024,
    depth_max: 16,
    nodes_max: 2_000,
};

/// The URLs that must be opened first.
#[derive(Debug)]
pub(super) struct RequiredUrls {
    error: RpcError,
    addresses: Vec<Value>,
}

impl RequiredUrls {
    /// Returns the URLs that an answer requires, if they are valid.
    pub(super) fn from_answer(answer: &Answer) -> Option<Self> {
        let Answer::Error(error) = answer else {
            return None;
        };
        let data = error.data.as_ref().filter(|_| error.code == CODE)?;
        let data = json::read(data.as_bytes(), BOUNDS).ok()?;
        let addresses = data.get("elicitations")?.as_array()?;
        let is_address = |it: &Value| it.get("mode").and_then(Value::as_str) == Some("url");
        let fits = (1..=ADDRESSES_MAX).contains(&addresses.len());
        (fits && addresses.iter().all(is_address)).then(|| Self {
            error: error.clone(),
            addresses: addresses.clone(),
        })
    }

    /// Asks the person to open the URLs. Returns `None` if the person agreed to all of them and, as
    /// far as airlock can know, opened them. Otherwise returns the result of the call. The person
    /// is asked only if all inquiries are valid and supported.
    pub(super) async fn open(
        &self,
        connection: &Connection,
        called: &CallRequest<'_>,
    ) -> Option<Result<Answer, LinkError>> {
        let Some((origin, inquiries)) = self.inquiries(called) else {
            let why = "must be opened first, but this run cannot ask a person to open it; open it \
                       and call again";
            return Some(Ok(self.ends(why)));
        };
        // A server of the newer era does not report completion.
        let notifier = called
            .notifier
            .filter(|_| connection.negotiated.era == Era::Legacy);
        let asking = inquiries.into_iter().map(|inquiry| async move {
            let (done, is_done) = oneshot::channel();
            match notifier.zip(id(&inquiry)) {
                Some((notifier, id)) => notifier.hand_on_opened(id, done),
                None => drop(done),
            }
            let completion = Completion::Reported(is_done);
            let told = origin.ask_first(inquiry, completion).await;
            match told.ok().as_ref().and_then(|it| it.get("action")?.as_str()) {
                Some("accept") => Ok(()),
                Some("decline") => Err(true),
                _ => Err(false),
            }
        });
        let opened = try_join_all(asking).await.map(drop);
        let unopened = |was_declined| Err(LinkError::Unopened { was_declined });
        opened.err().map(unopened)
    }

    /// Returns the error for a server that still requires URLs after they were opened.
    pub(super) fn still(&self) -> Answer {
        let why = "had to be opened first. A person agreed, but the server still requires it. Do \
                   what the page asks for, and call again";
        self.ends(why)
    }

    fn inquiries<'a>(
        &self,
        called: &CallRequest<'a>,
    ) -> Option<(&'a CallOrigin, Vec<ServerRequest>)> {
        let origin = called.origin?;
        let inquiry = |params: &Value| {
            let params = RawValue::from_string(params.to_string()).ok()?;
            origin.read("elicitation/create", Some(&params)).ok()
        };
        let inquiries = self.addresses.iter().map(inquiry);
        Some((origin, inquiries.collect::<Option<_>>()?))
    }

    /// Returns the error with advice for the person.
    fn ends(&self, why: &str) -> Answer {
        let url = |it: &Value| reqwest::Url::parse(it.get("url")?.as_str()?).ok();
        let urls = self.addresses.iter().filter_map(url);
        let urls: Vec<_> = urls.map(String::from).collect();
        let message = format!(
            "{} {why}. Server message: {}",
            urls.join(" and "),
            self.error.message
        );
        Answer::Error(RpcError {
            message,
            ..self.error.clone()
        })
    }
}

/// Returns the id of a URL elicitation.
fn id(inquiry: &ServerRequest) -> Option<&str> {
    inquiry.params.get("elicitationId")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(code: i64, data: &Value) -> Option<RequiredUrls> {
        RequiredUrls::from_answer(&Answer::Error(RpcError {
            code,
            message: "sign in".into(),
            supported: Vec::new(),
            data: Some(data.to_string()),
        }))
    }

    #[test]
    fn url_elicitation_error_is_parsed_and_others_pass_through() {
        let address = json!({"mode": "url", "url": "https://a.example/", "message": "m", "elicitationId": "1"});
        let read = wanted(CODE, &json!({"elicitations": [address, address]}));
        assert_eq!(read.unwrap().addresses.len(), 2);
        let many = vec![address.clone(); ADDRESSES_MAX + 1];
        for (code, data) in [
            (CODE - 1, json!({"elicitations": [address]})),
            (CODE, json!({"elicitations": []})),
            (CODE, json!({"elicitations": many})),
            (CODE, json!({"elicitations": [{"mode": "form"}]})),
            (CODE, json!({"elicitations": address})),
            (CODE, json!({})),
            (CODE, json!([])),
        ] {
            assert!(wanted(code, &data).is_none(), "{code} {data}");
        }
    }

    #[test]
    fn person_sees_the_address_to_open() {
        let address = json!({"mode": "url", "url": "https://a.example/b c\u{1b}d"});
        let wanted = wanted(CODE, &json!({"elicitations": [address]})).unwrap();
        let Answer::Error(error) = wanted.still() else {
            panic!("{wanted:?}");
        };
        assert!(
            error
                .message
                .starts_with("https://a.example/b%20c%1Bd had to be opened")
        );
        assert!(
            error.message.ends_with("Server message: sign in"),
            "{}",
            error.message
        );
    }
}
