//! What a run has to say for itself at its end. Serialised, it is what `--json` prints.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::flow::Carried;
use crate::grant::Grant;
use crate::outcome::Code;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub run: String,
    pub status: Status,
    pub code: Option<Code>,
    /// Of a run for which there was no room: when it has a chance again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The script's value; `null` when there is none.
    pub value: Option<Box<RawValue>>,
    pub error: Option<ReportedError>,
    /// What the check before the run found, in the order of the script.
    #[serde(default)]
    pub findings: Vec<ReportedFinding>,
    pub console: Vec<ReportedLine>,
    /// Console bytes that were dropped because of the limit.
    #[serde(default)]
    pub console_dropped_bytes: u64,
    pub calls: Vec<ReportedCall>,
    /// What the run had read and sent, when it was watched: what a session takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Carried>,
    pub usage: Usage,
    /// Nobody answered, and these would have been enough. Nobody has given them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants_needed: Vec<Grant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Done,
    Failed,
    Stopped,
    Cancelled,
    Paused,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedError {
    pub name: String,
    pub message: String,
    pub code: Code,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub stack: String,
}

/// One thing that is wrong with a script, or likely is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedFinding {
    pub severity: ReportedSeverity,
    /// One of `codegen::check::FindingCode`, as a word; `ts` and a number, of a TypeScript
    /// compiler's; or `tsc-unheard`.
    pub code: String,
    /// 0, like the column, when it is about no place.
    pub line: u32,
    pub column: u32,
    pub message: String,
    /// What to write instead.
    pub suggestion: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedSeverity {
    /// Certain: it stops a run before any effect.
    Error,
    Warning,
    /// About the check and not about the script.
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedLine {
    pub level: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCall {
    pub id: u32,
    pub tool: String,
    pub decision: ReportedDecision,
    pub reasons: Vec<String>,
    pub outcome: ReportedOutcome,
    pub code: Option<Code>,
    pub ms: u64,
    /// What was probably not meant, though the tool's schema lets it pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedDecision {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportedOutcome {
    Returned,
    Failed,
    Denied,
    Refused,
    Unknown,
    NotSent,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub wall_ms: u64,
    pub guest_ms: u64,
    pub memory_bytes_peak: u64,
    pub calls: u32,
    pub output_bytes: u64,
    /// Calls that the script made after one limit or another had ended the run, beyond
    /// those that the report lists. None of them left.
    #[serde(default)]
    pub calls_not_recorded: u32,
}
