//! Holds the one connection to a server, and delays the next attempt to connect after a failed one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use super::error::ConnectError;
use super::list_subscription::ListSubscription;
use super::subscription_sync::SubscriptionSync;

/// The current connection, or the number and time of failed attempts.
#[derive(Default)]
pub(super) struct ConnectionSlot {
    pub(super) connection: Option<Arc<Connection>>,
    /// The subscription to changes of the list of tools over this connection.
    pub(super) listening: Option<ListSubscription>,
    /// Keeps the hosts' subscriptions in sync over this connection.
    pub(super) following: Option<SubscriptionSync>,
    pub(super) failures: u32,
    pub(super) last_failure: Option<(String, Instant)>,
}

impl ConnectionSlot {
    /// Removes the connection and ends its subscriptions.
    pub(super) fn clear(&mut self) {
        (self.connection, self.listening, self.following) = (None, None, None);
    }

    /// Checks whether a new attempt to connect is due. The pause grows after each failure.
    pub(super) fn check_patience(&self) -> Result<(), ConnectError> {
        const WAIT: Duration = Duration::from_millis(250);
        const DOUBLINGS_MAX: u32 = 7;
        let Some((last, at)) = &self.last_failure else {
            return Ok(());
        };
        let wait = WAIT * 2_u32.pow(self.failures.min(DOUBLINGS_MAX));
        if at.elapsed() >= wait {
            return Ok(());
        }
        Err(ConnectError::GivenUp {
            failures: self.failures,
            last: last.clone(),
        })
    }
}
