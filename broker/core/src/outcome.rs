//! What a tool's reply means: a value, a failure, or nobody can tell.
//!
//! What counts as the value of a result stands in `outcome/value.rs`.

mod value;

use sandbox_protocol::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::catalog::Tool;
pub use crate::code::Code;
use crate::limits::Limits;
use crate::report::ReportedOutcome;

use value::CallResult;

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
    /// The call did not leave: its server describes the tool otherwise than it was decided with.
    Changed,
    /// A tool of airlock's own has no value to give, or a person has not done what a server wants
    /// first. `left`: somebody was given the arguments.
    Failed {
        code: Code,
        message: String,
        left: bool,
    },
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
    /// Nobody waited any longer.
    RunEnded,
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
            let message = "the server cannot be reached; the call did not leave";
            let unavailable = not_sent(tool, Code::ServerUnavailable, message);
            Judged {
                why: Some(why),
                ..unavailable
            }
        }
        Reply::Changed => {
            let message = "the server now describes the tool otherwise; the call did not leave";
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
            Judged {
                outcome: Outcome::Failure(Failure { message, ..failure }),
                reported: ReportedOutcome::Unknown,
                code: Some(Code::OutcomeUnknown),
                why: Some(why),
            }
        }
    }
}

fn not_sent(tool: &Tool, code: Code, message: &str) -> Judged {
    Judged {
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

fn returned(value: Vec<u8>) -> Judged {
    Judged {
        outcome: Outcome::Value(value),
        reported: ReportedOutcome::Returned,
        code: None,
        why: None,
    }
}

/// `isError`: the tool's own words, and all that came with them.
fn tool_failed(tool: &Tool, result: CallResult) -> Judged {
    let said = result.first_text();
    let message = said.map_or("the tool reported an error".into(), |said| bounded(&said));
    let failure = failure(tool, Code::ToolFailed);
    failed(result.attached_to(Failure { message, ..failure }))
}

/// The tool did its work, and what it says of it cannot be handed on as its value.
fn result_invalid(tool: &Tool, why: &str, result: CallResult) -> Judged {
    let message = bounded(&format!("the result of `{}` is not usable: {why}", tool.id));
    let failure = failure(tool, Code::ResultInvalid);
    failed(result.attached_to(Failure { message, ..failure }))
}

fn failed(failure: Failure) -> Judged {
    let code = Code::parse(&failure.code);
    let outcome = Outcome::Failure(failure);
    Judged {
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
        LostCause::Disconnected => "the server went away before it answered",
        LostCause::TooLarge => "the answer is larger than the limit",
        LostCause::Unreadable => "the answer cannot be read",
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
