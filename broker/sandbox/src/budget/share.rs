//! One run's part of the budget.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::busy::Busy;
use super::ledger::BASE_BYTES;
use super::processor::{Interrupt, Processor, TurnRequest};
use super::room::{GrowResult, Place, Room, Wait};
use super::turns::Level;
use crate::thread_priority;

/// The resources that a run holds while it is in progress. They are returned when the last clone is
/// dropped. The guests of a run are on one thread, one after the other.
#[derive(Clone)]
pub struct RunShare(Arc<Inner>);

struct Inner {
    place: Place,
    room: Arc<Room>,
    processor: Arc<Processor>,
    /// Computing time of all guests of the run, in microseconds.
    computed_us: AtomicU64,
    /// The part of `computed_us` that the caller was not charged for yet.
    uncharged_us: AtomicU64,
    /// Memory in bytes of all live guests of the run.
    bytes: AtomicU64,
    has_own_thread: AtomicBool,
    /// Whether the caller's last run had failed when this run entered.
    is_of_failing_caller: bool,
}

impl fmt::Debug for RunShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("run", &self.0.place.run)
            .finish_non_exhaustive()
    }
}

impl RunShare {
    pub(super) fn new(place: Place, room: &Arc<Room>, processor: &Arc<Processor>) -> Self {
        let is_of_failing_caller = processor.enter(&place.caller);
        Self(Arc::new(Inner {
            place,
            room: Arc::clone(room),
            processor: Arc::clone(processor),
            computed_us: AtomicU64::new(0),
            uncharged_us: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            has_own_thread: AtomicBool::new(false),
            is_of_failing_caller,
        }))
    }

    /// Marks the run as having its own thread. It may wait there for memory, and the thread's
    /// priority may be lowered.
    pub fn on_own_thread(&self) {
        self.0.has_own_thread.store(true, Ordering::Relaxed);
    }

    /// Returns the maximum memory in bytes for one run.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.0.room.run_bytes_max()
    }

    /// Waits until a guest of the run may compute or must stop.
    pub(crate) fn begin_turn(&self, interrupt: &Interrupt, wait: &Wait<'_>) {
        // The thread also does work of the run outside the guest, such as writing its journal.
        if self.0.is_of_failing_caller {
            self.lower_priority();
        }
        self.0.processor.begin(&self.wants(), interrupt, wait);
    }

    /// Accounts for `used_us` of computing since the last call, and waits while another guest has
    /// the turn. Called about once per millisecond while a guest computes.
    pub(crate) fn go_on(&self, used_us: u64, wait: &Wait<'_>) {
        self.note(used_us);
        if !self.0.processor.is_wanted() {
            return;
        }
        let wants = self.wants();
        if Level::of(wants.computed_us).gives_way() {
            self.lower_priority();
        }
        let uncharged_us = self.0.uncharged_us.swap(0, Ordering::Relaxed);
        self.0.processor.make_way(&wants, uncharged_us, wait);
    }

    /// Ends the turn, because the guest answered or ended.
    pub(crate) fn end_turn(&self, used_us: u64) {
        self.note(used_us);
        let _ = self.pause();
    }

    /// Notes whether the run succeeded. If it failed, the caller's next run may wait longer.
    pub fn note_end(&self, succeeded: bool) {
        self.0.processor.note_end(&self.0.place.caller, succeeded);
    }

    /// Returns the error of a run that may not grow.
    pub(crate) fn refuse_growth(&self) -> Busy {
        self.0.room.refuse_growth()
    }

    /// Returns an account for the memory of one guest of the run.
    pub(crate) fn charge(&self) -> Charge {
        Charge {
            share: self.clone(),
            bytes: AtomicU64::new(0),
        }
    }

    fn grow(&self, by: u64, wait: Option<&Wait<'_>>) -> GrowResult {
        let bytes = self.0.bytes.load(Ordering::Relaxed).saturating_add(by);
        let room = &self.0.room;
        let grown = if bytes <= BASE_BYTES {
            GrowResult::Yes
        } else if let grown @ GrowResult::Yes = room.grow(&self.0.place, bytes, None) {
            grown
        } else if let Some(wait) = wait.filter(|_| self.0.has_own_thread.load(Ordering::Relaxed)) {
            // Other guests may compute during the wait.
            let interrupt = self.pause();
            let grown = room.grow(&self.0.place, bytes, Some(wait));
            if let Some(interrupt) = interrupt {
                self.begin_turn(&interrupt, wait);
            }
            grown
        } else {
            GrowResult::No
        };
        if grown == GrowResult::Yes {
            self.0.bytes.store(bytes, Ordering::Relaxed);
        }
        grown
    }

    fn shrink(&self, by: u64) {
        let before = self.0.bytes.load(Ordering::Relaxed);
        let bytes = before.saturating_sub(by);
        self.0.bytes.store(bytes, Ordering::Relaxed);
        if before > BASE_BYTES {
            self.0.room.shrink(self.0.place.run, bytes);
        }
    }

    fn lower_priority(&self) {
        if self.0.has_own_thread.load(Ordering::Relaxed) {
            thread_priority::give_way();
        }
    }

    fn note(&self, used_us: u64) {
        self.0.computed_us.fetch_add(used_us, Ordering::Relaxed);
        self.0.uncharged_us.fetch_add(used_us, Ordering::Relaxed);
    }

    fn pause(&self) -> Option<Interrupt> {
        let uncharged_us = self.0.uncharged_us.swap(0, Ordering::Relaxed);
        let Place { run, caller, .. } = &self.0.place;
        self.0.processor.end(*run, caller, uncharged_us)
    }

    fn wants(&self) -> TurnRequest<'_> {
        TurnRequest {
            run: self.0.place.run,
            caller: &self.0.place.caller,
            computed_us: self.0.computed_us.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.processor.leave(self.place.run, &self.place.caller);
    }
}

/// The part of a run's memory that one guest holds. Dropping it returns the memory.
#[derive(Debug)]
pub(crate) struct Charge {
    share: RunShare,
    bytes: AtomicU64,
}

impl Charge {
    pub(crate) fn share(&self) -> &RunShare {
        &self.share
    }

    /// Lets the guest hold `bytes` in total. Without `wait` the answer is immediate.
    pub(crate) fn grow_to(&self, bytes: u64, wait: Option<&Wait<'_>>) -> GrowResult {
        let by = bytes.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let grown = self.share.grow(by, wait);
        if grown == GrowResult::Yes {
            self.bytes.fetch_add(by, Ordering::Relaxed);
        }
        grown
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.shrink(self.bytes.load(Ordering::Relaxed));
    }
}
