//! Reads the journals of a run chain, and refuses a chain that cannot be resumed.

use std::collections::{BTreeSet, HashMap};

use airlock_core::id::RunId;
use airlock_core::journal::{
    self, Body, JournalLine, RunStartedEntry, StartedTool, VerifiedJournal,
};
use airlock_core::problem::Problem;
use airlock_core::report::Status;
use airlock_core::resume::CallRef;
use airlock_core::resume::chain::{ChainError, ChainRecord, RunChain};
use airlock_core::resume::ledger::{Ledger, LedgerEntry};
use airlock_core::resume::plan::CannotResume;
use airlock_core::statement::UnusableResult;

use crate::chain_file::ChainFileError;
use crate::journal_file::JournalError;
use crate::parallel::side_by_side;
use crate::private_file::StateDir;
use crate::run_index::{IndexError, PublicKey, RunIndex, SignedHead};

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("the journal of run {run} does not verify: {why}")]
    Broken { run: String, why: String },
    #[error(transparent)]
    File(#[from] ChainFileError),
    #[error(transparent)]
    Plan(#[from] CannotResume),
    #[error("the {what} of run {run} is not recorded as the run got it: {why}")]
    NotRecorded {
        what: &'static str,
        run: String,
        why: &'static str,
    },
    #[error(transparent)]
    UnusableResult(#[from] UnusableResult),
}

impl From<ChainError> for ResumeError {
    fn from(error: ChainError) -> Self {
        Self::File(error.into())
    }
}

/// A chain with the verified journals of its runs, in order.
#[derive(Debug)]
pub(crate) struct StoredChain {
    pub(crate) chain: RunChain,
    pub(crate) journals: Vec<VerifiedJournal>,
}

/// Reads run chains. It reads the index and the headers of the journals once, for any number of
/// chains.
#[derive(Debug)]
pub(crate) struct ChainReader<'a> {
    state: &'a StateDir,
    index: RunIndex,
    /// By the first run of a chain: the newest run whose journal names the chain.
    newest_members: HashMap<RunId, RunId>,
}

impl<'a> ChainReader<'a> {
    /// Prepares to read all chains.
    pub(crate) fn new(state: &'a StateDir) -> Result<Self, ResumeError> {
        Self::after(state, None)
    }

    /// Prepares to read chains of which no run is newer than this one.
    fn after(state: &'a StateDir, newest: Option<&RunId>) -> Result<Self, ResumeError> {
        let mut newest_members = HashMap::new();
        // Ids of runs begin with the time, and the list begins with the newest run.
        let runs = state.all_runs()?.into_iter();
        for run in runs.take_while(|run| newest.is_none_or(|newest| run > newest)) {
            if let Some(root) = state.chain_root(&run) {
                newest_members.entry(root).or_insert(run);
            }
        }
        Ok(Self {
            state,
            index: RunIndex::read(&state.index_path())?,
            newest_members,
        })
    }

    /// Reads the chain of a run. Refuses a chain whose newest run is still running, because its
    /// journal is not complete.
    pub(crate) fn read(&self, run: &RunId) -> Result<StoredChain, ResumeError> {
        self.journals(self.state.ended_chain(run)?)
    }

    /// Checks that the file of a chain is intact, that these keys have signed it, and that it agrees
    /// with the journals of its runs. If a process writes the newest journal, the journals are not
    /// compared.
    pub(crate) fn check(&self, root: &RunId, keys: &[PublicKey]) -> Result<(), ResumeError> {
        let chain = self.state.chain(root).load_signed_with(keys)?;
        let has_records = chain.records() > 0;
        match has_records && !self.state.is_running(chain.newest()) {
            true => self.journals(chain)?.check_records(),
            false => self.check_newest(&chain),
        }
    }

    /// Refuses a chain whose file lost its last records: a journal names the chain, and its run is
    /// newer than the runs in the file.
    fn check_newest(&self, chain: &RunChain) -> Result<(), ResumeError> {
        let newest = self.newest_members.get(chain.root());
        match newest.filter(|run| *run > chain.newest()) {
            Some(run) => Err(ResumeError::Broken {
                run: run.0.to_string(),
                why: format!("the file of the chain {} does not name it", chain.root().0),
            }),
            None => Ok(()),
        }
    }

    /// Returns the first runs of all chains that have a file, or that a journal names.
    pub(crate) fn roots(&self) -> Result<BTreeSet<RunId>, ResumeError> {
        let mut roots: BTreeSet<RunId> = self.newest_members.keys().cloned().collect();
        roots.extend(self.state.chain_roots()?);
        Ok(roots)
    }

    /// Returns the signed head of a run.
    pub(crate) fn signed_head(&self, run: &RunId) -> Result<Option<&SignedHead>, ResumeError> {
        Ok(self.index.of_run(run)?)
    }

    /// Returns the runs that may wait for a person and whose journal is missing, although airlock did
    /// not delete it: newest runs of chains, and runs whose signed end does not say that they are done.
    pub(crate) fn lost(&self) -> Result<BTreeSet<RunId>, ResumeError> {
        let (mut lost, mut resumed) = (BTreeSet::new(), BTreeSet::new());
        for root in self.state.chain_roots()? {
            let Ok(chain) = self.state.chain(&root).load() else {
                continue;
            };
            lost.insert(chain.newest().clone());
            let members = chain.runs().iter();
            resumed.extend(members.filter(|run| *run != chain.newest()).cloned());
        }
        let indexed = self.index.runs();
        lost.extend(indexed.filter(|run| !resumed.contains(*run)).cloned());
        let (pruned, key) = (self.state.pruned_runs()?, self.state.existing_public_key()?);
        // A run may have begun since the chains were read.
        let present: BTreeSet<RunId> = self.state.all_runs()?.into_iter().collect();
        let mut may_wait = BTreeSet::new();
        for run in lost.difference(&present) {
            let head = self.index.of_run(run)?;
            // The key may have been replaced after the run was deleted.
            let is_pruned = pruned.get(run).zip(head).is_some_and(|(it, head)| {
                (Some(it.key) == key || it.key == head.key) && head.head == it.head
            });
            let is_done = head.is_some_and(|head| head.status == Status::Done);
            if !is_pruned && !is_done {
                may_wait.insert(run.clone());
            }
        }
        Ok(may_wait)
    }

    fn journals(&self, chain: RunChain) -> Result<StoredChain, ResumeError> {
        self.check_newest(&chain)?;
        let journal = |run: &RunId| {
            let journal = self.state.verified(run)?;
            check_signed(&self.index, run, &journal)?;
            Ok(journal)
        };
        // Most of the time until a resumed run starts is spent here.
        let journals = side_by_side(chain.runs(), journal).into_iter();
        Ok(StoredChain {
            journals: journals.collect::<Result<_, ResumeError>>()?,
            chain,
        })
    }
}

impl StateDir {
    /// Reads the chain of a run. Refuses a chain whose newest run is still running.
    pub(crate) fn stored_chain(&self, run: &RunId) -> Result<StoredChain, ResumeError> {
        let chain = self.ended_chain(run)?;
        ChainReader::after(self, Some(chain.newest()))?.journals(chain)
    }

    /// Checks one chain, like [`ChainReader::check`].
    pub(crate) fn check_chain(&self, root: &RunId, keys: &[PublicKey]) -> Result<(), ResumeError> {
        let chain = self.chain(root).load_signed_with(keys)?;
        ChainReader::after(self, Some(chain.newest()))?.check(root, keys)
    }

    /// Reads the file of the chain that a run belongs to. Refuses a chain whose newest run is still
    /// running.
    fn ended_chain(&self, run: &RunId) -> Result<RunChain, ResumeError> {
        // The whole journal is verified with the others of the chain. It is read here only if its
        // header cannot be read alone.
        let ends = self.ends(run)?;
        let header = serde_json::from_slice::<JournalLine>(&ends.first);
        let position = match header.map(|line| line.body) {
            Ok(Body::RunStarted(started)) if !ends.is_first_cut => started.chain,
            _ => self
                .verified(run)?
                .started()
                .and_then(|it| it.chain.clone()),
        };
        let root = position.map_or_else(|| run.clone(), |position| position.root);
        let chain = self.chain(&root).load()?;
        if !chain.runs().contains(run) {
            return Err(ChainError::ForeignRun(run.0.to_string()).into());
        }
        // A journal that no process writes never changes again.
        if self.is_running(chain.newest()) {
            return Err(ChainFileError::Running(chain.newest().0.to_string()).into());
        }
        Ok(chain)
    }

    /// Returns the first run of the chain that a run belongs to, according to its journal. A run
    /// that resumed no other names no chain.
    pub(crate) fn chain_root(&self, run: &RunId) -> Option<RunId> {
        let ends = self.ends(run).ok()?;
        let line = serde_json::from_slice::<JournalLine>(&ends.first).ok()?;
        match line.body {
            Body::RunStarted(started) => started.chain.map(|position| position.root),
            _ => None,
        }
    }

    /// Reads a journal, which must be the one of this run.
    fn verified(&self, run: &RunId) -> Result<VerifiedJournal, ResumeError> {
        let broken = |why: String| ResumeError::Broken {
            run: run.0.to_string(),
            why,
        };
        let journal = journal::read(&self.read(run)?).map_err(|bad| broken(bad.to_string()))?;
        match journal.started() {
            Some(started) if started.run == *run => Ok(journal),
            Some(started) => Err(broken(format!(
                "it is the journal of run {}",
                started.run.0
            ))),
            None => Err(broken("it has no entry".into())),
        }
    }
}

/// Refuses a journal that differs from the one whose end was signed. The end of a run that was
/// interrupted is not signed.
fn check_signed(
    index: &RunIndex,
    run: &RunId,
    journal: &VerifiedJournal,
) -> Result<(), ResumeError> {
    match index.of_run(run)? {
        Some(signed) if journal.head != Some(signed.head) => Err(ResumeError::Broken {
            run: run.0.to_string(),
            why: format!("its end differs from the signed head {}", signed.head),
        }),
        _ => Ok(()),
    }
}

impl StoredChain {
    /// Returns the chain if this run is its newest one, which is the only one that can be resumed.
    pub(crate) fn of_newest(self, run: &RunId) -> Result<Self, ResumeError> {
        match self.chain.runs().iter().position(|it| it == run) {
            Some(at) => match self.chain.runs().get(at + 1) {
                Some(_) => Err(ChainError::AlreadyResumed {
                    run: run.0.to_string(),
                    by: self.chain.newest().0.to_string(),
                }
                .into()),
                None => Ok(self),
            },
            None => Err(ChainError::ForeignRun(run.0.to_string()).into()),
        }
    }

    /// Adds what a person said to the file of the chain. Refuses it if a run was added meanwhile,
    /// because that run may change what the record is about.
    pub(crate) fn record(
        &self,
        state: &StateDir,
        record: ChainRecord,
        now_ms: u64,
    ) -> Result<(), ResumeError> {
        let file = state.chain(self.chain.root());
        let recorded = file.record(record, now_ms, |now| {
            match self.chain.runs() == now.runs() {
                true => Ok(()),
                false => Err(ChainFileError::Running(now.newest().0.to_string())),
            }
        });
        Ok(recorded?)
    }

    /// Checks that each record of the chain's file fits the journals.
    fn check_records(&self) -> Result<(), ResumeError> {
        self.ledger()?;
        for answer in self.chain.answers() {
            let is_question =
                |body: &Body| matches!(body, Body::Asked(it) if it.shown == answer.shown);
            let runs = self.chain.runs().iter().zip(&self.journals);
            let mut asked = runs.filter(|(run, _)| **run == answer.about.run);
            if !asked.any(|(_, it)| it.of_call(answer.about.call).any(is_question)) {
                return Err(ChainError::UnknownQuestion(answer.about.to_string()).into());
            }
        }
        Ok(())
    }

    /// Returns every call of the chain that was allowed to leave, with its latest state.
    pub(crate) fn ledger(&self) -> Result<Ledger, ResumeError> {
        Ok(Ledger::new(&self.chain, &self.journals)?)
    }

    /// Returns the tool of a call as it was in the run that made the call.
    pub(crate) fn tool_of(&self, entry: &LedgerEntry) -> Option<&StartedTool> {
        let mut runs = self.chain.runs().iter();
        let at = runs.position(|run| *run == entry.at.run)?;
        let mut tools = self.journals.get(at)?.started()?.tools.iter();
        tools.find(|tool| tool.tool == entry.key.tool)
    }

    /// Returns the calls that are not repeatable, whose outcome is unknown, and about which no person
    /// has said anything.
    pub(crate) fn indeterminate(&self) -> Result<Vec<CallRef>, ResumeError> {
        let is_repeatable = |entry: &LedgerEntry| {
            let tool = self.tool_of(entry);
            tool.is_some_and(|tool| tool.repeatable == Some(true))
        };
        let ledger = self.ledger()?;
        let unknown = ledger.unknown().filter(|entry| !is_repeatable(entry));
        Ok(unknown.map(|entry| entry.at.clone()).collect())
    }

    /// Returns the status with which the newest run ended; `None` if it was interrupted or waits.
    pub(crate) fn newest_status(&self) -> Option<&'static str> {
        let ended = self.journals.last()?.ended()?;
        Some(match ended.status {
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Stopped => "stopped",
            Status::Cancelled => "cancelled",
            Status::Paused => "paused",
        })
    }

    /// Returns the header of the newest run.
    pub(crate) fn newest_started(&self) -> Option<&RunStartedEntry> {
        self.journals.last()?.started()
    }
}

/// The newest runs of all chains.
pub(crate) struct NewestRuns {
    /// Newest first.
    pub(crate) runs: Vec<RunId>,
    /// The first runs of the chains whose file cannot be used. `runs` contains no run of them.
    pub(crate) damaged: Vec<(RunId, ResumeError)>,
}

impl NewestRuns {
    /// Finds the newest run of each chain whose file can be used, and the chains whose file cannot be
    /// used.
    pub(crate) fn find(state: &StateDir) -> Result<Self, ResumeError> {
        let mut runs = state.all_runs()?;
        let (mut resumed, mut damaged) = (BTreeSet::new(), Vec::new());
        for root in state.chain_roots()? {
            match state.chain(&root).load() {
                Ok(chain) => {
                    let members = chain.runs().iter();
                    resumed.extend(members.filter(|run| *run != chain.newest()).cloned());
                }
                Err(error) => damaged.push((root, ResumeError::from(error))),
            }
        }
        let is_damaged = |run: &RunId| {
            let root = state.chain_root(run).unwrap_or_else(|| run.clone());
            damaged.iter().any(|(it, _)| *it == root)
        };
        // Headers are read only if they are needed.
        runs.retain(|run| !resumed.contains(run) && (damaged.is_empty() || !is_damaged(run)));
        Ok(Self { runs, damaged })
    }
}

impl ResumeError {
    /// Whether the newest run of the chain is still running.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::File(ChainFileError::Running(_)))
    }

    /// Returns the error for a model. It contains no path of this machine.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::File(
                ChainFileError::Chain(_) | ChainFileError::Running(_) | ChainFileError::Changed(_),
            )
            | Self::Plan(_)
            | Self::NotRecorded { .. } => self.to_string(),
            Self::UnusableResult(_) => {
                format!("{self}; call resume_run, and the user is asked again")
            }
            _ => "the journals of the run cannot be used; run the script without `resume`".into(),
        }
    }

    /// Converts the error for a person who wants to resume a run, or to state what became of a call.
    pub(crate) fn into_problem(self) -> Problem {
        let next: &str = match &self {
            Self::Journal(JournalError::Unknown { .. } | JournalError::Ambiguous { .. }) => {
                let next = "`airlock runs list` lists the runs";
                return Problem::new("usage", "cannot find the run", self.to_string(), next);
            }
            Self::Journal(_)
            | Self::File(
                ChainFileError::Journal(_)
                | ChainFileError::NoJournal(_)
                | ChainFileError::Key(_)
                | ChainFileError::Io { .. },
            ) => {
                let what = "cannot read the journals of the run chain";
                let next = "check the folder that --state-dir names";
                return Problem::new("journal-unreadable", what, self.to_string(), next);
            }
            Self::Index(_)
            | Self::Broken { .. }
            | Self::File(ChainFileError::Broken { .. } | ChainFileError::OtherKey { .. }) => {
                let what = "the journals of the run chain do not verify";
                let next = "a file was changed or is damaged, so the run cannot be resumed: run the \
                            script again without --resume, or put back a copy of the file";
                return Problem::new("journal-broken", what, self.to_string(), next);
            }
            Self::File(ChainFileError::Running(_)) => "wait until the run has ended",
            Self::File(ChainFileError::Chain(ChainError::AlreadyResumed { by, .. })) => {
                &format!("resume {by}, the newest run of the chain")
            }
            Self::File(ChainFileError::Locked { .. } | ChainFileError::Changed(_)) => {
                "run the command again"
            }
            Self::NotRecorded { what, .. } => &format!("pass the {what} again"),
            Self::File(ChainFileError::Chain(
                ChainError::UnknownCall(_)
                | ChainError::KnownOutcome(..)
                | ChainError::AlreadyAnswered(_),
            )) => {
                let what = "there is nothing to decide about this call";
                let next =
                    "`airlock runs waiting` lists the calls about which a person has to decide";
                return Problem::new("cannot-resume", what, self.to_string(), next);
            }
            Self::UnusableResult(_) => {
                let what = "the statement cannot be recorded";
                let next = "correct the result, or leave it out";
                return Problem::new("usage", what, self.to_string(), next);
            }
            Self::File(_) | Self::Plan(_) => "run the script again without --resume",
        };
        let next = next.to_owned();
        Problem::new(
            "cannot-resume",
            "the run cannot be resumed",
            self.to_string(),
            next,
        )
    }
}

#[cfg(test)]
mod tests {
    use airlock_core::id::Digest;
    use airlock_core::resume::Predecessor;

    use super::*;
    use crate::tempdir::TempDir;

    #[test]
    fn damaged_chain_file_does_not_hide_other_chains() {
        let scratch = TempDir::new();
        let state = StateDir::open(scratch.path().join("state")).unwrap();
        let id = |text: &str| RunId(text.into());
        for run in ["a", "b", "x"] {
            let mut journal = state.create(&id(run)).unwrap();
            journal.append(b"{}\n", false).unwrap();
        }
        let predecessor = Predecessor {
            run: id("a"),
            head: Digest::sha256(b"a"),
        };
        state
            .chain(&id("a"))
            .begin(&id("b"), (&predecessor, 0), 1)
            .unwrap();
        std::fs::write(state.path().join("chains/x.jsonl"), "{}\n").unwrap();
        let found = NewestRuns::find(&state).unwrap();
        assert_eq!(found.runs, [id("b")]);
        let damaged: Vec<RunId> = found.damaged.into_iter().map(|(root, _)| root).collect();
        assert_eq!(damaged, [id("x")]);
    }
}
