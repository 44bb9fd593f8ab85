//! Passes what a server reports of the progress of a call to the host that made the call. A server
//! cannot flood the host: of reports in quick succession, the host gets the newest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airlock_core::id::{CallId, ServerName};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Minimum time between two reports of a run, except for the last report of a call.
const INTERVAL: Duration = Duration::from_millis(100);

/// One report of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    pub server: ServerName,
    pub call: CallId,
    pub progress: f64,
    pub total: Option<f64>,
    /// The server's own text, with known credentials masked.
    pub message: Option<String>,
}

/// Takes the reports of one run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProgressSink(Arc<WaitingReports>);

/// Returns the reports of one run, at most ten a second.
#[derive(Debug)]
pub struct ProgressReports {
    waiting: Arc<WaitingReports>,
    next_at: Instant,
}

/// The newest report of each call that the host has not got yet.
#[derive(Debug, Default)]
struct WaitingReports {
    reports: Mutex<VecDeque<CallProgress>>,
    added: Notify,
}

impl ProgressSink {
    #[must_use]
    pub fn new() -> (Self, ProgressReports) {
        let waiting = Arc::<WaitingReports>::default();
        let reports = ProgressReports {
            waiting: Arc::clone(&waiting),
            next_at: Instant::now(),
        };
        (Self(waiting), reports)
    }

    /// Adds a report without waiting. It replaces an earlier report of the call that the host has
    /// not got yet.
    pub(crate) fn add(&self, progress: CallProgress) {
        let mut reports = self.0.lock();
        match reports.iter_mut().find(|it| it.call == progress.call) {
            Some(earlier) => *earlier = progress,
            None => reports.push_back(progress),
        }
        drop(reports);
        self.0.added.notify_one();
    }
}

impl ProgressReports {
    /// Waits for the next report, and for the time at which it may be sent. Never returns if there
    /// are no more.
    pub async fn next(&mut self) -> CallProgress {
        loop {
            sleep_until(self.next_at).await;
            let report = self.waiting.lock().pop_front();
            if let Some(report) = report {
                self.next_at = Instant::now() + INTERVAL;
                return report;
            }
            self.waiting.added.notified().await;
        }
    }

    /// Returns the last report of a call that has ended, if the host has not got it yet.
    pub fn take_last(&mut self, call: CallId) -> Option<CallProgress> {
        let mut reports = self.waiting.lock();
        let at = reports.iter().position(|it| it.call == call)?;
        reports.remove(at)
    }

    /// Returns the last reports of all calls of a run that has ended.
    pub fn take_rest(&mut self) -> Vec<CallProgress> {
        self.waiting.lock().drain(..).collect()
    }
}

impl WaitingReports {
    fn lock(&self) -> MutexGuard<'_, VecDeque<CallProgress>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    fn report(call: u32, progress: u32) -> CallProgress {
        CallProgress {
            server: ServerName("s".into()),
            call: CallId(call),
            progress: progress.into(),
            total: None,
            message: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn host_gets_ten_reports_per_second_and_the_newest() {
        let (sink, mut reports) = ProgressSink::new();
        let mut got = Vec::new();
        for millisecond in 0..1_000 {
            sink.add(report(1, millisecond));
            sink.add(report(1, millisecond));
            let next = timeout(Duration::ZERO, reports.next()).await;
            got.extend(next.map(|it| it.progress));
            advance(Duration::from_millis(1)).await;
        }
        let expected: Vec<_> = (0..10).map(|tenth| f64::from(tenth * 100)).collect();
        assert_eq!(got, expected);
        assert_eq!(reports.next().await.progress, 999.0);
        assert_eq!(reports.take_rest(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_take_turns_and_the_last_report_of_each_arrives() {
        let (sink, mut reports) = ProgressSink::new();
        for progress in 0..9 {
            for call in 1..=3 {
                sink.add(report(call, progress));
            }
        }
        assert_eq!(reports.next().await, report(1, 8));
        sink.add(report(1, 9));
        assert_eq!(reports.next().await, report(2, 8));
        assert_eq!(reports.take_last(CallId(1)), Some(report(1, 9)));
        assert_eq!(reports.take_last(CallId(1)), None);
        assert_eq!(reports.take_rest(), [report(3, 8)]);
    }
}
