//! What a human is asked, and what they may answer.

use std::num::NonZeroU32;
use std::sync::Arc;

use codegen::canonical;
use serde_json::json;

use crate::call::{Args, Call, Site};
use crate::catalog::{Effects, Tool};
use crate::facts::Facts;
use crate::grant::{Proposal, Scope, Terms};
use crate::id::{CallId, Digest, GrantId, RunId, ToolId};
use crate::rules::{Consulted, Level};

/// A call that waits for a human. Only `decide` makes one, and only `settle` resolves it.
#[derive(Debug)]
pub struct Pending {
    pub(super) call: Call,
    pub(super) tool: Arc<Tool>,
    pub(super) question: Question,
}

/// A call that a grant covers whose uses other runs count too. Only `decide` makes one, and
/// only `claimed` resolves it.
#[derive(Debug)]
pub struct Covered {
    pub(super) pending: Pending,
    pub(super) grant: GrantId,
}

/// Which run asks, and how long it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    pub run: RunId,
    pub script_name: String,
    pub script: Digest,
    /// From when the question was put, or from the latest answer to another one of this run.
    pub waits_ms: u64,
}

/// Everything that an approver shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub call: CallId,
    pub tool: ToolId,
    pub description_digest: Digest,
    /// The exact arguments; [`Args::text`] is what would be sent.
    pub args: Args,
    pub site: Site,
    /// What the run had read, where the call goes, and what it repeats.
    pub facts: Option<Arc<Facts>>,
    /// What our configuration knows and what the server claims.
    pub effects: Effects,
    /// `AskRun` or `AskCall`: what an answer can be about.
    pub level: Level,
    /// Why it is asked: the rules, or the default.
    pub reasons: Vec<String>,
    /// What the rules want to be asked.
    pub prompts: Vec<String>,
    /// Calls of this tool that were allowed in this run before this one.
    pub allowed_so_far: u32,
    /// What may be said yes to besides this call; none where no grant covers one.
    pub proposal: Option<Proposal>,
    /// How far such a yes may reach.
    pub scopes: Vec<Scope>,
    /// Known from when the question is put.
    pub asker: Option<Arc<Asker>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    AllowOnce,
    /// This and further calls that are like it, so many in all; only this call where no grant
    /// covers one.
    Allow(Terms),
    Refuse,
    /// Nobody was there, or nobody answered in time.
    Unanswered,
    /// Something came back that is no answer to this question.
    Invalid {
        why: String,
    },
}

impl Answer {
    /// This and further calls as they were proposed, `uses_max` in all, in this run.
    #[must_use]
    pub fn up_to(uses_max: NonZeroU32) -> Self {
        Self::Allow(Terms::up_to(uses_max))
    }
}

impl Question {
    /// Binds an answer to what was shown: tool, description, arguments and facts of one call,
    /// and what was proposed besides.
    #[must_use]
    pub fn shown_digest(&self) -> Digest {
        let facts = self.facts.as_ref().map(|facts| json!(facts));
        let proposal = self.proposal.as_ref();
        canonical::digest(&json!({
            "args": self.args.digest().to_string(),
            "call": self.call.0,
            "description": self.description_digest.to_string(),
            "facts": facts,
            "proposal": proposal.map(|it| it.condition.to_string()),
            "tool": self.tool.to_string(),
        }))
    }
}

impl Pending {
    pub(super) fn new(
        call: Call,
        tool: Arc<Tool>,
        consulted: Consulted,
        allowed_so_far: u32,
    ) -> Self {
        let question = Question {
            call: call.id,
            tool: call.tool.clone(),
            description_digest: tool.description_digest,
            args: call.args.clone(),
            site: call.site,
            facts: call.facts.clone(),
            effects: tool.effects,
            level: consulted.level,
            reasons: consulted.reasons,
            prompts: consulted.prompts,
            allowed_so_far,
            proposal: None,
            scopes: Vec::new(),
            asker: None,
        };
        Self {
            call,
            tool,
            question,
        }
    }

    #[must_use]
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// What the human may say yes to besides, as it is when the question is put.
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

    pub(crate) fn call(&self) -> &Call {
        &self.call
    }
}

impl Covered {
    #[must_use]
    pub fn grant(&self) -> &GrantId {
        &self.grant
    }

    #[must_use]
    pub fn question(&self) -> &Question {
        &self.pending.question
    }
}
