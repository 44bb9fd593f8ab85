//! `subscriptions/listen`: a server of the newer era tells of a changed list over a request that
//! stays open, and to nobody else. It is opened before the list is read, so that no change falls
//! between the two.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::connection::Connection;
use super::diagnostics::Diagnostics;
use super::era::Era;
use super::jsonrpc::Answer;
use super::link::LinkError;

/// Reading the list waits so long for a server to say that it will tell. Where it says so later,
/// the list is read once more.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(250);
/// Before a server that has hung up is asked again to tell; longer from time to time.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(300);

/// Ends when it is dropped, and holds the connection until then.
#[derive(Debug)]
pub(super) struct Listening(JoinHandle<()>);

impl Listening {
    /// Asks to be told of changes, as long as it lasts. It is there when the server has said that
    /// it will tell, or does not say so in time; none when the server does not offer to.
    pub(super) async fn begin(
        connection: &Arc<Connection>,
        diagnostics: &Diagnostics,
    ) -> Option<Self> {
        let agreed = &connection.agreed;
        if agreed.era != Era::Modern || !agreed.has.list_changes {
            return None;
        }
        let mut acknowledged = diagnostics.acknowledged();
        let mut listening = Self(tokio::spawn(listen(Arc::clone(connection))));
        tokio::select! {
            _ = timeout(ACKNOWLEDGED_WITHIN, acknowledged.changed()) => {}
            // It does not want to after all.
            _ = &mut listening.0 => {}
        }
        Some(listening)
    }
}

impl Drop for Listening {
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
        // What changes meanwhile is told to nobody: the list is read when somebody listens again.
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_LAST);
    }
}

/// It will not tell, however often it is asked: its list holds as long as it says.
pub(super) fn is_refused(answer: &Result<Answer, LinkError>) -> bool {
    match answer {
        Ok(Answer::Error(_)) => true,
        Err(LinkError::Status { status, .. }) => (400..500).contains(status),
        _ => false,
    }
}
