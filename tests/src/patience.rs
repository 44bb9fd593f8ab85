//! Waiting for what another process or thread is about to do, and promises about
//! time on a machine that does other things as well.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Longer than anything takes, however slow the machine and however busy it is with other tests.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// How often a promise about time is looked at before it counts as broken.
const TRIES: usize = 3;
/// So many times slower a machine may be than the one that promises about time were made for.
pub const SLOWER: [u32; 3] = [1, 4, 20];

/// Until it is so.
#[track_caller]
pub fn wait_until(mut ready: impl FnMut() -> bool) {
    let since = Instant::now();
    while !ready() {
        assert!(since.elapsed() < PATIENCE, "it never came");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Until there is no such process, or nothing of it but what it leaves to its parent.
#[track_caller]
pub fn wait_until_gone(pid: u32) {
    let stat = format!("/proc/{pid}/stat");
    wait_until(|| std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
}

/// For what has to happen soon: a moment in which the machine did not run us is no
/// broken promise, three in a row are.
pub fn in_one_of_three(attempt: impl Fn()) {
    let kept = (1..TRIES).any(|_| catch_unwind(AssertUnwindSafe(&attempt)).is_ok());
    if !kept {
        attempt();
    }
}

/// For what has to happen within a time: either it does, or it does within a multiple of it
/// when every other time that plays a part is longer to the same degree.
pub fn at_its_own_pace(attempt: impl Fn(u32)) {
    let (last, others) = SLOWER.split_last().expect("there are some");
    let keeps = |slower: &u32| catch_unwind(AssertUnwindSafe(|| attempt(*slower))).is_ok();
    if !others.iter().any(keeps) {
        attempt(*last);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How often something was tried that succeeds for the first time at this try.
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
    fn one_of_three_tries_is_enough_and_a_fourth_is_not_made() {
        let found: Vec<_> = (1..=4).map(tried).collect();
        assert_eq!(found, [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn what_is_kept_by_a_slower_machine_is_kept_and_what_by_none_is_broken() {
        let kept_when = |slow_enough: u32| {
            let attempt = |slower| assert!(slower >= slow_enough, "not yet");
            catch_unwind(AssertUnwindSafe(|| at_its_own_pace(attempt))).is_ok()
        };
        assert_eq!([1, 2, 20, 21].map(kept_when), [true, true, true, false]);
    }

    #[test]
    fn a_process_is_gone_when_it_ended_though_nobody_asked_how() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        wait_until_gone(child.id());
        child.wait().unwrap();
        wait_until_gone(child.id());
    }
}
