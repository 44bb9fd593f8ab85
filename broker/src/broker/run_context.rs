//! The context of a run: the tools that its session has been shown, the approver of that session,
//! and the objects that answer calls of airlock's own tools.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use airlock_core::labels::Labels;
use airlock_core::session::DisclosedTools;
use tokio::sync::watch;

use super::ToolDiscovery;
use crate::approver::Approver;
use crate::client_bridge::ClientBridge;
use crate::extract::Extractor;
use crate::host_record::HostRecord;

/// The context of a run. By default, the host has seen all tools and the broker's own approver is
/// asked.
#[derive(Clone, Default)]
pub struct RunContext {
    /// The caller that the run belongs to. When the budget is too small for all runs, callers get
    /// equal shares.
    pub caller: Arc<str>,
    /// The name of the host's client, which the journal records.
    pub host: Option<String>,
    pub disclosed: DisclosedTools,
    /// The record of the host's session. It keeps the run's labels and grants.
    pub session: Option<HostRecord>,
    /// The approver that is asked instead of the broker's.
    pub approver: Option<Arc<dyn Approver>>,
    /// Answers `airlock.search` and `airlock.describe`. If it is absent, all tools of the broker
    /// can be found.
    pub discovery: Option<Arc<dyn ToolDiscovery>>,
    /// The bridge that passes requests of servers on to the host, instead of the broker's own
    /// bridge.
    pub client_bridge: Option<Arc<dyn ClientBridge>>,
    /// Answers `airlock.extract`, if the broker itself has no extractor.
    pub extractor: Option<Arc<dyn Extractor>>,
    /// The labels that have reached the run. They are added before anything derived from them is
    /// sent.
    pub reached: ReachedLabels,
    /// The flag that is set while the run only waits.
    pub rest: IdleFlag,
    /// The flag that is set when the run is suspended.
    pub suspended: SuspendedFlag,
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (approver, client_bridge) = (self.approver.is_some(), self.client_bridge.is_some());
        let disclosed = &self.disclosed;
        write!(
            f,
            "RunContext({disclosed:?}, own approver: {approver}, own client bridge: {client_bridge})"
        )
    }
}

/// A flag that is set while a run only waits. When the flag is set, all calls and questions of the
/// run have been sent. Cheap to clone; all clones belong to the same run.
#[derive(Debug, Clone)]
pub struct IdleFlag(Arc<watch::Sender<bool>>);

impl Default for IdleFlag {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl IdleFlag {
    /// Waits until the flag is set.
    pub async fn wait_idle(&self) {
        // This cannot fail, because the sender lives in `self`.
        let _ = self.0.subscribe().wait_for(|is_there| *is_there).await;
    }

    pub(crate) fn note(&self, is_there: bool) {
        self.0
            .send_if_modified(|it| std::mem::replace(it, is_there) != is_there);
    }
}

/// A flag that is set when a run is suspended, before its open questions are withdrawn. Cheap to
/// clone; all clones belong to the same run.
#[derive(Debug, Clone, Default)]
pub struct SuspendedFlag(Arc<AtomicBool>);

impl SuspendedFlag {
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The labels that have reached a run so far, for code that reports to the host before the run
/// ends. Cheap to clone; all clones belong to the same run.
#[derive(Debug, Clone, Default)]
pub struct ReachedLabels(Arc<Mutex<Labels>>);

impl ReachedLabels {
    /// Returns the labels. They are empty if data flow is not tracked.
    #[must_use]
    pub fn labels(&self) -> Labels {
        let labels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        labels.clone()
    }

    /// Replaces the labels. Labels are only added to a run.
    pub(crate) fn note(&self, reached: &Labels) {
        let mut labels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *labels != *reached {
            labels.clone_from(reached);
        }
    }
}
