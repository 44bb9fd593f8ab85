//! Deletes the journals of old run chains. A chain is deleted as a whole, and never while a process
//! or a person may still need it.

use std::time::Duration;

use airlock_core::id::{Digest, RunId};
use airlock_core::journal::JournalLine;

use crate::private_file::StateDir;
use crate::run_chain::{ChainReader, NewestRuns, ResumeError, StoredChain};
use crate::run_index::{PublicKey, SignedHead};

/// What happened to the chains that are old enough, or whose file cannot be used.
#[derive(Debug, Default)]
pub(crate) struct PruneReport {
    /// The runs whose journals were deleted, or would be.
    pub(crate) deleted: Vec<RunId>,
    /// The chains that were kept, and why: by their newest run, or by their first run if the chain file
    /// cannot be used.
    pub(crate) kept: Vec<(RunId, String)>,
}

/// Which chains are deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneRule {
    /// Chains that were used within this time are kept.
    pub(crate) keep: Duration,
    /// Whether chains are deleted that hold a run without a signature of this state directory.
    pub(crate) unsigned: bool,
    /// Whether the chains are only listed.
    pub(crate) dry_run: bool,
}

struct Pruner<'a> {
    state: &'a StateDir,
    reader: ChainReader<'a>,
    /// The key of the state directory, if it has one.
    key: Option<PublicKey>,
    /// Chains that were used at this time or later are kept.
    before_ms: u64,
    now_ms: u64,
    rule: PruneRule,
}

/// Deletes the chains that were last used longer ago than this: no run wrote anything, and no person
/// stated or answered anything. Also finishes deletions that were interrupted.
pub(crate) fn prune(
    state: &StateDir,
    rule: PruneRule,
    now_ms: u64,
) -> Result<PruneReport, ResumeError> {
    let keep_ms = u64::try_from(rule.keep.as_millis()).unwrap_or(u64::MAX);
    let found = NewestRuns::find(state)?;
    let pruner = Pruner {
        state,
        reader: ChainReader::new(state)?,
        key: state.existing_public_key()?,
        before_ms: now_ms.saturating_sub(keep_ms),
        now_ms,
        rule,
    };
    let damaged = found.damaged.into_iter();
    let mut pruned = PruneReport {
        deleted: Vec::new(),
        kept: damaged
            .map(|(root, error)| (root, error.to_string()))
            .collect(),
    };
    for newest in found.runs {
        if last_written_ms(state, &newest).is_none_or(|at_ms| at_ms >= pruner.before_ms) {
            continue;
        }
        match pruner.prune_chain(&newest) {
            Ok(Ok(runs)) => pruned.deleted.extend(runs),
            Ok(Err(why)) => pruned.kept.push((newest, why)),
            Err(error) => pruned.kept.push((newest, error.to_string())),
        }
    }
    pruned.deleted.extend(pruner.finish()?);
    Ok(pruned)
}

impl Pruner<'_> {
    /// Deletes the journals of a chain, or returns why they are kept.
    fn prune_chain(&self, newest: &RunId) -> Result<Result<Vec<RunId>, String>, ResumeError> {
        let stored = self.reader.read(newest)?;
        // The age of this run was checked, and not the age of one that resumed it since.
        if stored.chain.newest() != newest {
            return Ok(Err("it was resumed meanwhile".into()));
        }
        let file = self.state.chain(stored.chain.root());
        if file
            .last_recorded_ms()?
            .is_some_and(|at_ms| at_ms >= self.before_ms)
        {
            return Ok(Ok(Vec::new()));
        }
        if stored
            .journals
            .last()
            .is_some_and(|it| it.suspended().is_some())
        {
            return Ok(Err("it waits for a person".into()));
        }
        if let Some(at) = stored.indeterminate()?.first() {
            return Ok(Err(format!(
                "the outcome of call {at} is unknown; see `airlock runs resolve`"
            )));
        }
        let unsigned = match self.rule.unsigned {
            true => None,
            false => self.unsigned(&stored)?,
        };
        if let Some(run) = unsigned {
            return Ok(Err(format!(
                "the end of run {} is not signed with the key of this state directory; `airlock runs \
                 verify` checks it, and `airlock runs prune --unsigned` deletes it",
                run.0
            )));
        }
        let runs = stored.chain.runs().to_vec();
        if self.rule.dry_run {
            return Ok(Ok(runs));
        }
        let heads = stored.journals.iter().map(|journal| journal.head);
        let heads = runs.iter().cloned().zip(heads);
        let heads: Vec<(RunId, Digest)> =
            heads.filter_map(|(run, head)| Some((run, head?))).collect();
        file.delete::<ResumeError>(&stored.chain, || {
            Ok(self.state.note_pruned(&heads, self.now_ms)?)
        })?;
        Ok(Ok(runs))
    }

    /// Returns the first run of a chain that has ended, and whose end is not signed with the key of
    /// the state directory. With its journal, the evidence would be lost.
    fn unsigned<'s>(&self, stored: &'s StoredChain) -> Result<Option<&'s RunId>, ResumeError> {
        for (run, journal) in stored.chain.runs().iter().zip(&stored.journals) {
            let is_own = |head: &SignedHead| {
                Some(head.head) == journal.head && Some(&head.key) == self.key.as_ref()
            };
            // Earlier versions did not sign the ends of suspended runs.
            let is_unsigned = match self.reader.signed_head(run)? {
                Some(head) => !is_own(head),
                None => journal.ended().is_some(),
            };
            if is_unsigned {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// Deletes what is left of chains whose deletion was recorded and then interrupted. Returns the
    /// runs whose journals were left.
    fn finish(&self) -> Result<Vec<RunId>, ResumeError> {
        let noted = self.state.pruned_runs()?;
        let is_noted = |run: &RunId| {
            let noted = noted.get(run);
            noted.is_some_and(|it| Some(&it.key) == self.key.as_ref())
        };
        let mut deleted = Vec::new();
        for root in self.state.chain_roots()? {
            let file = self.state.chain(&root);
            let Ok(chain) = file.load() else { continue };
            let exists = |run: &RunId| self.state.journal_path(run).exists();
            if exists(chain.newest()) || !chain.runs().iter().all(is_noted) {
                continue;
            }
            let left = chain.runs().iter().filter(|run| exists(run));
            deleted.extend(left.cloned());
            if !self.rule.dry_run {
                file.delete::<ResumeError>(&chain, || Ok(()))?;
            }
        }
        Ok(deleted)
    }
}

/// Returns the time of the last entry of a journal.
fn last_written_ms(state: &StateDir, run: &RunId) -> Option<u64> {
    let ends = state.ends(run).ok()?;
    let line = serde_json::from_slice::<JournalLine>(&ends.last)
        .or_else(|_| serde_json::from_slice::<JournalLine>(&ends.first));
    line.ok().map(|line| line.at_ms)
}
