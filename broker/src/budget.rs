//! What all runs of a broker may take together: how many there are, their memory, and the
//! processor. A run that finds no room waits in a queue that is fair to callers, and is refused
//! as busy when no room comes in time.
//!
//! `queue`, `ledger` and `turns` decide and never wait. `room` and `processor` hold their
//! locks and wait. A run has a [`Share`], which gives everything back when it is dropped.

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
#[cfg(test)]
pub(crate) use ledger::BASE_BYTES;
pub use limits::BudgetLimits;
pub(crate) use processor::Interrupt;
pub(crate) use room::{Grown, Wait};
pub(crate) use share::{Charge, Share};

/// Cheap to clone; all clones are one budget.
#[derive(Clone)]
pub struct Budget {
    room: Arc<Room>,
    processor: Arc<Processor>,
}

/// What is used at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUsage {
    /// Runs that go on.
    pub runs: usize,
    /// Runs that wait to begin.
    pub waiting: usize,
    /// Runs that wait for more memory.
    pub growing: usize,
    /// Memory that is set aside for the sandboxes of all runs.
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
    /// For runs that may have `run_bytes` each, if their own limits say nothing else.
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

    /// The most memory that one run can have.
    pub(crate) fn run_bytes_max(&self) -> u64 {
        self.room.run_bytes_max()
    }

    /// A share for a run that may have `bytes` of memory, if there is room at once.
    pub(crate) fn try_share(&self, caller: &Arc<str>, bytes: u64) -> Option<Share> {
        let place = self.room.try_enter(caller, bytes)?;
        Some(Share::new(place, &self.room, &self.processor))
    }

    /// The same, with waiting. Dropping the future gives up.
    pub(crate) async fn share(&self, caller: &Arc<str>, bytes: u64) -> Result<Share, Busy> {
        let place = self.room.enter(caller, bytes).await?;
        Ok(Share::new(place, &self.room, &self.processor))
    }
}

#[cfg(test)]
mod tests;
