//! The budget that all runs of a broker share: the number of runs, their memory, and the processor.
//! A run for which there is no room waits in a queue that is fair to callers. The run is refused as
//! busy if no room becomes free in time.
//!
//! `queue`, `ledger` and `turns` decide and never wait. `room` and `processor` hold their locks and
//! wait. A run has a [`RunShare`], which returns everything when it is dropped.

mod busy;
mod ledger;
mod limits;
mod machine;
mod processor;
mod queue;
mod room;
mod share;
mod turns;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ledger::Ledger;
use processor::Processor;
use room::Room;

pub use busy::Busy;
pub use ledger::BASE_BYTES;
pub use limits::BudgetLimits;
pub(crate) use processor::Interrupt;
pub(crate) use room::{GrowResult, Wait};
pub(crate) use share::Charge;
pub use share::RunShare;

/// A budget. Cheap to clone; all clones share one budget.
#[derive(Clone)]
pub struct Budget {
    room: Arc<Room>,
    processor: Arc<Processor>,
}

/// The current usage of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUsage {
    /// Runs in progress.
    pub runs: usize,
    /// Runs that wait to begin.
    pub waiting: usize,
    /// Runs that wait for more memory.
    pub growing: usize,
    /// Memory in bytes that is reserved for the sandboxes of all runs.
    pub memory_bytes: u64,
    /// Sandboxes that compute.
    pub computing: usize,
    /// Sandboxes that wait for the processor.
    pub computing_later: usize,
    /// Runs that were refused since the start.
    pub refused: u64,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Budget").field(&self.usage()).finish()
    }
}

impl Budget {
    /// Creates a budget for runs that may use `run_bytes` of memory each, unless they have their
    /// own limits.
    #[must_use]
    pub fn new(limits: &BudgetLimits, run_bytes: u64) -> Self {
        let runs_max = usize::try_from(limits.runs_max).unwrap_or(usize::MAX);
        let ledger = Ledger::new(runs_max, limits.memory_bytes(run_bytes), run_bytes);
        let queue_wall = Duration::from_millis(limits.queue_wall_ms_max);
        Self {
            room: Arc::new(Room::new(ledger, queue_wall)),
            processor: Arc::new(Processor::new(limits.computing())),
        }
    }

    #[must_use]
    pub fn usage(&self) -> BudgetUsage {
        let (room, (computing, computing_later)) = (self.room.usage(), self.processor.usage());
        BudgetUsage {
            runs: room.runs,
            waiting: room.waiting,
            growing: room.growing,
            memory_bytes: room.bytes,
            computing,
            computing_later,
            refused: room.refused,
        }
    }

    /// Returns the maximum memory in bytes for one run.
    pub fn run_bytes_max(&self) -> u64 {
        self.room.run_bytes_max()
    }

    /// Returns a share for a run that may use `bytes` of memory, if there is room at once.
    pub fn try_share(&self, caller: &Arc<str>, bytes: u64) -> Option<RunShare> {
        let place = self.room.try_enter(caller, bytes)?;
        Some(RunShare::new(place, &self.room, &self.processor))
    }

    /// Waits for a share for a run that may use `bytes` of memory. Dropping the future gives up.
    pub async fn share(&self, caller: &Arc<str>, bytes: u64) -> Result<RunShare, Busy> {
        let place = self.room.enter(caller, bytes).await?;
        Ok(RunShare::new(place, &self.room, &self.processor))
    }
}

#[cfg(test)]
mod tests;
