//! The runs in progress, each on its own thread, so that all of them can be cancelled and awaited
//! together. Their journals are complete before the process ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::Cancel;

/// A set of active runs. Cheap to clone; all clones share one set.
#[derive(Debug, Clone)]
pub(super) struct ActiveRuns(Arc<watch::Sender<ActiveRunsState>>);

#[derive(Debug, Default)]
struct ActiveRunsState {
    latest: u64,
    runs: BTreeMap<u64, Cancel>,
    /// The reason why all runs were ended. If it is set, every later run is cancelled too.
    ended: Option<String>,
}

/// Marks one run as active until it is dropped.
#[derive(Debug)]
pub(super) struct ActiveRun {
    active_runs: ActiveRuns,
    number: u64,
}

impl Default for ActiveRuns {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(ActiveRunsState::default())))
    }
}

impl ActiveRuns {
    /// Registers a run. If all runs were ended before, the run is cancelled before it does
    /// anything.
    pub(super) fn begin(&self, cancel: &Cancel) -> ActiveRun {
        let mut number = 0;
        self.0.send_modify(|open| {
            open.latest += 1;
            number = open.latest;
            open.runs.insert(number, cancel.clone());
            if let Some(why) = &open.ended {
                cancel.cancel(why);
            }
        });
        ActiveRun {
            active_runs: self.clone(),
            number,
        }
    }

    /// Cancels or suspends all runs, and returns when the last run has written the end of its journal.
    pub(super) async fn end(&self, why: &str) {
        self.0.send_modify(|open| {
            open.ended.get_or_insert_with(|| why.to_owned());
            open.runs.values().for_each(|run| run.abandon(why));
        });
        let mut open = self.0.subscribe();
        // This cannot fail, because the sender lives in `self`.
        let _ = open.wait_for(|open| open.runs.is_empty()).await;
    }

    /// Ends all cancelled runs that still wait for the outcomes of calls.
    pub(super) fn stop_waiting(&self) {
        let open = self.0.borrow();
        let cancelled = open.runs.values().filter(|run| run.is_cancelled());
        cancelled.for_each(Cancel::stop_waiting);
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.active_runs.0.send_modify(|open| {
            open.runs.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn cancel_all_waits_for_runs_and_ends_later_ones_at_once() {
        let active_runs = ActiveRuns::default();
        let (first, second) = (Cancel::new(), Cancel::new());
        let goes = active_runs.begin(&first);
        let mut cx = Context::from_waker(Waker::noop());
        let mut ending = Box::pin(active_runs.end("enough"));
        assert!(
            ending.as_mut().poll(&mut cx).is_pending(),
            "one run is still active"
        );
        assert_eq!(first.poll(&mut cx), Poll::Ready("enough".into()));
        drop(goes);
        ending.await;
        let _goes = active_runs.begin(&second);
        assert_eq!(second.poll(&mut cx), Poll::Ready("enough".into()));
    }
}
