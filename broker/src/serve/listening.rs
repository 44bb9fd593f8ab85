//! `subscriptions/listen` of the newer era: a request that stays open. It is
//! acknowledged first, told when the list of tools is another one, and answered
//! when serving ends.

use std::sync::Arc;

use airlock_core::id::Digest;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::desk::Desk;
use super::request::Request;
use super::rpc::{self, Refusal};
use super::shelf::Shelf;

/// Hosts that may listen at the same time; others ask for the list again.
const LISTENERS_MAX: usize = 1_000;
const ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Room for those who listen.
#[derive(Debug)]
pub(super) struct Listeners(Arc<Semaphore>);

impl Default for Listeners {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LISTENERS_MAX)))
    }
}

/// The list of tools as it changes.
#[derive(Debug)]
pub(super) struct Lists {
    shelves: watch::Receiver<Option<Arc<Shelf>>>,
    told: Option<Digest>,
}

impl Lists {
    pub(super) fn of(mut shelves: watch::Receiver<Option<Arc<Shelf>>>) -> Self {
        let told = digest(&shelves.borrow_and_update());
        Self { shelves, told }
    }

    /// Waits until the list is another one than it was; the first one is no change.
    /// False when it will not change any more.
    pub(super) async fn changed(&mut self) -> bool {
        while self.shelves.changed().await.is_ok() {
            let now = digest(&self.shelves.borrow_and_update());
            let before = std::mem::replace(&mut self.told, now);
            if before.is_some() && before != now {
                return true;
            }
        }
        false
    }
}

fn digest(shelf: &Option<Arc<Shelf>>) -> Option<Digest> {
    shelf.as_ref().map(|it| it.list_digest)
}

/// Tells a host what it wants to be told, until it goes or serving ends.
pub(super) async fn listen(desk: &Desk, request: &Request) -> Result<Value, Refusal> {
    let Some(Value::Object(wanted)) = request.params.get("notifications") else {
        let why = "`notifications` is missing, or is no object";
        return Err(Refusal::invalid(why));
    };
    let room = Arc::clone(&desk.listeners().0);
    let Ok(_room) = room.try_acquire_owned() else {
        return Err(Refusal::new(rpc::INTERNAL, "too many hosts listen already"));
    };
    let wants_tools = wanted.get("toolsListChanged") == Some(&Value::Bool(true));
    let honoured = if wants_tools {
        json!({"toolsListChanged": true})
    } else {
        json!({})
    };
    let id = json!({ ID_KEY: request.id });
    // Whatever changes from here on is told, also what changes before it is acknowledged.
    let mut lists = desk.lists();
    let params = json!({"_meta": id, "notifications": honoured});
    let method = "notifications/subscriptions/acknowledged";
    request.peer.notify(method, &params).await;
    let telling = async {
        while lists.changed().await {
            if wants_tools {
                let params = json!({ "_meta": id });
                let method = "notifications/tools/list_changed";
                request.peer.notify(method, &params).await;
            }
        }
    };
    tokio::select! {
        () = telling => {}
        _ = desk.ending().wanted() => {}
        _ = request.cancel.cancelled() => {}
    }
    Ok(json!({ "_meta": id }))
}
