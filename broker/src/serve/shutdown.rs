//! Shutdown of the server: runs are cancelled and journaled, hosts get the results of their runs,
//! and no new work begins.

use tokio::sync::watch;

use super::rpc::{self, RpcErrorResponse};

/// The reason for the shutdown; `None` until a shutdown is requested.
#[derive(Debug)]
pub(super) struct Shutdown(watch::Sender<Option<String>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Shutdown {
    pub(super) fn begin(&self, why: &str) {
        self.0.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until shutdown is requested, and returns the reason.
    pub(super) async fn wanted(&self) -> String {
        let mut ending = self.0.subscribe();
        // Cannot fail, because the sender is a field of `self`.
        let why = ending.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_default()
    }

    /// Waits until shutdown is requested, and returns the error for requests that wait.
    pub(super) async fn refusal(&self) -> RpcErrorResponse {
        let why = self.wanted().await;
        RpcErrorResponse::new(rpc::INTERNAL, format!("the server shuts down: {why}"))
    }
}
