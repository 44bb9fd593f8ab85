//! Classifies a tool's reply: a value, a failure, or unknown.
//!
//! `outcome/value.rs` defines what counts as the value of a result.

mod value;

use sandbox_protocol::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::catalog::Tool;
pub use crate::code::Code;
use crate::limits::Limits;
use crate::report::ReportedOutcome;

use value::CallResult;

/// The reply of a server or an in-process tool, or why no reply came.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A decoded `tools/call` result. All payloads are JSON text.
    Result {
        is_error: bool,
        /// JSON text of the content array, `_meta` removed.
        content: Vec<u8>,
        /// JSON text of `structuredContent`, if present.
        structured_content: Option<Vec<u8>>,
    },
    /// The server answered with a JSON-RPC error, which reports that the tool did nothing.
    Refused { code: i64, message: String },
    /// The call was certainly not sent, because the server cannot be reached. `why` is for the
    /// person and the journal, never for the script.
    NotSent { why: String },
    /// The call was not sent, because the server's description of the tool changed after the
    /// decision.
    Changed,
    /// One of airlock's own tools failed, or a person has not done what a server requires before
    /// the call. `left` is set if the arguments were passed on to others.
    Failed {
        code: Code,
        message: String,
        left: bool,
    },
    /// The call was sent, but there is no usable answer: a timeout, a dead server, or an answer
    /// that is too large or unreadable.
    Lost { why: String, cause: LostCause },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LostCause {
    TimedOut,
    Disconnected,
    TooLarge,
    Unreadable,
    /// The run ended, so nothing waited for the answer.
    RunEnded,
    /// The server asked for input during the call, and no human could be asked.
    InputRequired,
}

/// A classified reply: what the script receives, and what the report and the journal contain.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedReply {
    pub outcome: Outcome,
    pub reported: ReportedOutcome,
    pub code: Option<Code>,
    /// The reason for the person and the journal, never for the script.
    pub why: Option<String>,
}

#[must_use]
pub fn judge(reply: Reply, tool: &Tool, limits: &Limits) -> JudgedReply {
    match reply {
        Reply::Result {
            is_error,
            content,
            structured_content,
        } => {
            let result = CallResult::within(limits, content, structured_content);
            match result {
                Ok(result) if is_error => tool_failed(tool, result),
                Ok(result) => match result.value(tool, limits) {
                    Ok(value) => returned(value),
                    Err((result, why)) => result_invalid(tool, &why, result),
                },
                Err(bad) if bad.is_limit() => result_too_large(tool, &bad.to_string()),
                Err(bad) => result_invalid(tool, &bad.to_string(), CallResult::default()),
            }
        }
        Reply::Refused { code, message } => {
            let said = bounded(&message);
            let message = format!("the server refused the call (code {code}): {said}");
            failed(Failure {
                message,
                ..failure(tool, Code::ToolFailed)
            })
        }
        Reply::NotSent { why } => {
            let message = "the server cannot be reached; the call was not sent";
            let unavailable = not_sent(tool, Code::ServerUnavailable, message);
            JudgedReply {
                why: Some(why),
                ..unavailable
            }
        }
        Reply::Changed => {
            let message = "the server changed the tool's description; the call was not sent";
            not_sent(tool, Code::DescriptionChanged, message)
        }
        Reply::Failed {
            code,
            message,
            left,
        } => {
            let message = bounded(&message);
            if left {
                failed(Failure {
                    message,
                    ..failure(tool, code)
                })
            } else {
                not_sent(tool, code, &message)
            }
        }
        Reply::Lost { why, cause } => {
            let message = format!("{}; the call may have had its effect", says(cause));
            let failure = failure(tool, Code::OutcomeUnknown);
            JudgedReply {
                outcome: Outcome::Failure(Failure { message, ..failure }),
                reported: ReportedOutcome::Unknown,
                code: Some(Code::OutcomeUnknown),
                why: Some(why),
            }
        }
    }
}

fn not_sent(tool: &Tool, code: Code, message: &str) -> JudgedReply {
    JudgedReply {
        outcome: Outcome::Failure(Failure {
            message: message.to_owned(),
            retryable: code == Code::ServerUnavailable,
            ..failure(tool, code)
        }),
        reported: ReportedOutcome::NotSent,
        code: Some(code),
        why: None,
    }
}

fn returned(value: Vec<u8>) -> JudgedReply {
    JudgedReply {
        outcome: Outcome::Value(value),
        reported: ReportedOutcome::Returned,
        code: None,
        why: None,
    }
}

/// Returns the failure for `isError`, with the tool's own message and all content.
fn tool_failed(tool: &Tool, result: CallResult) -> JudgedReply {
    let said = result.first_text();
    let message = said.map_or("the tool reported an error".into(), |said| bounded(&said));
    let failure = failure(tool, Code::ToolFailed);
    failed(result.attached_to(Failure { message, ..failure }))
}

/// Returns the failure for a tool that succeeded but whose result is invalid.
fn result_invalid(tool: &Tool, why: &str, result: CallResult) -> JudgedReply {
    let message = bounded(&format!("the result of `{}` is invalid: {why}", tool.id));
    let failure = failure(tool, Code::ResultInvalid);
    failed(result.attached_to(Failure { message, ..failure }))
}

/// Returns the failure for a tool that succeeded but whose result exceeds a limit.
fn result_too_large(tool: &Tool, why: &str) -> JudgedReply {
    let message = format!("the result of `{}` exceeds a limit: {why}", tool.id);
    let failure = failure(tool, Code::LimitPayload);
    failed(Failure { message, ..failure })
}

fn failed(failure: Failure) -> JudgedReply {
    let code = Code::parse(&failure.code);
    let outcome = Outcome::Failure(failure);
    JudgedReply {
        outcome,
        reported: ReportedOutcome::Failed,
        code,
        why: None,
    }
}

fn failure(tool: &Tool, code: Code) -> Failure {
    Failure {
        code: code.as_str().into(),
        tool: tool.id.to_string(),
        message: String::new(),
        retryable: false,
        content: Vec::new(),
        structured_content: Vec::new(),
    }
}

fn says(cause: LostCause) -> &'static str {
    match cause {
        LostCause::TimedOut => "no answer came in time",
        LostCause::Disconnected => "the server disconnected before it answered",
        LostCause::TooLarge => "the answer is larger than the limit",
        LostCause::Unreadable => "the answer is invalid",
        LostCause::RunEnded => "the run ended before an answer came",
        LostCause::InputRequired => "the server asked for input, which is not available here",
    }
}

fn bounded(text: &str) -> String {
    const CHARS_MAX: usize = 2_000;
    text.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
