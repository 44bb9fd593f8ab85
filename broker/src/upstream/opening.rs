//! A call that its server does not take before somebody has opened addresses: the
//! person behind the call is asked to, and then it is made once more.

use std::time::Duration;

use airlock_core::json::{self, Bounds};
use futures_util::future::try_join_all;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::connection::{Called, Connection};
use super::era::Era;
use super::inquiry::Behind;
use super::jsonrpc::{Answer, RpcError};
use super::link::LinkError;
use crate::carrier::Inquiry;

/// With this error a server says that it has done nothing, and what has to be opened first.
const CODE: i64 = -32_042;
const ADDRESSES_MAX: usize = 16;
/// After a yes, for the server to say that the address was done with; not every server does.
pub(crate) const DONE_WALL: Duration = Duration::from_secs(60);
const BOUNDS: Bounds = Bounds {
    bytes_max: 64 * 1024,
    depth_max: 16,
    nodes_max: 2_000,
};

/// What has to be opened first.
#[derive(Debug)]
pub(super) struct Wanted {
    error: RpcError,
    addresses: Vec<Value>,
}

impl Wanted {
    /// What an answer wants to be opened, when that can be read.
    pub(super) fn of(answer: &Answer) -> Option<Self> {
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

    /// Nothing when the person has said yes to all of it, and as far as can be known has done
    /// it; otherwise how the call ends. Nobody is asked anything unless all of it can be asked.
    pub(super) async fn open(
        &self,
        connection: &Connection,
        called: &Called<'_>,
    ) -> Option<Result<Answer, LinkError>> {
        let Some((behind, inquiries)) = self.inquiries(called) else {
            let why = "has to be opened first, and whoever runs this call cannot be asked to; \
                       open it and call again";
            return Some(Ok(self.ends(why)));
        };
        // Who speaks the newer era tells nobody.
        let newsdesk = called
            .newsdesk
            .filter(|_| connection.agreed.era == Era::Legacy);
        let asking = inquiries.into_iter().map(|inquiry| async move {
            let (done, is_done) = oneshot::channel();
            match newsdesk.zip(id(&inquiry)) {
                Some((newsdesk, id)) => newsdesk.hand_on_opened(id, done),
                None => drop(done),
            }
            let told = behind.ask_first(inquiry, is_done).await;
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

    /// It was opened, and that was not enough.
    pub(super) fn still(&self) -> Answer {
        let why = "was to be opened first, which somebody has said yes to, and the server still \
                   waits for it; do there what it asks for, and call again";
        self.ends(why)
    }

    fn inquiries<'a>(&self, called: &Called<'a>) -> Option<(&'a Behind, Vec<Inquiry>)> {
        let behind = called.behind?;
        let inquiry = |params: &Value| {
            let params = RawValue::from_string(params.to_string()).ok()?;
            behind.read("elicitation/create", Some(&params)).ok()
        };
        let inquiries = self.addresses.iter().map(inquiry);
        Some((behind, inquiries.collect::<Option<_>>()?))
    }

    /// The error, with what a person can do about it.
    fn ends(&self, why: &str) -> Answer {
        let url = |it: &Value| reqwest::Url::parse(it.get("url")?.as_str()?).ok();
        let urls = self.addresses.iter().filter_map(url);
        let urls: Vec<_> = urls.map(String::from).collect();
        let message = format!(
            "{} {why}. It says: {}",
            urls.join(" and "),
            self.error.message
        );
        Answer::Error(RpcError {
            message,
            ..self.error.clone()
        })
    }
}

/// The name of an address.
fn id(inquiry: &Inquiry) -> Option<&str> {
    inquiry.params.get("elicitationId")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(code: i64, data: &Value) -> Option<Wanted> {
        Wanted::of(&Answer::Error(RpcError {
            code,
            message: "sign in".into(),
            supported: Vec::new(),
            data: Some(data.to_string()),
        }))
    }

    #[test]
    fn what_has_to_be_opened_is_read_and_anything_else_is_an_error_like_others() {
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
    fn a_person_is_told_which_address_it_is() {
        let address = json!({"mode": "url", "url": "https://a.example/b c\u{1b}d"});
        let wanted = wanted(CODE, &json!({"elicitations": [address]})).unwrap();
        let Answer::Error(error) = wanted.still() else {
            panic!("{wanted:?}");
        };
        assert!(
            error
                .message
                .starts_with("https://a.example/b%20c%1Bd was to be opened")
        );
        assert!(
            error.message.ends_with("It says: sign in"),
            "{}",
            error.message
        );
    }
}
