//! The paused runs of hosts, by caller, script and input. A host that sends the same script again
//! while its run is paused learns of that run, so that no second question about the same calls opens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::id::Digest;

/// Maximum number of runs that are remembered. The oldest one is dropped.
const RUNS_MAX: usize = 256;

/// Cheap to clone; all clones share the same runs.
#[derive(Debug, Clone, Default)]
pub(super) struct PausedRuns(Arc<Mutex<VecDeque<(Digest, String)>>>);

impl PausedRuns {
    /// Notes that a run is paused. `origin` identifies its caller, script and input.
    pub(super) fn note(&self, origin: Digest, run: &str) {
        let mut runs = self.lock();
        runs.retain(|(it, _)| *it != origin);
        runs.push_back((origin, run.to_owned()));
        if runs.len() > RUNS_MAX {
            runs.pop_front();
        }
    }

    /// Returns the run that was paused last. It may have been continued since.
    pub(super) fn find(&self, origin: &Digest) -> Option<String> {
        let runs = self.lock();
        let found = runs.iter().find(|(it, _)| it == origin);
        found.map(|(_, run)| run.clone())
    }

    pub(super) fn forget(&self, origin: &Digest) {
        self.lock().retain(|(it, _)| it != origin);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Digest, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_paused_run_is_found_until_it_is_forgotten() {
        let origin = |number: usize| Digest::sha256(number.to_string().as_bytes());
        let runs = PausedRuns::default();
        runs.note(origin(0), "a");
        runs.note(origin(0), "b");
        assert_eq!(runs.find(&origin(0)).as_deref(), Some("b"));
        assert_eq!(runs.find(&origin(1)), None);
        runs.forget(&origin(0));
        assert_eq!(runs.find(&origin(0)), None);
        for number in 0..=RUNS_MAX {
            runs.note(origin(number), "c");
        }
        assert_eq!(runs.lock().len(), RUNS_MAX);
        assert_eq!(runs.find(&origin(0)), None);
    }
}
