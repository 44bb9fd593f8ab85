//! A run that a host follows, with the run's requests to the host and the approvals that the run
//! awaits from other approvers.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use airlock_core::id::{CallId, Digest};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::client_request::{ClientRequest, DeliveryMode};
use super::logging::LogForwarder;
use crate::broker::{Broker, Cancel, IdleFlag, ReachedLabels, RunHandle, SuspendedFlag};
use crate::client_bridge::{CallProgress, ProgressReports};
use crate::run_event::RunEvent;

/// Maximum time to collect further requests of a run after its first one. The run's thread sends
/// requests one by one until the run is idle.
const LONG_MOMENT: Duration = Duration::from_millis(250);

/// Requests of servers arrive at any time. Requests that arrive within this time of each other are
/// handed to the host together.
const MOMENT: Duration = Duration::from_millis(20);

/// A run in progress, whether or not a request of the host waits for it.
#[derive(Debug)]
pub(super) struct FollowedRun {
    pub(super) running: RunHandle,
    pub(super) links: RunLinks,
    pub(super) script: FollowedScript,
    /// Identifies the caller, the script and its input.
    pub(super) origin: Digest,
    run: String,
    /// The calls about which a person was asked and has not answered.
    pub(super) open_questions: BTreeSet<CallId>,
    pub(super) asked_elsewhere: HashSet<CallId>,
    /// Calls about which the broker's own approver was asked, because the host refused at once.
    pub(super) passed_on: HashSet<CallId>,
    /// Requests that the host holds and has not answered.
    pub(super) handed: Vec<ClientRequest>,
}

/// The channels between a run and its host.
#[derive(Debug)]
pub(super) struct RunLinks {
    pub(super) broker: Broker,
    pub(super) client_requests: mpsc::UnboundedReceiver<ClientRequest>,
    pub(super) delivery: DeliveryMode,
    /// Whether the broker's own approver is asked about every call, because the host cannot ask a
    /// person.
    pub(super) asks_elsewhere: bool,
    /// New members of [`FollowedRun::passed_on`].
    pub(super) passed_on: mpsc::UnboundedReceiver<CallId>,
    pub(super) logs: LogForwarder,
    /// What servers report of the progress of calls, if the host wants it.
    pub(super) reports: Option<ProgressReports>,
    pub(super) reached: ReachedLabels,
    pub(super) rest: IdleFlag,
    pub(super) suspended: SuspendedFlag,
}

/// The facts about a script that are needed to report the result of its run.
#[derive(Debug, Clone)]
pub(super) struct FollowedScript {
    pub(super) name: String,
    /// Empty if no part of the script may be quoted.
    pub(super) text: String,
    /// Whether the host called a tool directly, without a script of its own.
    pub(super) is_direct: bool,
}

/// The calls about which no person could be asked.
#[derive(Debug)]
pub(super) enum UnaskedCalls {
    /// All calls, because the host cannot show questions.
    All,
    /// The calls whose questions the host declined too fast for a person.
    Declined(HashSet<CallId>),
}

impl FollowedRun {
    pub(super) fn new(
        running: RunHandle,
        links: RunLinks,
        script: FollowedScript,
        origin: Digest,
    ) -> Self {
        Self {
            running,
            links,
            script,
            origin,
            run: String::new(),
            open_questions: BTreeSet::new(),
            asked_elsewhere: HashSet::new(),
            passed_on: HashSet::new(),
            handed: Vec::new(),
        }
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Whether the run has ended.
    pub(super) fn is_over(&self) -> bool {
        self.links.client_requests.is_closed()
    }

    /// Returns the handle that cancels the run, for example when its host disconnects.
    pub(super) fn cancel_handle(&self) -> Cancel {
        self.running.cancel_handle()
    }

    /// Hands requests to the host: the first one, and those that follow within a short time.
    pub(super) async fn hand(&mut self, first: ClientRequest) {
        self.handed.push(first);
        let _ = timeout(LONG_MOMENT, self.gather()).await;
        while let Ok(Some(more)) = timeout(MOMENT, self.links.client_requests.recv()).await {
            self.handed.push(more);
        }
        self.handed.iter_mut().for_each(ClientRequest::leave);
        self.handed
            .retain(|client_request| !client_request.is_withdrawn());
    }

    /// Collects requests until the run is idle.
    async fn gather(&mut self) {
        loop {
            tokio::select! {
                biased;
                more = self.links.client_requests.recv() => match more {
                    Some(more) => self.handed.push(more),
                    None => return,
                },
                () = self.links.rest.wait_idle() => return,
            }
        }
    }

    /// Returns the last report of a call that has ended, if the host has not got it yet.
    pub(super) fn take_last_report(&mut self, call: CallId) -> Option<CallProgress> {
        self.links.reports.as_mut()?.take_last(call)
    }

    /// Notes that the broker's own approver is asked about this call, because the host refused at
    /// once.
    pub(super) fn note_passed_on(&mut self, call: CallId) {
        self.passed_on.insert(call);
        self.asked_elsewhere.insert(call);
    }

    /// Notes all calls that were passed on so far.
    pub(super) fn note_all_passed_on(&mut self) {
        while let Ok(call) = self.links.passed_on.try_recv() {
            self.note_passed_on(call);
        }
    }

    /// Returns the calls about which neither the host nor another approver could ask a person.
    pub(super) fn unasked(&self) -> UnaskedCalls {
        if self.links.broker.approval_place().is_some() {
            UnaskedCalls::Declined(HashSet::new())
        } else if self.links.asks_elsewhere {
            UnaskedCalls::All
        } else {
            UnaskedCalls::Declined(self.passed_on.clone())
        }
    }

    pub(super) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { run } => self.run = run.0.to_string(),
            RunEvent::Asked { call, .. } => {
                self.open_questions.insert(*call);
                if self.links.asks_elsewhere {
                    self.asked_elsewhere.insert(*call);
                }
            }
            RunEvent::Answered { call, .. } => {
                self.open_questions.remove(call);
                self.asked_elsewhere.remove(call);
            }
            _ => {}
        }
    }
}

/// Returns the next report of progress. Never returns if there are no more.
pub(super) async fn next_report(reports: &mut Option<ProgressReports>) -> CallProgress {
    match reports {
        Some(reports) => reports.next().await,
        None => std::future::pending().await,
    }
}
