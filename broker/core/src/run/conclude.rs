//! Ends a run exactly once: open calls are closed, the end is recorded, and one report is emitted.
//!
//! A call that was not sent before the script returned is never sent. A call in flight is cancelled
//! and reported as unknown, unless its outcome came while the run waited for it (`run/drain.rs`). So a
//! script must await every call that matters.

use sandbox_protocol::ScriptError;

use crate::code::Code;
use crate::flow::FlowTracker;
use crate::id::{CallId, Digest};
use crate::journal::{Body, DecidedEntry, EndedEntry, SuspendedEntry, Verdict};
use crate::limits::{DENIALS_MAX, Limit};
use crate::outcome::{LostCause, Reply, judge};
use crate::report::{
    CanResume, DoubtfulCall, RefreshedCall, Report, ReportedCall, ReportedCallRef, ReportedChain,
    ReportedError, ReportedOutcome, Status, Usage,
};

use super::calls::{CallOrigin, CallRecord, CallStage};
use super::entries::{decided, unsettled};
use super::run_end::RunEnd;
use super::{Guest, Life, Run};

/// Maximum length of a recorded value. The last line of a journal stays short, because lists of runs
/// read it.
const VALUE_BYTES_MAX: usize = 32 * 1024;

impl Run {
    pub(super) fn conclude(&mut self, ending: RunEnd) {
        let unwritable = matches!(ending, RunEnd::JournalUnwritable { .. });
        let asking = match ending {
            RunEnd::Suspended => self.suspend_asks(),
            _ => {
                self.close_all();
                Vec::new()
            }
        };
        let is_suspended = matches!(ending, RunEnd::Suspended);
        if self.guest != Guest::Gone {
            self.out.stop_guest();
            self.guest = Guest::Gone;
        }
        let report = self.report(ending);
        self.life = if unwritable {
            self.out.drop_appends();
            Life::FinishedUnwritten
        } else if is_suspended {
            let suspended = SuspendedEntry {
                calls: asking,
                usage: report.usage,
            };
            self.append(Body::Suspended(suspended), true);
            Life::Finished
        } else {
            self.append(Body::Ended(Box::new(self.ended(&report))), self.wrote);
            Life::Finished
        };
        self.out.finish(report);
    }

    /// Withdraws the open questions of a run that is suspended. They stay open in the journal.
    fn suspend_asks(&mut self) -> Vec<CallId> {
        let asking: Vec<_> = self.calls.asking.iter().copied().collect();
        asking.iter().for_each(|call| self.out.withdraw_ask(*call));
        asking
    }

    fn close_all(&mut self) {
        let calls: Vec<_> = self.calls.records.iter().map(|record| record.id).collect();
        calls.into_iter().for_each(|call| self.close(call));
        for call in self.take_held() {
            let entry = DecidedEntry {
                decision: Verdict::Unsent,
                ..self.entry_of(call)
            };
            self.unsent(entry);
        }
    }

    /// Ends an open call with its final outcome.
    pub(super) fn close(&mut self, call: CallId) {
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
            CallStage::InFlight {
                tool,
                args,
                since_ms,
                ..
            } => {
                self.withdraw_inquiries(call);
                self.out.cancel_call(call);
                let ms = self.clock.host_ms().saturating_sub(since_ms);
                let why = "the run ended while the call was in flight".into();
                let reply = Reply::Lost {
                    why,
                    cause: LostCause::RunEnded,
                };
                let judged = judge(reply, &tool, &self.spec.limits);
                self.note_unknown(call, &tool, &args, judged.reported);
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
            chain: self.report_chain(),
            reused: self.count_calls(|record| matches!(record.origin, CallOrigin::Reused(_))),
            ran: self.count_calls(|record| self.resuming.is_some() && has_left(record)),
            refreshed: self.report_refreshed(),
            indeterminate: self.report_indeterminate(),
            doubtful: self.report_doubtful(),
            left_over: self.report_left_over(),
            can_resume: self.can_resume(status),
        }
    }

    fn report_chain(&self) -> Option<ReportedChain> {
        let position = &self.resuming.as_ref()?.position;
        Some(ReportedChain {
            root: position.root.0.to_string(),
            number: position.number,
            predecessor: position.predecessor.run.0.to_string(),
        })
    }

    fn count_calls(&self, counts: impl Fn(&CallRecord) -> bool) -> u32 {
        let counted = self.calls.records.iter().filter(|record| counts(record));
        u32::try_from(counted.count()).unwrap_or(u32::MAX)
    }

    fn report_refreshed(&self) -> Vec<RefreshedCall> {
        let refreshed = |record: &CallRecord| match &record.origin {
            CallOrigin::Again { from, changed, .. } if has_left(record) => Some(RefreshedCall {
                call: record.id.0,
                from: from.clone(),
                changed: *changed,
            }),
            _ => None,
        };
        self.calls.records.iter().filter_map(refreshed).collect()
    }

    fn report_indeterminate(&self) -> Vec<ReportedCallRef> {
        let calls = self.indeterminate_calls().into_iter();
        let reported = calls.map(|(at, tool)| ReportedCallRef { at, tool });
        reported.collect()
    }

    fn report_doubtful(&self) -> Vec<DoubtfulCall> {
        let doubtful = |record: &CallRecord| match &record.origin {
            CallOrigin::Doubtful(near) => Some(DoubtfulCall {
                call: record.id.0,
                tool: record.tool.to_string(),
                near: near.clone(),
            }),
            _ => None,
        };
        self.calls.records.iter().filter_map(doubtful).collect()
    }

    fn report_left_over(&self) -> Vec<ReportedCallRef> {
        let left = self.resuming.iter().flat_map(|it| it.matcher.left_over());
        let reported = left.map(|entry| ReportedCallRef {
            at: entry.at.clone(),
            tool: entry.key.tool.to_string(),
        });
        reported.collect()
    }

    /// Returns what another run can resume, if the script did not return a value.
    fn can_resume(&self, status: Status) -> Option<CanResume> {
        let is_recorded = |record: &CallRecord| record.outcome == Some(ReportedOutcome::Returned);
        let recorded = self.count_calls(is_recorded);
        let indeterminate = self.indeterminate_calls().len();
        let is_any = recorded > 0 || indeterminate > 0 || status == Status::Paused;
        (status != Status::Done && is_any).then(|| CanResume {
            run: self.spec.run.0.to_string(),
            recorded,
            indeterminate: u32::try_from(indeterminate).unwrap_or(u32::MAX),
        })
    }

    fn ended(&self, report: &Report) -> EndedEntry {
        let value = report.value.as_ref().map(|value| value.get());
        let bytes_max = self.spec.limits.journal_payload_bytes_max as usize;
        let bytes_max = bytes_max.min(VALUE_BYTES_MAX);
        EndedEntry {
            status: report.status,
            code: report.code,
            error: report.error.clone(),
            value_digest: value.map(|value| Digest::sha256(value.as_bytes())),
            value: value
                .filter(|value| value.len() <= bytes_max)
                .map(str::to_owned),
            usage: report.usage,
            masked: false,
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
            reused_from: match &record.origin {
                CallOrigin::Reused(from) => Some(from.clone()),
                _ => None,
            },
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
            RunEnd::Suspended => return (Status::Paused, None),
            RunEnd::Diverged { why } => (
                Status::Failed,
                Code::ResumeDiverged,
                format!("the run cannot be continued, and nothing was sent: {why}"),
            ),
            RunEnd::Cancelled { why, .. } => (Status::Cancelled, Code::Cancelled, why.clone()),
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
    /// in the error really failed with this code, or if the guest refused arguments that exceed a
    /// limit, so that there is no call. A script can make up all other parts.
    fn thrown(&self, error: &ScriptError) -> ReportedError {
        let code = match error.ticket {
            Some(ticket) => self.calls.by_ticket(ticket).and_then(|it| it.code),
            None => Some(Code::LimitPayload),
        };
        let code = code.filter(|code| code.as_str() == error.code);
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

/// Whether a call of this run left.
fn has_left(record: &CallRecord) -> bool {
    let may_have_happened = matches!(
        record.outcome,
        Some(ReportedOutcome::Returned | ReportedOutcome::Failed | ReportedOutcome::Unknown)
    );
    may_have_happened && !matches!(record.origin, CallOrigin::Reused(_))
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

fn bounded(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
