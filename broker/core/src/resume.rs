//! Runs that resume an earlier run. A *run chain* is a run and all runs that resumed it, each with
//! its own journal. The *ledger* of a chain lists every call that was allowed to leave in any of its
//! runs. A run that resumes compares the calls of its script with the ledger, so that no call that
//! is not repeatable is made again.
//!
//! There are two ways to resume. A run that did not end is *continued*: the same script gets the
//! recorded outcomes in the recorded order. In every other case, the calls of the script are matched
//! with the ledger by their tool and arguments.

pub mod chain;
pub mod ledger;
pub mod matching;
pub mod plan;
pub mod recording;

use chain::StoredAnswer;
use ledger::Ledger;
use recording::{RecordedConditions, Recording};

use crate::flow::StartLabels;
use crate::id::ServerName;

pub use crate::call::EarlierCall;
pub use crate::id::CallRef;
pub use crate::journal::{ChainPosition, Predecessor};

/// What a run needs to resume another one. Only [`plan::plan`] makes it.
#[derive(Debug, Clone)]
pub struct ResumeSpec {
    pub position: ChainPosition,
    /// How many records the chain had. With further ones, the run has to be planned again.
    pub records: u64,
    /// The seed of the chain. All its runs have the same one.
    pub seed: u64,
    /// The time at which the clock of the script starts: the start of the first run of the chain.
    pub started_ms: u64,
    pub mode: ResumeMode,
    /// The rules and servers of the predecessor.
    pub conditions: RecordedConditions,
    pub ledger: Ledger,
    /// The labels with which the runs of the chain started. The run starts with them too, also in
    /// another session.
    pub labels: StartLabels,
    /// Servers named with `--same-server`: their results are reused although their target changed.
    pub same_servers: Vec<ServerName>,
    /// Answers to questions of the predecessor that no run has used. Only the same questions take
    /// them.
    pub answers: Vec<StoredAnswer>,
    /// Recorded results of reads that are older are read again.
    pub reads_max_age_ms: u64,
}

#[derive(Debug, Clone)]
pub enum ResumeMode {
    /// The predecessor did not end, and script, input and engine are the same. Its recorded steps
    /// are replayed, then the run goes on.
    Continue(Box<Recording>),
    /// Calls are matched by content.
    Edited,
}

impl ResumeMode {
    #[must_use]
    pub fn is_continue(&self) -> bool {
        matches!(self, Self::Continue(_))
    }
}
