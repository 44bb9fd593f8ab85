//! A run that goes on, on a thread of its own.

use airlock_core::code::Code;
use airlock_core::report::Report;
use tokio::sync::{mpsc, oneshot};

use crate::budget::Share;
use crate::sandbox::large_stack;

use super::going::Goes;
use super::{Broker, Cancel, RunEvent, Script, Seat, never_started};

/// Watch it, wait for its report, or cancel it. Dropping it cancels it.
#[derive(Debug)]
pub struct Running {
    /// Bounded by the limits of the run: its calls and its console.
    events: mpsc::UnboundedReceiver<RunEvent>,
    report: oneshot::Receiver<Report>,
    cancel: Cancel,
}

/// A run before it has a thread.
struct Wanted {
    broker: Broker,
    seat: Seat,
    script: Script,
    cancel: Cancel,
    watch: mpsc::UnboundedSender<RunEvent>,
    finished: oneshot::Sender<Report>,
    goes: Goes,
    /// Dropped at the end of the run.
    over: oneshot::Sender<()>,
}

impl Wanted {
    /// Runs as soon as there is room. Threads are for runs that have some.
    fn begin(self) {
        let budget = &self.broker.0.budget;
        let bytes = self.broker.0.run_bytes_max(&self.script);
        if let Some(share) = budget.try_share(&self.seat.caller, bytes) {
            return self.on_own_thread(share);
        }
        let runtime = self.broker.0.runtime.clone();
        runtime.spawn(async move {
            let share = self.broker.share(&self.seat, &self.script, &self.cancel);
            match share.await {
                Ok(share) => self.on_own_thread(share),
                Err(report) => drop(self.finished.send(*report)),
            }
        });
    }

    fn on_own_thread(self, share: Share) {
        share.on_own_thread();
        let run = move || {
            let Self {
                broker,
                seat,
                script,
                cancel,
                watch,
                finished,
                goes,
                over,
            } = self;
            // The run goes on when its observer is gone.
            let tell = |event| drop(watch.send(event));
            let runtime = broker.0.runtime.clone();
            let run = broker.run_here_in((seat, share), script, &cancel, tell);
            let report = runtime.block_on(run);
            let _ = finished.send(report);
            drop((goes, over));
        };
        // A thread that cannot be started drops `finished`, and the report says so.
        let _ = large_stack::spawn("run", run);
    }
}

impl Running {
    pub(super) fn start(broker: Broker, seat: Seat, script: Script) -> Self {
        let (watch, events) = mpsc::unbounded_channel();
        let (finished, report) = oneshot::channel();
        let cancel = Cancel::new();
        let (over, is_over) = oneshot::channel::<()>();
        let canary = Canary(cancel.clone());
        let goes = broker.0.going.begin(&cancel);
        broker.0.runtime.spawn(async move {
            let _canary = canary;
            let _ = is_over.await;
        });
        let wanted = Wanted {
            broker,
            seat,
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

    /// What happened next; none when the run is over.
    pub async fn next_event(&mut self) -> Option<RunEvent> {
        self.events.recv().await
    }

    /// Ends the run from anywhere.
    #[must_use]
    pub fn cancel_handle(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Waits for the end.
    pub async fn report(mut self) -> Report {
        // Nobody watches any more: what is not read need not be kept.
        self.events.close();
        while self.events.try_recv().is_ok() {}
        (&mut self.report)
            .await
            .unwrap_or_else(|_| never_started(Code::Internal))
    }
}

/// Lives on the runtime that the run's timers and servers live on, and dies with it: then the
/// run is ended before it waits for any of them.
struct Canary(Cancel);

impl Drop for Canary {
    fn drop(&mut self) {
        self.0
            .cancel_and_hush("the runtime of the broker has ended");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel("the caller no longer waits for the run");
    }
}
