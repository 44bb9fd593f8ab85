//! The journal: the record that a run writes before and after each action. The format is versioned:
//! [`Chain`] seals entries into lines, and [`read`] reads them.
//!
//! The entries of a call: `asked` and `answered` if a human was needed, `decided` before anything
//! leaves, `settled` once its outcome is known. A call with an allowing `decided` and no `settled`
//! is in doubt. If the server asked something of the host, `inquired` and `inquiry-ended` come
//! between these two entries.

mod chain;
mod content;
mod grants;
mod read;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{Args, Site};
use crate::code::Code;
use crate::facts::Facts;
use crate::flow::Declassification;
use crate::id::{CallId, Digest, RunId, ServerName, ToolId};
use crate::inquiry::{InquiryEnd, InquiryId, InquiryKind};
use crate::limits::Limits;
use crate::report::{ReportedError, ReportedFinding, ReportedOutcome, Status, Usage};

pub use chain::{Chain, Redact, SealError};
pub use grants::{GrantClaimedEntry, GrantGivenEntry, GrantHead, GrantUse, GrantVoidedEntry};
pub use read::{BrokenLine, CutPoint, JournalLine, VerifiedJournal, read};

/// Version of the format that is written. Since version 2, every digest of content is the digest of
/// the content as it is recorded, after secrets are masked, so a reader can compare them.
pub const VERSION: u32 = 2;
/// The oldest version that can be read. All entries of a journal have one version.
pub const VERSION_MIN: u32 = 1;

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The host's time, in milliseconds since the epoch.
    pub at_ms: u64,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Body {
    RunStarted(Box<RunStartedEntry>),
    Asked(Box<AskedEntry>),
    Answered(AnsweredEntry),
    GrantGiven(Box<GrantGivenEntry>),
    GrantVoided(Box<GrantVoidedEntry>),
    GrantClaimed(Box<GrantClaimedEntry>),
    Decided(Box<DecidedEntry>),
    Inquired(InquiredEntry),
    InquiryEnded(InquiryEndedEntry),
    Settled(Box<SettledEntry>),
    Resumed(ResumedEntry),
    Ended(Box<EndedEntry>),
}

/// The header: everything that a replay needs besides the outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStartedEntry {
    pub run: RunId,
    pub script_name: String,
    pub script_digest: Digest,
    /// The text; absent if it is longer than `script_bytes_max`.
    pub script: Option<String>,
    pub input_digest: Digest,
    /// The input as JSON text; absent if it is longer than `journal_payload_bytes_max`.
    pub input: Option<String>,
    /// The seed as text, since a double may not hold it exactly.
    pub seed: String,
    pub limits: Limits,
    /// One line per rule, then the default.
    pub rules: Vec<String>,
    /// Servers in the order of the guest's table of stubs; the guest refers to servers and tools by
    /// index.
    pub servers: Vec<StartedServer>,
    /// Tools in the order of the same table, server by server.
    pub tools: Vec<StartedTool>,
    pub guest_name: String,
    pub guest_digest: Digest,
    /// Findings of the check before the run, as the report contains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ReportedFinding>,
    /// What people had declassified in the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declassified: Vec<Declassification>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedServer {
    pub name: ServerName,
    pub global: String,
}

/// A tool with the names and the description that it had in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedTool {
    pub tool: ToolId,
    pub member: String,
    pub flat: String,
    pub unwrap: bool,
    /// Whether the tool is read-only, according to the configuration.
    pub read_only: Option<bool>,
    pub description: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedEntry {
    pub call: CallId,
    pub tool: ToolId,
    pub description: Digest,
    pub args: Args,
    pub args_digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Arc<Facts>>,
    #[serde(flatten)]
    pub site: Site,
    pub reasons: Vec<String>,
    pub shown: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredEntry {
    pub call: CallId,
    pub answer: AnswerWord,
    pub uses_max: Option<u32>,
    /// Digest of the question that the approver was shown.
    pub shown: Digest,
    pub ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerWord {
    AllowOnce,
    /// The call is allowed, and its result adds no labels to the run.
    AllowDeclassified,
    AllowTool,
    Refuse,
    Unanswered,
    /// The reply was not a valid answer to the question.
    Invalid,
    /// A grant given for another call covered this one, or the run ended.
    Withdrawn,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedEntry {
    pub call: CallId,
    pub tool: ToolId,
    /// Digest of the description; absent if the run does not know the tool.
    pub description: Option<Digest>,
    /// The arguments; absent if they were not a canonical object, so that the call was refused.
    pub args: Option<Args>,
    pub args_digest: Digest,
    /// The facts that the rules saw; absent if the run computes no facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Arc<Facts>>,
    #[serde(flatten)]
    pub site: Site,
    pub decision: Verdict,
    /// The code of a denial.
    pub code: Option<Code>,
    pub reasons: Vec<String>,
    /// The message of a denial, with which the script's promise rejected.
    pub told: Option<String>,
    /// Warnings for the host about arguments that are probably a mistake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub grant: Option<GrantUse>,
}

/// The final decision on a call, after the answer if the call was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call may leave.
    Allow,
    Deny,
    /// The call was allowed or asked about, but the run ended before the call was sent.
    Unsent,
}

/// A server asked something of the host. The journal contains only a digest of what the server
/// asked, and nothing of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiredEntry {
    pub call: CallId,
    /// Other calls that the inquiry may belong to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<CallId>,
    pub inquiry: InquiryId,
    pub wants: InquiryKind,
    pub asked_digest: Digest,
    /// Whether the server refused the call until the inquiry is answered. The call is then sent
    /// again, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryEndedEntry {
    pub call: CallId,
    pub inquiry: InquiryId,
    pub end: InquiryEnd,
    pub ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledEntry {
    pub call: CallId,
    pub outcome: ReportedOutcome,
    pub code: Option<Code>,
    /// The reason for a person; the script never sees it.
    pub why: Option<String>,
    /// Digest of the payload's text, with which the script's promise settled.
    pub payload_digest: Digest,
    pub payload_bytes: u64,
    /// The payload's text, exactly as the guest got it. Absent if it is longer than
    /// `journal_payload_bytes_max`, or if the guest got nothing.
    pub payload: Option<String>,
    /// Whether the outcome was passed on to the guest. False if the run ended first.
    pub told: bool,
    pub ms: u64,
}

/// The guest was resumed, with everything that it received. Jumps of the run's clock before the
/// first call are not recorded: a step without an entry is a jump to exactly the time that the
/// guest waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumedEntry {
    /// Number of resumes including this one and all jumps; the first is 1.
    pub step: u64,
    /// The run's clock, in milliseconds.
    pub now_ms: u64,
    /// The calls in the order in which their promises settled.
    pub calls: Vec<CallId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedEntry {
    pub status: Status,
    pub code: Option<Code>,
    pub error: Option<ReportedError>,
    pub value_digest: Option<Digest>,
    pub usage: Usage,
}

impl Body {
    /// Returns the call to which an entry belongs.
    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::Asked(asked) => Some(asked.call),
            Self::Answered(answered) => Some(answered.call),
            Self::GrantGiven(given) => Some(given.call),
            Self::GrantClaimed(claimed) => Some(claimed.call),
            Self::Decided(decided) => Some(decided.call),
            Self::Inquired(inquired) => Some(inquired.call),
            Self::InquiryEnded(ended) => Some(ended.call),
            Self::Settled(settled) => Some(settled.call),
            Self::RunStarted(_) | Self::GrantVoided(_) | Self::Resumed(_) | Self::Ended(_) => None,
        }
    }

    /// Estimates the length of the entry's line: every part that can be long, plus a constant for
    /// the rest. The header is bounded by the sizes of what it repeats.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        const REST_BYTES: u64 = 600;
        let texts = |texts: &[String]| texts.iter().map(|text| quoted_bytes(text)).sum::<u64>();
        let long = match self {
            Self::Asked(asked) => asked.args.bytes().len() as u64 + texts(&asked.reasons),
            Self::Decided(decided) => {
                let args = decided.args.as_ref().map_or(0, |args| args.bytes().len());
                let told = decided.told.as_deref().map_or(0, quoted_bytes);
                args as u64 + told + texts(&decided.reasons) + texts(&decided.warnings)
            }
            Self::Settled(settled) => {
                let texts = [&settled.payload, &settled.why];
                texts
                    .into_iter()
                    .flatten()
                    .map(|text| quoted_bytes(text))
                    .sum()
            }
            Self::GrantGiven(given) => quoted_bytes(&given.condition.to_string()),
            Self::Resumed(resumed) => resumed.calls.len() as u64 * 8,
            Self::RunStarted(_)
            | Self::Answered(_)
            | Self::GrantVoided(_)
            | Self::GrantClaimed(_)
            | Self::Inquired(_)
            | Self::InquiryEnded(_)
            | Self::Ended(_) => 0,
        };
        REST_BYTES + long
    }
}

/// Returns the length of a text inside a JSON string.
fn quoted_bytes(text: &str) -> u64 {
    let escaped = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.as_bytes().iter().map(escaped).sum()
}

#[cfg(test)]
mod tests;
