//! The way back to a host while one of its requests is worked on: notifications,
//! and requests of ours that it answers or that are taken back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::carrier::Said;
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
    waiting: HashMap<u64, oneshot::Sender<Said>>,
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

    /// False when there is no room for it right now; nobody waits for that.
    pub(super) fn try_notify(&self, method: &str, params: &Value) -> bool {
        let message = jsonrpc::notification(method, &params.to_string());
        self.outbox.try_send(message).is_ok()
    }

    /// Asks the host. Nothing is said when it is gone. Dropping this takes the question back.
    pub(super) async fn ask(&self, open: &OpenRequests, method: &str, params: &Value) -> Said {
        let (id, answer) = open.begin();
        let mut asked = Asked {
            peer: self,
            open,
            id,
            is_sent: false,
        };
        asked.is_sent = self
            .send(jsonrpc::request(id, method, &params.to_string()))
            .await;
        if asked.is_sent {
            answer.await.unwrap_or(Said::Nothing)
        } else {
            Said::Nothing
        }
    }
}

/// One request of ours, until it is answered or nobody waits for the answer any more.
struct Asked<'a> {
    peer: &'a Peer,
    open: &'a OpenRequests,
    id: u64,
    is_sent: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let waiting = self.open.lock().waiting.remove(&self.id);
        if waiting.is_some() && self.is_sent {
            let params = json!({"requestId": self.id, "reason": "it is not needed any more"});
            let params = params.to_string();
            let cancelled = jsonrpc::notification("notifications/cancelled", &params);
            // A host that reads nothing hears nothing of it.
            let _ = self.peer.outbox.try_send(cancelled);
        }
    }
}

impl OpenRequests {
    fn begin(&self) -> (u64, oneshot::Receiver<Said>) {
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
        let unreadable = || Said::Error {
            code: super::rpc::INTERNAL,
            message: "the answer cannot be read".to_owned(),
        };
        let said = match answer {
            Answer::Result(raw) => {
                let result = super::rpc::params(Some(&raw));
                result.map_or_else(|_| unreadable(), Said::Result)
            }
            Answer::Error(error) => Said::Error {
                code: error.code,
                message: error.message,
            },
            Answer::Unreadable(_) => unreadable(),
        };
        let _ = waiting.send(said);
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
        assert_eq!(answer, Said::Result(json!({"a": 1})));
        assert!(open.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn what_a_host_refuses_is_not_nothing() {
        let (outbox, _sent) = mpsc::channel(4);
        let (peer, open) = (Peer::new(outbox), OpenRequests::default());
        let params = json!({});
        let asking = peer.ask(&open, "sampling/createMessage", &params);
        let host = async {
            let message = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#;
            let Incoming::Answer { id, answer } = jsonrpc::parse(message) else {
                panic!("an answer");
            };
            open.answered(id, answer);
        };
        let (said, ()) = futures_util::join!(asking, host);
        let message = "no".to_owned();
        assert_eq!(said, Said::Error { code: -1, message });
    }

    #[tokio::test]
    async fn a_question_that_nobody_asks_any_more_is_taken_back() {
        let (outbox, mut sent) = mpsc::channel(4);
        let (peer, open) = (Peer::new(outbox), OpenRequests::default());
        let params = json!({});
        let asking = peer.ask(&open, "elicitation/create", &params);
        let short = std::time::Duration::from_millis(5);
        assert!(tokio::time::timeout(short, asking).await.is_err());
        sent.recv().await.unwrap();
        let told: Value = serde_json::from_slice(&sent.recv().await.unwrap()).unwrap();
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], 1, "{told}");
        assert!(sent.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_host_that_is_gone_answers_nothing() {
        let (outbox, sent) = mpsc::channel(4);
        drop(sent);
        let open = OpenRequests::default();
        let said = Peer::new(outbox).ask(&open, "x", &json!({})).await;
        assert_eq!(said, Said::Nothing);
        assert!(open.lock().waiting.is_empty());
    }
}
