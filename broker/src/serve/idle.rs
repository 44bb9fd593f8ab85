//! Returns memory that ended runs no longer use to the operating system: soon after the last run
//! ends, and during runs if the amount is large.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::broker::Broker;
use crate::resident;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Number of consecutive checks without a run after which the process counts as idle.
const QUIET_LOOKS: u32 = 2;
/// Minimum amount worth returning while no run is in progress.
const WORTH_BYTES: u64 = 8 * 1024 * 1024;
/// Minimum amount worth returning during runs.
const WORTH_BYTES_BUSY: u64 = 128 * 1024 * 1024;
/// The interval between two attempts during runs, as a number of checks. It begins at the lower end
/// of this range, and doubles after each attempt that does not help, up to the upper end.
const LOOKS_BUSY: std::ops::RangeInclusive<u32> = 10..=160;

/// A sample of the process's memory and runs.
#[derive(Debug, Clone, Copy)]
struct MemorySample {
    resident_bytes: u64,
    /// Maximum number of bytes that the runs in progress use.
    held_bytes: u64,
    runs: usize,
}

/// Decides when to return memory.
#[derive(Debug)]
struct Policy {
    /// Resident bytes at the start.
    floor_bytes: u64,
    /// Resident bytes after memory was last returned.
    left_bytes: u64,
    quiet_looks: u32,
    busy_looks: u32,
    busy_looks_min: u32,
}

impl Policy {
    fn new(floor_bytes: u64) -> Self {
        Self {
            floor_bytes,
            left_bytes: floor_bytes,
            quiet_looks: 0,
            busy_looks: 0,
            busy_looks_min: *LOOKS_BUSY.start(),
        }
    }

    /// Takes a sample and returns whether to return memory now.
    fn look(&mut self, seen: MemorySample) -> bool {
        if seen.runs == 0 {
            self.quiet_looks += 1;
            self.busy_looks = 0;
            return self.quiet_looks >= QUIET_LOOKS
                && seen.resident_bytes > self.left_bytes + WORTH_BYTES;
        }
        self.quiet_looks = 0;
        self.busy_looks += 1;
        let unexplained = seen.resident_bytes.saturating_sub(seen.held_bytes);
        self.busy_looks >= self.busy_looks_min && unexplained > self.floor_bytes + WORTH_BYTES_BUSY
    }

    /// Records that memory was returned and how much is left.
    fn returned(&mut self, before_bytes: u64, left_bytes: u64) {
        let has_helped = before_bytes > left_bytes + WORTH_BYTES;
        self.busy_looks_min = match has_helped {
            true => *LOOKS_BUSY.start(),
            false => (self.busy_looks_min * 2).min(*LOOKS_BUSY.end()),
        };
        (self.left_bytes, self.busy_looks) = (left_bytes, 0);
    }
}

/// Checks at each interval for as long as the broker exists.
pub(super) async fn return_memory(broker: Broker) {
    let Some(floor) = resident::bytes() else {
        return;
    };
    let mut policy = Policy::new(floor);
    let broker = broker.downgrade();
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(broker) = broker.upgrade() else {
            return;
        };
        let usage = broker.budget_usage();
        let Some(resident_bytes) = resident::bytes() else {
            return;
        };
        let seen = MemorySample {
            resident_bytes,
            held_bytes: usage.memory_bytes,
            runs: usage.runs + usage.waiting,
        };
        if policy.look(seen) {
            broker.return_memory().await;
            policy.returned(resident_bytes, resident::bytes().unwrap_or(resident_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn seen(resident_mib: u64, runs: usize) -> MemorySample {
        MemorySample {
            resident_bytes: resident_mib * MIB,
            held_bytes: runs as u64 * 8 * MIB,
            runs,
        }
    }

    #[test]
    fn what_runs_leave_behind_is_returned_once_it_is_quiet() {
        let mut policy = Policy::new(50 * MIB);
        assert!(!policy.look(seen(500, 3)));
        assert!(!policy.look(seen(500, 0)));
        assert!(policy.look(seen(500, 0)));
        policy.returned(500 * MIB, 100 * MIB);
        // The remaining memory is in use.
        assert!((0..100).all(|_| !policy.look(seen(100, 0))));
        assert!(policy.look(seen(120, 0)));
    }

    #[test]
    fn while_runs_go_on_it_is_tried_now_and_then_and_less_often_where_it_does_not_help() {
        let mut policy = Policy::new(50 * MIB);
        let tries = |policy: &mut Policy, resident_mib| {
            let tried = (0..1_000).filter(|_| {
                let tries = policy.look(seen(resident_mib, 1));
                if tries {
                    policy.returned(resident_mib * MIB, resident_mib * MIB);
                }
                tries
            });
            tried.count()
        };
        assert_eq!(tries(&mut policy, 100), 0);
        let count = tries(&mut policy, 1_000);
        assert!((5..15).contains(&count), "{count}");
        policy.returned(1_000 * MIB, 100 * MIB);
        let soon = (0..=*LOOKS_BUSY.start()).position(|_| policy.look(seen(1_000, 1)));
        assert!(soon.is_some());
    }
}
