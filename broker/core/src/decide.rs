//! The heart: one call in, one decision out, with its reasons. Pure.
//!
//! In order: the tool is known and disclosed here, the arguments fit the pinned
//! input schema, no rule denies, a rule allows or a grant lifts "ask", else a human
//! is asked. No grant lifts "ask for this call".
//! Whoever holds an [`AuthorizedCall`] got it here; there is no other way.

mod authorized;
mod question;

use std::sync::Arc;

use crate::call::Call;
use crate::catalog::{Catalog, Tool};
use crate::code::Code;
use crate::grant::{Grants, Use};
use crate::rules::{Consulted, Level, Rules};
use crate::session::Disclosed;

pub use authorized::{AuthorizedCall, CallParts};
pub use question::{Answer, Pending, Question};

/// A call with more findings than these is as wrong as with these.
const FINDINGS_MAX: usize = 8;
/// Of one finding, whatever it repeats of the arguments.
const FINDING_CHARS_MAX: usize = 1_000;

/// What does not change during a run.
#[derive(Debug, Clone)]
pub struct Standing {
    pub catalog: Arc<Catalog>,
    pub rules: Arc<Rules>,
    /// What the run's session has been shown.
    pub disclosed: Disclosed,
}

#[derive(Debug)]
pub enum Decision {
    Allow(AuthorizedCall),
    Ask(Pending),
    Deny(Refusal),
}

/// A call that does not leave. Nothing happened outside.
#[derive(Debug)]
pub struct Refusal {
    pub call: Call,
    pub code: Code,
    /// For the report and the journal.
    pub reasons: Vec<String>,
    /// For the script: names the deciding rules and nothing of other tools.
    pub message: String,
}

#[must_use]
pub fn decide(call: Call, standing: &Standing, grants: &mut Grants) -> Decision {
    let Some(tool) = standing.catalog.find(&call.tool) else {
        let reasons = vec!["the tool is not known in this run".into()];
        return deny(call, Code::NotDisclosed, reasons);
    };
    if let Some((code, why)) = standing.disclosed.objection(tool) {
        return deny(call, code, vec![why]);
    }
    let findings = tool.input.findings(call.args.value());
    if !findings.is_empty() {
        let findings = findings
            .iter()
            .take(FINDINGS_MAX)
            .map(|it| cut(it))
            .collect();
        return deny(call, Code::InvalidArguments, findings);
    }
    let consulted = standing.rules.consult(&call);
    let Consulted { reasons, told, .. } = &consulted;
    match consulted.level {
        Level::Deny => Decision::Deny(Refusal::new(call, Code::Denied, reasons.clone(), told)),
        Level::Allow => Decision::Allow(authorize(call, tool, Why::rules(reasons.clone()), grants)),
        Level::AskRun | Level::AskCall => {
            let allowed_so_far = grants.allowed_so_far(&tool.id);
            let pending = Pending::new(call, Arc::clone(tool), consulted, allowed_so_far);
            reconsider(pending, grants)
        }
    }
}

/// What a human's answer makes of the call that was asked about.
#[must_use]
pub fn settle(mut pending: Pending, answer: Answer, grants: &mut Grants) -> Decision {
    if let Answer::AllowTool { uses_max } = answer
        && pending.question.level == Level::AskRun
    {
        let Pending { tool, question, .. } = &mut pending;
        question.reasons.push(format!(
            "answered: up to {uses_max} calls of this tool in this run"
        ));
        grants.give(&tool.id, tool.description_digest, uses_max);
        return reconsider(pending, grants);
    }
    let Pending {
        call,
        tool,
        question,
    } = pending;
    let mut reasons = question.reasons;
    match answer {
        Answer::AllowOnce | Answer::AllowTool { .. } => {
            reasons.push("answered: this call".into());
            Decision::Allow(authorize(call, &tool, Why::rules(reasons), grants))
        }
        Answer::Refuse => {
            reasons.push("answered: refused".into());
            Decision::Deny(Refusal::new(call, Code::Refused, reasons, &[]))
        }
        Answer::Unanswered => {
            reasons.push("nobody answered".into());
            Decision::Deny(Refusal::new(call, Code::Unanswered, reasons, &[]))
        }
    }
}

/// Whether a grant, perhaps one that was given meanwhile, covers a call that is to be asked about.
#[must_use]
pub fn reconsider(mut pending: Pending, grants: &mut Grants) -> Decision {
    let tool = Arc::clone(&pending.tool);
    let used = match pending.question.level {
        Level::AskRun => grants.consume(&tool.id, tool.description_digest),
        _ => None,
    };
    pending.question.allowed_so_far = grants.allowed_so_far(&tool.id);
    let Some(used) = used else {
        return Decision::Ask(pending);
    };
    let Pending { call, question, .. } = pending;
    let why = Why::grant(question.reasons, used);
    Decision::Allow(authorize(call, &tool, why, grants))
}

struct Why {
    reasons: Vec<String>,
    used: Option<Use>,
}

impl Why {
    fn rules(reasons: Vec<String>) -> Self {
        Self {
            reasons,
            used: None,
        }
    }

    fn grant(mut reasons: Vec<String>, used: Use) -> Self {
        let Use {
            grant,
            number,
            uses_max,
        } = used;
        reasons.push(format!("grant {}, use {number} of {uses_max}", grant.0));
        Self {
            reasons,
            used: Some(used),
        }
    }
}

fn authorize(call: Call, tool: &Arc<Tool>, why: Why, grants: &mut Grants) -> AuthorizedCall {
    grants.note_allowed(&tool.id);
    AuthorizedCall::new(call, Arc::clone(tool), why.reasons, why.used)
}

fn cut(finding: &str) -> String {
    finding.chars().take(FINDING_CHARS_MAX).collect()
}

/// A refusal whose reasons are the script's to know.
fn deny(call: Call, code: Code, reasons: Vec<String>) -> Decision {
    let told = reasons.clone();
    Decision::Deny(Refusal::new(call, code, reasons, &told))
}

impl Refusal {
    fn new(call: Call, code: Code, reasons: Vec<String>, told: &[String]) -> Self {
        let verb = match code {
            Code::InvalidArguments => "was not made, its arguments do not fit",
            Code::Refused => "was refused by the approver",
            Code::Unanswered => "was not approved: nobody answered",
            _ => "was denied",
        };
        let colon = if told.is_empty() { "" } else { ": " };
        let message = format!(
            "the call to `{}` {verb}{colon}{}",
            call.tool,
            told.join("; ")
        );
        Self {
            call,
            code,
            reasons,
            message,
        }
    }
}

#[cfg(test)]
mod tests;
