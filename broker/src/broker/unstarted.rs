//! The reports of runs that were never started.

use airlock_core::code::Code;
use airlock_core::report::{Report, ReportedError, Status, Usage};

use crate::shared_file::SharedError;

/// The report of a run that could not even get an id.
pub(super) fn never_started(code: Code) -> Report {
    Report {
        run: String::new(),
        status: Status::Stopped,
        code: Some(code),
        value: None,
        error: None,
        findings: Vec::new(),
        console: Vec::new(),
        console_dropped_bytes: 0,
        calls: Vec::new(),
        flow: None,
        usage: Usage::default(),
        grants_needed: Vec::new(),
    }
}

/// Nothing is allowed by what cannot be read, and so nothing was run.
pub(super) fn unreadable(error: &SharedError) -> Report {
    Report {
        error: Some(ReportedError {
            name: "RunError".into(),
            message: error.to_string(),
            code: Code::StateUnreadable,
            line: None,
            column: None,
            stack: String::new(),
        }),
        ..never_started(Code::StateUnreadable)
    }
}
