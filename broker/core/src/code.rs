//! Every code that a script, a report or the journal can carry. Stable words,
//! one enum.

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
    /// Its input schema makes no sense, so that no call of it could be checked.
    ToolUnusable,
    ServerUnavailable,
    OutcomeUnknown,
    /// A value could not be read into what a schema says, or nobody reads values here.
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
    /// The check before the run was certain that the script is wrong; nothing was started.
    CheckFailed,
    /// The check before the run met a limit of its own; nothing was started.
    ScriptTooComplex,
    /// An uncaught error of the script that is not a `ToolError`.
    ScriptError,
    /// The script awaited something that nothing can settle.
    Deadlock,
    /// The guest trapped or sent a frame that makes no sense.
    EngineFault,
    JournalUnwritable,
    /// What the run shares with others cannot be read, and so nothing is allowed by it.
    StateUnreadable,
    Cancelled,
    /// There was no room for the run among all others; it may come again.
    Busy,
    Internal,
}

impl Code {
    pub const ALL: [Self; 31] = [
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
        Self::Busy,
        Self::Internal,
    ];

    /// The word that stands in every text and file.
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
    fn the_word_in_a_text_is_the_word_in_a_file_and_reads_back() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        assert_eq!(Code::parse("Denied"), None);
    }
}
