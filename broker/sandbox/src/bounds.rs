//! Stops a guest that reaches its bounds or the run's deadline, or that is stopped from outside.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::limits::{Limit, Limits};
use rustix::time::{ClockId, clock_gettime};
use wasmtime::ResourceLimiter;

use super::large_pages::LargePages;
use crate::budget::{Busy, Charge, GrowResult, Interrupt, RunShare, Wait};
use crate::clock::Clock;
use crate::stop_handle::StopHandle;

/// Maximum number of table elements. airlock's own guests do not grow their tables.
const TABLE_ELEMENTS_MAX: usize = super::TABLE_ELEMENTS_MAX;

/// A shorter step is charged its wall time instead of its processor time. Reading the thread's
/// processor time twice would take a fifteenth of a short run.
const BRIEF: Duration = Duration::from_millis(1);

/// Maximum time in milliseconds that a guest waits for anything.
const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

thread_local! {
    /// The processor time of this thread when it was last read.
    static LAST_ASKED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The bounds of one guest over all its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestBounds {
    pub cpu_ms_max: u64,
    pub memory_bytes_max: u64,
    /// The host time at which the run is over, in milliseconds since the epoch.
    pub deadline_at_ms: u64,
}

impl GuestBounds {
    /// Returns the bounds for these limits, without a deadline.
    #[must_use]
    pub fn from_limits(limits: &Limits) -> Self {
        Self {
            cpu_ms_max: limits.guest_cpu_ms_max,
            memory_bytes_max: limits.guest_memory_bytes_max,
            deadline_at_ms: u64::MAX,
        }
    }

    /// Returns the bounds that are left after `cpu_us` of computing.
    #[must_use]
    pub fn after(self, cpu_us: u64) -> Self {
        Self {
            cpu_ms_max: self.cpu_ms_max.saturating_sub(cpu_us / 1_000),
            ..self
        }
    }
}

/// How a guest is controlled from outside.
#[derive(Debug, Clone, Default)]
pub(super) struct GuestControl {
    pub(super) stop: StopHandle,
    /// The run's share of the budget, or `None` for a guest that belongs to no run.
    pub(super) share: Option<RunShare>,
    /// Whether the guest stops when the budget has no memory, instead of waiting.
    pub(super) never_waits: bool,
}

/// The reason for which a guest must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Limit(Limit),
    Outside,
    /// The budget has no memory for the guest.
    Busy,
}

/// Decides at each tick of the engine whether the guest may go on computing.
#[derive(Debug)]
pub(super) struct EpochGuard {
    bounds: GuestBounds,
    stop: StopHandle,
    /// The memory that the guest takes from the budget.
    charge: Option<Arc<Charge>>,
    never_waits: bool,
    clock: Clock,
    /// The time that the guest computed before the current step.
    cpu_before: Duration,
    /// The part of the current step's computing time that the run was already charged for.
    charged: Duration,
    /// The clock's time at the beginning of the current step.
    entered: Duration,
    /// The thread's processor time at the beginning of the current step, or a lower bound of it.
    /// Unknown until it is first read in this step.
    cpu_entered: Option<Duration>,
    memory_bytes_peak: usize,
    large_pages: LargePages,
    pub(super) stopped: Option<StopReason>,
}

impl EpochGuard {
    pub(super) fn new(bounds: GuestBounds, control: &GuestControl, clock: Clock) -> Self {
        let charge = control.share.as_ref().map(|share| Arc::new(share.charge()));
        Self {
            bounds,
            stop: control.stop.clone(),
            charge,
            never_waits: control.never_waits,
            clock,
            cpu_before: Duration::ZERO,
            charged: Duration::ZERO,
            entered: Duration::ZERO,
            cpu_entered: None,
            memory_bytes_peak: 0,
            large_pages: LargePages::none(),
            stopped: None,
        }
    }

    pub(super) fn set_deadline(&mut self, deadline_at_ms: u64) {
        self.bounds.deadline_at_ms = deadline_at_ms;
    }

    /// Sets the address of the guest's memory.
    pub(super) fn set_memory(&mut self, memory: *const u8) {
        self.large_pages = LargePages::new(memory);
    }

    /// Returns the memory account of the guest, which is held until all clones are dropped.
    pub(super) fn charge(&self) -> Option<Arc<Charge>> {
        self.charge.clone()
    }

    /// Waits until the guest may compute or must stop.
    pub(super) fn enter(&mut self, interrupt: &Interrupt) {
        if let Some(charge) = &self.charge {
            charge.share().begin_turn(interrupt, &self.wait());
        }
        self.entered = self.clock.passed();
        self.cpu_entered = None;
        self.charged = Duration::ZERO;
    }

    pub(super) fn leave(&mut self) {
        let took = self.clock.passed().saturating_sub(self.entered);
        let is_brief = took < BRIEF && self.cpu_entered.is_none();
        let computed = if is_brief { took } else { self.computed(took) };
        self.cpu_before += computed;
        if let Some(charge) = &self.charge {
            let used = computed.saturating_sub(self.charged);
            charge.share().end_turn(micros(used));
        }
    }

    fn wait(&self) -> Wait<'_> {
        let left_ms = self
            .bounds
            .deadline_at_ms
            .saturating_sub(self.clock.now_ms());
        Wait {
            stop: &self.stop,
            at_most: Duration::from_millis(left_ms.min(WAIT_MS_MAX)),
        }
    }

    /// Returns why the guest may not grow. The caller of the run receives this error.
    pub(super) fn refusal(&self) -> Option<Busy> {
        Some(self.charge.as_ref()?.share().refuse_growth())
    }

    /// Returns the computing time of the current step. The processor time at its beginning is
    /// estimated from the previous reading and the elapsed time, so the result is never too low.
    fn computed(&mut self, took: Duration) -> Duration {
        let now = thread_time();
        let before = LAST_ASKED.replace(now);
        let entered = *self
            .cpu_entered
            .get_or_insert_with(|| before.max(now.saturating_sub(took)));
        now.saturating_sub(entered)
    }

    pub(super) fn cpu_us(&self) -> u64 {
        micros(self.cpu_before)
    }

    pub(super) fn memory_bytes_peak(&self) -> u64 {
        self.memory_bytes_peak as u64
    }

    /// Checks all reasons to end the guest, and returns whether there is one. Waits while another
    /// guest has the turn.
    pub(super) fn must_stop(&mut self) -> bool {
        let passed = self.clock.passed();
        let computed = self.computed(passed.saturating_sub(self.entered));
        let cpu = self.cpu_before + computed;
        if self.must_stop_after(cpu, passed) {
            return true;
        }
        let Some(charge) = &self.charge else {
            return false;
        };
        let used = computed.saturating_sub(self.charged);
        charge.share().go_on(micros(used), &self.wait());
        self.charged = computed;
        let passed = self.clock.passed();
        self.must_stop_after(cpu, passed)
    }

    /// Does the checks of [`Self::must_stop`] at the beginning of a step. The guest has not yet
    /// computed, so no clock is read.
    pub(super) fn must_not_begin(&mut self) -> bool {
        self.must_stop_after(self.cpu_before, self.entered)
    }

    fn must_stop_after(&mut self, cpu: Duration, passed: Duration) -> bool {
        if self.stop.is_stopped() {
            self.stopped = Some(StopReason::Outside);
        } else if cpu >= Duration::from_millis(self.bounds.cpu_ms_max) {
            self.stopped = Some(StopReason::Limit(Limit::Cpu));
        } else if self.clock.ms_at(passed) >= self.bounds.deadline_at_ms {
            self.stopped = Some(StopReason::Limit(Limit::Time));
        }
        self.stopped.is_some()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the processor time of this thread. Unlike elapsed time, it does not include waits for a
/// processor on a busy machine.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

impl ResourceLimiter for EpochGuard {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired as u64 > self.bounds.memory_bytes_max {
            self.stopped = Some(StopReason::Limit(Limit::Memory));
            return Err(wasmtime::Error::msg("the guest reached its memory limit"));
        }
        if let Some(charge) = &self.charge {
            let wait = (!self.never_waits).then(|| self.wait());
            let grown = charge.grow_to(desired as u64, wait.as_ref());
            if grown != GrowResult::Yes {
                self.stopped = Some(match grown {
                    GrowResult::Stopped if self.stop.is_stopped() => StopReason::Outside,
                    GrowResult::Stopped => StopReason::Limit(Limit::Time),
                    GrowResult::Yes | GrowResult::No => StopReason::Busy,
                });
                return Err(wasmtime::Error::msg("no memory is left for the guest"));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> EpochGuard {
        let bounds = GuestBounds {
            cpu_ms_max: 1_000_000,
            memory_bytes_max: 0,
            deadline_at_ms: u64::MAX,
        };
        EpochGuard::new(bounds, &GuestControl::default(), Clock::start())
    }

    fn interrupt() -> Interrupt {
        Arc::new(|| {})
    }

    /// Computes until this thread has used the given processor time.
    fn compute(time: Duration) {
        let begun = thread_time();
        while thread_time() - begun < time {}
    }

    #[test]
    fn step_is_charged_its_cpu_time() {
        for is_looked_at in [false, true] {
            let mut guard = watch();
            let mut computed = Duration::ZERO;
            for time in [100_u64, 1_500, 7_000].map(Duration::from_micros) {
                guard.enter(&interrupt());
                compute(time);
                computed += time;
                if is_looked_at {
                    assert!(!guard.must_stop());
                    compute(time);
                    computed += time;
                }
                guard.leave();
                // The two clocks may differ slightly.
                let least = computed.mul_f64(0.99);
                assert!(guard.cpu_before >= least, "{computed:?}: {guard:?}");
            }
        }
    }

    #[test]
    fn step_is_not_charged_for_waiting_on_cpu() {
        let wait = Duration::from_millis(300);
        let mut guard = watch();
        guard.enter(&interrupt());
        assert!(!guard.must_stop());
        guard.leave();
        let before = guard.cpu_before;
        guard.enter(&interrupt());
        std::thread::sleep(wait);
        guard.leave();
        assert!(guard.cpu_before - before < wait, "{guard:?}");
    }

    #[test]
    fn computing_step_hits_cpu_limit() {
        let mut guard = watch();
        guard.bounds.cpu_ms_max = 5;
        guard.enter(&interrupt());
        assert!(!guard.must_not_begin());
        compute(Duration::from_millis(5));
        assert!(guard.must_stop());
        assert_eq!(guard.stopped, Some(StopReason::Limit(Limit::Cpu)));
        guard.leave();
        guard.stopped = None;
        guard.enter(&interrupt());
        assert!(guard.must_not_begin());
    }
}
