//! What a model reads of a run: value or error with its place, console, calls
//! with their outcomes, and what was left out and where the rest is.

use airlock_core::code::Code;
use airlock_core::report::{Report, ReportedLine, Status};
use serde_json::{Value, json};

use super::rpc::put;
use super::session::HostSession;
use super::shelf::visible;
use super::suspended::FollowedScript;
use crate::render;

/// Console text in a result; it is rarely what was asked for.
const CONSOLE_BYTES_MAX: usize = 8 * 1024;
const RUNS_URI: &str = "airlock:///runs";

/// A run's end as the content of a tool result.
#[derive(Debug)]
pub(super) struct RunText {
    pub(super) text: String,
    /// The report of the command line; a value that was too long stands as its place.
    pub(super) report: Value,
    pub(super) is_error: bool,
}

/// `text_bytes_max` bounds the value; what is longer is kept in the session.
pub(super) fn of_run(
    report: &Report,
    script: &FollowedScript,
    session: &HostSession,
    text_bytes_max: usize,
) -> RunText {
    let mut structured = serde_json::to_value(report).unwrap_or_default();
    let mut parts = Vec::new();
    if let Some(value) = &report.value {
        let text = render::value(value, false);
        let text = text.trim_end();
        let kept = Kept {
            uri: format!("{RUNS_URI}/{}/value", report.run),
            bytes_max: text_bytes_max,
        };
        if let Some(place) = kept.keep(text, session) {
            put(&mut structured, "value", Value::Null);
            put(&mut structured, "value_at", place);
        }
        parts.push(kept.shown(text));
    }
    if let Some(problem) = render::ending(report, &script.name) {
        let mut text = format!("error: {}\n", problem.what);
        for (label, part) in [
            ("why", &*problem.why),
            ("next", &*next(report, &problem.next)),
        ] {
            if !part.is_empty() {
                text.push_str(&format!("{label}: {part}\n"));
            }
        }
        text.push_str(&format!("code: {}", problem.code));
        let error = report.error.as_ref();
        if let Some(excerpt) = error.and_then(|it| render::excerpt(it, &script.text)) {
            text.push_str(&format!("\n{}", excerpt.trim_end()));
        }
        parts.push(text);
    }
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
        is_error: report.status != Status::Done,
    }
}

fn console(report: &Report, session: &HostSession, structured: &mut Value) -> Option<String> {
    if report.console.is_empty() && report.console_dropped_bytes == 0 {
        return None;
    }
    // Whoever reads along sees all that the model is told; the report has the lines as they were.
    let line = |line: &ReportedLine| match line.level.as_str() {
        "log" => visible(&line.text),
        level => format!("[{level}] {}", visible(&line.text)),
    };
    let lines: Vec<_> = report.console.iter().map(line).collect();
    let text = lines.join("\n");
    let kept = Kept {
        uri: format!("{RUNS_URI}/{}/console", report.run),
        bytes_max: CONSOLE_BYTES_MAX,
    };
    if let Some(place) = kept.keep(&text, session) {
        put(structured, "console", json!([]));
        put(structured, "console_at", place);
    }
    let mut text = format!("console:\n{}", kept.shown(&text));
    if report.console_dropped_bytes > 0 {
        let dropped = report.console_dropped_bytes;
        text.push_str(&format!(
            "\n… {dropped} bytes beyond the limit were not kept"
        ));
    }
    Some(text)
}

/// A text that may be too long for a result.
struct Kept {
    uri: String,
    bytes_max: usize,
}

impl Kept {
    /// Where the whole of it is, when it is too long.
    fn keep(&self, text: &str, session: &HostSession) -> Option<Value> {
        if text.len() <= self.bytes_max {
            return None;
        }
        session.keep(self.uri.clone(), text.into());
        Some(json!({"uri": self.uri, "bytes": text.len()}))
    }

    fn shown(&self, text: &str) -> String {
        if text.len() <= self.bytes_max {
            return text.to_owned();
        }
        let end = text.floor_char_boundary(self.bytes_max);
        let head = text.get(..end).unwrap_or_default();
        let (uri, bytes) = (&self.uri, text.len());
        format!(
            "{head}\n… cut after {end} of {bytes} bytes; the rest is at {uri}?from={end}&length=20000, \
             or let the script return less"
        )
    }
}

/// What a model can do about it; the advice for a person at a terminal names flags.
fn next(report: &Report, for_a_person: &str) -> String {
    let advice = match report.code {
        Some(Code::NotDisclosed) => {
            "get the descriptions with get_tool_details, then run the script again"
        }
        Some(Code::InvalidArguments) => "get_tool_details shows what the tool takes",
        Some(Code::Denied) => "do without the call; only the owner of the rules can allow it",
        Some(Code::Unanswered) => {
            "nobody answered; ask the user to be there, or do without the call"
        }
        Some(Code::LimitTime) => "do less in one run, or give a larger timeout_ms",
        Some(
            Code::LimitCpu
            | Code::LimitMemory
            | Code::LimitStack
            | Code::LimitOutput
            | Code::LimitCalls
            | Code::LimitPayload
            | Code::LimitSource,
        ) => "do less in one run",
        _ => for_a_person,
    };
    advice.to_owned()
}
