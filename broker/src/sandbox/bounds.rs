//! What stops a guest: its own bounds, the run's deadline, and a word from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airlock_core::limits::{Limit, Limits};
use rustix::time::{ClockId, clock_gettime};
use wasmtime::ResourceLimiter;

use super::large_pages::LargePages;
use crate::clock::Clock;

/// Table elements that a guest may grow to; no guest of ours grows its table.
const TABLE_ELEMENTS_MAX: usize = super::TABLE_ELEMENTS_MAX;

/// The bounds of one guest over all its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestBounds {
    pub cpu_ms_max: u64,
    pub memory_bytes_max: u64,
    /// Host time, in milliseconds since the epoch, at which the run is over.
    pub deadline_at_ms: u64,
}

impl GuestBounds {
    /// The bounds that these limits mean, without a deadline.
    #[must_use]
    pub fn of(limits: &Limits) -> Self {
        Self {
            cpu_ms_max: limits.guest_cpu_ms_max,
            memory_bytes_max: limits.guest_memory_bytes_max,
            deadline_at_ms: u64::MAX,
        }
    }
}

/// Stops a guest from outside, also while it computes. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a guest must not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    Limit(Limit),
    Outside,
}

/// What the engine asks while a guest computes.
#[derive(Debug)]
pub(super) struct Watch {
    bounds: GuestBounds,
    stop: StopHandle,
    clock: Clock,
    /// Computed before the present step.
    cpu_before: Duration,
    /// The thread's time at the beginning of the present step.
    cpu_entered: Duration,
    memory_bytes_peak: usize,
    large_pages: LargePages,
    pub(super) stopped: Option<Stopped>,
}

impl Watch {
    pub(super) fn new(bounds: GuestBounds, stop: StopHandle, clock: Clock) -> Self {
        Self {
            bounds,
            stop,
            clock,
            cpu_before: Duration::ZERO,
            cpu_entered: Duration::ZERO,
            memory_bytes_peak: 0,
            large_pages: LargePages::none(),
            stopped: None,
        }
    }

    pub(super) fn set_deadline(&mut self, deadline_at_ms: u64) {
        self.bounds.deadline_at_ms = deadline_at_ms;
    }

    /// Says where the guest's memory is.
    pub(super) fn set_memory(&mut self, memory: *const u8) {
        self.large_pages = LargePages::of(memory);
    }

    pub(super) fn enter(&mut self) {
        self.cpu_entered = thread_time();
    }

    pub(super) fn leave(&mut self) {
        self.cpu_before = self.cpu();
    }

    /// Computed so far, the present step included.
    fn cpu(&self) -> Duration {
        self.cpu_before + thread_time().saturating_sub(self.cpu_entered)
    }

    pub(super) fn cpu_us(&self) -> u64 {
        u64::try_from(self.cpu_before.as_micros()).unwrap_or(u64::MAX)
    }

    pub(super) fn memory_bytes_peak(&self) -> u64 {
        self.memory_bytes_peak as u64
    }

    /// Looks at everything that may end a guest; true when something does.
    pub(super) fn must_stop(&mut self) -> bool {
        self.must_stop_after(self.cpu())
    }

    /// The same between two steps, where nothing is computed and no clock need be asked for it.
    pub(super) fn must_not_begin(&mut self) -> bool {
        self.must_stop_after(self.cpu_before)
    }

    fn must_stop_after(&mut self, cpu: Duration) -> bool {
        if self.stop.is_stopped() {
            self.stopped = Some(Stopped::Outside);
        } else if cpu >= Duration::from_millis(self.bounds.cpu_ms_max) {
            self.stopped = Some(Stopped::Limit(Limit::Cpu));
        } else if self.clock.now_ms() >= self.bounds.deadline_at_ms {
            self.stopped = Some(Stopped::Limit(Limit::Time));
        }
        self.stopped.is_some()
    }
}

/// Processor time of this thread: a guest that waits for its turn on a busy
/// machine does not pay for it.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

impl ResourceLimiter for Watch {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired as u64 > self.bounds.memory_bytes_max {
            self.stopped = Some(Stopped::Limit(Limit::Memory));
            return Err(wasmtime::Error::msg("the guest may not have more memory"));
        }
        self.memory_bytes_peak = self.memory_bytes_peak.max(desired);
        self.large_pages.grow(desired, self.bounds.memory_bytes_max);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}
