//! The way back to a host while one of its requests is worked on: notifications,
//! and requests of ours that it answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::upstream::jsonrpc::{self, Answer};

/// Messages that wait for a host to read them; whoever has more to say waits.
pub(super) const OUTBOX_MESSAGES: usize = 256;

/// Where messages for one host go. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    outbox: mpsc::Sender<Vec<u8>>,
}

/// Our own requests that a host has not answered yet.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    latest: u64,
    waiting: HashMap<u64, oneshot::Sender<Option<Value>>>,
}

impl Peer {
    pub(super) fn new(outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self { outbox }
    }

    /// False when nobody reads any more.
    pub(super) async fn send(&self, message: Vec<u8>) -> bool {
        self.outbox.send(message).await.is_ok()
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        self.send(jsonrpc::notification(method, &params.to_string()))
            .await;
    }

    /// Asks the host. None when it cannot, will not, or is gone.
    pub(super) async fn ask(
        &self,
        open: &OpenRequests,
        method: &str,
        params: &Value,
    ) -> Option<Value> {
        let (id, answer) = open.begin();
        let withdrawn = Withdrawn { open, id };
        let sent = self
            .send(jsonrpc::request(id, method, &params.to_string()))
            .await;
        let answer = if sent {
            answer.await.ok().flatten()
        } else {
            None
        };
        drop(withdrawn);
        answer
    }
}

/// Whoever stops waiting is not answered any more.
struct Withdrawn<'a> {
    open: &'a OpenRequests,
    id: u64,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.open.lock().waiting.remove(&self.id);
    }
}

impl OpenRequests {
    fn begin(&self) -> (u64, oneshot::Receiver<Option<Value>>) {
        let (answer, answered) = oneshot::channel();
        let mut open = self.lock();
        open.latest += 1;
        let id = open.latest;
        open.waiting.insert(id, answer);
        (id, answered)
    }

    /// An answer to nothing that we asked is passed over.
    pub(super) fn answered(&self, id: u64, answer: Answer) {
        let Some(waiting) = self.lock().waiting.remove(&id) else {
            return;
        };
        let result = match answer {
            Answer::Result(raw) => super::rpc::params(Some(&raw)).ok(),
            Answer::Error(_) | Answer::Unreadable(_) => None,
        };
        let _ = waiting.send(result);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::jsonrpc::Incoming;
    use serde_json::json;

    #[tokio::test]
    async fn an_answer_reaches_who_asked_and_nobody_else() {
        let (outbox, mut sent) = mpsc::channel(4);
        let (peer, open) = (Peer::new(outbox), OpenRequests::default());
        let params = json!({"message": "?"});
        let asking = peer.ask(&open, "elicitation/create", &params);
        let host = async {
            let request = sent.recv().await.unwrap();
            let text = String::from_utf8(request).unwrap();
            assert!(text.contains(r#""method":"elicitation/create""#), "{text}");
            for (id, result) in [(77, r#"{"a":0}"#), (1, r#"{"a":1}"#), (1, r#"{"a":2}"#)] {
                let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                let Incoming::Answer { id, answer } = jsonrpc::parse(message.as_bytes()) else {
                    panic!("{message}");
                };
                open.answered(id, answer);
            }
        };
        let (answer, ()) = futures_util::join!(asking, host);
        assert_eq!(answer, Some(json!({"a": 1})));
        assert!(open.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn a_host_that_is_gone_answers_nothing() {
        let (outbox, sent) = mpsc::channel(4);
        drop(sent);
        let open = OpenRequests::default();
        assert_eq!(Peer::new(outbox).ask(&open, "x", &json!({})).await, None);
        assert!(open.lock().waiting.is_empty());
    }
}
