//! Where a run sits: what the session that it belongs to has been shown, and
//! who is asked in that session.

use std::fmt;
use std::sync::Arc;

use airlock_core::session::Disclosed;

use crate::approver::Approver;

/// The default is a host that has seen everything and asks the broker's own approver.
#[derive(Clone, Default)]
pub struct Seat {
    pub disclosed: Disclosed,
    /// Asked instead of the broker's approver.
    pub approver: Option<Arc<dyn Approver>>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let approver = self.approver.is_some();
        write!(f, "Seat({:?}, own approver: {approver})", self.disclosed)
    }
}
