//! The one place for the connection to a server: there is one, or nobody is connected, and how
//! long it is left alone when connecting has failed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use super::error::ConnectError;
use super::following::Following;
use super::listening::Listening;

/// The connection of the moment, or how often and when making one failed.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) connection: Option<Arc<Connection>>,
    /// To what the server tells over it.
    pub(super) listening: Option<Listening>,
    /// Has it tell what hosts want to be told.
    pub(super) following: Option<Following>,
    pub(super) failures: u32,
    pub(super) last_failure: Option<(String, Instant)>,
}

impl Slot {
    /// Nothing is listened to any more over the connection that there was.
    pub(super) fn clear(&mut self) {
        (self.connection, self.listening, self.following) = (None, None, None);
    }

    /// A server that cannot be reached is tried again after a while that grows.
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
