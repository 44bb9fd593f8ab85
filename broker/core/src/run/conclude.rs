//! Ends a run exactly once: open calls are closed, the end is recorded, and one report is emitted.
//!
//! A call that was not sent before the script returned is never sent. A call in flight is cancelled
//! and reported as unknown. So a script must await every call that matters.

use sandbox_protocol::ScriptError;

use crate::code::Code;
use crate::flow::FlowTracker;
use crate::id::{CallId, Digest};
use crate::journal::{Body, DecidedEntry, EndedEntry, Verdict};
use crate::limits::{DENIALS_MAX, Limit};
use crate::outcome::{LostCause, Reply, judge};
use crate::report::{Report, ReportedCall, ReportedError, ReportedOutcome, Status, Usage};

use super::calls::{CallRecord, CallStage};
use super::entries::{decided, unsettled};
use super::run_end::RunEnd;
use super::{Guest, Life, Run};

impl Run {
    pub(super) fn conclude(&mut self, ending: RunEnd) {
        let unwritable = matches!(ending, RunEnd::JournalUnwritable { .. });
        let calls: Vec<_> = self.calls.records.iter().map(|record| record.id).collect();
        calls.into_iter().for_each(|call| self.close(call));
        if self.guest != Guest::Gone {
            self.out.stop_guest();
            self.guest = Guest::Gone;
        }
        let report = self.report(ending);
        self.life = if unwritable {
            self.out.drop_appends();
            Life::FinishedUnwritten
        } else {
            self.append(Body::Ended(Box::new(ended(&report))), self.wrote);
            Life::Finished
        };
        self.out.finish(report);
    }

    /// Ends an open call with its final outcome.
    fn close(&mut self, call: CallId) {
        match self.calls.take(call) {
            CallStage::Asking {
                pending,
                since_ms,
                open,
            } => {
                let question = pending.question();
                if open {
                    self.withdraw(call, question.shown_digest(), since_ms);
                }
                self.unsent(unsettled(question));
            }
            // A use that is being claimed stays counted as used.
            CallStage::Covered(covered) | CallStage::Claiming(covered) => {
                self.unsent(unsettled(covered.question()));
            }
            CallStage::Queued(authorized) => self.unsent(decided(&authorized, Verdict::Unsent)),
            CallStage::InFlight { tool, since_ms, .. } => {
                self.withdraw_inquiries(call);
                self.out.cancel_call(call);
                let ms = self.clock.host_ms().saturating_sub(since_ms);
                let why = "the run ended while the call was in flight".into();
                let reply = Reply::Lost {
                    why,
                    cause: LostCause::RunEnded,
                };
                let judged = judge(reply, &tool, &self.spec.limits);
                self.settle(call, &judged, ms, false);
            }
            CallStage::Over => {}
        }
    }

    pub(super) fn unsent(&mut self, entry: DecidedEntry) {
        if let Some(record) = self.calls.record(entry.call) {
            record.outcome = Some(ReportedOutcome::NotSent);
        }
        self.append(Body::Decided(Box::new(entry)), false);
    }

    /// Handles a failed append. The failed entry and the rest of its batch were not performed, so
    /// no call of the batch was sent.
    pub(super) fn append_failed(&mut self, why: String) {
        match self.life {
            Life::Running => {}
            // The second report has no value, because a result that cannot be recorded does not
            // count.
            Life::Finished => {
                let report = self.report(RunEnd::JournalUnwritable { why });
                self.out.finish(report);
                self.life = Life::FinishedUnwritten;
                return;
            }
            Life::FinishedUnwritten => return,
        }
        let latest = self.out.number().saturating_sub(1);
        for record in &mut self.calls.records {
            if matches!(record.stage, CallStage::InFlight { batch, .. } if batch == latest) {
                record.stage = CallStage::Over;
                record.outcome = Some(ReportedOutcome::NotSent);
                record.code = Some(Code::JournalUnwritable);
                // The run ends, so no other bookkeeping of these calls is needed.
                self.calls.in_flight -= 1;
            }
        }
        self.ending = Some(RunEnd::JournalUnwritable { why });
    }

    fn report(&self, ending: RunEnd) -> Report {
        let usage = self.report_usage(&ending);
        let (status, error) = self.describe(&ending);
        Report {
            run: self.spec.run.0.to_string(),
            status,
            code: error.as_ref().map(|error| error.code),
            retry_after_ms: match ending {
                RunEnd::Busy { retry_after_ms, .. } => Some(retry_after_ms),
                _ => None,
            },
            value: match ending {
                RunEnd::Returned(value) => value,
                _ => None,
            },
            error,
            findings: self.spec.check.findings.clone(),
            console: self.console.lines(),
            console_dropped_bytes: self.console.total_dropped_bytes(),
            calls: self.report_calls(),
            flow: self.tracker.as_ref().map(FlowTracker::carried),
            usage,
            grants_needed: self.grants_needed(),
        }
    }

    fn report_usage(&self, ending: &RunEnd) -> Usage {
        let value_bytes = match ending {
            RunEnd::Returned(Some(value)) => value.get().len() as u64,
            _ => 0,
        };
        Usage {
            wall_ms: self.clock.elapsed_ms(),
            guest_ms: (self.usage.guest_cpu_us + self.spec.check.guest_cpu_us) / 1_000,
            memory_bytes_peak: self.usage.memory_bytes_peak,
            calls: self.calls.count(),
            output_bytes: self.console.total_bytes().saturating_add(value_bytes),
            calls_not_recorded: self.calls_not_recorded,
        }
    }

    fn report_calls(&self) -> Vec<ReportedCall> {
        let call = |record: &CallRecord| ReportedCall {
            id: record.id.0,
            tool: record.tool.to_string(),
            decision: record.decision,
            reasons: record.reasons.clone(),
            outcome: record.outcome.unwrap_or(ReportedOutcome::NotSent),
            code: record.code,
            ms: record.ms,
            warnings: record.warnings.clone(),
        };
        self.calls.records.iter().map(call).collect()
    }

    fn describe(&self, ending: &RunEnd) -> (Status, Option<ReportedError>) {
        let (status, code, message) = match ending {
            RunEnd::Returned(_) => return (Status::Done, None),
            RunEnd::Threw(error) => return (Status::Failed, Some(self.thrown(error))),
            RunEnd::Rejected(error) => return (Status::Failed, Some(error.as_ref().clone())),
            RunEnd::Deadlock => {
                let message = "the script awaits something that can never settle";
                let error = self.located(Code::Deadlock, message.into());
                return (Status::Failed, Some(error));
            }
            RunEnd::Limit(limit) => {
                let error = self.located(Code::from(*limit), self.says(*limit));
                return (Status::Stopped, Some(error));
            }
            RunEnd::TooManyDenials => {
                let message = format!("{DENIALS_MAX} calls were denied, refused or invalid");
                (Status::Stopped, Code::LimitCalls, message)
            }
            RunEnd::Unfit { why } => (
                Status::Failed,
                Code::Internal,
                format!("the run cannot be started: {why}"),
            ),
            RunEnd::EngineFault { why } => (
                Status::Failed,
                Code::EngineFault,
                format!("the sandbox failed: {why}"),
            ),
            RunEnd::Cancelled { why } => (Status::Cancelled, Code::Cancelled, why.clone()),
            RunEnd::Busy { why, .. } => (Status::Stopped, Code::Busy, why.clone()),
            RunEnd::JournalUnwritable { why } => {
                let message = format!("the journal cannot be written: {why}");
                (Status::Stopped, Code::JournalUnwritable, message)
            }
        };
        (
            status,
            Some(ReportedError {
                name: "RunError".into(),
                message,
                code,
                ..nowhere()
            }),
        )
    }

    /// Returns an error with the place where the script could not continue.
    fn located(&self, code: Code, message: String) -> ReportedError {
        let error = ReportedError {
            name: "RunError".into(),
            message,
            code,
            ..nowhere()
        };
        let Some(at) = &self.whereabouts else {
            return error;
        };
        let mut message = error.message;
        if !at.doing.is_empty() {
            message = format!("{message}; {}", bounded(&at.doing, 2_000));
        }
        ReportedError {
            message,
            line: Some(at.line),
            column: Some(at.column),
            stack: bounded(&at.stack, 16_000),
            ..error
        }
    }

    fn says(&self, limit: Limit) -> String {
        let limits = &self.spec.limits;
        let said = limits.says(limit);
        if limit == Limit::Time && self.clock.is_human_time_used_up() {
            let humans_ms = limits.human_wall_ms_max;
            return format!("{said}, not counting {humans_ms} ms of waiting for people");
        }
        said
    }

    /// Converts an uncaught error of the script for the report. Its code is kept only if the call
    /// in the error really failed with this code. A script can make up all other parts.
    fn thrown(&self, error: &ScriptError) -> ReportedError {
        let failed = error.ticket.and_then(|ticket| self.calls.by_ticket(ticket));
        let code = failed
            .and_then(|record| record.code)
            .filter(|code| code.as_str() == error.code);
        let place = |n: u32| (n > 0).then_some(n);
        ReportedError {
            name: bounded(&error.name, 200),
            message: bounded(&error.message, 8_000),
            code: code.unwrap_or(Code::ScriptError),
            line: place(error.line),
            column: place(error.column),
            stack: bounded(&error.stack, 16_000),
        }
    }
}

fn nowhere() -> ReportedError {
    ReportedError {
        name: String::new(),
        message: String::new(),
        code: Code::Internal,
        line: None,
        column: None,
        stack: String::new(),
    }
}

fn ended(report: &Report) -> EndedEntry {
    EndedEntry {
        status: report.status,
        code: report.code,
        error: report.error.clone(),
        value_digest: report
            .value
            .as_ref()
            .map(|value| Digest::sha256(value.get().as_bytes())),
        usage: report.usage,
    }
}

fn bounded(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
