//! The limits for all runs together.

use airlock_core::limits::BadLimit;

use super::machine;

/// The limits of a budget. An absent limit is derived from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Maximum number of runs at the same time.
    pub runs_max: u32,
    /// Memory in bytes of all sandboxes together. Default: half of the machine's memory.
    pub memory_bytes_max: Option<u64>,
    /// Maximum number of sandboxes that compute at the same time. Default: one per processor.
    pub computing_max: Option<u32>,
    /// How long a run waits for room before it is refused, in milliseconds.
    pub queue_wall_ms_max: u64,
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self {
            runs_max: 1_000,
            memory_bytes_max: None,
            computing_max: None,
            queue_wall_ms_max: 10_000,
        }
    }
}

const MIB: u64 = 1024 * 1024;
/// Assumed memory of a machine that does not report it.
const MEMORY_BYTES_ASSUMED: u64 = 4 * 1024 * MIB;

impl BudgetLimits {
    pub fn validate(&self) -> Result<(), BadLimit> {
        const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
        let memory = self.memory_bytes_max.unwrap_or(16 * MIB);
        let computing = self.computing_max.unwrap_or(1);
        let (runs, computing) = (self.runs_max.into(), computing.into());
        BadLimit::check("runs_max", runs, 1, 100_000)?;
        BadLimit::check("memory_bytes_max", memory, 16 * MIB, 64 * 1024 * 1024 * MIB)?;
        BadLimit::check("computing_max", computing, 1, 10_000)?;
        BadLimit::check("queue_wall_ms_max", self.queue_wall_ms_max, 1, DAY_MS)
    }

    /// Returns the memory for all sandboxes, if one sandbox may use `run_bytes`.
    pub(super) fn memory_bytes(&self, run_bytes: u64) -> u64 {
        self.memory_bytes_max.unwrap_or_else(|| {
            let half = machine::memory_bytes().unwrap_or(2 * MEMORY_BYTES_ASSUMED) / 2;
            (half / MIB * MIB).max(run_bytes)
        })
    }

    pub(super) fn computing(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.computing_max
            .map_or_else(processors, |it| usize::try_from(it).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_nothing_is_unlimited() {
        let limits = BudgetLimits::default();
        assert_eq!(limits.validate(), Ok(()));
        assert!(limits.computing() >= 1);
        assert!(limits.memory_bytes(256) >= 256 && limits.memory_bytes(256) < u64::MAX / 2);
        let bad = |limits: BudgetLimits| limits.validate().unwrap_err().name;
        assert_eq!(
            bad(BudgetLimits {
                runs_max: 0,
                ..limits
            }),
            "runs_max"
        );
        assert_eq!(
            bad(BudgetLimits {
                memory_bytes_max: Some(u64::MAX),
                ..limits
            }),
            "memory_bytes_max"
        );
    }
}
