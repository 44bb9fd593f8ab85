//! Matches the calls of a resumed run with the ledger of its chain. Calls are matched by content:
//! their position in the script and the order in which they ended play no part.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use sandbox_protocol::{Failure, Outcome};

use super::ledger::{CallKey, EntryState, Ledger, LedgerEntry};
use super::{CallRef, EarlierCall};
use crate::catalog::{Tool, ToolOwner};
use crate::code::Code;
use crate::id::ToolId;
use crate::statement::StatedOutcome;

/// Maximum number of earlier calls that are shown beside a doubtful call.
const NEAR_MAX: usize = 8;

/// A call of a step, before any decision.
#[derive(Debug, Clone)]
pub struct StepCall<'a> {
    pub key: CallKey,
    /// Whether the journal masks a secret in the arguments.
    pub is_masked: bool,
    pub tool: &'a Tool,
    /// How the server of the tool is reached now.
    pub target: Option<&'a str>,
}

/// What the ledger says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallMatch {
    /// The recorded outcome of this entry is the outcome of the call.
    Reuse(usize),
    /// The call repeats a repeatable call of the chain.
    Again(usize),
    /// The call must not leave: an earlier one may have had its effect.
    Indeterminate {
        entry: usize,
        why: ReuseBlocker,
    },
    /// The call may be an earlier one with other arguments. A person must be asked.
    Doubtful(Vec<usize>),
    New,
}

/// Why the recorded outcome of an equal call cannot be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseBlocker {
    UnknownOutcome,
    MaskedArguments,
    OtherTarget,
    OtherDescription,
    NotRecorded,
    /// A person stated that the call happened, without a result.
    ResultNotKnown,
}

impl ReuseBlocker {
    /// Returns the reason, as a part of a sentence about the earlier call.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::UnknownOutcome => "its outcome is unknown",
            Self::MaskedArguments => {
                "it happened, and its arguments are recorded with masked secrets"
            }
            Self::OtherTarget => {
                "it happened before the command, address or credentials of its server changed"
            }
            Self::OtherDescription => "it happened, and the description of its tool has changed",
            Self::NotRecorded => "it happened, and its result is not recorded whole",
            Self::ResultNotKnown => "it happened, and its result is not known",
        }
    }

    /// Returns how a person can settle this, as a sentence.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::UnknownOutcome
            | Self::OtherDescription
            | Self::NotRecorded
            | Self::ResultNotKnown => "Only a person can settle this, with `airlock runs resolve`",
            Self::OtherTarget => {
                "Only a person can say that it is the same server, with `--same-server`"
            }
            Self::MaskedArguments => "airlock cannot tell whether this is the same call",
        }
    }
}

/// The entries of the ledger that no call of the run has met yet.
#[derive(Debug)]
pub struct Matcher {
    ledger: Ledger,
    queues: HashMap<CallKey, VecDeque<usize>>,
    /// Entries that no call has met, by tool.
    left: BTreeMap<String, BTreeSet<usize>>,
    reads_max_age_ms: u64,
}

impl Matcher {
    #[must_use]
    pub fn new(ledger: Ledger, reads_max_age_ms: u64) -> Self {
        let mut queues: HashMap<_, VecDeque<usize>> = HashMap::new();
        let mut left: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
        for (at, entry) in ledger.entries().iter().enumerate() {
            if entry.may_have_happened() && !entry.is_superseded {
                queues.entry(entry.key.clone()).or_default().push_back(at);
                let tool = entry.key.tool.to_string();
                left.entry(tool).or_default().insert(at);
            }
        }
        Self {
            ledger,
            queues,
            left,
            reads_max_age_ms,
        }
    }

    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    #[must_use]
    pub fn entry(&self, at: usize) -> Option<&LedgerEntry> {
        self.ledger.entries().get(at)
    }

    /// Matches all calls of a step. Calls with an equal earlier call come first; only then is it
    /// known which earlier calls are left over.
    pub fn match_step(&mut self, calls: &[StepCall<'_>], now_ms: u64) -> Vec<CallMatch> {
        let exact: Vec<_> = calls.iter().map(|call| self.exact(call, now_ms)).collect();
        let rest = |(call, exact): (&StepCall<'_>, Option<CallMatch>)| {
            exact.unwrap_or_else(|| self.without_equal(call))
        };
        calls.iter().zip(exact).map(rest).collect()
    }

    fn exact(&mut self, call: &StepCall<'_>, now_ms: u64) -> Option<CallMatch> {
        if call.tool.owner == ToolOwner::OwnLocal {
            return None;
        }
        let at = *self.queues.get(&call.key)?.front()?;
        let entry = self.ledger.entries().get(at)?;
        let is_repeatable = call.tool.is_repeatable();
        let met = match reuse_blocker(entry, call) {
            None if self.is_outdated(entry, call.tool, now_ms) => CallMatch::Again(at),
            None => CallMatch::Reuse(at),
            Some(_) if is_repeatable => CallMatch::Again(at),
            // The entry stays, so that it blocks all later calls with this key.
            Some(why) => return Some(CallMatch::Indeterminate { entry: at, why }),
        };
        self.take(at);
        Some(met)
    }

    fn is_outdated(&self, entry: &LedgerEntry, tool: &Tool, now_ms: u64) -> bool {
        let age_ms = now_ms.saturating_sub(entry.settled_at_ms);
        tool.is_read() && entry.stated.is_none() && age_ms > self.reads_max_age_ms
    }

    fn without_equal(&self, call: &StepCall<'_>) -> CallMatch {
        let near = self.left.get(&call.key.tool.to_string());
        match near.filter(|near| !near.is_empty() && !call.tool.is_repeatable()) {
            Some(near) => CallMatch::Doubtful(near.iter().take(NEAR_MAX).copied().collect()),
            None => CallMatch::New,
        }
    }

    /// Takes an entry, so that no other call meets it.
    pub fn take(&mut self, at: usize) {
        let Some(entry) = self.ledger.entries().get(at) else {
            return;
        };
        if let Some(queue) = self.queues.get_mut(&entry.key) {
            queue.retain(|it| *it != at);
        }
        if let Some(left) = self.left.get_mut(&entry.key.tool.to_string()) {
            left.remove(&at);
        }
    }

    /// Puts back an entry whose call was denied.
    pub fn put_back(&mut self, at: usize) {
        let Some(entry) = self.ledger.entries().get(at) else {
            return;
        };
        let queue = self.queues.entry(entry.key.clone()).or_default();
        let place = queue.partition_point(|it| *it < at);
        queue.insert(place, at);
        let tool = entry.key.tool.to_string();
        self.left.entry(tool).or_default().insert(at);
    }

    /// Applies a person's statement about an entry. A call that did not happen is met by no call.
    pub fn state_call(&mut self, call: &CallRef, outcome: StatedOutcome) {
        let Some(at) = self.ledger.position(call) else {
            return;
        };
        if outcome == StatedOutcome::DidNotHappen {
            self.take(at);
        }
        self.ledger.state_at(at, outcome);
    }

    /// Returns the calls of the chain that may have happened and that the script did not make.
    pub fn left_over(&self) -> impl Iterator<Item = &LedgerEntry> {
        let left: BTreeSet<usize> = self.left.values().flatten().copied().collect();
        left.into_iter().filter_map(|at| self.entry(at))
    }

    #[must_use]
    pub fn earlier(&self, near: &[usize]) -> Vec<EarlierCall> {
        let entries = near.iter().filter_map(|at| self.entry(*at));
        entries.map(LedgerEntry::earlier).collect()
    }
}

fn reuse_blocker(entry: &LedgerEntry, call: &StepCall<'_>) -> Option<ReuseBlocker> {
    let is_stated = matches!(entry.stated, Some(StatedOutcome::Happened { .. }));
    if entry.state == EntryState::Unknown && !is_stated {
        return Some(ReuseBlocker::UnknownOutcome);
    }
    if entry.is_masked || call.is_masked {
        return Some(ReuseBlocker::MaskedArguments);
    }
    if entry.target.as_deref() != call.target {
        return Some(ReuseBlocker::OtherTarget);
    }
    // A stated result is compared with the output schema of now instead.
    if is_stated {
        return None;
    }
    if !has_same_description(entry, call.tool) {
        return Some(ReuseBlocker::OtherDescription);
    }
    match entry.recorded {
        Some(_) => None,
        None => Some(ReuseBlocker::NotRecorded),
    }
}

/// Whether the tool of a recorded call has the same description now, at airlock and at its server.
#[must_use]
pub fn has_same_description(entry: &LedgerEntry, tool: &Tool) -> bool {
    entry.description == Some(tool.description_digest)
        && entry.upstream == Some(tool.upstream_digest)
}

/// Returns the outcome that a script gets for a reused call.
#[must_use]
pub fn reused_outcome(entry: &LedgerEntry) -> Outcome {
    match (&entry.stated, &entry.recorded) {
        (Some(StatedOutcome::Happened { result: Some(text) }), _) => {
            Outcome::Value(text.clone().into_bytes())
        }
        (_, Some(outcome)) if entry.state != EntryState::Unknown => outcome.clone(),
        _ => not_known(entry),
    }
}

/// Returns the outcome of a call that happened and whose result is not known.
#[must_use]
pub fn not_known(entry: &LedgerEntry) -> Outcome {
    result_not_known(&entry.key.tool)
}

/// Returns the outcome of a call of a tool that happened and whose result is not known.
#[must_use]
pub fn result_not_known(tool: &ToolId) -> Outcome {
    Outcome::Failure(Failure {
        code: Code::ResultInvalid.as_str().into(),
        tool: tool.to_string(),
        message: format!("the call to `{tool}` happened, but its result is not known"),
        retryable: false,
        content: Vec::new(),
        structured_content: Vec::new(),
    })
}
