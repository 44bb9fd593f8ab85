//! The exit codes of `airlock`. They are stable.

use airlock_core::code::Code;
use airlock_core::problem::Problem;
use airlock_core::report::{Report, Status};

pub const DONE: u8 = 0;
/// An error inside airlock.
pub const INTERNAL: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// The script failed.
pub const SCRIPT_FAILED: u8 = 20;
/// A limit stopped the run.
pub const LIMIT: u8 = 21;
/// A denial or refusal that the script did not catch.
pub const DENIED: u8 = 22;
/// The run waits for a person, without a process.
pub const WAITING: u8 = 23;
/// The run cannot be resumed.
pub const CANNOT_RESUME: u8 = 24;
/// There was no capacity for the run.
pub const BUSY: u8 = 25;
/// A journal has no end.
pub const JOURNAL_INCOMPLETE: u8 = 26;
/// The end of a journal is not signed with a trusted key.
pub const JOURNAL_UNSIGNED: u8 = 27;
/// The configuration is invalid, or a server or the sandbox is not available.
pub const CONFIGURATION: u8 = 30;
/// The journal cannot be written or does not verify, or the state shared by runs cannot be read.
pub const JOURNAL: u8 = 31;
/// A policy has errors, a test case fails, or a change allows more.
pub const POLICY: u8 = 32;
/// The servers' descriptions differ from the lock file.
pub const LOCK: u8 = 33;
/// A question about policies has neither an example nor a proof as its answer.
pub const OPEN: u8 = 34;
/// Cancelled, by Ctrl-C or a signal.
pub const CANCELLED: u8 = 130;

#[must_use]
pub fn of_report(report: &Report) -> u8 {
    match (report.status, report.code) {
        (Status::Done, _) => DONE,
        (Status::Cancelled, _) => CANCELLED,
        (_, Some(Code::JournalUnwritable | Code::StateUnreadable)) => JOURNAL,
        (_, Some(Code::Busy)) => BUSY,
        (_, Some(Code::CannotResume | Code::ResumeDiverged)) => CANNOT_RESUME,
        (Status::Paused, _) => WAITING,
        (_, Some(Code::Internal | Code::EngineFault)) => INTERNAL,
        (
            Status::Failed,
            Some(
                Code::Denied
                | Code::Refused
                | Code::Unanswered
                | Code::NotDisclosed
                | Code::DescriptionChanged
                | Code::ToolUnusable,
            ),
        ) => DENIED,
        (Status::Failed, Some(Code::LimitPayload)) => LIMIT,
        (Status::Failed, _) => SCRIPT_FAILED,
        (Status::Stopped, _) => LIMIT,
    }
}

#[must_use]
pub fn of_problem(problem: &Problem) -> u8 {
    match &*problem.code {
        "usage" => USAGE,
        "policy-invalid" => POLICY,
        "config-invalid" | "setup-failed" | "server-unavailable" | "sandbox-unavailable" => {
            CONFIGURATION
        }
        "journal-unwritable" | "journal-unreadable" | "journal-broken" | "state-unreadable"
        | "state-unsafe" => JOURNAL,
        "journal-incomplete" => JOURNAL_INCOMPLETE,
        "journal-unsigned" => JOURNAL_UNSIGNED,
        "cannot-resume" => CANNOT_RESUME,
        "lock-invalid" => LOCK,
        "limit-source" | "limit-payload" => LIMIT,
        "cancelled" => CANCELLED,
        _ => INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_status_has_an_exit_code() {
        for (status, code, expected) in [
            (Status::Done, None, 0),
            (Status::Failed, Some(Code::ScriptError), 20),
            (Status::Failed, Some(Code::ToolFailed), 20),
            (Status::Failed, Some(Code::Deadlock), 20),
            (Status::Failed, Some(Code::Denied), 22),
            (Status::Failed, Some(Code::Unanswered), 22),
            (Status::Stopped, Some(Code::LimitTime), 21),
            (Status::Stopped, Some(Code::Busy), 25),
            (Status::Stopped, Some(Code::CannotResume), 24),
            (Status::Failed, Some(Code::ResumeDiverged), 24),
            (Status::Paused, None, 23),
            (Status::Stopped, Some(Code::JournalUnwritable), 31),
            (Status::Stopped, Some(Code::EngineFault), 1),
            (Status::Cancelled, Some(Code::Cancelled), 130),
        ] {
            let report = Report::empty(status, code);
            assert_eq!(of_report(&report), expected, "{status:?} {code:?}");
        }
    }
}
