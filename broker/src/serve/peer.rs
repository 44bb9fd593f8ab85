//! Sends notifications and requests to a host. The host answers a request, or airlock withdraws the
//! request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::client_bridge::ClientReply;
use crate::upstream::jsonrpc::{self, Answer};

/// Maximum number of messages that wait for a host to read them. Further senders wait.
pub(super) const OUTBOX_MESSAGES: usize = 256;

/// Sends messages to one host. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    outbox: mpsc::Sender<Vec<u8>>,
}

/// Requests that the host has not answered yet.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(Mutex<OpenState>);

#[derive(Debug, Default)]
struct OpenState {
    latest: u64,
    waiting: HashMap<u64, oneshot::Sender<ClientReply>>,
}

impl Peer {
    pub(super) fn new(outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self { outbox }
    }

    /// Sends a message. Returns `false` if the connection is closed.
    pub(super) async fn send(&self, message: Vec<u8>) -> bool {
        self.outbox.send(message).await.is_ok()
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) {
        self.send(jsonrpc::notification(method, &params.to_string()))
            .await;
    }

    /// Sends a notification without waiting. Returns `false` if the queue is full.
    pub(super) fn try_notify(&self, method: &str, params: &Value) -> bool {
        let message = jsonrpc::notification(method, &params.to_string());
        self.outbox.try_send(message).is_ok()
    }

    /// Sends a request to the host. Returns `None` if the host has disconnected. Dropping the future
    /// withdraws the request.
    pub(super) async fn ask(
        &self,
        open: &Arc<OpenRequests>,
        method: &str,
        params: &Value,
    ) -> Option<OpenRequest> {
        let (id, answer) = open.begin();
        let mut asked = OpenRequest {
            outbox: self.outbox.downgrade(),
            open: Arc::clone(open),
            id,
            answer,
            is_sent: false,
        };
        asked.is_sent = self
            .send(jsonrpc::request(id, method, &params.to_string()))
            .await;
        asked.is_sent.then_some(asked)
    }
}

/// One request to the host. Withdrawn on drop, unless it was answered. It does not keep the connection
/// open.
#[derive(Debug)]
pub(super) struct OpenRequest {
    outbox: mpsc::WeakSender<Vec<u8>>,
    open: Arc<OpenRequests>,
    id: u64,
    answer: oneshot::Receiver<ClientReply>,
    is_sent: bool,
}

impl OpenRequest {
    /// Waits for the reply. Returns `ClientReply::Nothing` if none can come any more.
    pub(super) async fn reply(&mut self) -> ClientReply {
        let answer = (&mut self.answer).await;
        answer.unwrap_or(ClientReply::Nothing)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let waiting = self.open.lock().waiting.remove(&self.id);
        if waiting.is_some() && self.is_sent {
            let reason = "the request is no longer needed";
            let params = json!({"requestId": self.id, "reason": reason}).to_string();
            let cancelled = jsonrpc::notification("notifications/cancelled", &params);
            // If the queue is full, the host does not learn of the withdrawal.
            if let Some(outbox) = self.outbox.upgrade() {
                let _ = outbox.try_send(cancelled);
            }
        }
    }
}

impl OpenRequests {
    fn begin(&self) -> (u64, oneshot::Receiver<ClientReply>) {
        let (answer, answered) = oneshot::channel();
        let mut open = self.lock();
        open.latest += 1;
        let id = open.latest;
        open.waiting.insert(id, answer);
        (id, answered)
    }

    /// Delivers an answer. An answer to an unknown request is ignored.
    pub(super) fn answered(&self, id: u64, answer: Answer) {
        let Some(waiting) = self.lock().waiting.remove(&id) else {
            return;
        };
        let unreadable = || ClientReply::Error {
            code: super::rpc::INTERNAL,
            message: "invalid answer".to_owned(),
        };
        let said = match answer {
            Answer::Result(raw) => {
                let result = super::rpc::params(Some(&raw));
                result.map_or_else(|_| unreadable(), ClientReply::Result)
            }
            Answer::Error(error) => ClientReply::Error {
                code: error.code,
                message: error.message,
            },
            Answer::Unreadable(_) => unreadable(),
        };
        let _ = waiting.send(said);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::jsonrpc::IncomingMessage;
    use serde_json::json;

    async fn reply(
        peer: &Peer,
        open: &Arc<OpenRequests>,
        method: &str,
        params: &Value,
    ) -> ClientReply {
        match peer.ask(open, method, params).await {
            Some(mut asked) => asked.reply().await,
            None => ClientReply::Nothing,
        }
    }

    #[tokio::test]
    async fn reply_reaches_only_its_request() {
        let (outbox, mut sent) = mpsc::channel(4);
        let (peer, open) = (Peer::new(outbox), Arc::default());
        let params = json!({"message": "?"});
        let asking = reply(&peer, &open, "elicitation/create", &params);
        let host = async {
            let request = sent.recv().await.unwrap();
            let text = String::from_utf8(request).unwrap();
            assert!(text.contains(r#""method":"elicitation/create""#), "{text}");
            for (id, result) in [(77, r#"{"a":0}"#), (1, r#"{"a":1}"#), (1, r#"{"a":2}"#)] {
                let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                let IncomingMessage::Answer { id, answer } = jsonrpc::parse(message.as_bytes())
                else {
                    panic!("{message}");
                };
                open.answered(id, answer);
            }
        };
        let (answer, ()) = futures_util::join!(asking, host);
        assert_eq!(answer, ClientReply::Result(json!({"a": 1})));
        assert!(open.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn host_refusal_is_an_error_reply() {
        let (outbox, _sent) = mpsc::channel(4);
        let (peer, open) = (Peer::new(outbox), Arc::default());
        let params = json!({});
        let asking = reply(&peer, &open, "sampling/createMessage", &params);
        let host = async {
            let message = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#;
            let IncomingMessage::Answer { id, answer } = jsonrpc::parse(message) else {
                panic!("not an answer");
            };
            open.answered(id, answer);
        };
        let (said, ()) = futures_util::join!(asking, host);
        let message = "no".to_owned();
        assert_eq!(said, ClientReply::Error { code: -1, message });
    }

    #[tokio::test]
    async fn abandoned_request_is_cancelled() {
        let (outbox, mut sent) = mpsc::channel(4);
        let (peer, open) = (Peer::new(outbox), Arc::default());
        let params = json!({});
        let asking = reply(&peer, &open, "elicitation/create", &params);
        let short = std::time::Duration::from_millis(5);
        assert!(tokio::time::timeout(short, asking).await.is_err());
        sent.recv().await.unwrap();
        let told: Value = serde_json::from_slice(&sent.recv().await.unwrap()).unwrap();
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], 1, "{told}");
        assert!(sent.try_recv().is_err());
    }

    #[tokio::test]
    async fn disconnected_host_replies_nothing() {
        let (outbox, sent) = mpsc::channel(4);
        drop(sent);
        let open = Arc::default();
        let said = reply(&Peer::new(outbox), &open, "x", &json!({})).await;
        assert_eq!(said, ClientReply::Nothing);
        assert!(open.lock().waiting.is_empty());
    }
}
