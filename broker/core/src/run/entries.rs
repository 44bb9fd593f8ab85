//! Builds the journal entries for decisions on calls. Each function is for one state of a call.

use sandbox_protocol::OpenCall;

use crate::call::Site;
use crate::catalog::Tool;
use crate::decide::{AuthorizedCall, Question};
use crate::id::{CallId, Digest};
use crate::journal::{DecidedEntry, GrantUse, Verdict};

/// Returns the entry of a call whose arguments were never parsed.
pub(super) fn undecided(
    id: CallId,
    tool: &Tool,
    open: &OpenCall,
    decision: Verdict,
    why: String,
) -> DecidedEntry {
    DecidedEntry {
        call: id,
        tool: tool.id.clone(),
        description: Some(tool.description_digest),
        args: None,
        facts: None,
        args_digest: Digest::sha256(&open.args),
        site: Site {
            line: open.line,
            column: open.column,
        },
        decision,
        code: None,
        reasons: vec![why],
        told: None,
        warnings: Vec::new(),
        grant: None,
        again: None,
        blocked_by: None,
        near: Vec::new(),
        masked: false,
    }
}

/// Returns the entry of a call that was allowed.
pub(super) fn decided(call: &AuthorizedCall, decision: Verdict) -> DecidedEntry {
    DecidedEntry {
        call: call.id(),
        tool: call.tool().clone(),
        description: Some(call.description_digest()),
        args: Some(call.canonical_args().clone()),
        args_digest: call.canonical_args().digest(),
        facts: call.facts().cloned(),
        site: call.site(),
        decision,
        code: None,
        reasons: call.reasons().to_vec(),
        told: None,
        warnings: Vec::new(),
        grant: call.used().map(|used| GrantUse {
            id: used.grant.clone(),
            number: used.number,
            uses_max: used.uses_max.get(),
        }),
        again: None,
        blocked_by: None,
        near: Vec::new(),
        masked: false,
    }
}

/// Returns the entry of a call that waited for an answer or a claim when the run ended.
pub(super) fn unsettled(question: &Question) -> DecidedEntry {
    DecidedEntry {
        call: question.call,
        tool: question.tool.clone(),
        description: Some(question.description_digest),
        args: Some(question.args.clone()),
        facts: question.facts.clone(),
        args_digest: question.args.digest(),
        site: question.site,
        decision: Verdict::Unsent,
        code: None,
        reasons: question.reasons.clone(),
        told: None,
        warnings: Vec::new(),
        grant: None,
        again: None,
        blocked_by: None,
        near: Vec::new(),
        masked: false,
    }
}
