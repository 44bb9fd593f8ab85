//! Waits for other processes and threads, and checks time limits on a busy machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Enough time for everything, also on a slow and busy machine.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Number of attempts before a time limit counts as exceeded.
const TRIES: usize = 3;
/// Factors by which a machine may be slower than the one for which the time limits were chosen.
pub const SLOWER: [u32; 3] = [1, 4, 20];

/// Returns whether figures are compared with their limits: `cargo xtask bench` runs the test on a
/// release build.
#[must_use]
pub fn is_measured() -> bool {
    std::env::var_os("AIRLOCK_MEASURED").is_some()
}

/// Waits until the condition holds.
#[track_caller]
pub fn wait_until(mut ready: impl FnMut() -> bool) {
    let since = Instant::now();
    while !ready() {
        assert!(since.elapsed() < PATIENCE, "the condition never held");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Waits until the process has ended. Its parent may not have reaped it yet.
#[track_caller]
pub fn wait_until_gone(pid: u32) {
    let stat = format!("/proc/{pid}/stat");
    wait_until(|| std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
}

/// Checks something that must happen soon. A busy machine may delay this test, so only three
/// failures in a row count.
pub fn in_one_of_three(attempt: impl Fn()) {
    let kept = (1..TRIES).any(|_| catch_unwind(AssertUnwindSafe(&attempt)).is_ok());
    if !kept {
        attempt();
    }
}

/// Checks something that must happen within a time limit. Tries again with a multiple of all times
/// involved, for a slower machine. `attempt` gets the factor.
pub fn at_its_own_pace(attempt: impl Fn(u32)) {
    let (last, others) = SLOWER.split_last().expect("a factor");
    let keeps = |slower: &u32| catch_unwind(AssertUnwindSafe(|| attempt(*slower))).is_ok();
    if !others.iter().any(keeps) {
        attempt(*last);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Returns the number of tries of an attempt that first succeeds at try `good`.
    fn tried(good: usize) -> Option<usize> {
        let count = Cell::new(0);
        let attempt = || {
            count.set(count.get() + 1);
            assert!(count.get() >= good, "not yet");
        };
        let kept = catch_unwind(AssertUnwindSafe(|| in_one_of_three(attempt)));
        kept.is_ok().then(|| count.get())
    }

    #[test]
    fn one_success_in_three_tries_is_enough() {
        let found: Vec<_> = (1..=4).map(tried).collect();
        assert_eq!(found, [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn time_bound_is_kept_if_any_try_keeps_it() {
        let kept_when = |slow_enough: u32| {
            let attempt = |slower| assert!(slower >= slow_enough, "not yet");
            catch_unwind(AssertUnwindSafe(|| at_its_own_pace(attempt))).is_ok()
        };
        assert_eq!([1, 2, 20, 21].map(kept_when), [true, true, true, false]);
    }

    #[test]
    fn process_is_gone_once_exited() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        wait_until_gone(child.id());
        child.wait().unwrap();
        wait_until_gone(child.id());
    }
}
