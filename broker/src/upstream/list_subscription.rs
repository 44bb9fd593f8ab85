//! `subscriptions/listen`: a server of the newer era reports changes of its list only over a
//! request that stays open. The request is sent before the list is read, so that no change is
//! missed in between.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::connection::Connection;
use super::diagnostics::Diagnostics;
use super::era::Era;
use super::jsonrpc::Answer;
use super::outgoing::LinkError;

/// Maximum time that reading the list waits for the acknowledgement of the subscription. If the
/// acknowledgement arrives later, the list is read again.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(250);
/// Pause before an ended subscription is requested again. It doubles up to the maximum.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(300);

/// An open subscription. It keeps the connection open, and ends when it is dropped.
#[derive(Debug)]
pub(super) struct ListSubscription(JoinHandle<()>);

impl ListSubscription {
    /// Subscribes to changes of the list. Returns after the server has acknowledged or refused, or
    /// after a timeout. Returns `None` if the server does not support subscriptions.
    pub(super) async fn begin(
        connection: &Arc<Connection>,
        diagnostics: &Diagnostics,
    ) -> Option<Self> {
        let negotiated = &connection.negotiated;
        if negotiated.era != Era::Modern || !negotiated.has.list_changes {
            return None;
        }
        let mut acknowledged = diagnostics.acknowledged();
        let mut listening = Self(tokio::spawn(listen(Arc::clone(connection))));
        tokio::select! {
            _ = timeout(ACKNOWLEDGED_WITHIN, acknowledged.changed()) => {}
            // The server refused the subscription.
            _ = &mut listening.0 => {}
        }
        Some(listening)
    }
}

impl Drop for ListSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn listen(connection: Arc<Connection>) {
    let mut pause = PAUSE_FIRST;
    loop {
        let since = Instant::now();
        let answer = connection.listen().await;
        if connection.link.is_closed() || is_refused(&answer) {
            return;
        }
        if since.elapsed() > PAUSE_LAST {
            pause = PAUSE_FIRST;
        }
        // Changes in the meantime are not reported, so the list is read again after the next
        // acknowledgement.
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_LAST);
    }
}

/// Whether the server refused the subscription permanently. Its list is then valid for the lifetime
/// that the server states.
pub(super) fn is_refused(answer: &Result<Answer, LinkError>) -> bool {
    match answer {
        Ok(Answer::Error(_)) => true,
        Err(LinkError::Status { status, .. }) => (400..500).contains(status),
        _ => false,
    }
}
