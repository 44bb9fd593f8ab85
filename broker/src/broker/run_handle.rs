//! A run in progress, on its own thread.

use airlock_core::code::Code;
use airlock_core::report::Report;
use tokio::sync::{mpsc, oneshot};

use airlock_sandbox::budget::RunShare;
use airlock_sandbox::large_stack;

use super::active_runs::ActiveRun;
use super::{Broker, Cancel, RunContext, Script, never_started};
use crate::run_event::RunEvent;

/// Observes a run, waits for its report, or cancels it. Dropping the handle cancels the run. A run
/// that only waits for people and may be suspended is suspended instead.
#[derive(Debug)]
pub struct RunHandle {
    /// The number of events is bounded by the limits of the run for calls and console output.
    events: mpsc::UnboundedReceiver<RunEvent>,
    report: oneshot::Receiver<Report>,
    cancel: Cancel,
}

/// A run before it has a thread.
struct PendingRun {
    broker: Broker,
    context: RunContext,
    script: Script,
    cancel: Cancel,
    watch: mpsc::UnboundedSender<RunEvent>,
    finished: oneshot::Sender<Report>,
    goes: ActiveRun,
    /// Dropped at the end of the run.
    over: oneshot::Sender<()>,
}

impl PendingRun {
    /// Starts the run on its own thread as soon as it has a share of the budget.
    fn begin(self) {
        let budget = &self.broker.0.budget;
        let bytes = self.broker.0.run_bytes_max(&self.script);
        if let Some(share) = budget.try_share(&self.context.caller, bytes) {
            return self.on_own_thread(share);
        }
        let runtime = self.broker.0.runtime.clone();
        runtime.spawn(async move {
            let share = self.broker.share(&self.context, &self.script, &self.cancel);
            match share.await {
                Ok(share) => self.on_own_thread(share),
                Err(report) => drop(self.finished.send(*report)),
            }
        });
    }

    fn on_own_thread(self, share: RunShare) {
        share.on_own_thread();
        let run = move || {
            let Self {
                broker,
                context,
                script,
                cancel,
                watch,
                finished,
                goes,
                over,
            } = self;
            // If the observer is gone, the run continues without it.
            let tell = |event| drop(watch.send(event));
            let runtime = broker.0.runtime.clone();
            let run = broker.run_here_in((context, share), script, &cancel, tell);
            let report = runtime.block_on(run);
            let _ = finished.send(report);
            drop((goes, over));
        };
        // If the thread cannot be started, `finished` is dropped, and the report then contains the
        // error.
        let _ = large_stack::spawn(run);
    }
}

impl RunHandle {
    pub(super) fn start(broker: Broker, context: RunContext, script: Script) -> Self {
        let (watch, events) = mpsc::unbounded_channel();
        let (finished, report) = oneshot::channel();
        let cancel = Cancel::new();
        let (over, is_over) = oneshot::channel::<()>();
        let canary = CancelOnRuntimeDrop(cancel.clone());
        let goes = broker.0.active_runs.begin(&cancel);
        broker.0.runtime.spawn(async move {
            let _canary = canary;
            let _ = is_over.await;
        });
        let wanted = PendingRun {
            broker,
            context,
            script,
            cancel: cancel.clone(),
            watch,
            finished,
            goes,
            over,
        };
        wanted.begin();
        Self {
            events,
            report,
            cancel,
        }
    }

    /// Returns the next event, or `None` if the run is over.
    pub async fn next_event(&mut self) -> Option<RunEvent> {
        self.events.recv().await
    }

    /// Returns a handle that can cancel the run from anywhere.
    #[must_use]
    pub fn cancel_handle(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Waits for the end of the run.
    pub async fn report(mut self) -> Report {
        // The caller reads no more events, so unread events are dropped.
        self.events.close();
        while self.events.try_recv().is_ok() {}
        (&mut self.report)
            .await
            .unwrap_or_else(|_| never_started(Code::Internal))
    }
}

/// Cancels the run when the runtime is dropped. This value lives on the runtime of the run's timers
/// and servers, so the run ends before it waits for any of them.
struct CancelOnRuntimeDrop(Cancel);

impl Drop for CancelOnRuntimeDrop {
    fn drop(&mut self) {
        self.0
            .cancel_and_wait("the runtime of the broker has ended");
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.cancel
            .abandon("the caller no longer waits for the run");
    }
}
