//! What a tool's reply means: a value, a failure, or nobody can tell.

use serde::{Deserialize, Serialize};

pub use crate::code::Code;

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
