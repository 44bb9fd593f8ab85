//! The reports of runs that were never started.

use airlock_core::code::Code;
use airlock_core::report::{CanResume, Report, ReportedError, ReportedFinding, Status};
use airlock_core::resume::ResumeSpec;
use airlock_core::resume::ledger::EntryState;

use crate::chain_file::ChainFileError;
use crate::shared_file::SharedError;
use airlock_sandbox::budget::Busy;

/// Returns the report of a run that failed before it got an id.
pub(super) fn never_started(code: Code) -> Report {
    Report::empty(Status::Stopped, Some(code))
}

/// Returns the report of a run that was cancelled while it waited for a share of the budget.
pub(super) fn cancelled(why: String) -> Report {
    Report {
        status: Status::Cancelled,
        error: Some(error(Code::Cancelled, why)),
        ..never_started(Code::Cancelled)
    }
}

/// Returns the report of a run that got no share of the budget.
pub(super) fn busy(busy: &Busy) -> Report {
    Report {
        error: Some(error(Code::Busy, busy.to_string())),
        retry_after_ms: Some(busy.retry_after_ms()),
        ..never_started(Code::Busy)
    }
}

/// Returns the report of a run whose shared state could not be read. Without this state no call can
/// be allowed, so the script was not run.
pub(super) fn unreadable(error: &SharedError) -> Report {
    Report {
        error: Some(self::error(Code::StateUnreadable, error.to_string())),
        ..never_started(Code::StateUnreadable)
    }
}

/// Returns the report of a run that could not resume another one. Nothing of it was run.
pub(super) fn not_resumed(error: &ChainFileError) -> Report {
    let code = match error {
        ChainFileError::Chain(_) | ChainFileError::Running(_) | ChainFileError::Changed(_) => {
            Code::CannotResume
        }
        _ => Code::StateUnreadable,
    };
    Report {
        error: Some(self::error(code, error.to_string())),
        ..never_started(code)
    }
}

/// Returns the report of a script with definite errors that was to resume a run. The run is not
/// resumed, and can be resumed with another script.
pub(super) fn rejected(
    error: ReportedError,
    findings: Vec<ReportedFinding>,
    resume: &ResumeSpec,
) -> Report {
    let entries = resume.ledger.entries().iter();
    let returned = entries.filter(|it| it.state == EntryState::Returned && !it.is_superseded);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Report {
        findings,
        can_resume: Some(CanResume {
            run: resume.position.predecessor.run.0.to_string(),
            recorded: count(returned.count()),
            indeterminate: count(resume.ledger.unknown().count()),
        }),
        error: Some(error.clone()),
        ..Report::empty(Status::Failed, Some(error.code))
    }
}

fn error(code: Code, message: String) -> ReportedError {
    ReportedError {
        name: "RunError".into(),
        message,
        code,
        line: None,
        column: None,
        stack: String::new(),
    }
}
