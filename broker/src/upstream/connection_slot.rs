//! Holds the one connection to a server, and delays the next attempt to connect after a failed one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use super::error::ConnectError;
use super::list_subscription::ListSubscription;
use super::subscription_sync::SubscriptionSync;
use crate::login::LoginVersion;

/// The current connection, or the number and time of failed attempts.
#[derive(Default)]
pub(super) struct ConnectionSlot {
    pub(super) connection: Option<Arc<Connection>>,
    /// The subscription to changes of the list of tools over this connection.
    pub(super) listening: Option<ListSubscription>,
    /// Keeps the hosts' subscriptions in sync over this connection.
    pub(super) following: Option<SubscriptionSync>,
    pub(super) failures: u32,
    pub(super) last_failure: Option<ConnectFailure>,
}

/// Why the last attempt to connect failed.
pub(super) struct ConnectFailure {
    pub(super) error: ConnectError,
    pub(super) at: Instant,
    /// The login that was used.
    pub(super) login: Option<LoginVersion>,
}

impl ConnectionSlot {
    /// Removes the connection and ends its subscriptions.
    pub(super) fn clear(&mut self) {
        (self.connection, self.listening, self.following) = (None, None, None);
    }

    /// Records a failed attempt to connect, and the login that it used.
    pub(super) fn note_failure(&mut self, error: ConnectError, login: Option<LoginVersion>) {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = Some(ConnectFailure {
            error,
            at: Instant::now(),
            login,
        });
    }

    /// Checks whether a new attempt to connect is due. The pause grows after each failure. After a
    /// login, an attempt is always due.
    pub(super) fn check_patience(&self, login: Option<LoginVersion>) -> Result<(), ConnectError> {
        const WAIT: Duration = Duration::from_millis(250);
        const DOUBLINGS_MAX: u32 = 7;
        let Some(last) = &self.last_failure else {
            return Ok(());
        };
        let wait = WAIT * 2_u32.pow(self.failures.min(DOUBLINGS_MAX));
        if last.at.elapsed() >= wait || last.login != login {
            return Ok(());
        }
        Err(match &last.error {
            required @ ConnectError::LoginRequired { .. } => required.clone(),
            error => ConnectError::GivenUp {
                failures: self.failures,
                last: error.to_string(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_is_due_at_once_after_a_login() {
        let required = ConnectError::LoginRequired {
            url: "https://mcp.example".to_owned(),
            why: "the server requires a login".to_owned(),
            next: Some("airlock login w".to_owned()),
        };
        let slot = |error: &ConnectError| ConnectionSlot {
            failures: 7,
            last_failure: Some(ConnectFailure {
                error: error.clone(),
                at: Instant::now(),
                login: None,
            }),
            ..ConnectionSlot::default()
        };
        let slot_of_login = slot(&required);
        assert_eq!(slot_of_login.check_patience(None), Err(required));
        let logged_in = Some(LoginVersion::of_test());
        assert_eq!(slot_of_login.check_patience(logged_in), Ok(()));
        let refused = ConnectError::Unauthorized {
            url: "https://mcp.example".to_owned(),
            status: 403,
        };
        assert!(matches!(
            slot(&refused).check_patience(None),
            Err(ConnectError::GivenUp { failures: 7, .. })
        ));
    }
}
