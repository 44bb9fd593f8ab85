//! A report for a person: the value on stdout, and on stderr how it ended and
//! what happened.

use airlock_core::code::Code;
use airlock_core::problem::Problem;
use airlock_core::report::{Report, ReportedCall, ReportedError, ReportedOutcome, Status};
use serde_json::Value;
use serde_json::value::RawValue;

use super::escape;

/// Calls that are shown; the journal has them all.
const CALLS_SHOWN: usize = 40;
const TOOL_CHARS_SHOWN: usize = 48;
const REASONS_CHARS_SHOWN: usize = 120;
const MESSAGE_CHARS_SHOWN: usize = 600;

/// The value as text: a string as it is, everything else as JSON for reading.
#[must_use]
pub fn value(value: &RawValue, for_terminal: bool) -> String {
    let text = match serde_json::from_str(value.get()) {
        Ok(Value::String(text)) => text,
        Ok(other) => {
            serde_json::to_string_pretty(&other).unwrap_or_else(|_| value.get().to_owned())
        }
        Err(_) => value.get().to_owned(),
    };
    let text = if for_terminal {
        escape::block(&text).into_owned()
    } else {
        text
    };
    format!("{text}\n")
}

/// What ended a run that is not done. `script` is its name and text.
#[must_use]
pub fn ending(report: &Report, script: (&str, &str)) -> Option<Problem> {
    let code = report.code.unwrap_or(Code::Internal);
    let error = report.error.as_ref();
    let (what, why) = match (report.status, error) {
        (Status::Done, _) => return None,
        (Status::Failed, Some(error)) => (
            format!("the script failed{}", place(error, script)),
            thrown(error),
        ),
        (Status::Failed, None) => ("the script failed".to_owned(), String::new()),
        (Status::Cancelled, _) => ("the run was cancelled".to_owned(), message(error)),
        (Status::Stopped | Status::Paused, _) => ("the run was stopped".to_owned(), message(error)),
    };
    Some(Problem::new(code.as_str(), what, why, next(code)))
}

/// Which calls were made and what became of them, one line each.
#[must_use]
pub fn calls(calls: &[ReportedCall]) -> String {
    let shown = || calls.iter().take(CALLS_SHOWN);
    let width = shown()
        .map(|call| call.tool.chars().count())
        .max()
        .unwrap_or(0);
    let width = width.min(TOOL_CHARS_SHOWN);
    let mut text: String = shown().map(|call| row(call, width)).collect();
    if calls.len() > CALLS_SHOWN {
        text.push_str(&format!(
            "       … and {} more\n",
            calls.len() - CALLS_SHOWN
        ));
    }
    text
}

fn row(call: &ReportedCall, width: usize) -> String {
    let (outcome, tool) = (
        outcome(call.outcome),
        escape::brief(&call.tool, TOOL_CHARS_SHOWN),
    );
    let code = call.code.filter(|code| code.as_str() != outcome);
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    let nothing_left = matches!(
        call.outcome,
        ReportedOutcome::Denied | ReportedOutcome::Refused | ReportedOutcome::NotSent
    );
    let why = if nothing_left {
        format!(
            "  {}",
            escape::brief(&call.reasons.join("; "), REASONS_CHARS_SHOWN)
        )
    } else {
        format!(", {} ms", call.ms)
    };
    format!("{:>5}  {tool:width$}  {outcome}{code}{why}\n", call.id)
}

/// One line: which run it was, how it ended, and what it took.
#[must_use]
pub fn footer(report: &Report) -> String {
    let calls = match report.usage.calls {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    };
    let status = format!("{:?}", report.status).to_lowercase();
    format!(
        "run {}: {status}, {calls}, {} ms",
        report.run, report.usage.wall_ms
    )
}

fn place(error: &ReportedError, (name, _): (&str, &str)) -> String {
    match (error.line, error.column) {
        (Some(line), Some(column)) => format!(" at {name}:{line}:{column}"),
        (Some(line), None) => format!(" at {name}:{line}"),
        _ => String::new(),
    }
}

fn thrown(error: &ReportedError) -> String {
    let message = escape::brief(&error.message, MESSAGE_CHARS_SHOWN);
    match error.name.as_str() {
        "" => message,
        name => format!("{}: {message}", escape::brief(name, 80)),
    }
}

fn message(error: Option<&ReportedError>) -> String {
    error
        .map(|error| escape::brief(&error.message, MESSAGE_CHARS_SHOWN))
        .unwrap_or_default()
}

fn outcome(outcome: ReportedOutcome) -> &'static str {
    match outcome {
        ReportedOutcome::Returned => "returned",
        ReportedOutcome::Failed => "failed",
        ReportedOutcome::Denied => "denied",
        ReportedOutcome::Refused => "refused",
        ReportedOutcome::Unknown => "unknown",
        ReportedOutcome::NotSent => "not-sent",
    }
}

fn next(code: Code) -> &'static str {
    match code {
        Code::ToolFailed | Code::ResultInvalid => {
            "catch the ToolError in the script, or call the tool otherwise"
        }
        Code::InvalidArguments => "`airlock types` prints what the tool takes",
        Code::Denied => "change the rule if the call is wanted, or do without it",
        Code::Refused => "do without the call, or ask whoever refused it",
        Code::Unanswered => {
            "run it where somebody can answer, or allow it with --allow 'SERVER.TOOL'"
        }
        Code::NotDisclosed | Code::DescriptionChanged => {
            "`airlock types` prints the tools that there are"
        }
        Code::ServerUnavailable => "see to the server, and run the script again",
        Code::OutcomeUnknown => {
            "look at the server whether the call had its effect before you repeat it"
        }
        Code::LimitTime => "do less, or allow more with --timeout",
        Code::LimitCpu => "compute less, or allow more with --limit cpu=…",
        Code::LimitMemory => "keep less in memory, or allow more with --memory",
        Code::LimitStack => "recurse less deeply, or allow more with --limit recursion=…",
        Code::LimitOutput => "print less, or allow more with --limit flood=…",
        Code::LimitCalls => "call less often, or allow more with --max-calls",
        Code::LimitPayload => "pass less at a time, or allow more with --limit args=… or value=…",
        Code::LimitSource => "make the script smaller, or allow more with --limit script=…",
        Code::ScriptError => "correct the script",
        Code::Deadlock => {
            "await only what can still settle: calls, timers, and promises that something resolves"
        }
        Code::JournalUnwritable => "see to the disk, or choose another place with --state-dir",
        Code::Cancelled => "",
        Code::EngineFault | Code::Internal => {
            "run it again; if it stays, report it with the run's journal"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlock_core::report::{ReportedDecision, Usage};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_string_is_printed_raw_and_everything_else_as_json() {
        assert_eq!(value(&raw(r#""a\nb""#), false), "a\nb\n");
        assert_eq!(
            value(&raw(r#"{"b":1,"a":[]}"#), false),
            "{\n  \"b\": 1,\n  \"a\": []\n}\n"
        );
        assert_eq!(value(&raw("null"), false), "null\n");
        assert_eq!(value(&raw(r#""\u001b[31m""#), true), "\\u{1b}[31m\n");
    }

    #[test]
    fn an_uncaught_error_is_named_with_its_place_and_what_to_do() {
        let error = ReportedError {
            name: "ToolError".into(),
            message: "no such ticket".into(),
            code: Code::ToolFailed,
            line: Some(3),
            column: Some(7),
            stack: String::new(),
        };
        let report = Report {
            run: "r".into(),
            status: Status::Failed,
            code: Some(Code::ToolFailed),
            value: None,
            error: Some(error),
            console: Vec::new(),
            console_dropped_bytes: 0,
            calls: Vec::new(),
            usage: Usage::default(),
        };
        let problem = ending(&report, ("a.js", "")).unwrap();
        assert_eq!(problem.what, "the script failed at a.js:3:7");
        assert_eq!(problem.why, "ToolError: no such ticket");
        assert_eq!(problem.code, "tool-failed");
        assert!(
            ending(
                &Report {
                    status: Status::Done,
                    ..report
                },
                ("a.js", "")
            )
            .is_none()
        );
    }

    #[test]
    fn calls_are_listed_with_what_became_of_them() {
        let call = |id, outcome, code| ReportedCall {
            id,
            tool: "fs.delete".into(),
            decision: ReportedDecision::Deny,
            reasons: vec!["rule --deny 'fs.*'".into()],
            outcome,
            code,
            ms: 4,
        };
        let shown = calls(&[
            call(1, ReportedOutcome::Returned, None),
            call(2, ReportedOutcome::Denied, Some(Code::Denied)),
        ]);
        assert_eq!(
            shown,
            "    1  fs.delete  returned, 4 ms\n    2  fs.delete  denied  rule --deny 'fs.*'\n"
        );
    }
}
