//! What stops a guest: its own bounds, the run's deadline, and a word from outside.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use airlock_core::limits::{Limit, Limits};
use rustix::time::{ClockId, clock_gettime};
use wasmtime::ResourceLimiter;

use super::large_pages::LargePages;
use crate::budget::{Busy, Charge, Grown, Interrupt, Share, Wait};
use crate::clock::Clock;

/// Table elements that a guest may grow to; no guest of ours grows its table.
const TABLE_ELEMENTS_MAX: usize = super::TABLE_ELEMENTS_MAX;

/// A step that is over by then has computed as long as it took: asking the kernel twice for the
/// thread's own time is a fifteenth of a short run.
const BRIEF: Duration = Duration::from_millis(1);

/// No guest waits longer than this for anything.
const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

thread_local! {
    /// What this thread had computed when it was last asked.
    static LAST_ASKED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

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

    /// What is left of them when so much was computed before.
    #[must_use]
    pub fn after(self, cpu_us: u64) -> Self {
        Self {
            cpu_ms_max: self.cpu_ms_max.saturating_sub(cpu_us / 1_000),
            ..self
        }
    }
}

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

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Holds up this thread until `is_over`, whose end unparks it, or until the guest is stopped,
    /// but no longer than `at_most`.
    pub(crate) fn wait(&self, at_most: Duration, is_over: impl Fn() -> bool) {
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

/// What reaches a guest from outside.
#[derive(Debug, Clone, Default)]
pub(super) struct GuestControl {
    pub(super) stop: StopHandle,
    /// Its run's part of what all runs may take; none for a guest that belongs to no run.
    pub(super) share: Option<Share>,
    /// It ends where it would have to wait for memory.
    pub(super) never_waits: bool,
}

/// Why a guest must not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    Limit(Limit),
    Outside,
    /// All runs together have no memory for it.
    Busy,
}

/// What the engine asks while a guest computes.
#[derive(Debug)]
pub(super) struct Watch {
    bounds: GuestBounds,
    stop: StopHandle,
    /// What it takes of what all runs may take.
    charge: Option<Arc<Charge>>,
    never_waits: bool,
    clock: Clock,
    /// Computed before the present step.
    cpu_before: Duration,
    /// Of what it computed in the present step, what its run was charged for.
    charged: Duration,
    /// When the present step began, on the clock.
    entered: Duration,
    /// What the thread had computed then, or less; unknown until it is first asked in this step.
    cpu_entered: Option<Duration>,
    memory_bytes_peak: usize,
    large_pages: LargePages,
    pub(super) stopped: Option<Stopped>,
}

impl Watch {
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

    /// Says where the guest's memory is.
    pub(super) fn set_memory(&mut self, memory: *const u8) {
        self.large_pages = LargePages::of(memory);
    }

    /// What is held for the guest until this and all clones are dropped.
    pub(super) fn charge(&self) -> Option<Arc<Charge>> {
        self.charge.clone()
    }

    /// Returns when the guest may compute, or is to be stopped instead.
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

    /// Why the guest may not grow; the caller of the run gets this.
    pub(super) fn refusal(&self) -> Option<Busy> {
        Some(self.charge.as_ref()?.share().refuse_growth())
    }

    /// What the present step has computed. Where it began is known only by what came before and by
    /// how long ago that was, so it is never too little.
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

    /// Looks at everything that may end a guest; true when something does. Waits while it is
    /// another guest's turn.
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

    /// The same where a step begins, when nothing is computed and no clock need be asked for it.
    pub(super) fn must_not_begin(&mut self) -> bool {
        self.must_stop_after(self.cpu_before, self.entered)
    }

    fn must_stop_after(&mut self, cpu: Duration, passed: Duration) -> bool {
        if self.stop.is_stopped() {
            self.stopped = Some(Stopped::Outside);
        } else if cpu >= Duration::from_millis(self.bounds.cpu_ms_max) {
            self.stopped = Some(Stopped::Limit(Limit::Cpu));
        } else if self.clock.ms_at(passed) >= self.bounds.deadline_at_ms {
            self.stopped = Some(Stopped::Limit(Limit::Time));
        }
        self.stopped.is_some()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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
        if let Some(charge) = &self.charge {
            let wait = (!self.never_waits).then(|| self.wait());
            let grown = charge.grow_to(desired as u64, wait.as_ref());
            if grown != Grown::Yes {
                self.stopped = Some(match grown {
                    Grown::Stopped if self.stop.is_stopped() => Stopped::Outside,
                    Grown::Stopped => Stopped::Limit(Limit::Time),
                    Grown::Yes | Grown::No => Stopped::Busy,
                });
                return Err(wasmtime::Error::msg(
                    "there is no more memory for the guest",
                ));
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

    fn watch() -> Watch {
        let bounds = GuestBounds {
            cpu_ms_max: 1_000_000,
            memory_bytes_max: 0,
            deadline_at_ms: u64::MAX,
        };
        Watch::new(bounds, &GuestControl::default(), Clock::start())
    }

    fn interrupt() -> Interrupt {
        Arc::new(|| {})
    }

    /// Computes until this thread has done so for as long.
    fn compute(time: Duration) {
        let begun = thread_time();
        while thread_time() - begun < time {}
    }

    #[test]
    fn a_step_is_charged_for_what_it_computed() {
        for is_looked_at in [false, true] {
            let mut watch = watch();
            let mut computed = Duration::ZERO;
            for time in [100_u64, 1_500, 7_000].map(Duration::from_micros) {
                watch.enter(&interrupt());
                compute(time);
                computed += time;
                if is_looked_at {
                    assert!(!watch.must_stop());
                    compute(time);
                    computed += time;
                }
                watch.leave();
                // The two clocks may differ by a hair.
                let least = computed.mul_f64(0.99);
                assert!(watch.cpu_before >= least, "{computed:?}: {watch:?}");
            }
        }
    }

    #[test]
    fn a_step_that_has_to_wait_for_the_processor_does_not_pay_for_it() {
        let wait = Duration::from_millis(300);
        let mut watch = watch();
        watch.enter(&interrupt());
        assert!(!watch.must_stop());
        watch.leave();
        let before = watch.cpu_before;
        watch.enter(&interrupt());
        thread::sleep(wait);
        watch.leave();
        assert!(watch.cpu_before - before < wait, "{watch:?}");
    }

    #[test]
    fn a_step_that_computes_meets_its_bound() {
        let mut watch = watch();
        watch.bounds.cpu_ms_max = 5;
        watch.enter(&interrupt());
        assert!(!watch.must_not_begin());
        compute(Duration::from_millis(5));
        assert!(watch.must_stop());
        assert_eq!(watch.stopped, Some(Stopped::Limit(Limit::Cpu)));
        watch.leave();
        watch.stopped = None;
        watch.enter(&interrupt());
        assert!(watch.must_not_begin());
    }
}
