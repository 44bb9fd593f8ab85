//! The ledger of a run chain: every call that was allowed to leave in any run of the chain, with the
//! latest state of its outcome.

use std::collections::{BTreeMap, HashMap};

use super::chain::{ChainError, RunChain};
use super::{CallRef, EarlierCall};
use crate::call::Args;
use crate::code::Code;
use crate::id::{Digest, RunId, ServerName, ToolId};
use crate::journal::{
    AnswerWord, Body, DecidedEntry, RunStartedEntry, SettledEntry, Verdict, VerifiedJournal,
};
use crate::report::ReportedOutcome;
use crate::statement::{StatedOutcome, Statement};
use sandbox_protocol::Outcome;

/// The identity of a call: its tool and the digest of its arguments, as journals record it. The
/// description is not part of it, so a changed description never makes a known call look new.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey {
    pub tool: ToolId,
    pub args: Digest,
}

/// What is known about the effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    Returned,
    /// The tool did its work, but its result was invalid or exceeded a limit.
    ResultInvalid,
    /// The call failed or was not sent.
    NotDone,
    Unknown,
}

/// One call of the chain that was allowed to leave.
#[derive(Debug, Clone)]
pub struct LedgerEntry {
    pub at: CallRef,
    pub key: CallKey,
    /// The arguments as they are recorded, after secrets are masked.
    pub args: Option<Args>,
    /// Whether secrets were masked in the recorded arguments. Such a call is never reused, because
    /// different arguments look equal.
    pub is_masked: bool,
    pub description: Option<Digest>,
    pub upstream: Option<Digest>,
    pub target: Option<String>,
    pub state: EntryState,
    pub outcome: ReportedOutcome,
    pub code: Option<Code>,
    /// The outcome as the script got it, if it is recorded whole.
    pub recorded: Option<Outcome>,
    pub payload_digest: Digest,
    pub settled_at_ms: u64,
    /// When the script got the outcome; `None` if it never did.
    pub told: Option<DeliveredAt>,
    /// What a person stated about the call. The last statement counts.
    pub stated: Option<StatedOutcome>,
    /// Whether this was stated after the newest run of the chain had begun.
    pub is_statement_unused: bool,
    /// Whether a later call of the chain repeated this one, and may have happened.
    pub is_superseded: bool,
}

/// The place in the chain at which a script got an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveredAt {
    pub run: usize,
    pub step: u64,
    pub index: usize,
    /// The run's clock, in milliseconds.
    pub now_ms: u64,
}

impl LedgerEntry {
    /// Whether the call may have had its effect.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match (&self.stated, self.state) {
            (Some(StatedOutcome::DidNotHappen), EntryState::Unknown) => false,
            (Some(StatedOutcome::Happened { .. }), _) => true,
            (_, state) => state != EntryState::NotDone,
        }
    }

    /// Whether the outcome is unknown, and no statement settles it.
    #[must_use]
    pub fn is_indeterminate(&self) -> bool {
        self.state == EntryState::Unknown && self.stated.is_none()
    }

    #[must_use]
    pub fn earlier(&self) -> EarlierCall {
        EarlierCall {
            at: self.at.clone(),
            tool: self.key.tool.clone(),
            args: self.args.clone(),
            is_unknown: self.is_indeterminate(),
        }
    }
}

/// All calls of a chain, in the order of its runs and of their calls.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<LedgerEntry>,
    by_ref: HashMap<CallRef, usize>,
    /// Calls that reused an outcome, with the call that it came from.
    reused: HashMap<CallRef, CallRef>,
    /// Calls that were repeated, with the positions of their repeats.
    repeats: Vec<(CallRef, usize)>,
    /// How often people refused a call.
    refusals: BTreeMap<CallKey, u32>,
}

impl Ledger {
    /// Builds the ledger from the journals of a chain, in the order of its runs.
    pub fn new(chain: &RunChain, journals: &[VerifiedJournal]) -> Result<Self, ChainError> {
        if chain.runs().len() != journals.len() {
            return Err(ChainError::JournalCount {
                runs: chain.runs().len(),
                journals: journals.len(),
            });
        }
        let mut ledger = Self::default();
        let mut statements = Vec::new();
        for (number, (run, journal)) in chain.runs().iter().zip(journals).enumerate() {
            let started = check_header(chain, run, journal)?;
            let before = number.checked_sub(1).and_then(|at| journals.get(at));
            let expected = chain.predecessor_of(run).map(|it| it.head);
            if expected.is_some() && before.is_some_and(|it| it.head != expected) {
                return Err(ChainError::WrongPredecessor(run.0.to_string()));
            }
            ledger.add_run((number, run), started, journal);
            // No recorded step shows what a run did with a statement that was made during it. So the
            // newest run is not replayed, as if the statement had been made since.
            let is_newest = number + 1 == journals.len();
            statements.extend(stated_in(journal).map(|it| (it, is_newest)));
            let after = chain.statements().iter();
            let after = after.filter(|it| it.runs == number + 1);
            statements.extend(after.map(|it| (&it.statement, chain.is_unused(it))));
        }
        for (statement, is_unused) in statements {
            ledger.check_statement(statement)?;
            ledger.state(statement, is_unused);
        }
        ledger.supersede();
        Ok(ledger)
    }

    fn add_run(
        &mut self,
        (number, run): (usize, &RunId),
        started: &RunStartedEntry,
        journal: &VerifiedJournal,
    ) {
        let at = |call| CallRef {
            run: run.clone(),
            call,
        };
        for server in &started.same_servers {
            let target = started.servers.iter().find(|it| it.name == *server);
            self.accept_target(server, target.and_then(|it| it.target.as_deref()));
        }
        for line in &journal.lines {
            match &line.body {
                Body::Decided(decided) if decided.decision == Verdict::Allow => {
                    self.add_call(at(decided.call), decided, started);
                }
                Body::Settled(settled) => {
                    if let Some(entry) = self.entry_mut(&at(settled.call)) {
                        settle(entry, settled, line.at_ms);
                    }
                }
                Body::Reused(reused) => {
                    self.reused.insert(at(reused.call), reused.from.clone());
                }
                Body::Answered(answered) if answered.answer == AnswerWord::Refuse => {
                    let decided = journal.decided(answered.call);
                    if let Some(decided) = decided {
                        *self.refusals.entry(key_of(decided)).or_default() += 1;
                    }
                }
                Body::Resumed(resumed) => {
                    for (index, call) in resumed.calls.iter().enumerate() {
                        let told = DeliveredAt {
                            run: number,
                            step: resumed.step,
                            index,
                            now_ms: resumed.now_ms,
                        };
                        if let Some(entry) = self.entry_mut(&at(*call)) {
                            entry.told.get_or_insert(told);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Accepts the server's new target for all earlier calls, because of `--same-server`.
    pub fn accept_target(&mut self, server: &ServerName, target: Option<&str>) {
        let entries = self.entries.iter_mut();
        for entry in entries.filter(|entry| entry.key.tool.server == *server) {
            entry.target = target.map(str::to_owned);
        }
    }

    fn add_call(&mut self, at: CallRef, decided: &DecidedEntry, started: &RunStartedEntry) {
        if let Some(earlier) = &decided.again {
            self.repeats.push((earlier.clone(), self.entries.len()));
        }
        let tool = started.tools.iter().find(|it| it.tool == decided.tool);
        let server = started
            .servers
            .iter()
            .find(|it| it.name == decided.tool.server);
        self.by_ref.insert(at.clone(), self.entries.len());
        self.entries.push(LedgerEntry {
            at,
            key: key_of(decided),
            args: decided.args.clone(),
            is_masked: decided.masked,
            description: decided.description,
            upstream: tool.and_then(|tool| tool.upstream),
            target: server.and_then(|server| server.target.clone()),
            state: EntryState::Unknown,
            outcome: ReportedOutcome::Unknown,
            code: None,
            recorded: None,
            payload_digest: Digest::sha256(b""),
            settled_at_ms: 0,
            told: None,
            stated: None,
            is_statement_unused: false,
            is_superseded: false,
        });
    }

    /// Marks the calls whose repeats may have happened. A repeat that did nothing leaves the earlier
    /// call in force.
    fn supersede(&mut self) {
        for (earlier, repeat) in std::mem::take(&mut self.repeats) {
            let repeat = self.entries.get(repeat);
            if !repeat.is_some_and(LedgerEntry::may_have_happened) {
                continue;
            }
            if let Some(earlier) = self.entry_mut(&earlier) {
                earlier.is_superseded = true;
            }
        }
    }

    fn entry_mut(&mut self, at: &CallRef) -> Option<&mut LedgerEntry> {
        self.entries.get_mut(*self.by_ref.get(at)?)
    }

    /// Returns the entry of a call, or the entry whose outcome the call reused.
    #[must_use]
    pub fn entry(&self, at: &CallRef) -> Option<&LedgerEntry> {
        self.entries.get(self.position(at)?)
    }

    /// Returns the position in [`Ledger::entries`] of the entry that [`Ledger::entry`] returns.
    #[must_use]
    pub fn position(&self, at: &CallRef) -> Option<usize> {
        self.by_ref.get(self.reused.get(at).unwrap_or(at)).copied()
    }

    #[must_use]
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// Returns how often people refused this call.
    #[must_use]
    pub fn refusals(&self, key: &CallKey) -> u32 {
        self.refusals.get(key).copied().unwrap_or_default()
    }

    /// Returns the calls whose outcome is unknown and which no statement of a person settles. Those
    /// that are repeatable do not block; which ones these are depends on the current configuration.
    pub fn unknown(&self) -> impl Iterator<Item = &LedgerEntry> {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.is_indeterminate() && !entry.is_superseded)
    }

    /// Checks that a statement is about a call of the chain and the same arguments, and does not
    /// contradict a recorded outcome.
    pub fn check_statement(&self, statement: &Statement) -> Result<(), ChainError> {
        let at = statement.about.to_string();
        let entry = self.by_ref.get(&statement.about);
        let Some(entry) = entry.and_then(|at| self.entries.get(*at)) else {
            return Err(ChainError::UnknownCall(at));
        };
        if entry.key.args != statement.args_digest {
            return Err(ChainError::OtherArguments(at));
        }
        match (&statement.outcome, entry.state) {
            (_, EntryState::NotDone) => Err(ChainError::KnownOutcome(at, "it did not happen")),
            (StatedOutcome::DidNotHappen, EntryState::Returned | EntryState::ResultInvalid) => {
                Err(ChainError::KnownOutcome(at, "it happened"))
            }
            _ => Ok(()),
        }
    }

    /// Applies a statement that a person makes about an entry while a run resumes the chain.
    pub(super) fn state_at(&mut self, at: usize, outcome: StatedOutcome) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.stated = Some(outcome);
        }
    }

    fn state(&mut self, statement: &Statement, is_unused: bool) {
        if let Some(entry) = self.entry_mut(&statement.about) {
            entry.stated = Some(statement.outcome.clone());
            entry.is_statement_unused = is_unused;
        }
    }
}

/// Faults for the tests of whole chains.
#[cfg(test)]
impl Ledger {
    /// Keeps only some of the entries.
    pub(crate) fn retain(&mut self, keep: impl Fn(&LedgerEntry) -> bool) {
        self.entries.retain(keep);
        self.by_ref.clear();
        for (at, entry) in self.entries.iter().enumerate() {
            self.by_ref.insert(entry.at.clone(), at);
        }
    }

    /// Replaces the arguments in the identities of the first entries.
    pub(crate) fn replace_args(&mut self, digests: impl Iterator<Item = Digest>) {
        for (entry, digest) in self.entries.iter_mut().zip(digests) {
            entry.key.args = digest;
        }
    }
}

fn check_header<'a>(
    chain: &RunChain,
    run: &RunId,
    journal: &'a VerifiedJournal,
) -> Result<&'a RunStartedEntry, ChainError> {
    let started = journal.started();
    let Some(started) = started.filter(|started| started.run == *run) else {
        return Err(ChainError::NoHeader(run.0.to_string()));
    };
    let position = started.chain.as_ref();
    let is_root = position.is_none_or(|it| it.root == *chain.root());
    match is_root && position.map(|it| &it.predecessor) == chain.predecessor_of(run) {
        true => Ok(started),
        false => Err(ChainError::WrongPredecessor(run.0.to_string())),
    }
}

/// Returns the statements that people made during a run.
fn stated_in(journal: &VerifiedJournal) -> impl Iterator<Item = &Statement> {
    let lines = journal.lines.iter();
    lines.filter_map(|line| match &line.body {
        Body::Stated(stated) => Some(&stated.statement),
        _ => None,
    })
}

fn key_of(decided: &DecidedEntry) -> CallKey {
    CallKey {
        tool: decided.tool.clone(),
        args: decided.args_digest,
    }
}

fn settle(entry: &mut LedgerEntry, settled: &SettledEntry, at_ms: u64) {
    entry.outcome = settled.outcome;
    entry.code = settled.code;
    entry.payload_digest = settled.payload_digest;
    entry.settled_at_ms = at_ms;
    entry.recorded = settled.recorded();
    entry.state = match (settled.outcome, settled.code) {
        (ReportedOutcome::Returned, _) => EntryState::Returned,
        (ReportedOutcome::Failed, Some(Code::ResultInvalid | Code::LimitPayload)) => {
            EntryState::ResultInvalid
        }
        (ReportedOutcome::Unknown, _) => EntryState::Unknown,
        _ => EntryState::NotDone,
    };
}
