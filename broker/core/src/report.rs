//! The report of a run at its end. Serialised, it is the output of `--json`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::flow::SessionFlow;
use crate::grant::Grant;
use crate::id::CallRef;
use crate::outcome::Code;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub run: String,
    pub status: Status,
    pub code: Option<Code>,
    /// Time until the run can be tried again, in milliseconds, if it ended with the code `busy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The script's return value; `null` if it has none.
    pub value: Option<Box<RawValue>>,
    pub error: Option<ReportedError>,
    /// Findings of the check before the run, in the order of the script.
    #[serde(default)]
    pub findings: Vec<ReportedFinding>,
    pub console: Vec<ReportedLine>,
    /// Number of console bytes that were dropped because of the limit.
    #[serde(default)]
    pub console_dropped_bytes: u64,
    pub calls: Vec<ReportedCall>,
    /// The labels and counts that the session keeps from this run. Absent if the run computed no
    /// facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<SessionFlow>,
    pub usage: Usage,
    /// Grants that would have covered the unanswered questions. These grants have not been given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants_needed: Vec<Grant>,
    /// The place of the run in its chain, if it resumed another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ReportedChain>,
    /// Number of calls that got a recorded outcome, in a run that resumed another one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reused: u32,
    /// Number of calls that left, in a run that resumed another one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ran: u32,
    /// Calls that were made again because they are repeatable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refreshed: Vec<RefreshedCall>,
    /// Calls of the run or its chain that may have had their effect. No equal call leaves until a
    /// person states what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indeterminate: Vec<ReportedCallRef>,
    /// Calls that may be earlier ones with other arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<DoubtfulCall>,
    /// Calls of the chain that may have had their effect and that the script did not make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_over: Vec<ReportedCallRef>,
    /// Present if the run did not return and another run can resume it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub can_resume: Option<CanResume>,
}

impl Report {
    /// Returns the report of a run without an id, calls and output.
    #[must_use]
    pub fn empty(status: Status, code: Option<Code>) -> Self {
        Self {
            run: String::new(),
            status,
            code,
            retry_after_ms: None,
            value: None,
            error: None,
            findings: Vec::new(),
            console: Vec::new(),
            console_dropped_bytes: 0,
            calls: Vec::new(),
            flow: None,
            usage: Usage::default(),
            grants_needed: Vec::new(),
            chain: None,
            reused: 0,
            ran: 0,
            refreshed: Vec::new(),
            indeterminate: Vec::new(),
            doubtful: Vec::new(),
            left_over: Vec::new(),
            can_resume: None,
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedChain {
    /// The first run of the chain.
    pub root: String,
    /// The number of this run in the chain.
    pub number: u32,
    /// The run that this run resumed.
    pub predecessor: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshedCall {
    pub call: u32,
    pub from: CallRef,
    /// Whether the result differs from the earlier one. Absent if one of the two is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

/// A call of this run or of an earlier run of its chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCallRef {
    pub at: CallRef,
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubtfulCall {
    pub call: u32,
    pub tool: String,
    /// Earlier calls of the same tool.
    pub near: Vec<CallRef>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanResume {
    pub run: String,
    /// Number of calls whose result is recorded.
    pub recorded: u32,
    pub indeterminate: u32,
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

/// A definite or probable mistake in a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedFinding {
    pub severity: ReportedSeverity,
    /// A `codegen::check::FindingCode` as a word; `ts` and a number for a finding of the TypeScript
    /// compiler; or `tsc-unheard` if the compiler failed.
    pub code: String,
    /// Line of the finding. Line and column are 0 if the finding has no place.
    pub line: u32,
    pub column: u32,
    pub message: String,
    /// The proposed replacement.
    pub suggestion: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedSeverity {
    /// A definite error, which stops a run before any effect.
    Error,
    Warning,
    /// A note about the check itself, not about the script.
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
    /// The call of an earlier run whose recorded outcome the script got. This call did not leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<CallRef>,
    /// Warnings about arguments that are probably a mistake, although they fit the tool's schema.
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
    /// Number of calls that the script made after the end of the run and that the report does not
    /// list. None of them was sent.
    #[serde(default)]
    pub calls_not_recorded: u32,
}
