//! The question to a human about one call, and the possible answers.

use std::num::NonZeroU32;
use std::sync::Arc;

use codegen::canonical;
use serde_json::json;

use crate::call::{Args, Call, EarlierCall, Site};
use crate::catalog::{Effects, Tool};
use crate::facts::Facts;
use crate::grant::{Proposal, Scope, Terms};
use crate::id::{CallId, CallRef, Digest, GrantId, RunId, ToolId};
use crate::labels::Labels;
use crate::level::Level;
use crate::rules::RuleVerdict;
use crate::statement::StatedOutcome;

/// A call that waits for a human. Only `decide` makes one, and only `settle` resolves it.
#[derive(Debug)]
pub struct PendingCall {
    pub(super) call: Call,
    pub(super) tool: Arc<Tool>,
    pub(super) question: Question,
}

/// A call that is covered by a grant whose uses are shared with other runs. Only `decide` makes
/// one, and only `claimed` resolves it.
#[derive(Debug)]
pub struct CoveredCall {
    pub(super) pending: PendingCall,
    pub(super) grant: GrantId,
}

/// The run whose call needs approval, and the time for which it waits for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    pub run: RunId,
    pub script_name: String,
    pub script: Digest,
    /// How long the run waits, in milliseconds, from the question or from the latest answer to
    /// another question of the same run.
    pub waits_ms: u64,
}

/// Everything that an approver shows about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub call: CallId,
    pub tool: ToolId,
    pub description_digest: Digest,
    /// The exact arguments; [`Args::text`] is what would be sent.
    pub args: Args,
    pub site: Site,
    /// The facts: labels that had reached the run, destinations, and earlier results that the
    /// arguments repeat.
    pub facts: Option<Arc<Facts>>,
    /// The labels that the result would add to the run; empty if labels are not tracked.
    pub reads: Labels,
    /// The tool's effects, according to the configuration and to the server's claims.
    pub effects: Effects,
    /// `AskRun` or `AskCall`: whether an answer can cover more than this call.
    pub level: Level,
    /// The reasons why the call needs an answer: the rules, or the default.
    pub reasons: Vec<String>,
    /// Texts of the `@prompt` annotations of the matching rules.
    pub prompts: Vec<String>,
    /// Number of calls of this tool that the run was allowed before this one.
    pub allowed_so_far: u32,
    /// The grant that the human may give besides allowing this call; `None` if no grant can cover
    /// it.
    pub proposal: Option<Proposal>,
    /// The scopes that a grant may have.
    pub scopes: Vec<Scope>,
    /// Earlier calls of the same tool that a doubtful call may repeat with other arguments.
    pub earlier: Vec<EarlierCall>,
    /// The earlier call with the same arguments whose outcome is unknown. Then the question is what
    /// became of that call, and no answer allows this one.
    pub outcome_of: Option<CallRef>,
    /// The asking run; set when the question is sent to the approver.
    pub asker: Option<Arc<Asker>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    AllowOnce,
    /// Allows this call, and declares that its result is neither private nor untrusted.
    AllowDeclassified,
    /// Allows this call and similar later calls, up to a total number. If no grant can cover the
    /// call, only this call is allowed.
    Allow(Terms),
    /// Refuses this call. If the question is what became of an earlier call, this stays unknown.
    Refuse,
    /// What became of the earlier call that the question is about.
    Stated {
        outcome: StatedOutcome,
        /// Who states it, and through what, as [`Statement::by`](crate::statement::Statement::by)
        /// records it.
        by: String,
    },
    /// No approver was present, or no answer came in time.
    Unanswered,
    /// The reply was not a valid answer to this question.
    Invalid {
        why: String,
    },
}

impl Answer {
    /// Allows calls as proposed in this run: `uses_max` in total, including this call.
    #[must_use]
    pub fn up_to(uses_max: NonZeroU32) -> Self {
        Self::Allow(Terms::up_to(uses_max))
    }
}

impl Question {
    /// Returns the digest that binds an answer to what was shown of the call: its tool, description,
    /// arguments and facts. A run that was suspended puts the same question later. So the time of the
    /// call is not part of the digest, and neither is the proposal, which depends on other questions.
    /// A grant has its condition beside the digest.
    #[must_use]
    pub fn shown_digest(&self) -> Digest {
        let facts = self.facts.as_ref().map(|facts| {
            let time = crate::facts::Time::default();
            json!(Facts {
                time,
                ..Facts::clone(facts)
            })
        });
        let earlier: Vec<_> = self.earlier.iter().map(|it| it.at.to_string()).collect();
        let mut shown = json!({
            "args": self.args.digest().to_string(),
            "call": self.call.0,
            "description": self.description_digest.to_string(),
            "earlier": earlier,
            "facts": facts,
            "reads": self.reads,
            "tool": self.tool.to_string(),
        });
        if let (Some(earlier), Some(members)) = (&self.outcome_of, shown.as_object_mut()) {
            members.insert("outcome_of".into(), earlier.to_string().into());
        }
        canonical::digest(&shown)
    }
}

impl PendingCall {
    pub(super) fn new(
        call: Call,
        tool: Arc<Tool>,
        consulted: RuleVerdict,
        allowed_so_far: u32,
    ) -> Self {
        let question = Question {
            call: call.id,
            tool: call.tool.clone(),
            description_digest: tool.description_digest,
            args: call.args.clone(),
            site: call.site,
            facts: call.facts.clone(),
            reads: match call.facts {
                Some(_) => tool.labelling.reads.clone(),
                None => Labels::default(),
            },
            effects: tool.effects,
            level: consulted.level,
            reasons: consulted.reasons,
            prompts: consulted.prompts,
            allowed_so_far,
            proposal: None,
            scopes: Vec::new(),
            earlier: call.history.near.clone(),
            outcome_of: None,
            asker: None,
        };
        Self {
            call,
            tool,
            question,
        }
    }

    /// Returns the question what became of an earlier call with the same arguments.
    pub(crate) fn about_outcome(call: Call, tool: Arc<Tool>, earlier: CallRef) -> Self {
        let verdict = RuleVerdict {
            level: Level::AskCall,
            reasons: Vec::new(),
            told: Vec::new(),
            prompts: Vec::new(),
        };
        let mut pending = Self::new(call, tool, verdict, 0);
        pending.question.reads = Labels::default();
        pending.question.earlier = Vec::new();
        pending.question.outcome_of = Some(earlier);
        pending
    }

    /// Adds the reason why an earlier answer could not be used or no longer counts.
    pub(crate) fn note_unused_answer(&mut self, why: String) {
        self.question.reasons.push(why);
    }

    pub(crate) fn into_parts(self) -> (Call, Arc<Tool>) {
        (self.call, self.tool)
    }

    #[must_use]
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Sets what the human may allow besides this call. Called when the question is sent.
    pub(crate) fn propose(&mut self, proposal: Option<Proposal>, scopes: &[Scope]) {
        self.question.scopes = [Scope::Run]
            .iter()
            .chain(scopes)
            .filter(|_| proposal.is_some())
            .copied()
            .collect();
        self.question.proposal = proposal;
    }

    pub(crate) fn asked_by(&mut self, asker: Asker) {
        self.question.asker = Some(Arc::new(asker));
    }

    pub(crate) fn tool(&self) -> &Tool {
        &self.tool
    }

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }
}

impl CoveredCall {
    #[must_use]
    pub fn grant(&self) -> &GrantId {
        &self.grant
    }

    #[must_use]
    pub fn question(&self) -> &Question {
        &self.pending.question
    }
}
