//! What a tool's reply means: a value, a failure, or nobody can tell.
//!
//! A value is, in this order: `structuredContent` (the X of `{result: X}` where
//! the catalog says that this is only a wrapper); of a single text block the
//! JSON text itself when it is an object or array, else the text as a string;
//! else the content array as it came.

use std::collections::HashMap;

use sandbox_protocol::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalog::Tool;
pub use crate::code::Code;
use crate::json::{self, Bounds};
use crate::limits::Limits;
use crate::report::ReportedOutcome;

/// What a server, or an in-process tool, answered; or why it did not.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A decoded `tools/call` result. All payloads are JSON text.
    Result {
        is_error: bool,
        /// JSON text of the content array, `_meta` removed.
        content: Vec<u8>,
        /// JSON text of `structuredContent`, when there is one.
        structured_content: Option<Vec<u8>>,
    },
    /// The server answered with a JSON-RPC error: it says that nothing was done by the tool.
    Refused { code: i64, message: String },
    /// The call provably did not leave: the server cannot be reached. `why` is for the
    /// person and the journal, never for the script.
    NotSent { why: String },
    /// It left, and no answer came: time-out, dead server, answer too large or unreadable.
    Lost { why: String, cause: LostCause },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostCause {
    TimedOut,
    Disconnected,
    TooLarge,
    Unreadable,
    /// The server asked for input in the middle of the call; nobody answers it for the human.
    InputRequired,
}

/// A reply, judged: what the script hears, and what the report and the journal say.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub outcome: Outcome,
    pub reported: ReportedOutcome,
    pub code: Option<Code>,
    /// For the person and the journal, never for the script.
    pub why: Option<String>,
}

#[must_use]
pub fn judge(reply: Reply, tool: &Tool, limits: &Limits) -> Judged {
    match reply {
        Reply::Result {
            is_error: true,
            content,
            structured_content,
        } => {
            let said = first_text(&content).unwrap_or_else(|| "the tool reported an error".into());
            let mut failed = failure(tool, Code::ToolFailed, bounded(&said));
            failed.content = content;
            failed.structured_content = structured_content.unwrap_or_default();
            judged(failed, ReportedOutcome::Failed, Code::ToolFailed, None)
        }
        Reply::Result {
            is_error: false,
            content,
            structured_content,
        } => match value(content, structured_content, tool, limits) {
            Ok(value) => Judged {
                outcome: Outcome::Value(value),
                reported: ReportedOutcome::Returned,
                code: None,
                why: None,
            },
            Err(why) => {
                let message = format!("the result of `{}` is not usable: {why}", tool.id);
                let failed = failure(tool, Code::ResultInvalid, bounded(&message));
                judged(failed, ReportedOutcome::Failed, Code::ResultInvalid, None)
            }
        },
        Reply::Refused { code, message } => {
            let message = format!(
                "the server refused the call (code {code}): {}",
                bounded(&message)
            );
            let failed = failure(tool, Code::ToolFailed, message);
            judged(failed, ReportedOutcome::Failed, Code::ToolFailed, None)
        }
        Reply::NotSent { why } => {
            let message = "the server cannot be reached; the call did not leave".into();
            let failed = Failure {
                retryable: true,
                ..failure(tool, Code::ServerUnavailable, message)
            };
            judged(
                failed,
                ReportedOutcome::NotSent,
                Code::ServerUnavailable,
                Some(why),
            )
        }
        Reply::Lost { why, cause } => {
            let message = format!("{}; the call may have had its effect", lost(cause));
            let failed = failure(tool, Code::OutcomeUnknown, message);
            judged(
                failed,
                ReportedOutcome::Unknown,
                Code::OutcomeUnknown,
                Some(why),
            )
        }
    }
}

fn judged(failure: Failure, reported: ReportedOutcome, code: Code, why: Option<String>) -> Judged {
    Judged {
        outcome: Outcome::Failure(failure),
        reported,
        code: Some(code),
        why,
    }
}

fn failure(tool: &Tool, code: Code, message: String) -> Failure {
    Failure {
        code: code.as_str().into(),
        tool: tool.id.to_string(),
        message,
        retryable: false,
        content: Vec::new(),
        structured_content: Vec::new(),
    }
}

fn lost(cause: LostCause) -> &'static str {
    match cause {
        LostCause::TimedOut => "no answer came in time",
        LostCause::Disconnected => "the server went away before it answered",
        LostCause::TooLarge => "the answer is larger than the limit",
        LostCause::Unreadable => "the answer cannot be read",
        LostCause::InputRequired => "the server asked for input, which nobody gives it",
    }
}

fn value(
    content: Vec<u8>,
    structured: Option<Vec<u8>>,
    tool: &Tool,
    limits: &Limits,
) -> Result<Vec<u8>, String> {
    let bounds = Bounds {
        bytes_max: limits.result_bytes_max,
        depth_max: limits.json_depth_max,
        nodes_max: limits.json_nodes_max,
    };
    let text = structured.as_ref().unwrap_or(&content);
    json::measure(text, bounds).map_err(|bad| bad.to_string())?;
    if let (Some(output), Some(structured)) = (&tool.output, &structured) {
        let value = serde_json::from_slice(structured).map_err(|bad| bad.to_string())?;
        let findings = output.findings(&value);
        if !findings.is_empty() {
            return Err(findings.join("; "));
        }
    }
    match structured {
        Some(structured) if tool.unwrap => Ok(unwrapped(&structured).unwrap_or(structured)),
        Some(structured) => Ok(structured),
        None => Ok(only_text(&content).map_or(content, |text| text_value(text, bounds))),
    }
}

/// The X of `{result: X}`, and nothing of an object with any other member.
fn unwrapped(structured: &[u8]) -> Option<Vec<u8>> {
    let members: HashMap<String, &RawValue> = serde_json::from_slice(structured).ok()?;
    let result = members.get("result").filter(|_| members.len() == 1)?;
    Some(result.get().as_bytes().to_vec())
}

fn text_value(text: String, bounds: Bounds) -> Vec<u8> {
    let is_composite = text.trim_start().starts_with(['{', '[']);
    let is_json = || serde_json::from_str::<&RawValue>(&text).is_ok();
    if is_composite && json::measure(text.as_bytes(), bounds).is_ok() && is_json() {
        return text.into_bytes();
    }
    serde_json::Value::String(text).to_string().into_bytes()
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

fn only_text(content: &[u8]) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_slice(content).ok()?;
    let [block] = blocks.as_slice() else {
        return None;
    };
    serde_json::from_str::<Block>(block.get())
        .ok()
        .filter(|b| b.kind == "text")
        .map(|b| b.text)
}

fn first_text(content: &[u8]) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_slice(content).ok()?;
    let read = |block: &&RawValue| serde_json::from_str::<Block>(block.get()).ok();
    blocks
        .iter()
        .filter_map(read)
        .find(|b| b.kind == "text" && !b.text.is_empty())
        .map(|b| b.text)
}

fn bounded(text: &str) -> String {
    const CHARS_MAX: usize = 2_000;
    text.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
