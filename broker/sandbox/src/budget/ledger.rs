//! Tracks how much memory each run holds, and whether more can be granted without a deadlock.
//!
//! Each run holds a base from its start to its end: the initial memory of a sandbox and a little
//! more. Growth beyond the base comes from a pool. An eighth of all memory stays outside the pool,
//! so that runs that need only their base can begin while others are large.
//!
//! A run may grow only if all runs can still finish one after the other, even if each of them first
//! grows to its limit (the banker's algorithm). Runs that wait for memory therefore never wait for
//! each other, and no run has to be ended to make room.

use std::collections::HashMap;

/// The number of a run.
pub(super) type RunNumber = u64;

/// Memory in bytes that a run holds from its start to its end.
pub const BASE_BYTES: u64 = 8 * 1024 * 1024;

/// One part in this many of all memory is kept for the bases of other runs, so growing runs cannot
/// use it.
const KEPT_SHARE: u64 = 8;

#[derive(Debug)]
pub(super) struct Ledger {
    runs_max: usize,
    total: u64,
    /// Memory that growing runs must leave for bases.
    kept: u64,
    runs: HashMap<RunNumber, RunMemory>,
    grown: u64,
    /// An upper bound for the growth of every current run.
    claim_max: u64,
}

#[derive(Debug, Clone, Copy)]
struct RunMemory {
    /// Memory beyond the base.
    grown: u64,
    /// The maximum of `grown`.
    claim: u64,
}

impl RunMemory {
    fn need(&self) -> u64 {
        self.claim.saturating_sub(self.grown)
    }
}

impl Ledger {
    /// Creates a ledger for runs that may use `run_bytes` each. One such run always fits.
    pub(super) fn new(runs_max: usize, total: u64, run_bytes: u64) -> Self {
        let total = total.max(BASE_BYTES);
        Self {
            runs_max,
            total,
            kept: (total / KEPT_SHARE).min(total.saturating_sub(run_bytes)),
            runs: HashMap::new(),
            grown: 0,
            claim_max: 0,
        }
    }

    /// Returns the maximum memory of one run.
    pub(super) fn run_bytes_max(&self) -> u64 {
        self.total - self.kept.max(BASE_BYTES) + BASE_BYTES
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn runs_max(&self) -> usize {
        self.runs_max
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the memory of all runs.
    pub(super) fn held(&self) -> u64 {
        self.bases(self.runs.len()) + self.grown
    }

    /// Returns whether there is room for one more run that may use `bytes`.
    pub(super) fn admits(&self, bytes: u64) -> bool {
        let count = self.runs.len() + 1;
        if count > self.runs_max || self.bases(count) + self.grown > self.total {
            return false;
        }
        let newcomer = RunMemory {
            grown: 0,
            claim: self.claim(bytes),
        };
        let Some(free) = self.free(count, self.grown) else {
            return false;
        };
        let is_unchanged = Some(free) == self.free(self.runs.len(), self.grown);
        // The kept memory has room for the new base, so runs that grow lose nothing.
        (is_unchanged && newcomer.claim <= self.pool(count))
            || self.is_safe(free, self.runs.values().copied().chain([newcomer]))
    }

    pub(super) fn admit(&mut self, run: RunNumber, bytes: u64) {
        let claim = self.claim(bytes);
        self.claim_max = self.claim_max.max(claim);
        self.runs.insert(run, RunMemory { grown: 0, claim });
    }

    /// Returns whether a run may hold `bytes` in total.
    pub(super) fn may_hold(&self, run: RunNumber, bytes: u64) -> bool {
        let Some(held) = self.runs.get(&run) else {
            return false;
        };
        let grown = bytes.saturating_sub(BASE_BYTES);
        if grown <= held.grown {
            return true;
        }
        let Some(free) = self.free(self.runs.len(), self.grown - held.grown + grown) else {
            return false;
        };
        let after = |(number, held): (&RunNumber, &RunMemory)| match *number == run {
            true => RunMemory { grown, ..*held },
            false => *held,
        };
        self.is_safe(free, self.runs.iter().map(after))
    }

    pub(super) fn hold(&mut self, run: RunNumber, bytes: u64) {
        if let Some(held) = self.runs.get_mut(&run) {
            let grown = bytes.saturating_sub(BASE_BYTES);
            self.grown = self.grown - held.grown + grown;
            held.grown = grown;
        }
    }

    pub(super) fn release(&mut self, run: RunNumber) {
        if let Some(held) = self.runs.remove(&run) {
            self.grown -= held.grown;
        }
        if self.runs.is_empty() {
            self.claim_max = 0;
        }
    }

    /// Returns the maximum growth beyond the base, for a run that may use `bytes`.
    fn claim(&self, bytes: u64) -> u64 {
        bytes.min(self.run_bytes_max()).saturating_sub(BASE_BYTES)
    }

    fn bases(&self, count: usize) -> u64 {
        BASE_BYTES.saturating_mul(count as u64)
    }

    /// Returns the total growth that is possible with `count` runs.
    fn pool(&self, count: usize) -> u64 {
        self.total.saturating_sub(self.bases(count).max(self.kept))
    }

    /// Returns the unused part of the pool, or `None` if it is overdrawn.
    fn free(&self, count: usize, grown: u64) -> Option<u64> {
        self.pool(count).checked_sub(grown)
    }

    /// Returns whether all runs can finish one after the other, beginning with the run that needs
    /// the least memory.
    fn is_safe(&self, mut free: u64, runs: impl Iterator<Item = RunMemory>) -> bool {
        if free >= self.claim_max {
            let mut runs = runs;
            return runs.all(|it| it.need() <= free);
        }
        let mut runs: Vec<_> = runs.collect();
        runs.sort_unstable_by_key(RunMemory::need);
        for held in runs {
            if held.need() > free {
                return false;
            }
            free += held.grown;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// Returns a ledger of 1 GiB with runs of 256 MiB.
    fn ledger(count: u64) -> Ledger {
        let mut ledger = Ledger::new(100, 1024 * MIB, 256 * MIB);
        for run in 0..count {
            assert!(ledger.admits(256 * MIB), "{run}");
            ledger.admit(run, 256 * MIB);
        }
        ledger
    }

    fn grow(ledger: &mut Ledger, run: RunNumber, bytes: u64) -> bool {
        let may = ledger.may_hold(run, bytes);
        if may {
            ledger.hold(run, bytes);
        }
        may
    }

    #[test]
    fn all_that_is_given_comes_back() {
        let mut ledger = ledger(3);
        assert!(grow(&mut ledger, 1, 200 * MIB) && grow(&mut ledger, 1, 100 * MIB));
        assert_eq!(ledger.held(), 2 * BASE_BYTES + 100 * MIB);
        (0..3).for_each(|run| ledger.release(run));
        assert_eq!((ledger.held(), ledger.runs()), (0, 0));
        ledger.release(7);
        assert_eq!(ledger.held(), 0);
    }

    #[test]
    fn no_more_runs_than_allowed_begin() {
        let mut ledger = Ledger::new(3, 1024 * MIB, 256 * MIB);
        (0..3).for_each(|run| ledger.admit(run, 0));
        assert!(!ledger.admits(0));
        ledger.release(1);
        assert!(ledger.admits(0));
    }

    #[test]
    fn no_more_runs_begin_than_there_are_bases_for_with_room_for_one_to_grow() {
        let mut ledger = Ledger::new(1_000, 1024 * MIB, 256 * MIB);
        let begun = (0..1_000).take_while(|run| {
            let may = ledger.admits(256 * MIB);
            ledger.admit(*run, 256 * MIB);
            may
        });
        assert_eq!(begun.count() as u64, (1024 - 248) / 8);
    }

    /// For every order of requests, at least one run can continue, and all of them end.
    #[test]
    fn runs_that_all_want_everything_never_wait_for_each_other() {
        for step in [MIB, 7 * MIB, 60 * MIB, 300 * MIB] {
            let mut ledger = ledger(24);
            let mut bytes = [BASE_BYTES; 24];
            let mut left = 24;
            while left > 0 {
                let mut has_moved = false;
                for run in 0..24_u64 {
                    let now = &mut bytes[run as usize];
                    if *now == 0 {
                        continue;
                    }
                    if *now == 256 * MIB {
                        ledger.release(run);
                        *now = 0;
                        left -= 1;
                        has_moved = true;
                    } else {
                        let next = (*now + step).min(256 * MIB);
                        if grow(&mut ledger, run, next) {
                            *now = next;
                            has_moved = true;
                        }
                    }
                    assert!(ledger.held() <= 1024 * MIB);
                }
                assert!(has_moved, "{left} runs wait for each other: {ledger:?}");
            }
        }
    }

    #[test]
    fn small_runs_begin_while_large_ones_hold_all_that_they_can() {
        let mut ledger = ledger(6);
        for run in 0..6 {
            let mut bytes = BASE_BYTES;
            while grow(&mut ledger, run, bytes + MIB) && bytes < 256 * MIB {
                bytes += MIB;
            }
        }
        let begun = (6..100).take_while(|run| {
            let may = ledger.admits(256 * MIB);
            if may {
                ledger.admit(*run, 256 * MIB);
            }
            may
        });
        assert!(begun.count() >= 10, "{ledger:?}");
    }

    #[test]
    fn one_run_alone_has_all_that_it_may_have() {
        for (total, bytes) in [(256, 256), (264, 256), (1024, 256), (64, 64), (4, 16)] {
            let mut ledger = Ledger::new(1, total * MIB, bytes * MIB);
            assert!(ledger.admits(bytes * MIB));
            ledger.admit(1, bytes * MIB);
            let most = ledger.run_bytes_max().min(bytes * MIB);
            assert!(ledger.may_hold(1, most), "{total} MiB: {ledger:?}");
            assert!(total < bytes || most == bytes * MIB);
        }
    }
}
