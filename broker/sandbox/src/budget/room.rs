//! Decides which runs are admitted, which may use more memory, and which wait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::busy::{Busy, BusyReason};
use super::ledger::{Ledger, RunNumber};
use super::queue::{FairQueue, Ticket};
use crate::stop_handle::StopHandle;

/// Assumed duration of a run in milliseconds, before the first run has ended.
const RUN_MS_ASSUMED: u64 = 1_000;
/// The latest run counts as one part in this many in the moving average of durations.
const RUN_MS_SHARE: u64 = 8;
/// The shortest and the longest `retry_after` of a refused run, in milliseconds.
const RETRY_MS: std::ops::RangeInclusive<u64> = 1_000..=60_000;

#[derive(Debug)]
pub(super) struct Room {
    state: Mutex<State>,
    queue_wall: Duration,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    waiting: FairQueue<WaitingEntry>,
    growing: Vec<WaitingGrowth>,
    latest: RunNumber,
    refused: u64,
    run_ms: u64,
}

/// A run that waits to be admitted.
#[derive(Debug)]
struct WaitingEntry {
    bytes: u64,
    caller: Arc<str>,
    entered: oneshot::Sender<Place>,
}

/// A run that waits to grow.
#[derive(Debug)]
struct WaitingGrowth {
    run: RunNumber,
    caller: Arc<str>,
    bytes: u64,
    may_grow: Arc<AtomicBool>,
    thread: Thread,
}

/// A run's place in the budget, from its start to its end. Dropping it makes room for others.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    pub(super) run: RunNumber,
    pub(super) caller: Arc<str>,
    since: Instant,
}

/// The events that end a wait, apart from free room.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    pub(crate) stop: &'a StopHandle,
    /// The time until the run's own deadline.
    pub(crate) at_most: Duration,
}

/// The result of a request for more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrowResult {
    Yes,
    /// No room was free in time.
    No,
    /// The run was stopped, or its time is over.
    Stopped,
}

/// The current usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoomUsage {
    pub(super) runs: usize,
    pub(super) waiting: usize,
    pub(super) growing: usize,
    pub(super) bytes: u64,
    pub(super) refused: u64,
}

/// Notifications to send after the lock is released.
#[derive(Default)]
struct PendingWakeups {
    let_in: Vec<(oneshot::Sender<Place>, Place)>,
    woken: Vec<Thread>,
}

impl PendingWakeups {
    fn tell(self) {
        self.woken.iter().for_each(Thread::unpark);
        for (entered, place) in self.let_in {
            // If the receiver is gone, `send` returns the place, and dropping it makes room.
            drop(entered.send(place));
        }
    }
}

impl Room {
    pub(super) fn new(ledger: Ledger, queue_wall: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                ledger,
                waiting: FairQueue::default(),
                growing: Vec::new(),
                latest: 0,
                refused: 0,
                run_ms: RUN_MS_ASSUMED,
            }),
            queue_wall,
        }
    }

    pub(super) fn run_bytes_max(&self) -> u64 {
        self.lock().ledger.run_bytes_max()
    }

    pub(super) fn usage(&self) -> RoomUsage {
        let state = self.lock();
        RoomUsage {
            runs: state.ledger.runs(),
            waiting: state.waiting.len(),
            growing: state.growing.len(),
            bytes: state.ledger.held(),
            refused: state.refused,
        }
    }

    /// Returns a place for a run that may use `bytes`, if one is free and no run waits.
    pub(super) fn try_enter(self: &Arc<Self>, caller: &Arc<str>, bytes: u64) -> Option<Place> {
        let mut state = self.lock();
        let is_free = state.waiting.is_empty() && state.ledger.admits(bytes);
        is_free.then(|| self.let_in(&mut state, caller, bytes))
    }

    /// Waits for a place for a run that may use `bytes`. Dropping the future gives up.
    pub(super) async fn enter(
        self: &Arc<Self>,
        caller: &Arc<str>,
        bytes: u64,
    ) -> Result<Place, Busy> {
        if let Some(place) = self.try_enter(caller, bytes) {
            return Ok(place);
        }
        let (entered, place) = oneshot::channel();
        let entering = WaitingEntry {
            bytes,
            caller: Arc::clone(caller),
            entered,
        };
        let waits = QueueGuard {
            ticket: self.lock().waiting.push(caller, entering),
            room: self,
        };
        // Room may have become free in between.
        self.settle(self.lock());
        let came = timeout(self.queue_wall, place).await;
        drop(waits);
        match came {
            Ok(Ok(place)) => Ok(place),
            _ => Err(self.refuse()),
        }
    }

    /// Lets a run hold `bytes` in total, after a wait if necessary.
    pub(super) fn grow(
        self: &Arc<Self>,
        place: &Place,
        bytes: u64,
        wait: Option<&Wait<'_>>,
    ) -> GrowResult {
        let run = place.run;
        let mut state = self.lock();
        if state.growing.is_empty() && state.ledger.may_hold(run, bytes) {
            state.ledger.hold(run, bytes);
            return GrowResult::Yes;
        }
        let Some(wait) = wait else {
            return GrowResult::No;
        };
        let may_grow = Arc::new(AtomicBool::new(false));
        state.growing.push(WaitingGrowth {
            run,
            caller: Arc::clone(&place.caller),
            bytes,
            may_grow: Arc::clone(&may_grow),
            thread: thread::current(),
        });
        self.settle(state);
        let at_most = wait.at_most.min(self.queue_wall);
        wait.stop.wait(at_most, || may_grow.load(Ordering::Acquire));
        let mut state = self.lock();
        state.growing.retain(|it| it.run != run);
        match () {
            () if may_grow.load(Ordering::Acquire) => GrowResult::Yes,
            () if wait.stop.is_stopped() || wait.at_most < self.queue_wall => GrowResult::Stopped,
            () => GrowResult::No,
        }
    }

    /// Reduces the memory of a run to `bytes`.
    pub(super) fn shrink(self: &Arc<Self>, run: RunNumber, bytes: u64) {
        let mut state = self.lock();
        state.ledger.hold(run, bytes);
        self.settle(state);
    }

    /// Returns the error of a run that waited to grow without success.
    pub(super) fn refuse_growth(&self) -> Busy {
        let mut state = self.lock();
        state.refused += 1;
        Busy {
            scarce: BusyReason::Memory {
                bytes: state.ledger.total(),
            },
            waited: self.queue_wall,
            retry_after: state.retry_after(),
        }
    }

    fn refuse(&self) -> Busy {
        let mut state = self.lock();
        state.refused += 1;
        let ledger = &state.ledger;
        let scarce = match ledger.runs() >= ledger.runs_max() {
            true => BusyReason::Runs {
                runs: ledger.runs_max(),
            },
            false => BusyReason::Memory {
                bytes: ledger.total(),
            },
        };
        Busy {
            scarce,
            waited: self.queue_wall,
            retry_after: state.retry_after(),
        }
    }

    fn let_in(self: &Arc<Self>, state: &mut State, caller: &Arc<str>, bytes: u64) -> Place {
        state.latest += 1;
        state.ledger.admit(state.latest, bytes);
        Place {
            room: Arc::clone(self),
            run: state.latest,
            caller: Arc::clone(caller),
            since: Instant::now(),
        }
    }

    /// Grants free room to waiting runs. Runs that have begun come first, so that they can finish.
    fn settle(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let mut settled = PendingWakeups::default();
        state.let_grow(&mut settled);
        while let Some(first) = state.waiting.first()
            && state.ledger.admits(first.bytes)
            && let Some(WaitingEntry {
                bytes,
                caller,
                entered,
            }) = state.waiting.pop()
        {
            let place = self.let_in(&mut state, &caller, bytes);
            settled.let_in.push((entered, place));
        }
        drop(state);
        settled.tell();
    }

    fn leave(self: &Arc<Self>, place: &Place) {
        let took = u64::try_from(place.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut state = self.lock();
        state.run_ms = state.run_ms - state.run_ms / RUN_MS_SHARE + took / RUN_MS_SHARE;
        state.ledger.release(place.run);
        self.settle(state);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets waiting runs grow. The caller that requests the least memory in total comes first, then
    /// the run that arrived first.
    fn let_grow(&mut self, settled: &mut PendingWakeups) {
        if self.growing.is_empty() {
            return;
        }
        let mut asked: HashMap<Arc<str>, u64> = HashMap::new();
        for growing in &self.growing {
            *asked.entry(Arc::clone(&growing.caller)).or_default() += growing.bytes;
        }
        self.growing
            .sort_by_key(|it| asked.get(&it.caller).copied().unwrap_or_default());
        for growing in &self.growing {
            if self.ledger.may_hold(growing.run, growing.bytes) {
                self.ledger.hold(growing.run, growing.bytes);
                growing.may_grow.store(true, Ordering::Release);
                settled.woken.push(growing.thread.clone());
            }
        }
        self.growing
            .retain(|it| !it.may_grow.load(Ordering::Relaxed));
    }

    /// Returns the estimated time until the runs that wait now have had their turn.
    fn retry_after(&self) -> Duration {
        let ahead = (self.waiting.len() + self.growing.len()) as u64 + 1;
        let at_once = (self.ledger.runs() as u64).max(1);
        let ms = self.run_ms.saturating_mul(ahead.div_ceil(at_once));
        Duration::from_millis(ms.clamp(*RETRY_MS.start(), *RETRY_MS.end()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let room = Arc::clone(&self.room);
        room.leave(self);
    }
}

/// Removes a waiting run from the queue when it is dropped.
struct QueueGuard<'a> {
    room: &'a Arc<Room>,
    ticket: Ticket,
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        let entering = self.room.lock().waiting.remove(self.ticket);
        drop(entering);
    }
}
