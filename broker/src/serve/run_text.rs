//! Formats a run's report as text for a model: value, or error with its position; findings of the
//! check; console; calls with their outcomes; and where to read parts that were cut.

use std::borrow::Cow;

use airlock_core::catalog::Catalog;
use airlock_core::code::Code;
use airlock_core::decide::INVALID_ANSWER;
use airlock_core::id::{CallId, ToolId};
use airlock_core::report::{
    Report, ReportedCall, ReportedLine, ReportedOutcome, ReportedSeverity, Status,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::binaries;
use super::content_blocks::{self, IMAGE_BYTES_MAX};
use super::followed_run::{FollowedScript, UnaskedCalls};
use super::prompt::CHANGES_FOR_APPROVAL;
use super::result_store::{StoredContent, read_call};
use super::rpc::{remove_member, set_member};
use super::session::HostSession;
use crate::broker::tool_index::visible;
use crate::extract::NO_EXTRACTOR;
use crate::render::{self, Style, escape};

/// Maximum length of console text in a result, in bytes. Models rarely need the console.
const CONSOLE_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of findings in a result. The report contains all of them.
const FINDINGS_SHOWN_MAX: usize = 8;
const MESSAGE_CHARS_SHOWN: usize = 600;
const TOOL_CHARS_SHOWN: usize = 200;
/// Maximum number of images in a result. All together have at most [`IMAGE_BYTES_MAX`] bytes.
const IMAGES_MAX: usize = 8;
const RUNS_URI: &str = "airlock:///runs";
/// Note for a value that contains addresses of binaries.
const BINARIES: &str = "binaries: the value has their addresses in `data_at` and `blob_at`; \
     read_result returns images, and the host can read all of them as resources";

/// The end of a run, as the content of a tool result.
#[derive(Debug)]
pub(super) struct RunText {
    pub(super) text: String,
    /// The report in the format of the command line, with the advice of the text. A value that was
    /// too long is replaced by `value_at`, with its beginning and how to read the rest.
    pub(super) report: Value,
    /// The images in the value, as content blocks.
    pub(super) images: Vec<Value>,
    pub(super) is_error: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RunTextOptions<'a> {
    /// Maximum length of the value. The rest of a longer value is kept in the session.
    pub(super) value_bytes_max: usize,
    pub(super) unasked: &'a UnaskedCalls,
    /// The tools, which say what may write.
    pub(super) catalog: &'a Catalog,
}

/// Formats a report.
pub(super) fn of_run(
    report: &Report,
    script: &FollowedScript,
    session: &HostSession,
    options: RunTextOptions<'_>,
) -> RunText {
    let mut structured = serde_json::to_value(report).unwrap_or_default();
    let is_unasked = match options.unasked {
        UnaskedCalls::All => true,
        UnaskedCalls::Declined(calls) => !calls.is_empty(),
    };
    // Where a person was asked, nobody needs grants that would have replaced the answer.
    if !is_unasked {
        remove_member(&mut structured, "grants_needed");
    }
    let mut parts = Vec::new();
    let mut images = Images::default();
    if let Some(value) = &report.value {
        let lean = without_binaries(value, report, session, &mut images);
        if let Some(lean) = &lean {
            set_member(
                &mut structured,
                "value",
                serde_json::to_value(lean).unwrap_or_default(),
            );
        }
        let value = lean.as_deref().unwrap_or(value);
        let text = render::value(value, true);
        let text = text.trim_end();
        let long = LongText {
            uri: format!("{RUNS_URI}/{}/value", report.run),
            bytes_max: options.value_bytes_max,
        };
        if let Some(mut place) = long.keep(text, session) {
            // The text of a string can spell JSON.
            let is_string = value.get().starts_with('"');
            let format = if is_string { "text" } else { "json" };
            set_member(&mut place, "format", format);
            remove_member(&mut structured, "value");
            set_member(&mut structured, "value_at", place);
        }
        parts.push(long.shown(text));
        parts.extend(lean.is_some().then(|| BINARIES.to_owned()));
    }
    let ending = if script.is_direct {
        ending_of_call(report, &script.name)
    } else {
        ending(report, script)
    };
    if let Some(Ending { text, next }) = ending {
        set_member(&mut structured, "next", next);
        parts.push(text);
    }
    let mut calls = report.calls.iter();
    if let Some(note) = calls.find_map(|call| not_approved(call, options.unasked)) {
        set_member(&mut structured, "approval", note.clone());
        parts.push(note);
    }
    let open = render::open_calls(report).filter(|_| !script.is_direct);
    if let Some(it) = open {
        let (what, why, next) = (it.what, it.why, it.next);
        let warning = format!("warning: {what}\nwhy: {why}\nnext: {next}");
        set_member(&mut structured, "warning", warning.clone());
        parts.push(warning);
    }
    if let Some(advice) = render::advice_to_resume(report).filter(|_| !script.is_direct) {
        set_member(&mut structured, "resume", advice.clone());
        parts.push(advice);
    }
    parts.extend(findings(report, script));
    parts.extend(console(report, session, &mut structured));
    let is_plain = script.is_direct && report.status == Status::Done;
    if !report.calls.is_empty() && !is_plain {
        parts.push(format!(
            "calls:\n{}",
            render::calls(&report.calls).trim_end()
        ));
    }
    if parts.is_empty() {
        parts.push("done; the script returned nothing".to_owned());
    }
    RunText {
        text: parts.join("\n\n"),
        report: structured,
        images: images.blocks,
        is_error: !matches!(report.status, Status::Done | Status::Paused)
            || drops_write(report, options.catalog),
    }
}

/// Whether a script returned although a call that may write was not sent, or has no outcome. Its
/// model would take the result for the end of the work.
fn drops_write(report: &Report, catalog: &Catalog) -> bool {
    let may_write = |call: &ReportedCall| {
        let tool = ToolId::parse(&call.tool).ok();
        let effects = tool.and_then(|it| Some(catalog.find(&it)?.effects));
        effects.is_none_or(|it| it.read_only.or(it.claims_read_only) != Some(true))
    };
    let is_open = |call: &ReportedCall| {
        matches!(
            call.outcome,
            ReportedOutcome::NotSent | ReportedOutcome::Unknown
        )
    };
    // The script got the error of a call that needs a login.
    let is_told = |call: &ReportedCall| call.code == Some(Code::LoginRequired);
    let dropped = |call: &ReportedCall| is_open(call) && !is_told(call) && may_write(call);
    report.status == Status::Done
        && (report.usage.calls_not_recorded > 0 || report.calls.iter().any(dropped))
}

/// Explains why a call got no approval: the host could not ask its user, or the answer cannot be
/// used.
fn not_approved(call: &ReportedCall, unasked: &UnaskedCalls) -> Option<String> {
    if call.code != Some(Code::Unanswered) {
        return None;
    }
    let tool = escape::brief(&call.tool, TOOL_CHARS_SHOWN);
    let invalid = call.reasons.last()?.strip_prefix(INVALID_ANSWER);
    let why = match (unasked, invalid) {
        (_, Some(why)) => {
            let why = escape::brief(why, MESSAGE_CHARS_SHOWN);
            return Some(format!("approval: `{tool}` was not approved: {why}"));
        }
        (UnaskedCalls::All, None) => {
            format!("this host cannot show questions, so no person was asked about `{tool}`")
        }
        (UnaskedCalls::Declined(calls), None) if calls.contains(&CallId(call.id)) => format!(
            "the question about `{tool}` was declined within a second, so it counts as not shown to \
             a person"
        ),
        (UnaskedCalls::Declined(_), None) => return None,
    };
    Some(format!(
        "approval: {why}. The user can set {CHANGES_FOR_APPROVAL}, or --allow '{tool}'"
    ))
}

/// The images of a value that the result shows.
#[derive(Debug, Default)]
struct Images {
    blocks: Vec<Value>,
    bytes: usize,
}

impl Images {
    /// Adds a binary if it is an image that models can view, and if there is room.
    fn add(&mut self, stored: &StoredContent) {
        let StoredContent::Binary { bytes, mime } = stored else {
            return;
        };
        if self.blocks.len() < IMAGES_MAX && self.bytes + bytes.len() <= IMAGE_BYTES_MAX {
            let block = content_blocks::image(bytes, mime);
            self.bytes += block.as_ref().map_or(0, |_| bytes.len());
            self.blocks.extend(block);
        }
    }
}

/// Returns the value with its binaries replaced by addresses, or `None` if it contains no binaries.
fn without_binaries(
    value: &RawValue,
    report: &Report,
    session: &HostSession,
    images: &mut Images,
) -> Option<Box<RawValue>> {
    binaries::put_away(value, |number, kept| {
        images.add(&kept);
        let uri = format!("{RUNS_URI}/{}/binary-{number}", report.run);
        session.stored_results.keep(uri.clone(), kept);
        uri
    })
}

/// Why a run did not finish.
struct Ending {
    text: String,
    /// The advice in the text.
    next: String,
}

/// Describes why a script did not finish, with the position and advice.
fn ending(report: &Report, script: &FollowedScript) -> Option<Ending> {
    let problem = render::ending(report, &script.name)?;
    let next = next(report, &problem.next);
    let mut text = problem_text(&problem.what, &problem.why, &next, &problem.code);
    let error = report.error.as_ref();
    if let Some(excerpt) = error.and_then(|it| render::excerpt(it, &script.text)) {
        text.push_str(&format!("\n{}", excerpt.trim_end()));
    }
    let next = next.into_owned();
    Some(Ending { text, next })
}

/// Describes why a direct call failed. The host sent no script, so the text has no position.
fn ending_of_call(report: &Report, tool: &str) -> Option<Ending> {
    let withheld = |outcome| {
        matches!(
            outcome,
            ReportedOutcome::Denied | ReportedOutcome::Refused | ReportedOutcome::NotSent
        )
    };
    let became = match report.status {
        Status::Done => return None,
        Status::Cancelled => "was cancelled",
        _ if report.calls.iter().all(|call| withheld(call.outcome)) => "was not made",
        Status::Failed => "failed",
        Status::Stopped | Status::Paused => "was stopped",
    };
    let code = report.code.unwrap_or(Code::Internal);
    let what = format!("the call of `{tool}` {became}");
    let why = report.error.as_ref().map(|error| &*error.message);
    let why = escape::brief(why.unwrap_or_default(), MESSAGE_CHARS_SHOWN);
    let next = match code {
        Code::Busy => run_again(report).into(),
        code => Cow::Borrowed(next_of_call(code)),
    };
    let text = problem_text(&what, &why, &next, code.as_str());
    let next = next.into_owned();
    Some(Ending { text, next })
}

pub(super) fn problem_text(what: &str, why: &str, next: &str, code: &str) -> String {
    let mut text = format!("error: {what}\n");
    for (label, part) in [("why", why), ("next", next)] {
        if !part.is_empty() {
            text.push_str(&format!("{label}: {part}\n"));
        }
    }
    text.push_str(&format!("code: {code}"));
    text
}

/// Describes the findings of the check. They are omitted for direct calls, because the model did
/// not write that script.
fn findings(report: &Report, script: &FollowedScript) -> Option<String> {
    let found: Vec<_> = render::untold_findings(report)
        .filter(|it| !script.is_direct && it.severity != ReportedSeverity::Note)
        .collect();
    if found.is_empty() {
        return None;
    }
    let shown = found.iter().take(FINDINGS_SHOWN_MAX);
    // The error message already quotes the line at which the script ended.
    let quoted = report.error.as_ref().and_then(|it| it.line);
    let of = |line| match quoted == Some(line) {
        true => "",
        false => &*script.text,
    };
    let mut text: String = shown
        .map(|it| render::finding(it, &script.name, of(it.line), Style::default()))
        .collect();
    if found.len() > FINDINGS_SHOWN_MAX {
        text.push_str(&format!("… and {} more", found.len() - FINDINGS_SHOWN_MAX));
    }
    Some(text.trim_end().to_owned())
}

fn console(report: &Report, session: &HostSession, structured: &mut Value) -> Option<String> {
    if report.console.is_empty() && report.console_dropped_bytes == 0 {
        return None;
    }
    // The text escapes invisible characters, so that a person sees all that the model reads. The
    // report contains the original lines.
    let line = |line: &ReportedLine| match line.level.as_str() {
        "log" => visible(&line.text),
        level => format!("[{level}] {}", visible(&line.text)),
    };
    let lines: Vec<_> = report.console.iter().map(line).collect();
    let text = lines.join("\n");
    let long = LongText {
        uri: format!("{RUNS_URI}/{}/console", report.run),
        bytes_max: CONSOLE_BYTES_MAX,
    };
    if let Some(place) = long.keep(&text, session) {
        set_member(structured, "console", json!([]));
        set_member(structured, "console_at", place);
    }
    let mut text = format!("console:\n{}", long.shown(&text));
    if report.console_dropped_bytes > 0 {
        let dropped = report.console_dropped_bytes;
        text.push_str(&format!("\n… {dropped} bytes over the limit were dropped"));
    }
    Some(text)
}

/// A text that may be too long for a result.
struct LongText {
    uri: String,
    bytes_max: usize,
}

impl LongText {
    /// Keeps the text if it is too long. Returns its address and size, its beginning, and the call
    /// that reads the rest.
    fn keep(&self, text: &str, session: &HostSession) -> Option<Value> {
        if text.len() <= self.bytes_max {
            return None;
        }
        session
            .stored_results
            .keep(self.uri.clone(), StoredContent::Text(text.into()));
        let (head, rest) = self.cut(text);
        Some(json!({
            "uri": self.uri,
            "bytes": text.len(),
            "preview": visible(head),
            "rest": rest,
        }))
    }

    /// Returns the beginning of a text that is too long, and the call that reads the rest.
    fn cut<'a>(&self, text: &'a str) -> (&'a str, String) {
        let end = text.floor_char_boundary(self.bytes_max);
        let head = text.get(..end).unwrap_or_default();
        (head, read_call(&self.uri, end))
    }

    fn shown(&self, text: &str) -> String {
        if text.len() <= self.bytes_max {
            return text.to_owned();
        }
        let (head, rest) = self.cut(text);
        format!(
            "{head}\n… cut after {} of {} bytes; read the rest with {rest}, or let the script \
             return less",
            head.len(),
            text.len()
        )
    }
}

/// Returns advice for a model. The report's own advice names flags, which only a person at a
/// terminal can use.
fn next<'a>(report: &Report, for_a_person: &'a str) -> Cow<'a, str> {
    let next = match report.code {
        Some(Code::Busy) => return run_again(report).into(),
        Some(Code::NotDisclosed) => {
            "get the descriptions with get_tool_details, then run the script again"
        }
        Some(Code::InvalidArguments) => "get_tool_details shows the tool's arguments",
        Some(Code::ExtractFailed) if has_no_extractor(report) => {
            "return the text instead, and read it yourself"
        }
        Some(Code::Denied) => "do without the call; only a change of the rules can allow it",
        Some(Code::Unanswered) => "do without the call, or let the user approve it",
        Some(Code::LimitTime) => "do less in one run, or give a larger timeout_ms",
        Some(code) if is_limit(code) => "do less in one run",
        _ => for_a_person,
    };
    next.into()
}

fn has_no_extractor(report: &Report) -> bool {
    let error = report.error.as_ref();
    error.is_some_and(|error| error.message.contains(NO_EXTRACTOR))
}

fn run_again(report: &Report) -> String {
    render::run_again(report.retry_after_ms.unwrap_or_default())
}

/// Returns advice for a direct call.
fn next_of_call(code: Code) -> &'static str {
    match code {
        Code::NotDisclosed => "get the description with get_tool_details, then call again",
        Code::InvalidArguments | Code::ScriptError | Code::CheckFailed | Code::ScriptTooComplex => {
            "get_tool_details shows the tool's arguments"
        }
        Code::ToolFailed | Code::ResultInvalid => "use other arguments, or do without the call",
        Code::Denied => "do without the call; only a change of the rules can allow it",
        Code::Refused => "do without the call, or ask the person who refused it",
        Code::Unanswered => "do without the call, or let the user approve it",
        Code::OutcomeUnknown => {
            "check on the server whether the call took effect before you repeat it"
        }
        Code::LoginRequired => "ask the user to log in as the message says, then call again",
        Code::ServerUnavailable => "call again later, or do without the call",
        code if is_limit(code) => "ask for less in one call",
        Code::Cancelled => "",
        Code::ResumeDiverged => "Resume the run again: its calls are then matched by content.",
        _ => "do without the call, and tell the user about it",
    }
}

fn is_limit(code: Code) -> bool {
    code.as_str().starts_with("limit-")
}
