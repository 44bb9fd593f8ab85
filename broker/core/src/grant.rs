//! A grant is a human's approval of several calls under fixed conditions. A grant only changes
//! "ask" to "allow", and each allowed call consumes one use. Calls that are denied, or that need an
//! answer for each call, are not affected.
//!
//! This module counts the uses of grants for one run. The shell stores the grants that several runs
//! share and counts their uses; this module only knows their terms.

mod condition;
mod folder;
mod proposal;

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::catalog::Tool;
use crate::id::{Digest, GrantId, RunId, ToolId};
use crate::labels::Labels;

pub use condition::{BadCondition, Condition, FIELDS_MAX, FieldValue, field_text};
use proposal::AskedCalls;
pub use proposal::Proposal;
pub(crate) use proposal::ScriptAndInput;

/// Maximum number of open grants per tool in one run. At this limit, an answer only allows the call
/// that was asked about.
const OPEN_MAX: usize = 256;
const HOUR_MS: u64 = 3_600_000;

/// The runs that a grant is valid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One run; the grant ends with it.
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

    /// Returns how long a grant lasts by default, in milliseconds.
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

/// The terms of an approval of more than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub uses_max: NonZeroU32,
    pub scope: Scope,
    /// Which arguments are covered; `None` means the proposed condition.
    pub condition: Option<Condition>,
    /// Duration in milliseconds; `None` means the default of the scope.
    pub lasts_ms: Option<u64>,
}

impl Terms {
    /// Returns the proposed condition and the default duration, for this run.
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
    /// The script the grant is bound to; `None` means any script. No question offers `None`; only a
    /// grant file can contain it.
    pub script: Option<Digest>,
    pub policy: Digest,
    pub condition: Condition,
    pub uses_max: NonZeroU32,
    pub uses: u32,
    pub given_at_ms: u64,
    pub expires_at_ms: u64,
    /// Labels that a run may have when it uses the grant.
    pub labels: Labels,
    /// Digest of the question that the approver was shown.
    pub shown: Digest,
    /// Who gave the grant: the approver, or the person that a grant file names.
    pub by: String,
}

/// The use of a grant that allowed a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub grant: GrantId,
    pub number: u32,
    pub uses_max: NonZeroU32,
    pub expires_at_ms: u64,
}

/// The properties of a run that decide which grants apply to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub run: RunId,
    pub script: Digest,
    pub policy: Digest,
    /// The approver that answers the questions of this run.
    pub approver: String,
    /// The scopes, in addition to the run itself, for which a grant may be given.
    pub scopes: Vec<Scope>,
}

/// The grants that a run starts with, and its approver.
#[derive(Debug, Clone, Default)]
pub struct GrantSpec {
    /// The approver that answers the run's questions.
    pub approver: String,
    /// The scopes, in addition to the run itself, for which grants are stored.
    pub scopes: Vec<Scope>,
    /// Grants from files, and grants of the run's session and project.
    pub grants: Vec<Grant>,
}

/// A grant that matches a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantMatch {
    /// A grant of this run only; the use is already consumed.
    Used(Use),
    /// A grant that other runs share; a use must be claimed first.
    Shared(GrantId),
}

/// The grants that one run may use, the calls it was asked about, and how often each tool was
/// allowed.
#[derive(Debug)]
pub struct Grants {
    binding: Binding,
    now_ms: u64,
    given: u32,
    /// Grants by tool, in the order in which they were given.
    open: HashMap<ToolId, Vec<Grant>>,
    /// Grants that were given and are not recorded yet.
    fresh: Vec<Grant>,
    allowed: HashMap<ToolId, u32>,
    seen: HashMap<ToolId, AskedCalls>,
}

impl Grant {
    /// Returns why this grant does not apply to a run with these rules and a tool with this
    /// description.
    #[must_use]
    pub fn void(&self, binding: &Binding, description: Option<Digest>) -> Option<&'static str> {
        if self.policy != binding.policy {
            return Some("the rules changed after the grant was given");
        }
        if self.script.is_some_and(|script| script != binding.script) {
            return Some("the grant was given for another script");
        }
        match description {
            None => Some("the grant's tool is not known in this run"),
            Some(digest) if digest != self.description => {
                Some("the description of the grant's tool has changed")
            }
            Some(_) => None,
        }
    }

    /// Returns why the grant cannot allow any more calls at this time, or `None` if it can.
    #[must_use]
    pub fn spent(&self, now_ms: u64) -> Option<&'static str> {
        if self.uses >= self.uses_max.get() {
            Some("the grant is used up")
        } else if now_ms >= self.expires_at_ms {
            Some("the grant has expired")
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

    /// Sets the host's time.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Adds a grant that was given before the run, or returns why the grant does not apply.
    pub fn admit(&mut self, grant: Grant, tool: Option<&Tool>) -> Result<(), &'static str> {
        let description = tool.map(|tool| tool.description_digest);
        let why = grant.void(&self.binding, description);
        if let Some(why) = why.or_else(|| grant.spent(self.now_ms)) {
            return Err(why);
        }
        self.open.entry(grant.tool.clone()).or_default().push(grant);
        Ok(())
    }

    /// Adds a grant with these terms, and returns it. Returns `None` if the terms do not cover the
    /// call that was asked about, or if too many grants are open.
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
        // If grants of this scope are not stored, the grant is for this run only.
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
            // The approval includes the labels that the covered calls themselves add.
            labels: labels_of(call).joined(&tool.labelling.reads),
            shown,
            by: self.binding.approver.clone(),
        };
        self.fresh.push(grant.clone());
        open.push(grant);
        open.last()
    }

    /// Returns the grants that were given since the last call of this function.
    pub(crate) fn take_fresh(&mut self) -> Vec<Grant> {
        std::mem::take(&mut self.fresh)
    }

    /// Takes one use of the first grant that covers this call. Returns `None` if no grant covers
    /// it.
    pub(crate) fn consume(&mut self, call: &Call) -> Option<GrantMatch> {
        let now_ms = self.now_ms;
        let grants = self.open.get_mut(&call.tool)?;
        grants.retain(|grant| grant.spent(now_ms).is_none());
        let at = grants.iter().position(|grant| grant.covers(call, now_ms))?;
        let grant = grants.get_mut(at)?;
        if grant.scope != Scope::Run {
            return Some(GrantMatch::Shared(grant.id.clone()));
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
        Some(GrantMatch::Used(used))
    }

    /// Removes a grant of which this run can claim no more uses.
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

    /// Whether all grants are used up.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns how many calls of this tool have been allowed in this run.
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

    /// Removes a call from the count, because it was allowed but not sent in time.
    pub(crate) fn note_lapsed(&mut self, tool: &ToolId) {
        if let Some(count) = self.allowed.get_mut(tool) {
            *count = count.saturating_sub(1);
        }
    }

    /// Records a call about which the approver will be asked and which a grant can cover.
    pub(crate) fn note_asked(&mut self, call: &Call) {
        let labels = labels_of(call);
        match self.seen.get_mut(&call.tool) {
            Some(seen) => seen.add(&call.args, &labels),
            None => {
                let seen = AskedCalls::first(&call.args, labels);
                self.seen.insert(call.tool.clone(), seen);
            }
        }
    }

    /// Returns a grant that would have covered the calls of the tool that were asked about. The
    /// grant has not been given; `calls` becomes its number of uses.
    pub(crate) fn needed(
        &self,
        tool: &Tool,
        calls: NonZeroU32,
        run: ScriptAndInput<'_>,
    ) -> Option<Grant> {
        let seen = self.seen.get(&tool.id)?;
        let proposal = seen.proposal(calls.get(), run)?;
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
            shown: Digest::sha256(b""),
            by: String::new(),
        })
    }

    /// Returns the grant to propose; `waiting` is the number of calls of the tool that wait for an
    /// answer.
    pub(crate) fn proposal(
        &self,
        tool: &ToolId,
        waiting: u32,
        run: ScriptAndInput<'_>,
    ) -> Option<Proposal> {
        self.seen.get(tool)?.proposal(waiting, run)
    }
}

/// Returns the labels of a call. Without facts the labels are unknown, so the worst labels are
/// assumed.
fn labels_of(call: &Call) -> Labels {
    let facts = call.facts.as_deref();
    facts.map_or_else(Labels::worst, |facts| facts.labels.clone())
}

/// Writes the use as a reason of a decision.
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
