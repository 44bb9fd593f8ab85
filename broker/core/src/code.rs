//! The stable codes that scripts, reports and the journal use for refusals and failures.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::Limit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    ToolFailed,
    ResultInvalid,
    InvalidArguments,
    Denied,
    Refused,
    Unanswered,
    NotDisclosed,
    DescriptionChanged,
    /// The tool's input schema is invalid, so the arguments could not be checked.
    ToolUnusable,
    ServerUnavailable,
    /// The server requires a login, or more scopes than the login has. The call did nothing.
    LoginRequired,
    OutcomeUnknown,
    /// The extraction produced no value that fits the schema, or extraction is not available in
    /// this run.
    ExtractFailed,
    LimitTime,
    LimitCpu,
    LimitMemory,
    LimitStack,
    LimitOutput,
    LimitCalls,
    LimitPayload,
    LimitSource,
    LimitJournal,
    /// The check before the run found a definite error in the script; nothing was started.
    CheckFailed,
    /// The check before the run reached one of its own limits; nothing was started.
    ScriptTooComplex,
    /// An uncaught error of the script that is not a `ToolError`.
    ScriptError,
    /// The script awaited something that can never settle.
    Deadlock,
    /// The guest trapped or sent a malformed frame.
    EngineFault,
    JournalUnwritable,
    /// The state that runs share could not be read, so the run did not start.
    StateUnreadable,
    Cancelled,
    /// The script did something else than in the recorded steps that were replayed. Nothing was
    /// sent.
    ResumeDiverged,
    /// The run to resume is still running, or another run has resumed it. Nothing was started.
    CannotResume,
    /// The other runs left too few resources for this run. It can be started again later.
    Busy,
    Internal,
}

impl Code {
    pub const ALL: [Self; 34] = [
        Self::ToolFailed,
        Self::ResultInvalid,
        Self::InvalidArguments,
        Self::Denied,
        Self::Refused,
        Self::Unanswered,
        Self::NotDisclosed,
        Self::DescriptionChanged,
        Self::ToolUnusable,
        Self::ServerUnavailable,
        Self::LoginRequired,
        Self::OutcomeUnknown,
        Self::ExtractFailed,
        Self::LimitTime,
        Self::LimitCpu,
        Self::LimitMemory,
        Self::LimitStack,
        Self::LimitOutput,
        Self::LimitCalls,
        Self::LimitPayload,
        Self::LimitSource,
        Self::LimitJournal,
        Self::CheckFailed,
        Self::ScriptTooComplex,
        Self::ScriptError,
        Self::Deadlock,
        Self::EngineFault,
        Self::JournalUnwritable,
        Self::StateUnreadable,
        Self::Cancelled,
        Self::ResumeDiverged,
        Self::CannotResume,
        Self::Busy,
        Self::Internal,
    ];

    /// Returns the word for this code in messages and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolFailed => "tool-failed",
            Self::ResultInvalid => "result-invalid",
            Self::InvalidArguments => "invalid-arguments",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::NotDisclosed => "not-disclosed",
            Self::DescriptionChanged => "description-changed",
            Self::ToolUnusable => "tool-unusable",
            Self::ServerUnavailable => "server-unavailable",
            Self::LoginRequired => "login-required",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::ExtractFailed => "extract-failed",
            Self::LimitTime => "limit-time",
            Self::LimitCpu => "limit-cpu",
            Self::LimitMemory => "limit-memory",
            Self::LimitStack => "limit-stack",
            Self::LimitOutput => "limit-output",
            Self::LimitCalls => "limit-calls",
            Self::LimitPayload => "limit-payload",
            Self::LimitSource => "limit-source",
            Self::LimitJournal => "limit-journal",
            Self::CheckFailed => "check-failed",
            Self::ScriptTooComplex => "script-too-complex",
            Self::ScriptError => "script-error",
            Self::Deadlock => "deadlock",
            Self::EngineFault => "engine-fault",
            Self::JournalUnwritable => "journal-unwritable",
            Self::StateUnreadable => "state-unreadable",
            Self::Cancelled => "cancelled",
            Self::ResumeDiverged => "resume-diverged",
            Self::CannotResume => "cannot-resume",
            Self::Busy => "busy",
            Self::Internal => "internal",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }
}

impl From<Limit> for Code {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Time => Self::LimitTime,
            Limit::Cpu => Self::LimitCpu,
            Limit::Memory => Self::LimitMemory,
            Limit::Stack => Self::LimitStack,
            Limit::Output => Self::LimitOutput,
            Limit::Calls => Self::LimitCalls,
            Limit::Payload => Self::LimitPayload,
            Limit::Source => Self::LimitSource,
            Limit::Journal => Self::LimitJournal,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_display_matches_serde_and_parses() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        assert_eq!(Code::parse("Denied"), None);
    }
}
