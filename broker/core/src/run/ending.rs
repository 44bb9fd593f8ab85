//! How a run ends, exactly once: what is open is closed, the end is recorded,
//! and one report goes out.
//!
//! Await what matters: what has not left when the script returns never leaves,
//! and what is in flight is cancelled and reported as unknown.

use sandbox_protocol::ScriptError;
use serde_json::value::RawValue;

use crate::code::Code;
use crate::flow::Watch;
use crate::id::{CallId, Digest};
use crate::journal::{Body, Decided, Ended, Verdict};
use crate::json::{self, Bounds};
use crate::limits::{DENIALS_MAX, Limit, Limits};
use crate::outcome::{LostCause, Reply, judge};
use crate::report::{Report, ReportedCall, ReportedError, ReportedOutcome, Status, Usage};

use super::calls::Stage;
use super::entries::{decided, unsettled};
use super::{Guest, Life, Run};

#[derive(Debug)]
pub(super) enum Ending {
    /// The script's value; none for `undefined`.
    Returned(Option<Box<RawValue>>),
    Threw(Box<ScriptError>),
    /// The check before the run was certain that the script is wrong.
    Rejected(Box<ReportedError>),
    Deadlock,
    Limit(Limit),
    TooManyDenials,
    /// What the run was to be started with is not fit for one.
    Unfit {
        why: String,
    },
    EngineFault {
        why: String,
    },
    Cancelled {
        why: String,
    },
    Busy {
        why: String,
        retry_after_ms: u64,
    },
    JournalUnwritable {
        why: String,
    },
}

impl Ending {
    /// The guest's last bytes, believed only as far as they are JSON within bounds.
    pub(super) fn of_value(value: Vec<u8>, limits: &Limits) -> Self {
        if value.is_empty() {
            return Self::Returned(None);
        }
        let bounds = Bounds {
            bytes_max: limits.value_bytes_max,
            depth_max: limits.json_depth_max,
            nodes_max: limits.json_nodes_max,
        };
        if json::measure(&value, bounds).is_err() {
            return Self::Limit(Limit::Payload);
        }
        match String::from_utf8(value)
            .ok()
            .and_then(|text| RawValue::from_string(text).ok())
        {
            Some(value) => Self::Returned(Some(value)),
            None => Self::EngineFault {
                why: "the value that the guest returned is not JSON".into(),
            },
        }
    }
}

impl Run {
    pub(super) fn conclude(&mut self, ending: Ending) {
        let unwritable = matches!(ending, Ending::JournalUnwritable { .. });
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

    /// Gives a call that is still open its outcome.
    fn close(&mut self, call: CallId) {
        match self.calls.take(call) {
            Stage::Asking {
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
            // A use that is being counted stays counted.
            Stage::Covered(covered) | Stage::Claiming(covered) => {
                self.unsent(unsettled(covered.question()));
            }
            Stage::Queued(authorized) => self.unsent(decided(&authorized, Verdict::Unsent)),
            Stage::InFlight { tool, since_ms, .. } => {
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
            Stage::Over => {}
        }
    }

    pub(super) fn unsent(&mut self, entry: Decided) {
        if let Some(record) = self.calls.record(entry.call) {
            record.outcome = Some(ReportedOutcome::NotSent);
        }
        self.append(Body::Decided(Box::new(entry)), false);
    }

    /// What the batch held from the failed append on was not done: no call left.
    pub(super) fn append_failed(&mut self, why: String) {
        match self.life {
            Life::Running => {}
            // Without its value: what cannot be recorded did not happen.
            Life::Finished => {
                let report = self.report(Ending::JournalUnwritable { why });
                self.out.finish(report);
                self.life = Life::FinishedUnwritten;
                return;
            }
            Life::FinishedUnwritten => return,
        }
        let latest = self.out.number().saturating_sub(1);
        for record in &mut self.calls.records {
            if matches!(record.stage, Stage::InFlight { batch, .. } if batch == latest) {
                record.stage = Stage::Over;
                record.outcome = Some(ReportedOutcome::NotSent);
                record.code = Some(Code::JournalUnwritable);
                // The run ends: nothing asks any more what its calls wait for.
                self.calls.in_flight -= 1;
            }
        }
        self.ending = Some(Ending::JournalUnwritable { why });
    }

    fn report(&self, ending: Ending) -> Report {
        let usage = self.report_usage(&ending);
        let (status, error) = self.describe(&ending);
        Report {
            run: self.spec.run.0.to_string(),
            status,
            code: error.as_ref().map(|error| error.code),
            retry_after_ms: match ending {
                Ending::Busy { retry_after_ms, .. } => Some(retry_after_ms),
                _ => None,
            },
            value: match ending {
                Ending::Returned(value) => value,
                _ => None,
            },
            error,
            findings: self.spec.check.findings.clone(),
            console: self.console.lines(),
            console_dropped_bytes: self.console.total_dropped_bytes(),
            calls: self.report_calls(),
            flow: self.watch.as_ref().map(Watch::carried),
            usage,
            grants_needed: self.grants_needed(),
        }
    }

    fn report_usage(&self, ending: &Ending) -> Usage {
        let value_bytes = match ending {
            Ending::Returned(Some(value)) => value.get().len() as u64,
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
        let call = |record: &super::calls::Record| ReportedCall {
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

    fn describe(&self, ending: &Ending) -> (Status, Option<ReportedError>) {
        let (status, code, message) = match ending {
            Ending::Returned(_) => return (Status::Done, None),
            Ending::Threw(error) => return (Status::Failed, Some(self.thrown(error))),
            Ending::Rejected(error) => return (Status::Failed, Some(error.as_ref().clone())),
            Ending::Deadlock => {
                let message = "the script awaits something that nothing can settle";
                let error = self.located(Code::Deadlock, message.into());
                return (Status::Failed, Some(error));
            }
            Ending::Limit(limit) => {
                let error = self.located(Code::from(*limit), self.says(*limit));
                return (Status::Stopped, Some(error));
            }
            Ending::TooManyDenials => {
                let message = format!("{DENIALS_MAX} calls were denied, refused or invalid");
                (Status::Stopped, Code::LimitCalls, message)
            }
            Ending::Unfit { why } => (
                Status::Failed,
                Code::Internal,
                format!("the run cannot be started: {why}"),
            ),
            Ending::EngineFault { why } => (
                Status::Failed,
                Code::EngineFault,
                format!("the sandbox failed: {why}"),
            ),
            Ending::Cancelled { why } => (Status::Cancelled, Code::Cancelled, why.clone()),
            Ending::Busy { why, .. } => (Status::Stopped, Code::Busy, why.clone()),
            Ending::JournalUnwritable { why } => {
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

    /// Why a script could not go on, and where it was then.
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
        if limit == Limit::Time && self.clock.is_tired_of_humans() {
            let humans_ms = limits.human_wall_ms_max;
            return format!("{said}, not counting {humans_ms} ms of waiting for people");
        }
        said
    }

    /// An uncaught error. Its code counts only when the call that it names
    /// really failed with that code: anything else a script can make up.
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

fn ended(report: &Report) -> Ended {
    Ended {
        status: report.status,
        code: report.code,
        error: report.error.clone(),
        value_digest: report
            .value
            .as_ref()
            .map(|value| Digest::of(value.get().as_bytes())),
        usage: report.usage,
    }
}

fn bounded(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
