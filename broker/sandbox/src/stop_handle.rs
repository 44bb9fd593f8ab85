//! Stops a guest from outside, whether it computes or waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Stops a guest from outside, also while it computes or waits for its turn. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<Stop>);

#[derive(Debug, Default)]
struct Stop {
    is_stopped: AtomicBool,
    /// The thread that waits on behalf of the guest.
    waiting: Mutex<Option<Thread>>,
}

impl StopHandle {
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.waiting(None) {
            thread.unpark();
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Blocks this thread until `is_over` returns true or the guest is stopped, but no longer than
    /// `at_most`. The code that makes `is_over` true must unpark the thread.
    pub fn wait(&self, at_most: Duration, is_over: impl Fn() -> bool) {
        let since = Instant::now();
        self.waiting(Some(thread::current()));
        while !is_over() && !self.is_stopped() {
            let left = at_most.saturating_sub(since.elapsed());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
        self.waiting(None);
    }

    fn waiting(&self, thread: Option<Thread>) -> Option<Thread> {
        let mut waiting = self
            .0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *waiting, thread)
    }
}
