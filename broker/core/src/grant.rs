//! A human's yes to more than one call, and what it is bound to. A grant lifts
//! "ask" to "allow", and nothing else: what asks for each call, and what is
//! denied, stays so. A use is consumed in the same act that allows a call.
//!
//! Grants of one run are counted here. Those that several runs share are
//! counted where the shell keeps them, and here only known.

mod condition;
mod proposal;

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::catalog::Tool;
use crate::flow::Labels;
use crate::id::{Digest, GrantId, RunId, ToolId};

pub use condition::{BadCondition, Condition, FIELDS_MAX, Same};
pub use proposal::Proposal;
use proposal::Seen;

/// Of one tool at one time in one run; a further one is used for its first call alone.
const OPEN_MAX: usize = 256;
const HOUR_MS: u64 = 3_600_000;

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One run; gone with it.
    Run,
    /// All runs of one session.
    Session,
    /// All runs in one folder.
    Project,
}

impl Scope {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Session => "session",
            Self::Project => "project",
        }
    }

    /// How long a grant lasts when nobody says otherwise.
    #[must_use]
    pub const fn lasts_ms(self) -> u64 {
        match self {
            Self::Run => HOUR_MS,
            Self::Session => 12 * HOUR_MS,
            Self::Project => 30 * 24 * HOUR_MS,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What somebody said yes to, when it was more than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub uses_max: NonZeroU32,
    pub scope: Scope,
    /// None stands for what was proposed.
    pub condition: Option<Condition>,
    /// None stands for what is usual of the scope.
    pub lasts_ms: Option<u64>,
}

impl Terms {
    /// As proposed, in this run.
    #[must_use]
    pub fn up_to(uses_max: NonZeroU32) -> Self {
        Self {
            uses_max,
            scope: Scope::Run,
            condition: None,
            lasts_ms: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    pub id: GrantId,
    pub scope: Scope,
    pub tool: ToolId,
    pub description: Digest,
    /// None: whatever the script is. Nobody is offered that; it can be written by hand.
    pub script: Option<Digest>,
    pub policy: Digest,
    pub condition: Condition,
    pub uses_max: NonZeroU32,
    pub uses: u32,
    pub given_at_ms: u64,
    pub expires_at_ms: u64,
    /// What a run may carry when it uses the grant.
    pub labels: Labels,
    /// Digest of what was said yes to.
    pub shown: Digest,
    /// Who said yes, and by which way.
    pub by: String,
}

/// Which use of which grant allowed a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub grant: GrantId,
    pub number: u32,
    pub uses_max: NonZeroU32,
    pub expires_at_ms: u64,
}

/// What grants are held against: the run that wants to use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub run: RunId,
    pub script: Digest,
    pub policy: Digest,
    /// Who answers questions of this run.
    pub approver: String,
    /// Besides the run itself: what a grant may be given for.
    pub scopes: Vec<Scope>,
}

/// What a run knows of grants when it starts.
#[derive(Debug, Clone, Default)]
pub struct GrantSpec {
    /// Who answers the run's questions.
    pub approver: String,
    /// What grants are kept for besides the run itself.
    pub scopes: Vec<Scope>,
    /// From files, and those that the run's session and project have.
    pub grants: Vec<Grant>,
}

/// What a call finds among the grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// One of the run's own, and its use is consumed.
    Used(Use),
    /// One that other runs share: its use has to be claimed first.
    Shared(GrantId),
}

/// The grants that one run may use, what it was asked about, and how often each tool was
/// allowed in it.
#[derive(Debug)]
pub struct Grants {
    binding: Binding,
    now_ms: u64,
    given: u32,
    /// In the order in which they were given.
    open: HashMap<ToolId, Vec<Grant>>,
    /// Given, and not recorded yet.
    fresh: Vec<Grant>,
    allowed: HashMap<ToolId, u32>,
    seen: HashMap<ToolId, Seen>,
}

impl Grant {
    /// Why this grant is none for a run with these rules and a tool with this description.
    #[must_use]
    pub fn void(&self, binding: &Binding, description: Option<Digest>) -> Option<&'static str> {
        if self.policy != binding.policy {
            return Some("the rules are others than those it was given under");
        }
        if self.script.is_some_and(|script| script != binding.script) {
            return Some("it was given for another script");
        }
        match description {
            None => Some("its tool is not known in this run"),
            Some(digest) if digest != self.description => {
                Some("the description of its tool has changed")
            }
            Some(_) => None,
        }
    }

    /// Why it allows nothing at this time, whatever is called.
    #[must_use]
    pub fn spent(&self, now_ms: u64) -> Option<&'static str> {
        if self.uses >= self.uses_max.get() {
            Some("it is used up")
        } else if now_ms >= self.expires_at_ms {
            Some("it has expired")
        } else {
            None
        }
    }

    fn covers(&self, call: &Call, now_ms: u64) -> bool {
        self.spent(now_ms).is_none()
            && labels_of(call).is_within(&self.labels)
            && self.condition.covers(call.args.value())
    }
}

impl Grants {
    #[must_use]
    pub fn new(binding: Binding, now_ms: u64) -> Self {
        Self {
            binding,
            now_ms,
            given: 0,
            open: HashMap::new(),
            fresh: Vec::new(),
            allowed: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    #[must_use]
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The host's time, from now on.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// A grant that is older than the run; says why it is none here.
    pub fn admit(&mut self, grant: Grant, tool: Option<&Tool>) -> Result<(), &'static str> {
        let description = tool.map(|tool| tool.description_digest);
        let why = grant.void(&self.binding, description);
        if let Some(why) = why.or_else(|| grant.spent(self.now_ms)) {
            return Err(why);
        }
        self.open.entry(grant.tool.clone()).or_default().push(grant);
        Ok(())
    }

    /// None when the terms do not fit the call that was asked about.
    pub(crate) fn give(
        &mut self,
        call: &Call,
        tool: &Tool,
        proposed: &Condition,
        terms: Terms,
        shown: Digest,
    ) -> Option<&Grant> {
        let condition = terms.condition.unwrap_or_else(|| proposed.clone());
        let open = self.open.entry(tool.id.clone()).or_default();
        if !condition.covers(call.args.value()) || open.len() >= OPEN_MAX {
            return None;
        }
        self.given = self.given.saturating_add(1);
        // What nobody keeps for other runs is for this one alone.
        let is_kept = self.binding.scopes.contains(&terms.scope);
        let scope = if is_kept { terms.scope } else { Scope::Run };
        let id = match scope {
            Scope::Run => GrantId(self.given.to_string().into()),
            _ => GrantId(format!("{}.{}", self.binding.run.0, self.given).into()),
        };
        let lasts_ms = terms.lasts_ms.unwrap_or(scope.lasts_ms());
        let grant = Grant {
            id,
            scope,
            tool: tool.id.clone(),
            description: tool.description_digest,
            script: Some(self.binding.script),
            policy: self.binding.policy,
            condition,
            uses_max: terms.uses_max,
            uses: 0,
            given_at_ms: self.now_ms,
            expires_at_ms: self.now_ms.saturating_add(lasts_ms),
            // What the calls themselves bring back is part of what was said yes to.
            labels: labels_of(call).joined(&tool.labelling.reads),
            shown,
            by: self.binding.approver.clone(),
        };
        self.fresh.push(grant.clone());
        open.push(grant);
        open.last()
    }

    /// What was given since this was called last.
    pub(crate) fn take_fresh(&mut self) -> Vec<Grant> {
        std::mem::take(&mut self.fresh)
    }

    /// Takes one use of the first grant that covers this call.
    pub(crate) fn consume(&mut self, call: &Call) -> Option<Found> {
        let now_ms = self.now_ms;
        let grants = self.open.get_mut(&call.tool)?;
        grants.retain(|grant| grant.spent(now_ms).is_none());
        let at = grants.iter().position(|grant| grant.covers(call, now_ms))?;
        let grant = grants.get_mut(at)?;
        if grant.scope != Scope::Run {
            return Some(Found::Shared(grant.id.clone()));
        }
        grant.uses += 1;
        let used = Use {
            grant: grant.id.clone(),
            number: grant.uses,
            uses_max: grant.uses_max,
            expires_at_ms: grant.expires_at_ms,
        };
        if grant.uses >= grant.uses_max.get() {
            grants.remove(at);
        }
        if grants.is_empty() {
            self.open.remove(&call.tool);
        }
        Some(Found::Used(used))
    }

    /// It gives no more uses to this run.
    pub(crate) fn close(&mut self, tool: &ToolId, grant: &GrantId) {
        if let Some(open) = self.open.get_mut(tool) {
            open.retain(|it| it.id != *grant);
            if open.is_empty() {
                self.open.remove(tool);
            }
        }
    }

    #[must_use]
    pub(crate) fn covers(&self, call: &Call) -> bool {
        let grants = self.open.get(&call.tool).into_iter().flatten();
        grants
            .into_iter()
            .any(|grant| grant.covers(call, self.now_ms))
    }

    /// Whether no grant has uses left.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.open.is_empty()
    }

    /// How many calls of this tool have been allowed in this run.
    #[must_use]
    pub fn allowed_so_far(&self, tool: &ToolId) -> u32 {
        self.allowed.get(tool).copied().unwrap_or(0)
    }

    pub(crate) fn note_allowed(&mut self, tool: &ToolId) {
        match self.allowed.get_mut(tool) {
            Some(count) => *count = count.saturating_add(1),
            None => {
                self.allowed.insert(tool.clone(), 1);
            }
        }
    }

    /// It was allowed, and did not leave in time.
    pub(crate) fn note_lapsed(&mut self, tool: &ToolId) {
        if let Some(count) = self.allowed.get_mut(tool) {
            *count = count.saturating_sub(1);
        }
    }

    /// A call that a grant could have covered is about to be asked about.
    pub(crate) fn note_asked(&mut self, call: &Call) {
        let labels = labels_of(call);
        match self.seen.get_mut(&call.tool) {
            Some(seen) => seen.add(&call.args, &labels),
            None => {
                let seen = Seen::first(&call.args, labels);
                self.seen.insert(call.tool.clone(), seen);
            }
        }
    }

    /// The grant, given by nobody yet, that would have covered so many calls of this tool that
    /// were asked about.
    pub(crate) fn needed(&self, tool: &Tool, calls: NonZeroU32, script: &str) -> Option<Grant> {
        let seen = self.seen.get(&tool.id)?;
        let proposal = seen.proposal(calls.get(), script)?;
        Some(Grant {
            id: GrantId("".into()),
            scope: Scope::Run,
            tool: tool.id.clone(),
            description: tool.description_digest,
            script: Some(self.binding.script),
            policy: self.binding.policy,
            condition: proposal.condition,
            uses_max: calls,
            uses: 0,
            given_at_ms: self.now_ms,
            expires_at_ms: self.now_ms.saturating_add(Scope::Project.lasts_ms()),
            labels: seen.labels().clone().joined(&tool.labelling.reads),
            shown: Digest::of(b""),
            by: String::new(),
        })
    }

    /// `waiting`: how many calls of the tool wait for an answer.
    pub(crate) fn proposal(&self, tool: &ToolId, waiting: u32, script: &str) -> Option<Proposal> {
        self.seen.get(tool)?.proposal(waiting, script)
    }
}

/// Where nothing computes facts nobody said what the tools read, and that means the worst.
fn labels_of(call: &Call) -> Labels {
    let facts = call.facts.as_deref();
    facts.map_or_else(Labels::worst, |facts| facts.labels.clone())
}

/// As a reason of a decision has it.
impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            grant,
            number,
            uses_max,
            ..
        } = self;
        write!(f, "grant {grant}, use {number} of {uses_max}")
    }
}

#[cfg(test)]
mod tests;
