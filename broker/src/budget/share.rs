//! One run's part of the budget.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::busy::Busy;
use super::ledger::BASE_BYTES;
use super::processor::{Interrupt, Processor, Wants};
use super::room::{Grown, Place, Room, Wait};
use super::turns::Level;

/// What a run may take while it goes on. Everything comes back when the last clone is dropped. The
/// guests of a run are on one thread, one after the other.
#[derive(Clone)]
pub(crate) struct Share(Arc<Inner>);

struct Inner {
    place: Place,
    room: Arc<Room>,
    processor: Arc<Processor>,
    /// By all its guests.
    computed_us: AtomicU64,
    /// Of that, what its caller was not charged for yet.
    uncharged_us: AtomicU64,
    /// Of all its guests that live.
    bytes: AtomicU64,
    has_own_thread: AtomicBool,
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("run", &self.0.place.run)
            .finish_non_exhaustive()
    }
}

impl Share {
    pub(super) fn new(place: Place, room: &Arc<Room>, processor: &Arc<Processor>) -> Self {
        processor.enter(&place.caller);
        Self(Arc::new(Inner {
            place,
            room: Arc::clone(room),
            processor: Arc::clone(processor),
            computed_us: AtomicU64::new(0),
            uncharged_us: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            has_own_thread: AtomicBool::new(false),
        }))
    }

    /// The run has a thread of its own: it may wait there for memory, and its
    /// priority may be lowered.
    pub(crate) fn on_own_thread(&self) {
        self.0.has_own_thread.store(true, Ordering::Relaxed);
    }

    /// The most memory that one run can have.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.0.room.run_bytes_max()
    }

    /// Returns when a guest of the run may compute, or when it is to be stopped instead.
    pub(crate) fn begin_turn(&self, interrupt: &Interrupt, wait: &Wait<'_>) {
        self.0.processor.begin(&self.wants(), interrupt, wait);
    }

    /// To be told about once a millisecond while a guest computes: it has done so for `used_us`
    /// since the last time. Waits while another guest has the turn.
    pub(crate) fn go_on(&self, used_us: u64, wait: &Wait<'_>) {
        self.note(used_us);
        if !self.0.processor.is_wanted() {
            return;
        }
        let wants = self.wants();
        let is_long = Level::of(wants.computed_us).is_long();
        let uncharged_us = self.0.uncharged_us.swap(0, Ordering::Relaxed);
        if self.0.processor.make_way(&wants, uncharged_us, wait)
            && is_long
            && self.0.has_own_thread.load(Ordering::Relaxed)
        {
            lower_priority();
        }
    }

    /// The guest answers, or is over.
    pub(crate) fn end_turn(&self, used_us: u64) {
        self.note(used_us);
        let _ = self.pause();
    }

    /// Why the run is refused when it may not grow.
    pub(crate) fn refuse_growth(&self) -> Busy {
        self.0.room.refuse_growth()
    }

    /// Memory for a guest of the run.
    pub(crate) fn charge(&self) -> Charge {
        Charge {
            share: self.clone(),
            bytes: AtomicU64::new(0),
        }
    }

    fn grow(&self, by: u64, wait: Option<&Wait<'_>>) -> Grown {
        let bytes = self.0.bytes.load(Ordering::Relaxed).saturating_add(by);
        let room = &self.0.room;
        let grown = if bytes <= BASE_BYTES {
            Grown::Yes
        } else if let grown @ Grown::Yes = room.grow(&self.0.place, bytes, None) {
            grown
        } else if let Some(wait) = wait.filter(|_| self.0.has_own_thread.load(Ordering::Relaxed)) {
            // Others compute meanwhile.
            let interrupt = self.pause();
            let grown = room.grow(&self.0.place, bytes, Some(wait));
            if let Some(interrupt) = interrupt {
                self.begin_turn(&interrupt, wait);
            }
            grown
        } else {
            Grown::No
        };
        if grown == Grown::Yes {
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

    fn note(&self, used_us: u64) {
        self.0.computed_us.fetch_add(used_us, Ordering::Relaxed);
        self.0.uncharged_us.fetch_add(used_us, Ordering::Relaxed);
    }

    fn pause(&self) -> Option<Interrupt> {
        let uncharged_us = self.0.uncharged_us.swap(0, Ordering::Relaxed);
        let Place { run, caller, .. } = &self.0.place;
        self.0.processor.end(*run, caller, uncharged_us)
    }

    fn wants(&self) -> Wants<'_> {
        Wants {
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

/// What one guest holds of its run's memory. Dropping it gives that back.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Share,
    bytes: AtomicU64,
}

impl Charge {
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// Lets the guest have `bytes` in all. Without `wait`, at once or not at all.
    pub(crate) fn grow_to(&self, bytes: u64, wait: Option<&Wait<'_>>) -> Grown {
        let by = bytes.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let grown = self.share.grow(by, wait);
        if grown == Grown::Yes {
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

/// How much less the kernel thinks of a thread that has computed long.
#[cfg(target_os = "linux")]
const NICER: i32 = 10;

/// Lets everything else go before this thread, once and for all: there is no way back, so this is
/// done only on threads that end with their run.
#[cfg(target_os = "linux")]
fn lower_priority() {
    thread_local! {
        static IS_LOWERED: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_LOWERED.replace(true) {
        // On Linux this is about the calling thread alone. A kernel that refuses changes nothing.
        let _ = rustix::process::nice(NICER);
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
