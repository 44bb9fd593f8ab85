//! Formats a report for a person. The value is for stdout; the ending and the calls are for stderr.

use std::collections::BTreeSet;

use airlock_core::code::Code;
use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use airlock_core::report::{
    Report, ReportedCall, ReportedDecision, ReportedError, ReportedFinding, ReportedOutcome,
    ReportedSeverity, Status,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{counted, escape};

/// Maximum number of lines about calls; the journal contains all of them.
const CALL_LINES_SHOWN: usize = 40;
const EXCERPT_CHARS_SHOWN: usize = 120;
const TOOL_CHARS_SHOWN: usize = 48;
const REASONS_CHARS_SHOWN: usize = 120;
const WARNING_CHARS_SHOWN: usize = 240;
const MESSAGE_CHARS_SHOWN: usize = 600;

/// Formats the value of a run: a string unchanged, other values as indented JSON. For a terminal or
/// a host, invisible characters are escaped.
#[must_use]
pub fn value(value: &RawValue, is_escaped: bool) -> String {
    let (text, is_json) = match json::read(value.get().as_bytes(), Bounds::WIDEST) {
        Ok(Value::String(text)) => (text, false),
        Ok(other) => {
            let pretty = serde_json::to_string_pretty(&other);
            (pretty.unwrap_or_else(|_| value.get().to_owned()), true)
        }
        Err(_) => (value.get().to_owned(), false),
    };
    match (is_escaped, is_json) {
        (false, _) => format!("{text}\n"),
        (true, false) => format!("{}\n", escape::block(&text)),
        (true, true) => format!("{}\n", escape::json(&text)),
    }
}

/// Returns the problem that ended a run, or `None` if the run is done.
#[must_use]
pub fn ending(report: &Report, script_name: &str) -> Option<Problem> {
    if report.status == Status::Paused {
        return Some(Problem::new(
            "paused",
            "the run waits for a person",
            "a call needs approval; the answer can be given later, without a running process",
            "`airlock runs waiting` lists the questions",
        ));
    }
    let code = report.code.unwrap_or(Code::Internal);
    let error = report.error.as_ref();
    let stopped = stopping_finding(report);
    let (what, why) = match (report.status, error) {
        (Status::Done, _) => return None,
        (Status::Failed, Some(error)) if code == Code::ScriptTooComplex => (
            format!(
                "the script was not started, because it cannot be checked{}",
                place(error, script_name)
            ),
            escape::brief(&error.message, MESSAGE_CHARS_SHOWN),
        ),
        (Status::Failed, Some(error)) if code == Code::CheckFailed || stopped.is_some() => {
            let message = stopped.map_or(&error.message, |it| &it.message);
            let kind = match error.name.as_str() {
                "SyntaxError" => "a syntax error",
                _ => "an error",
            };
            (
                format!(
                    "the script was not started, because it has {kind}{}",
                    place(error, script_name)
                ),
                escape::brief(message, MESSAGE_CHARS_SHOWN),
            )
        }
        (Status::Failed, Some(error)) => (
            format!("the script failed{}", place(error, script_name)),
            thrown(error),
        ),
        (Status::Failed, None) => ("the script failed".to_owned(), String::new()),
        (Status::Cancelled, _) => ("the run was cancelled".to_owned(), message(error)),
        (Status::Stopped, _) if code == Code::Busy && report.run.is_empty() => {
            ("the run was not started".to_owned(), message(error))
        }
        (Status::Stopped | Status::Paused, _) => {
            let at = error.map(|error| place(error, script_name));
            let what = format!("the run was stopped{}", at.unwrap_or_default());
            (what, message(error))
        }
    };
    // What to write instead says more than the advice for the code.
    let next = match stopped.and_then(|it| it.suggestion.as_deref()) {
        Some(suggestion) => escape::brief(suggestion, MESSAGE_CHARS_SHOWN),
        None => advice(code, report),
    };
    Some(Problem::new(code.as_str(), what, why, next))
}

/// Returns the finding because of which the script was not started. A script that runs in spite of
/// its findings can fail with the message of one of them, but with another error.
fn stopping_finding(report: &Report) -> Option<&ReportedFinding> {
    let name = &*report.error.as_ref()?.name;
    let is_of_check = matches!(name, "CheckError" | "SyntaxError");
    let mut findings = report.findings.iter().filter(|_| is_of_check);
    findings.find(|it| it.severity == ReportedSeverity::Error && has_stopped(report, it))
}

/// Whether the error of a run is this finding.
pub(super) fn has_stopped(report: &Report, finding: &ReportedFinding) -> bool {
    report.error.as_ref().is_some_and(|error| {
        (error.line, error.column) == (Some(finding.line), Some(finding.column))
            && error.message.starts_with(&finding.message)
    })
}

/// Returns a warning about calls that were not sent, or whose outcome is unknown, because the run
/// ended first or because the connection broke.
#[must_use]
pub fn open_calls(report: &Report) -> Option<Problem> {
    let count = |outcome| {
        // The script got the error of a call that needs a login.
        let is_told = |call: &&ReportedCall| call.code == Some(Code::LoginRequired);
        let calls = report.calls.iter().filter(|call| !is_told(call));
        calls.filter(|call| call.outcome == outcome).count()
    };
    let unsent = match report.status {
        // These calls wait for the answers of people, and are made when the run is resumed.
        Status::Paused => 0,
        _ => count(ReportedOutcome::NotSent) + report.usage.calls_not_recorded as usize,
    };
    let unknown = count(ReportedOutcome::Unknown);
    let verb = |count: usize| if count == 1 { "was" } else { "were" };
    let not_sent = format!("{} {} not sent", counted(unsent, "call"), verb(unsent));
    let in_doubt = format!("the outcome of {} is unknown", counted(unknown, "call"));
    let (what, next) = match (unsent, unknown) {
        (0, 0) => return None,
        (_, 0) => (not_sent, "`await` every call that matters"),
        (0, _) => (in_doubt, next(Code::OutcomeUnknown)),
        (_, _) => (
            format!("{not_sent}, and {in_doubt}"),
            next(Code::OutcomeUnknown),
        ),
    };
    let why = match report.status {
        Status::Done => "the script ended without waiting for them, or a connection broke",
        _ => "the run ended before the calls did, or a connection broke",
    };
    Some(Problem::new("calls-open", what, why, next))
}

/// Lists the calls with their outcomes, one line each. Repeated calls share one line.
#[must_use]
pub fn calls(calls: &[ReportedCall]) -> String {
    let groups: Vec<_> = calls.chunk_by(is_repetition).collect();
    let shown = || groups.iter().take(CALL_LINES_SHOWN);
    let width = shown()
        .filter_map(|group| Some(group.first()?.tool.chars().count()))
        .max();
    let width = width.unwrap_or(0).min(TOOL_CHARS_SHOWN);
    let mut text: String = shown().map(|group| row(group, width)).collect();
    let told = shown().map(|group| group.len()).sum::<usize>();
    if told < calls.len() {
        text.push_str(&format!("       … and {} more\n", calls.len() - told));
    }
    text
}

fn is_repetition(a: &ReportedCall, b: &ReportedCall) -> bool {
    (&a.tool, a.outcome, a.code, &a.reasons, &a.warnings)
        == (&b.tool, b.outcome, b.code, &b.reasons, &b.warnings)
}

fn row(group: &[ReportedCall], width: usize) -> String {
    let [call, rest @ ..] = group else {
        return String::new();
    };
    let (outcome, tool) = (
        outcome(call.outcome),
        escape::brief(&call.tool, TOOL_CHARS_SHOWN),
    );
    let code = call.code.filter(|code| code.as_str() != outcome);
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    let ids = rest.last().map_or_else(
        || call.id.to_string(),
        |last| format!("{}…{}", call.id, last.id),
    );
    let what = if call.reused_from.is_some() {
        format!(
            ", {}",
            escape::brief(&call.reasons.join("; "), REASONS_CHARS_SHOWN)
        )
    } else if is_withheld(call) {
        format!(
            "  {}",
            escape::brief(&call.reasons.join("; "), REASONS_CHARS_SHOWN)
        )
    } else if rest.is_empty() {
        format!(", {} ms", call.ms)
    } else {
        format!(
            ", up to {} ms each",
            group.iter().map(|call| call.ms).max().unwrap_or(0)
        )
    };
    let warnings = call.warnings.iter().map(|warning| {
        let text = escape::brief(warning, WARNING_CHARS_SHOWN);
        format!("           warning: {text}\n")
    });
    let warnings: String = warnings.collect();
    format!("{ids:>9}  {tool:width$}  {outcome}{code}{what}\n{warnings}")
}

/// Whether the call never left airlock.
fn is_withheld(call: &ReportedCall) -> bool {
    matches!(
        call.outcome,
        ReportedOutcome::Denied | ReportedOutcome::Refused | ReportedOutcome::NotSent
    )
}

/// Returns the line of the script where it failed, with a mark under the position.
#[must_use]
pub fn excerpt(error: &ReportedError, script: &str) -> Option<String> {
    marked(error.line?, error.column?, script)
}

/// Returns a line of the script with a mark under one column. A long line is cut to the part around
/// the mark.
pub(super) fn marked(number: u32, column: u32, script: &str) -> Option<String> {
    let line = script
        .lines()
        .nth(usize::try_from(number).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(column).ok()?.checked_sub(1)?;
    // A line may be extremely long, so only the part up to the mark is read.
    let needed = column.saturating_add(EXCERPT_CHARS_SHOWN + 1);
    let count = line.chars().take(needed).count();
    let hidden = if count <= EXCERPT_CHARS_SHOWN {
        0
    } else {
        let room = count.saturating_sub(EXCERPT_CHARS_SHOWN);
        column.saturating_sub(EXCERPT_CHARS_SHOWN * 2 / 3).min(room)
    };
    let cut = if hidden > 0 { "…" } else { "" };
    let (mut shown, mut before) = (String::new(), 0);
    let near = line.chars().enumerate().skip(hidden);
    for (at, c) in near.take(EXCERPT_CHARS_SHOWN + 1) {
        let c = if c == '\t' { ' ' } else { c };
        let c = escape::line(c.encode_utf8(&mut [0; 4])).into_owned();
        before += if at < column { cells(&c) } else { 0 };
        shown.push_str(&c);
    }
    let shown = escape::brief(&shown, EXCERPT_CHARS_SHOWN);
    let before = " ".repeat(before + cut.chars().count());
    Some(format!("{number:>6} | {cut}{shown}\n       | {before}^\n"))
}

/// Returns the width of a text on a terminal, in columns.
fn cells(text: &str) -> usize {
    let is_wide = |c: char| {
        matches!(u32::from(c),
            0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f
            | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd)
    };
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// Formats one line: the run's id, its status, and its usage.
#[must_use]
pub fn footer(report: &Report) -> String {
    let calls = match report.reused {
        0 => counted(report.usage.calls, "call"),
        reused => format!("{}, {reused} reused", counted(report.usage.calls, "call")),
    };
    let status = format!("{:?}", report.status).to_lowercase();
    format!(
        "run {}: {status}, {calls}, {} ms",
        report.run, report.usage.wall_ms
    )
}

fn place(error: &ReportedError, name: &str) -> String {
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

/// Returns advice for an error code. For a call that no rule allowed, the advice names a rule that
/// would allow the call.
fn advice(code: Code, report: &Report) -> String {
    let unspoken =
        |call: &&ReportedCall| call.code == Some(code) && call.decision != ReportedDecision::Allow;
    let by_a_rule = |call: &ReportedCall| {
        call.reasons
            .iter()
            .any(|it| it.starts_with("rule") && it.contains("deny") || is_of_a_policy(it))
    };
    let call = report.calls.iter().rev().find(unspoken);
    match (code, call) {
        (Code::Denied | Code::Unanswered, Some(call)) if !by_a_rule(call) => {
            let calls = report.calls.iter().filter(unspoken);
            let tools: BTreeSet<&str> = calls
                .filter(|call| !by_a_rule(call))
                .map(|call| &*call.tool)
                .collect();
            let allow: Vec<_> = tools
                .iter()
                .map(|tool| format!("--allow '{tool}'"))
                .collect();
            format!(
                "run it in a terminal or with `--approver later`, and a person is asked; or add {}",
                allow.join(" ")
            )
        }
        (Code::Denied, Some(call)) => {
            let (next, run, call) = (next(code), &report.run, call.id);
            format!("{next}; `airlock policy explain {run}:{call}` shows the facts of the call")
        }
        (Code::Busy, _) => {
            let again = run_again(report.retry_after_ms.unwrap_or_default());
            format!("{again}, or {}", next(code))
        }
        _ => next(code).to_owned(),
    }
}

/// Formats the time after which to try again, for a run without capacity.
pub(crate) fn run_again(retry_after_ms: u64) -> String {
    let seconds = retry_after_ms.div_ceil(1_000);
    format!("run it again in {} s", seconds.max(1))
}

/// Whether this reason comes from a policy, which `--allow` does not override.
fn is_of_a_policy(reason: &str) -> bool {
    reason.starts_with("rule `") || reason.contains(" policy rule ")
}

fn next(code: Code) -> &'static str {
    match code {
        Code::ToolFailed | Code::ResultInvalid => {
            "catch the ToolError in the script, or change the call"
        }
        Code::InvalidArguments => {
            "`airlock types`, with the tool's name and the same server flags, prints its parameters"
        }
        Code::Denied => "change the rules if the call is wanted, or remove the call",
        Code::Refused => "remove the call, or ask the person who refused it",
        Code::Unanswered => {
            "run it where a person can answer, or change the rules; a grant is enough only if the rules \
             do not ask about each call"
        }
        Code::NotDisclosed => "`airlock types` prints the tools",
        Code::ToolUnusable => {
            "report this to the server's author; the server's other tools still work"
        }
        Code::DescriptionChanged => {
            "`airlock lock diff` shows the changes, `airlock lock` accepts them"
        }
        Code::ServerUnavailable => "check the server, and run the script again",
        Code::LoginRequired => {
            "log in with the command that the message names, and run the script again"
        }
        Code::OutcomeUnknown => {
            "before you repeat the call, check at the server whether it had an effect"
        }
        Code::ExtractFailed => {
            "catch the ToolError in the script, use a simpler schema, or check the `[extract]` command or the host"
        }
        Code::LimitTime => "do less, or allow more with --timeout",
        Code::LimitCpu => "compute less, or allow more with --limit cpu=…",
        Code::LimitMemory => "keep less in memory, or allow more with --memory",
        Code::LimitStack => "nest less deeply, or allow more with --limit recursion=…",
        Code::LimitOutput => "print less, or allow more with --limit flood=…",
        Code::LimitCalls => "call less often, or allow more with --max-calls",
        Code::LimitPayload => {
            "pass less at a time, or allow more with --limit args=…, value=… or json-depth=…"
        }
        Code::LimitSource => "make the script smaller, or allow more with --limit script=…",
        Code::LimitJournal => "call less often or with less, or allow more with --limit journal=…",
        Code::ScriptError | Code::CheckFailed => "correct the script",
        Code::ScriptTooComplex => "split the script into smaller statements or shorter scripts",
        Code::Deadlock => "await only calls, timers, and promises that the script resolves",
        Code::StateUnreadable => "`airlock grants list` reports which file cannot be read",
        Code::JournalUnwritable => "check the disk, or choose another folder with --state-dir",
        Code::Cancelled => "",
        Code::ResumeDiverged => {
            "run the script again with `--resume`; its calls are then matched by content"
        }
        Code::CannotResume => {
            "run the command again, or resume the newest run of the chain; see `airlock runs list`"
        }
        Code::Busy => "allow more with --limit runs=… or runs-memory=…",
        Code::EngineFault | Code::Internal => {
            "run the script again; if the error persists, report it with the run's journal"
        }
    }
}

#[cfg(test)]
mod tests;
