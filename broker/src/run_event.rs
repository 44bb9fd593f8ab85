//! The events of a run that a host can observe.

use airlock_core::code::Code;
use airlock_core::id::{CallId, RunId, ToolId};
use airlock_core::inquiry::{InquiryEnd, InquiryId, InquiryKind};
use airlock_core::journal::{AnswerWord, Body, Verdict};
use airlock_core::report::{ReportedFinding, ReportedOutcome};
use sandbox_protocol::{ConsoleLevel, ConsoleLine};

use crate::run_index::SignedHead;

/// An event of a run. It is on disk before it is reported, except for console lines and findings.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The check of a script that will run has findings.
    Checked {
        findings: Vec<ReportedFinding>,
    },
    Started {
        run: RunId,
    },
    Console {
        level: ConsoleLevel,
        text: String,
    },
    Asked {
        call: CallId,
        tool: ToolId,
    },
    Answered {
        call: CallId,
        answer: AnswerWord,
    },
    CallDecided {
        call: CallId,
        tool: ToolId,
        decision: Verdict,
        code: Option<Code>,
        reasons: Vec<String>,
    },
    /// The server of a call sent an inquiry to the host.
    Inquired {
        call: CallId,
        inquiry: InquiryId,
        wants: InquiryKind,
    },
    InquiryEnded {
        call: CallId,
        inquiry: InquiryId,
        end: InquiryEnd,
    },
    CallSettled {
        call: CallId,
        outcome: ReportedOutcome,
        code: Option<Code>,
        ms: u64,
    },
    /// The call was not made: it got the outcome of an earlier call of the chain.
    CallReused {
        call: CallId,
        tool: ToolId,
        why: String,
    },
    /// The run has ended, and the end of its journal is signed.
    Signed {
        head: SignedHead,
    },
}

impl RunEvent {
    /// Converts a journal entry to an event, if observers need it.
    pub(crate) fn from_body(body: Body) -> Option<Self> {
        match body {
            Body::RunStarted(started) => Some(Self::Started { run: started.run }),
            Body::Asked(asked) => Some(Self::Asked {
                call: asked.call,
                tool: asked.tool,
            }),
            Body::Answered(answered) => Some(Self::Answered {
                call: answered.call,
                answer: answered.answer,
            }),
            Body::Decided(decided) => Some(Self::CallDecided {
                call: decided.call,
                tool: decided.tool,
                decision: decided.decision,
                code: decided.code,
                reasons: decided.reasons,
            }),
            Body::Inquired(inquired) => Some(Self::Inquired {
                call: inquired.call,
                inquiry: inquired.inquiry,
                wants: inquired.wants,
            }),
            Body::InquiryEnded(ended) => Some(Self::InquiryEnded {
                call: ended.call,
                inquiry: ended.inquiry,
                end: ended.end,
            }),
            Body::Settled(settled) => Some(Self::CallSettled {
                call: settled.call,
                outcome: settled.outcome,
                code: settled.code,
                ms: settled.ms,
            }),
            Body::Reused(reused) => Some(Self::CallReused {
                call: reused.call,
                why: reused.why(),
                tool: reused.tool,
            }),
            Body::Stated(_)
            | Body::GrantGiven(_)
            | Body::GrantVoided(_)
            | Body::GrantClaimed(_)
            | Body::Resumed(_)
            | Body::Suspended(_)
            | Body::Ended(_) => None,
        }
    }
}

impl From<ConsoleLine> for RunEvent {
    fn from(line: ConsoleLine) -> Self {
        Self::Console {
            level: line.level,
            text: line.text,
        }
    }
}
