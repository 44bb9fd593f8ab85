//! What a run writes down, before and after each of its acts. A versioned
//! format: entries are sealed into lines by [`Chain`] and read by [`read`].
//!
//! The way of a call in it: `asked` and `answered` when a human was needed,
//! `decided` before anything leaves, `settled` when its outcome is known. A
//! `decided` that allows and has no `settled` is a call in doubt. Between the two stand
//! `inquired` and `inquiry-ended` when its server asked something of the host.

mod chain;
mod grants;
mod read;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{Args, Site};
use crate::code::Code;
use crate::facts::Facts;
use crate::id::{CallId, Digest, RunId, ServerName, ToolId};
use crate::inquiry::{InquiryEnd, InquiryId, Wants};
use crate::limits::Limits;
use crate::report::{ReportedError, ReportedFinding, ReportedOutcome, Status, Usage};

pub use chain::{Chain, Redact, Unsealable};
pub use grants::{GrantClaimed, GrantGiven, GrantHead, GrantUse, GrantVoided};
pub use read::{Broken, Cut, Line, Verified, read};

/// Version of the format. A reader refuses every other.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The host's time.
    pub at_ms: u64,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Body {
    RunStarted(Box<RunStarted>),
    Asked(Box<Asked>),
    Answered(Answered),
    GrantGiven(Box<GrantGiven>),
    GrantVoided(Box<GrantVoided>),
    GrantClaimed(Box<GrantClaimed>),
    Decided(Box<Decided>),
    Inquired(Inquired),
    InquiryEnded(InquiryEnded),
    Settled(Box<Settled>),
    Resumed(Resumed),
    Ended(Box<Ended>),
}

/// The header: all that a replay needs besides the outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    pub run: RunId,
    pub script_name: String,
    pub script_digest: Digest,
    pub script: String,
    pub input_digest: Digest,
    /// JSON text; absent when it is longer than `journal_payload_bytes_max`.
    pub input: Option<String>,
    /// As text, since it may not fit a double.
    pub seed: String,
    pub limits: Limits,
    /// One line per rule, then the default.
    pub rules: Vec<String>,
    /// In the order of the guest's table of stubs, which speaks of both by their places.
    pub servers: Vec<StartedServer>,
    /// Likewise, server by server.
    pub tools: Vec<StartedTool>,
    pub guest_name: String,
    pub guest_digest: Digest,
    /// What the check before the run found, just as the host is told of it in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ReportedFinding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedServer {
    pub name: ServerName,
    pub global: String,
}

/// A tool as this run saw it, whatever its description or our naming says later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedTool {
    pub tool: ToolId,
    pub member: String,
    pub flat: String,
    pub unwrap: bool,
    /// As our configuration had it.
    pub read_only: Option<bool>,
    pub description: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
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
pub struct Answered {
    pub call: CallId,
    pub answer: AnswerWord,
    pub uses_max: Option<u32>,
    /// Digest of what the answer was given to.
    pub shown: Digest,
    pub ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerWord {
    AllowOnce,
    AllowTool,
    Refuse,
    Unanswered,
    /// What came back was no answer to the question.
    Invalid,
    /// A grant given for another call covered this one, or the run ended.
    Withdrawn,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    pub call: CallId,
    pub tool: ToolId,
    /// Absent for a tool that the run does not know.
    pub description: Option<Digest>,
    /// Absent when they were no canonical object, and so were refused.
    pub args: Option<Args>,
    pub args_digest: Digest,
    /// What the rules saw besides; absent where nothing was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Arc<Facts>>,
    #[serde(flatten)]
    pub site: Site,
    pub decision: Verdict,
    /// Of a denial.
    pub code: Option<Code>,
    pub reasons: Vec<String>,
    /// Of a denial: the message that the script's promise rejected with.
    pub told: Option<String>,
    /// What the host is told was probably not meant with the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub grant: Option<GrantUse>,
}

/// What a decision came to: what was asked about has become one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It leaves.
    Allow,
    Deny,
    /// Allowed or asked about, and the run ended before it left.
    Unsent,
}

/// A server asked something of the host. What it asked stands here as its digest alone, and
/// what was said nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquired {
    pub call: CallId,
    /// Calls that it may be about as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<CallId>,
    pub inquiry: InquiryId,
    pub wants: Wants,
    pub asked_digest: Digest,
    /// The server has refused the call until this is answered; it is made again then, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryEnded {
    pub call: CallId,
    pub inquiry: InquiryId,
    pub end: InquiryEnd,
    pub ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    pub call: CallId,
    pub outcome: ReportedOutcome,
    pub code: Option<Code>,
    /// For the person; the script never sees it.
    pub why: Option<String>,
    /// Of the payload's text: what the script's promise settled with.
    pub payload_digest: Digest,
    pub payload_bytes: u64,
    /// The text itself, exactly as the guest got it; absent when it is longer
    /// than `journal_payload_bytes_max`, or when the guest got nothing.
    pub payload: Option<String>,
    /// Whether an outcome was kept for the guest. Not so when the run ended before one came.
    pub told: bool,
    pub ms: u64,
}

/// The guest went on, and this is everything that it was told. Jumps of the
/// run's clock before the first call are not recorded: a step without an entry
/// is one, and went on at the very time that the guest waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// How often the guest has gone on with this, 1 for the first time, jumps included.
    pub step: u64,
    /// The run's clock.
    pub now_ms: u64,
    /// In the order in which the promises settled.
    pub calls: Vec<CallId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub status: Status,
    pub code: Option<Code>,
    pub error: Option<ReportedError>,
    pub value_digest: Option<Digest>,
    pub usage: Usage,
}

impl Body {
    /// The call that an entry is about.
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

    /// About how long its line is: whatever in it can be long, and a little for the rest.
    /// The header is bounded by what it repeats.
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

/// A text as a line holds it.
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
