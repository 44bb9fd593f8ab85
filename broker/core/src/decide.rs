//! The heart: one call in, one decision out, with its reasons. Pure.
//!
//! In order: the tool is known and disclosed here, its input schema can be used and the
//! arguments fit it, no rule denies, a rule allows or a grant lifts "ask", else a human
//! is asked. No grant lifts "ask for this call".
//! Whoever holds an [`AuthorizedCall`] got it here; there is no other way.

mod authorized;
mod question;

use std::sync::Arc;

use crate::call::Call;
use crate::catalog::{Catalog, Tool};
use crate::code::Code;
use crate::grant::{Condition, Found, Grants, Terms, Use};
use crate::rules::{Consulted, Level, Rules};
use crate::session::Disclosed;

pub use authorized::{AuthorizedCall, CallParts};
pub use question::{Answer, Asker, Covered, Pending, Question};

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
    /// A grant that other runs share may cover it: its use is to be claimed first.
    Claim(Covered),
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
    if tool.pinned == Some(false) {
        let why = "its description is not the one that was accepted into the lock file";
        return deny(call, Code::DescriptionChanged, vec![why.into()]);
    }
    if let Some(why) = tool.input.unusable() {
        return deny(call, Code::ToolUnusable, vec![cut(&why)]);
    }
    if tool.stale {
        let why = "the server changed this tool's description, and the new one could not be loaded";
        return deny(call, Code::DescriptionChanged, vec![why.into()]);
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
    let consulted = standing.rules.consult_about(tool.whose, &call);
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
pub fn settle(pending: Pending, answer: Answer, grants: &mut Grants) -> Decision {
    match answer {
        Answer::AllowOnce => allow_once(pending, "", grants),
        Answer::Allow(terms) => settle_terms(pending, terms, grants),
        Answer::Refuse => refuse(pending, Code::Refused, "answered: refused"),
        Answer::Unanswered => refuse(pending, Code::Unanswered, "no answer came"),
        Answer::Invalid { why } => {
            let reason = format!("what was answered does not count: {}", cut(&why));
            refuse(pending, Code::Unanswered, &reason)
        }
    }
}

/// Whether a grant, perhaps one that was given meanwhile, covers a call that is to be asked about.
#[must_use]
pub fn reconsider(mut pending: Pending, grants: &mut Grants) -> Decision {
    let found = match pending.question.level {
        Level::AskRun => grants.consume(&pending.call),
        _ => None,
    };
    pending.question.allowed_so_far = grants.allowed_so_far(&pending.tool.id);
    match found {
        Some(Found::Used(used)) => Decision::Allow(lifted(pending, used, grants)),
        Some(Found::Shared(grant)) => Decision::Claim(Covered { pending, grant }),
        None => Decision::Ask(pending),
    }
}

/// What became of the use of a shared grant that was to be claimed.
#[must_use]
pub fn claimed(covered: Covered, used: Result<Use, String>, grants: &mut Grants) -> Decision {
    let Covered { mut pending, grant } = covered;
    match used {
        Ok(used) if used.grant == grant => Decision::Allow(lifted(pending, used, grants)),
        Ok(_) => refuse(pending, Code::Internal, "another grant's use was claimed"),
        Err(why) => {
            grants.close(&pending.tool.id, &grant);
            let reason = format!("grant {grant} gives no use: {}", cut(&why));
            pending.question.reasons.push(reason);
            reconsider(pending, grants)
        }
    }
}

/// A call that was allowed by a grant and waited until that grant had expired.
#[must_use]
pub fn again(call: AuthorizedCall, standing: &Standing, grants: &mut Grants) -> Decision {
    grants.note_lapsed(call.tool());
    decide(call.into_call(), standing, grants)
}

fn settle_terms(mut pending: Pending, terms: Terms, grants: &mut Grants) -> Decision {
    if pending.question.level != Level::AskRun {
        return allow_once(
            pending,
            " and no other: a grant covers none of them",
            grants,
        );
    }
    let proposed = match &pending.question.proposal {
        Some(proposal) => Some(proposal.condition.clone()),
        None => Condition::exactly(pending.call.args.value()),
    };
    let fits = |condition: &Condition| condition.covers(pending.call.args.value());
    if terms.condition.as_ref().is_some_and(|it| !fits(it)) {
        let why = "the answer is for other arguments than the question";
        return refuse(pending, Code::Unanswered, why);
    }
    let shown = pending.question.shown_digest();
    let Pending { call, tool, .. } = &pending;
    let given =
        proposed.and_then(|proposed| grants.give(call, tool, &proposed, terms, shown).cloned());
    let Some(grant) = given else {
        return allow_once(
            pending,
            " alone: it is too large, or too many grants are open",
            grants,
        );
    };
    let (uses_max, scope) = (grant.uses_max, grant.scope);
    let reason = format!(
        "answered: up to {uses_max} calls of this tool in this {scope} where {}",
        grant.condition
    );
    pending.question.reasons.push(cut(&reason));
    reconsider(pending, grants)
}

fn allow_once(pending: Pending, remark: &str, grants: &mut Grants) -> Decision {
    let Pending {
        call,
        tool,
        question,
    } = pending;
    let mut reasons = question.reasons;
    reasons.push(format!("answered: this call{remark}"));
    Decision::Allow(authorize(call, &tool, Why::rules(reasons), grants))
}

fn refuse(pending: Pending, code: Code, reason: &str) -> Decision {
    let Pending { call, question, .. } = pending;
    let mut reasons = question.reasons;
    reasons.push(reason.to_owned());
    Decision::Deny(Refusal::new(call, code, reasons, &[]))
}

fn lifted(pending: Pending, used: Use, grants: &mut Grants) -> AuthorizedCall {
    let Pending {
        call,
        tool,
        question,
    } = pending;
    authorize(call, &tool, Why::grant(question.reasons, used), grants)
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
        reasons.push(used.to_string());
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

pub(crate) fn cut(finding: &str) -> String {
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
            Code::ToolUnusable => "was not made",
            Code::Refused => "was refused by the approver",
            Code::Unanswered => "was not approved: no answer came",
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
