//! The journal: the record that a run writes before and after each action. The format is versioned:
//! [`Chain`] seals entries into lines, and [`read`] reads them.
//!
//! The entries of a call: `asked` and `answered` if a human was needed (and `stated` if the answer
//! says what became of an earlier call), `decided` before anything
//! leaves, `settled` once its outcome is known. A call with an allowing `decided` and no `settled`
//! is in doubt. If the server asked something of the host, `inquired` and `inquiry-ended` come
//! between these two entries.

mod chain;
mod content;
mod grants;
mod payload;
mod read;
mod redact;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{Args, Site};
use crate::catalog::Effects;
use crate::code::Code;
use crate::facts::Facts;
use crate::flow::{Declassification, StartLabels};
use crate::id::{CallId, CallRef, Digest, RunId, ServerName, ToolId};
use crate::inquiry::{InquiryEnd, InquiryId, InquiryKind, InquiryLogin};
use crate::labels::Labels;
use crate::limits::Limits;
use crate::report::{ReportedError, ReportedFinding, ReportedOutcome, Status, Usage};
use crate::statement::Statement;

pub use chain::{Chain, SealError};
pub use grants::{GrantClaimedEntry, GrantGivenEntry, GrantHead, GrantUse, GrantVoidedEntry};
pub use payload::payload;
pub use read::{BrokenLine, CutPoint, JournalLine, VerifiedJournal, read};
pub use redact::{Piece, Redact};

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
    Stated(Box<StatedEntry>),
    GrantGiven(Box<GrantGivenEntry>),
    GrantVoided(Box<GrantVoidedEntry>),
    GrantClaimed(Box<GrantClaimedEntry>),
    Decided(Box<DecidedEntry>),
    Inquired(InquiredEntry),
    InquiryEnded(InquiryEndedEntry),
    Settled(Box<SettledEntry>),
    Reused(Box<ReusedEntry>),
    Resumed(ResumedEntry),
    Suspended(SuspendedEntry),
    Ended(Box<EndedEntry>),
}

/// The header: everything that a replay needs in addition to the outcomes.
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
    /// The labels with which the run started; absent if the run computes no facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<StartLabels>,
    /// The version of the program that wrote the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Who started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The host's name from `clientInfo`; absent if no host started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The session of the run, as `airlock sessions list` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The command that started the run; absent if no command line did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<StartedCommand>,
    /// The place of the run in its chain; absent for a run that resumes no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainPosition>,
    /// Servers named with `--same-server`: their results are reused although their target changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_servers: Vec<ServerName>,
    /// Whether the script or the input is recorded with masked secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// The flags of the command that started a run, without its script and input, so that a person can
/// resume the run with the same servers and rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCommand {
    /// The folder in which the command ran.
    pub folder: String,
    /// The flags and their values, one word each.
    pub flags: Vec<String>,
    /// The flags that are missing in `flags`, because their values may contain a credential.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedServer {
    pub name: ServerName,
    pub global: String,
    /// How the server is reached, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The run that another run resumes, and the digest of the last line of its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor {
    pub run: RunId,
    pub head: Digest,
}

/// The place of a run in its chain. The first run of a chain has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPosition {
    /// The first run of the chain, whose id names the chain.
    pub root: RunId,
    /// The number of the run in its chain. The first run that resumes has number 2.
    pub number: u32,
    pub predecessor: Predecessor,
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
    /// Digest of the server's own description, without any tool file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Digest>,
    /// Whether a call of the tool can be repeated without harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
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
    /// Texts of the `@prompt` annotations of the matching rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
    /// The labels that the result would add to the run.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub reads: Labels,
    /// The tool's effects, as the person was shown them.
    #[serde(default, skip_serializing_if = "Effects::is_unknown")]
    pub effects: Effects,
    pub shown: Digest,
    /// Earlier calls of the chain beside which a doubtful call was shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<CallRef>,
    /// The call that the question is about, if it is what became of an earlier call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_of: Option<CallRef>,
    /// Whether the arguments are recorded with masked secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// A person stated during the run what became of a call whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedEntry {
    /// The call with the same arguments, about which the person was asked.
    pub call: CallId,
    #[serde(flatten)]
    pub statement: Statement,
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
    /// What became of an earlier call; `stated` follows.
    Stated,
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
    /// The earlier call of the chain that this call repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<CallRef>,
    /// The earlier call with the same arguments because of which this call was not made: the outcome
    /// of the earlier call is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<CallRef>,
    /// Earlier calls of the chain beside which a doubtful call was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<CallRef>,
    /// Whether the arguments are recorded with masked secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
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
    /// The login that answered the inquiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<InquiryLogin>,
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
    /// The payload's text, exactly as the guest got it or would have got it. Absent if it is longer
    /// than `journal_payload_bytes_max`, or if the run ended before the outcome was known.
    pub payload: Option<String>,
    /// Whether the outcome was passed on to the guest. False if the run ended first.
    pub told: bool,
    pub ms: u64,
    /// Whether the payload is recorded with masked secrets that the guest got unmasked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// A call that was not made, because the outcome of an equal one is recorded in the chain or was
/// stated by a person. The script got that outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReusedEntry {
    pub call: CallId,
    pub tool: ToolId,
    pub args_digest: Digest,
    #[serde(flatten)]
    pub site: Site,
    /// The call whose outcome was reused.
    pub from: CallRef,
    pub outcome: ReportedOutcome,
    pub code: Option<Code>,
    /// Whether a person stated this outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// Digest of the payload, as the earlier journal records it.
    pub payload_digest: Digest,
}

impl ReusedEntry {
    /// Returns why the call was not made, as part of a sentence.
    #[must_use]
    pub fn why(&self) -> String {
        let from = &self.from;
        match self.stated {
            true => format!("a person stated what became of call {from}"),
            false => format!("the recorded outcome of call {from} is reused"),
        }
    }
}

/// The last entry of a run that waits for people without a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendedEntry {
    /// The calls with open questions.
    pub calls: Vec<CallId>,
    pub usage: Usage,
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
    /// The script's value as JSON text; absent if the script returned none, or a long one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    pub usage: Usage,
    /// Whether the value is recorded with masked secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

impl Body {
    /// Returns the call to which an entry belongs.
    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::Asked(asked) => Some(asked.call),
            Self::Answered(answered) => Some(answered.call),
            Self::Stated(stated) => Some(stated.call),
            Self::GrantGiven(given) => Some(given.call),
            Self::GrantClaimed(claimed) => Some(claimed.call),
            Self::Decided(decided) => Some(decided.call),
            Self::Inquired(inquired) => Some(inquired.call),
            Self::InquiryEnded(ended) => Some(ended.call),
            Self::Settled(settled) => Some(settled.call),
            Self::Reused(reused) => Some(reused.call),
            Self::RunStarted(_)
            | Self::GrantVoided(_)
            | Self::Resumed(_)
            | Self::Suspended(_)
            | Self::Ended(_) => None,
        }
    }

    /// Estimates the length of the entry's line: every part that can be long, plus a constant for
    /// the rest. The header is bounded by the sizes of what it repeats.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        const REST_BYTES: u64 = 700;
        const CALL_REF_BYTES: u64 = 60;
        let texts = |texts: &[String]| texts.iter().map(|text| quoted_bytes(text)).sum::<u64>();
        let long = match self {
            Self::Asked(asked) => {
                let near = asked.near.len() as u64 * CALL_REF_BYTES;
                let texts = texts(&asked.reasons) + texts(&asked.prompts);
                asked.args.bytes().len() as u64 + texts + near
            }
            Self::Decided(decided) => {
                let args = decided.args.as_ref().map_or(0, |args| args.bytes().len());
                let told = decided.told.as_deref().map_or(0, quoted_bytes);
                let near = decided.near.len() as u64 * CALL_REF_BYTES;
                args as u64 + told + texts(&decided.reasons) + texts(&decided.warnings) + near
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
            Self::Stated(stated) => stated.statement.outcome.result().map_or(0, quoted_bytes),
            Self::Resumed(resumed) => resumed.calls.len() as u64 * 8,
            Self::Suspended(suspended) => suspended.calls.len() as u64 * 8,
            Self::Ended(ended) => ended.value.as_deref().map_or(0, quoted_bytes),
            Self::InquiryEnded(ended) => {
                let scope = |scope: &str| quoted_bytes(scope) + 3;
                let login = ended.login.as_ref();
                login.map_or(0, |it| {
                    quoted_bytes(&it.issuer) + it.scopes.iter().map(scope).sum::<u64>()
                })
            }
            Self::RunStarted(_)
            | Self::Reused(_)
            | Self::Answered(_)
            | Self::GrantVoided(_)
            | Self::GrantClaimed(_)
            | Self::Inquired(_) => 0,
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
