//! The end of serving, wanted from outside: runs are cancelled and journaled,
//! hosts still hear how theirs ended, and nothing new begins.

use tokio::sync::watch;

use super::desk::Desk;
use super::rpc::{self, Refusal};

/// Whether the end is wanted, and why.
#[derive(Debug)]
pub(super) struct Ending(watch::Sender<Option<String>>);

impl Default for Ending {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Ending {
    pub(super) fn begin(&self, why: &str) {
        self.0.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }

    /// Waits until somebody wants the end, and says why.
    pub(super) async fn wanted(&self) -> String {
        let mut ending = self.0.subscribe();
        // The sender lives in `self`.
        let why = ending.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_default()
    }

    /// What is said to whoever waits for something that will not come any more.
    pub(super) async fn refusal(&self) -> Refusal {
        let why = self.wanted().await;
        Refusal::new(rpc::INTERNAL, format!("the server ends: {why}"))
    }
}

impl Desk {
    /// Waits until the end is wanted and no run goes on any more.
    pub(super) async fn runs_ended(&self) {
        let why = self.ending().wanted().await;
        if let Some(shelf) = self.shelf_now() {
            shelf.broker.end_runs(&why).await;
        }
    }
}
