//! The results of runs that hosts resumed by their id. A second request for the same run, from
//! whichever session of the same caller, gets the same result and resumes nothing. Only final
//! results are kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::code::Code;
use airlock_core::labels::Labels;
use airlock_core::report::Status;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

/// Maximum number of results that are kept. The oldest one is dropped.
const RESULTS_MAX: usize = 64;

/// The result of a resumed run, with the labels of the data that it may contain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResumedResult {
    pub(super) text: String,
    pub(super) structured: Option<Value>,
    pub(super) is_error: bool,
    pub(super) labels: Labels,
}

/// The members of a run's report that decide whether its result is kept, and with which labels.
#[derive(Debug, Deserialize)]
struct ReportedEnd {
    run: String,
    status: Status,
    code: Option<Code>,
    flow: Option<ReportedFlow>,
}

#[derive(Debug, Deserialize)]
struct ReportedFlow {
    labels: Labels,
}

/// Cheap to clone; all clones share the same results.
#[derive(Debug, Clone, Default)]
pub(super) struct ResumedRuns(Arc<Mutex<VecDeque<ResumedRun>>>);

#[derive(Debug)]
struct ResumedRun {
    run: String,
    /// The caller and the project of the run.
    origin: String,
    result: watch::Receiver<Option<ResumedResult>>,
}

/// A run that is being resumed. Dropping it without a result forgets the run.
#[derive(Debug)]
pub(super) struct ResumingRun {
    all: ResumedRuns,
    run: String,
    result: watch::Sender<Option<ResumedResult>>,
}

/// What a request for a run has to do.
#[derive(Debug)]
pub(super) enum ResumeTurn {
    /// Resume the run. Later requests wait for the result.
    First(ResumingRun),
    /// Wait for the result of an earlier request.
    Later(watch::Receiver<Option<ResumedResult>>),
}

impl ResumedResult {
    /// Returns the final result of a run, with the labels in the run's report. Returns `None` if the
    /// run did not start, waits for an answer, or ended for a reason that may be temporary.
    pub(super) fn of_report(text: &str, report: &Value, is_error: bool) -> Option<Self> {
        let end = ReportedEnd::deserialize(report).ok()?;
        end.is_final().then(|| Self {
            text: text.to_owned(),
            structured: Some(report.clone()),
            is_error,
            labels: end.flow.map(|flow| flow.labels).unwrap_or_default(),
        })
    }
}

impl ReportedEnd {
    fn is_final(&self) -> bool {
        // A run that did not start has no id.
        let has_started = !self.run.is_empty();
        let has_ended = matches!(self.status, Status::Done | Status::Failed | Status::Stopped);
        let may_be_temporary = matches!(
            self.code,
            Some(Code::Busy | Code::Cancelled | Code::JournalUnwritable | Code::ResumeDiverged)
        );
        has_started && has_ended && !may_be_temporary
    }
}

impl ResumedRuns {
    pub(super) fn turn(&self, run: &str, origin: &str) -> ResumeTurn {
        let mut runs = self.lock();
        let mut known = runs.iter();
        if let Some(known) = known.find(|it| it.run == run && it.origin == origin) {
            return ResumeTurn::Later(known.result.clone());
        }
        let (result, receiver) = watch::channel(None);
        if runs.len() >= RESULTS_MAX {
            runs.pop_front();
        }
        runs.push_back(ResumedRun {
            run: run.to_owned(),
            origin: origin.to_owned(),
            result: receiver,
        });
        ResumeTurn::First(ResumingRun {
            all: self.clone(),
            run: run.to_owned(),
            result,
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ResumedRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResumingRun {
    pub(super) fn end(self, result: ResumedResult) {
        self.result.send_replace(Some(result));
    }
}

impl Drop for ResumingRun {
    fn drop(&mut self) {
        if self.result.borrow().is_none() {
            let own = self.result.subscribe();
            let mut runs = self.all.lock();
            runs.retain(|it| it.run != self.run || !it.result.same_channel(&own));
        }
    }
}

#[cfg(test)]
mod tests {
    use airlock_core::flow::SessionFlow;
    use airlock_core::labels::Label;
    use airlock_core::report::Report;

    use super::*;

    fn report(run: &str, status: Status, code: Option<Code>) -> Report {
        Report {
            run: run.into(),
            ..Report::empty(status, code)
        }
    }

    fn kept(report: &Report) -> Option<ResumedResult> {
        let is_error = report.status != Status::Done;
        let report = serde_json::to_value(report).unwrap();
        ResumedResult::of_report("text", &report, is_error)
    }

    fn result(text: &str) -> ResumedResult {
        ResumedResult {
            text: text.into(),
            structured: None,
            is_error: false,
            labels: Labels::default(),
        }
    }

    fn first(runs: &ResumedRuns, run: &str) -> ResumingRun {
        match runs.turn(run, "me") {
            ResumeTurn::First(first) => first,
            ResumeTurn::Later(_) => panic!("{run} is being resumed already"),
        }
    }

    #[test]
    fn later_request_gets_result_of_first_one() {
        let runs = ResumedRuns::default();
        let resuming = first(&runs, "a");
        let ResumeTurn::Later(later) = runs.turn("a", "me") else {
            panic!("two requests resume the run");
        };
        assert!(later.borrow().is_none());
        resuming.end(result("done"));
        assert_eq!(*later.borrow(), Some(result("done")));
        assert!(matches!(runs.turn("a", "me"), ResumeTurn::Later(_)));
        assert!(matches!(runs.turn("a", "other"), ResumeTurn::First(_)));
    }

    #[test]
    fn run_without_result_is_forgotten_and_results_are_bounded() {
        let runs = ResumedRuns::default();
        drop(first(&runs, "a"));
        for run in 0..=RESULTS_MAX {
            first(&runs, &run.to_string()).end(result("done"));
        }
        assert_eq!(runs.lock().len(), RESULTS_MAX);
        drop(first(&runs, "0"));
    }

    #[test]
    fn kept_result_has_labels_of_report() {
        let labels: Labels = [Label::untrusted(), Label::private()].into_iter().collect();
        let mut report = report("r", Status::Done, None);
        report.flow = Some(SessionFlow {
            labels: labels.clone(),
            ..SessionFlow::default()
        });
        let kept = kept(&report).unwrap();
        assert_eq!(kept.labels, labels);
        assert_eq!((&*kept.text, kept.is_error), ("text", false));
    }

    #[test]
    fn only_final_results_are_kept() {
        let check = |run: &str, status: Status, code: Option<Code>, expected: bool| {
            let is_kept = kept(&report(run, status, code)).is_some();
            assert_eq!(is_kept, expected, "{run:?} {status:?} {code:?}");
        };
        check("r", Status::Done, None, true);
        check("r", Status::Failed, Some(Code::ScriptError), true);
        check("r", Status::Stopped, Some(Code::LimitTime), true);
        check("r", Status::Stopped, Some(Code::Busy), false);
        check("r", Status::Stopped, Some(Code::JournalUnwritable), false);
        check("r", Status::Failed, Some(Code::ResumeDiverged), false);
        check("r", Status::Cancelled, Some(Code::Cancelled), false);
        check("r", Status::Paused, None, false);
        check("", Status::Stopped, Some(Code::Busy), false);
        check("", Status::Stopped, Some(Code::StateUnreadable), false);
    }
}
