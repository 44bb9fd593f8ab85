//! Where a run sits: what the session that it belongs to has been shown, who
//! is asked in that session, who tells its scripts about tools, and who reads for them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::flow::Labels;
use airlock_core::session::Disclosed;
use tokio::sync::watch;

use super::Librarian;
use crate::approver::Approver;
use crate::carrier::Carrier;
use crate::extract::Extractor;

/// The default is a host that has seen everything and asks the broker's own approver.
#[derive(Clone, Default)]
pub struct Seat {
    /// Whose run it is. Where there is not room for all runs, callers have equal parts of it.
    pub caller: Arc<str>,
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
    /// Says what has reached the run, before anything of it is told to anybody.
    pub reached: Reached,
    /// Says when the run does nothing but wait.
    pub rest: Rest,
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

/// Whether a run does nothing but wait: whoever is asked or called by it has heard of it. Cheap to
/// clone; all clones are about the same run.
#[derive(Debug, Clone)]
pub struct Rest(Arc<watch::Sender<bool>>);

impl Default for Rest {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Rest {
    /// Waits until it is so.
    pub async fn comes(&self) {
        // The sender lives in `self`, so that this cannot fail.
        let _ = self.0.subscribe().wait_for(|is_there| *is_there).await;
    }

    pub(crate) fn note(&self, is_there: bool) {
        self.0
            .send_if_modified(|it| std::mem::replace(it, is_there) != is_there);
    }
}

/// What has reached a run while it goes on, for whoever tells its host something of it before its
/// end. Cheap to clone; all clones are about the same run.
#[derive(Debug, Clone, Default)]
pub struct Reached(Arc<Mutex<Labels>>);

impl Reached {
    /// Nothing where no flow is watched.
    #[must_use]
    pub fn labels(&self) -> Labels {
        let labels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        labels.clone()
    }

    /// It only grows.
    pub(crate) fn note(&self, reached: &Labels) {
        let mut labels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *labels != *reached {
            labels.clone_from(reached);
        }
    }
}
