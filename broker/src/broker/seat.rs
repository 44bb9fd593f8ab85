//! Where a run sits: what the session that it belongs to has been shown, who
//! is asked in that session, and who tells its scripts about tools.

use std::fmt;
use std::sync::Arc;

use airlock_core::session::Disclosed;

use super::Librarian;
use crate::approver::Approver;

/// The default is a host that has seen everything and asks the broker's own approver.
#[derive(Clone, Default)]
pub struct Seat {
    pub disclosed: Disclosed,
    /// Asked instead of the broker's approver.
    pub approver: Option<Arc<dyn Approver>>,
    /// Answers `airlock.search` and `airlock.describe`; without one, all tools of the broker are
    /// told about.
    pub librarian: Option<Arc<dyn Librarian>>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let approver = self.approver.is_some();
        write!(f, "Seat({:?}, own approver: {approver})", self.disclosed)
    }
}
