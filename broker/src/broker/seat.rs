//! Where a run sits: what the session that it belongs to has been shown, who
//! is asked in that session, who tells its scripts about tools, and who reads for them.

use std::fmt;
use std::sync::Arc;

use airlock_core::session::Disclosed;

use super::Librarian;
use crate::approver::Approver;
use crate::carrier::Carrier;
use crate::extract::Extractor;

/// The default is a host that has seen everything and asks the broker's own approver.
#[derive(Clone, Default)]
pub struct Seat {
    pub disclosed: Disclosed,
    /// Asked instead of the broker's approver.
    pub approver: Option<Arc<dyn Approver>>,
    /// Answers `airlock.search` and `airlock.describe`; without one, all tools of the broker are
    /// told about.
    pub librarian: Option<Arc<dyn Librarian>>,
    /// Carries what servers ask of the host, instead of the broker's own.
    pub carrier: Option<Arc<dyn Carrier>>,
    /// Answers `airlock.extract`, where the broker itself has nobody for it.
    pub extractor: Option<Arc<dyn Extractor>>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (approver, carrier) = (self.approver.is_some(), self.carrier.is_some());
        let disclosed = &self.disclosed;
        write!(
            f,
            "Seat({disclosed:?}, own approver: {approver}, own carrier: {carrier})"
        )
    }
}
