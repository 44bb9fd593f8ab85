//! Decides on one call, with reasons. Pure: data in, decision out.
//!
//! The checks run in this order: the tool is known, no rule denies every call of it, it is disclosed,
//! its description is the one in the lock file, its input schema is usable, and the arguments fit it.
//! Then the rules decide. A grant
//! turns "ask" into "allow"; without a grant, a human is asked. A grant never covers "ask for this
//! call". Only this module creates an [`AuthorizedCall`].

mod authorized;
mod question;

use std::sync::Arc;

use crate::call::Call;
use crate::catalog::{Catalog, Tool, ToolOwner};
use crate::code::Code;
use crate::grant::{Condition, GrantMatch, Grants, Terms, Use};
use crate::labels::{Labelling, Labels};
use crate::level::Level;
use crate::rules::{RuleVerdict, Rules};
use crate::session::DisclosedTools;

pub use authorized::{AuthorizedCall, CallParts};
pub use question::{Answer, Asker, CoveredCall, PendingCall, Question};

/// Maximum number of findings reported for the arguments of one call.
const FINDINGS_MAX: usize = 8;
/// Maximum length of one finding. A finding may quote parts of the arguments.
const FINDING_CHARS_MAX: usize = 1_000;

/// The input of a decision that stays the same during a run.
#[derive(Debug, Clone)]
pub struct DecisionContext {
    pub catalog: Arc<Catalog>,
    pub rules: Arc<Rules>,
    /// The tools whose full descriptions were shown in the run's session.
    pub disclosed: DisclosedTools,
    /// Why the run cannot call airlock's own tool that reads values, if it cannot.
    pub no_extractor: Option<&'static str>,
}

#[derive(Debug)]
pub enum Decision {
    Allow(AuthorizedCall),
    /// A shared grant covers the call, but a use of the grant must be claimed first.
    Claim(CoveredCall),
    Ask(PendingCall),
    Deny(Refusal),
}

/// A refused call. It was not sent, and nothing happened outside.
#[derive(Debug)]
pub struct Refusal {
    pub call: Call,
    pub code: Code,
    /// Reasons for the report and the journal.
    pub reasons: Vec<String>,
    /// Message for the script: names the deciding rules and reveals nothing about other tools.
    pub message: String,
}

#[must_use]
pub fn decide(call: Call, decision_context: &DecisionContext, grants: &mut Grants) -> Decision {
    let (tool, consulted) = match consult(&call, decision_context) {
        Ok(consulted) => consulted,
        Err(Objection {
            code,
            reasons,
            told,
        }) => return Decision::Deny(Refusal::new(call, code, reasons, &told)),
    };
    let RuleVerdict { reasons, .. } = &consulted;
    match consulted.level {
        Level::Allow => Decision::Allow(authorize(call, tool, Why::rules(reasons.clone()), grants)),
        Level::Deny | Level::AskRun | Level::AskCall => {
            let allowed_so_far = grants.allowed_so_far(&tool.id);
            let pending = PendingCall::new(call, Arc::clone(tool), consulted, allowed_so_far);
            reconsider(pending, grants)
        }
    }
}

/// Returns whether a call would be denied, so that not even its recorded outcome may be used.
#[must_use]
pub fn is_denied(call: &Call, decision_context: &DecisionContext) -> bool {
    consult(call, decision_context).is_err()
}

/// Why a call is denied.
struct Objection {
    code: Code,
    reasons: Vec<String>,
    told: Vec<String>,
}

impl Objection {
    fn new(code: Code, reasons: Vec<String>) -> Self {
        let told = reasons.clone();
        Self {
            code,
            reasons,
            told,
        }
    }
}

/// Makes all checks of a call, and asks the rules. The level of the result is never `Deny`.
fn consult<'a>(
    call: &Call,
    decision_context: &'a DecisionContext,
) -> Result<(&'a Arc<Tool>, RuleVerdict), Objection> {
    let Some(tool) = decision_context.catalog.find(&call.tool) else {
        let reasons = vec!["the tool is not known in this run".into()];
        return Err(Objection::new(Code::NotDisclosed, reasons));
    };
    if let Some(denied) = decision_context.rules.always_denied(tool.owner, &tool.id) {
        return Err(Objection {
            code: Code::Denied,
            reasons: denied.reasons,
            told: denied.told,
        });
    }
    if let Some(why) = decision_context.no_extractor
        && tool.owner == ToolOwner::OwnForwarding
    {
        return Err(Objection::new(Code::ExtractFailed, vec![why.into()]));
    }
    if let Some((code, why)) = decision_context.disclosed.objection(tool) {
        return Err(Objection::new(code, vec![why]));
    }
    if tool.pinned == Some(false) {
        let why = "the tool's description differs from the accepted one in the lock file";
        return Err(Objection::new(Code::DescriptionChanged, vec![why.into()]));
    }
    if let Some(why) = tool.args_check.unusable() {
        return Err(Objection::new(Code::ToolUnusable, vec![cut(&why)]));
    }
    if tool.stale {
        let why = "the server changed this tool's description, and the new one could not be loaded";
        return Err(Objection::new(Code::DescriptionChanged, vec![why.into()]));
    }
    let findings = tool.args_check.findings(call.args.value());
    if !findings.is_empty() {
        let findings = findings
            .iter()
            .take(FINDINGS_MAX)
            .map(|it| cut(it))
            .collect();
        return Err(Objection::new(Code::InvalidArguments, findings));
    }
    if let Some(why) = tool.labelling.objection(call.args.value()) {
        return Err(Objection::new(Code::InvalidArguments, vec![cut(&why)]));
    }
    let mut consulted = decision_context.rules.consult_for_owner(tool.owner, call);
    if consulted.level == Level::Deny {
        return Err(Objection {
            code: Code::Denied,
            reasons: consulted.reasons,
            told: consulted.told,
        });
    }
    if !call.history.near.is_empty() {
        consulted.level = Level::AskCall;
        let why = "an earlier run of this chain called this tool with other arguments, and the script \
                   has not made that call again";
        consulted.reasons.push(why.into());
    }
    if call.history.refusals > 0 && consulted.level != Level::Allow {
        let times = call.history.refusals;
        let why = format!("people refused this call {times} times earlier in this chain");
        consulted.reasons.push(why);
    }
    Ok((tool, consulted))
}

/// Beginning of the reason of a call that got an answer which cannot be used.
pub const INVALID_ANSWER: &str = "invalid answer: ";

/// Turns a human's answer into the decision on the call that was asked about.
#[must_use]
pub fn settle(pending: PendingCall, answer: Answer, grants: &mut Grants) -> Decision {
    match answer {
        Answer::AllowOnce => allow_once(pending, "", grants),
        Answer::AllowDeclassified => allow_declassified(pending, grants),
        Answer::Allow(terms) => settle_terms(pending, terms, grants),
        Answer::Refuse => refuse(pending, Code::Refused, "answered: refuse"),
        Answer::Unanswered => refuse(pending, Code::Unanswered, "the question was not answered"),
        // The question is not what became of an earlier call.
        Answer::Stated { .. } => refuse(pending, Code::Unanswered, "invalid answer"),
        Answer::Invalid { why } => {
            let reason = format!("{INVALID_ANSWER}{}", cut(&why));
            refuse(pending, Code::Unanswered, &reason)
        }
    }
}

/// Checks whether a grant covers a call that would otherwise be asked about. The check includes
/// grants that were given since the first decision.
#[must_use]
pub fn reconsider(mut pending: PendingCall, grants: &mut Grants) -> Decision {
    let found = match pending.question.level {
        Level::AskRun => grants.consume(&pending.call),
        _ => None,
    };
    pending.question.allowed_so_far = grants.allowed_so_far(&pending.tool.id);
    match found {
        Some(GrantMatch::Used(used)) => Decision::Allow(lifted(pending, used, grants)),
        Some(GrantMatch::Shared(grant)) => Decision::Claim(CoveredCall { pending, grant }),
        None => Decision::Ask(pending),
    }
}

/// Decides on a call after an attempt to claim a use of a shared grant.
#[must_use]
pub fn claimed(covered: CoveredCall, used: Result<Use, String>, grants: &mut Grants) -> Decision {
    let CoveredCall { mut pending, grant } = covered;
    match used {
        Ok(used) if used.grant == grant => Decision::Allow(lifted(pending, used, grants)),
        Ok(_) => refuse(
            pending,
            Code::Internal,
            "the claimed use belongs to another grant",
        ),
        Err(why) => {
            grants.close(&pending.tool.id, &grant);
            let reason = format!("grant {grant} could not be used: {}", cut(&why));
            pending.question.reasons.push(reason);
            reconsider(pending, grants)
        }
    }
}

/// Decides again on a call that a grant had allowed, and that waited until the grant expired.
#[must_use]
pub fn decide_again(
    call: AuthorizedCall,
    decision_context: &DecisionContext,
    grants: &mut Grants,
) -> Decision {
    grants.note_lapsed(call.tool());
    decide(call.into_call(), decision_context, grants)
}

fn settle_terms(mut pending: PendingCall, terms: Terms, grants: &mut Grants) -> Decision {
    if pending.question.level != Level::AskRun {
        return allow_once(pending, " only; a grant cannot cover it", grants);
    }
    let proposed = match &pending.question.proposal {
        Some(proposal) => Some(proposal.condition.clone()),
        None => Condition::exactly(pending.call.args.value()),
    };
    let fits = |condition: &Condition| condition.covers(pending.call.args.value());
    if terms.condition.as_ref().is_some_and(|it| !fits(it)) {
        let why = "the answer does not cover the arguments in the question";
        return refuse(pending, Code::Unanswered, why);
    }
    let shown = pending.question.shown_digest();
    let PendingCall { call, tool, .. } = &pending;
    let given =
        proposed.and_then(|proposed| grants.give(call, tool, &proposed, terms, shown).cloned());
    let Some(grant) = given else {
        return allow_once(
            pending,
            " only; its arguments have too many fields, or too many grants are open",
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

/// Allows a call whose result adds no labels to the run. Only a person's answer leads here.
fn allow_declassified(mut pending: PendingCall, grants: &mut Grants) -> Decision {
    let labels = pending.question.reads.to_texts().join(", ");
    if labels.is_empty() {
        return allow_once(pending, "; its result has no labels", grants);
    }
    let mut tool = Tool::clone(&pending.tool);
    tool.labelling = Arc::new(Labelling {
        reads: Labels::default(),
        ..Labelling::clone(&tool.labelling)
    });
    pending.tool = Arc::new(tool);
    let remark = format!("; its result is declassified: {labels} removed");
    allow_once(pending, &remark, grants)
}

fn allow_once(pending: PendingCall, remark: &str, grants: &mut Grants) -> Decision {
    let PendingCall {
        call,
        tool,
        question,
    } = pending;
    let mut reasons = question.reasons;
    reasons.push(format!("answered: allow-once{remark}"));
    Decision::Allow(authorize(call, &tool, Why::rules(reasons), grants))
}

fn refuse(pending: PendingCall, code: Code, reason: &str) -> Decision {
    let PendingCall { call, question, .. } = pending;
    let mut reasons = question.reasons;
    reasons.push(reason.to_owned());
    Decision::Deny(Refusal::new(call, code, reasons, &[]))
}

fn lifted(pending: PendingCall, used: Use, grants: &mut Grants) -> AuthorizedCall {
    let PendingCall {
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

impl Refusal {
    fn new(call: Call, code: Code, reasons: Vec<String>, told: &[String]) -> Self {
        let is_invalid = |it: &String| it.starts_with(INVALID_ANSWER);
        let is_answered = reasons.last().is_some_and(is_invalid);
        let verb = match code {
            Code::InvalidArguments => "was not made, its arguments are invalid",
            Code::ToolUnusable | Code::ExtractFailed => "was not made",
            Code::Refused => "was refused by the approver",
            Code::Unanswered if is_answered => "was not approved: the answer cannot be used",
            Code::Unanswered => "was not approved: the question was not answered",
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
