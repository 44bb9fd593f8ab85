//! Limits how many sandboxes compute at the same time, and queues the others.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use super::ledger::RunNumber;
use super::room::Wait;
use super::turns::{Turn, Turns};

/// Interrupts a guest that computes, so that it soon calls the host. Any thread may call this.
pub(crate) type Interrupt = Arc<dyn Fn() + Send + Sync>;

pub(super) struct Processor {
    turns: Mutex<Turns<Waiter, Interrupt>>,
    /// The number of waiting guests, readable without the lock.
    waiting: AtomicUsize,
}

/// The means to give a turn to a waiting guest.
struct Waiter {
    has_turn: Arc<AtomicBool>,
    thread: Thread,
    interrupt: Interrupt,
    computed_us: u64,
}

/// A request for a turn.
pub(super) struct TurnRequest<'a> {
    pub(super) run: RunNumber,
    pub(super) caller: &'a Arc<str>,
    /// How long the run has computed so far, in microseconds.
    pub(super) computed_us: u64,
}

impl TurnRequest<'_> {
    fn turn<T, W, C>(&self, turns: &Turns<W, C>, with: T) -> Turn<T> {
        Turn {
            run: self.run,
            caller: Arc::clone(self.caller),
            level: turns.level(self.caller, self.computed_us),
            is_failing: turns.is_failing(self.caller),
            is_assured: false,
            with,
        }
    }
}

impl Processor {
    pub(super) fn new(computing_max: usize) -> Self {
        Self {
            turns: Mutex::new(Turns::new(computing_max)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Returns the number of guests that compute, and the number that wait for a turn.
    pub(super) fn usage(&self) -> (usize, usize) {
        let turns = self.lock();
        (turns.computing(), turns.waiting())
    }

    /// Adds a run of this caller. Returns whether the caller's last run failed.
    pub(super) fn enter(&self, caller: &Arc<str>) -> bool {
        let mut turns = self.lock();
        turns.enter(caller);
        turns.is_failing(caller)
    }

    /// Removes a finished run, whether it computed or waited.
    pub(super) fn leave(&self, run: RunNumber, caller: &Arc<str>) {
        let mut turns = self.lock();
        turns.leave(caller);
        turns.end(run);
        self.give(turns);
    }

    /// Notes whether a run of this caller succeeded.
    pub(super) fn note_end(&self, caller: &Arc<str>, succeeded: bool) {
        self.lock().note_end(caller, succeeded);
    }

    /// Waits until the run has its turn or must stop.
    pub(super) fn begin(&self, wants: &TurnRequest<'_>, interrupt: &Interrupt, wait: &Wait<'_>) {
        let mut turns = self.lock();
        if turns.has_room(wants.caller) {
            let turn = wants.turn(&turns, Arc::clone(interrupt));
            return turns.begin(turn, wants.computed_us);
        }
        self.wait(turns, wants, Arc::clone(interrupt), wait);
    }

    /// Ends the turn of a run. `used_us` is the computing time for which its caller has not been
    /// charged yet. Returns the interrupt of the run if it had a turn.
    pub(super) fn end(&self, run: RunNumber, caller: &Arc<str>, used_us: u64) -> Option<Interrupt> {
        let mut turns = self.lock();
        turns.charge(caller, used_us);
        let ended = turns.end(run);
        self.give(turns);
        ended.map(|turn| turn.with)
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Yields to a waiting guest whose turn it is, and returns when this run has a turn again.
    /// Returns whether the run yielded.
    pub(super) fn make_way(&self, wants: &TurnRequest<'_>, used_us: u64, wait: &Wait<'_>) -> bool {
        let mut turns = self.lock();
        turns.charge(wants.caller, used_us);
        if !turns.makes_way(wants.run, wants.computed_us) {
            return false;
        }
        let Some(turn) = turns.end(wants.run) else {
            return false;
        };
        self.wait(turns, wants, turn.with, wait);
        true
    }

    fn wait(
        &self,
        mut turns: MutexGuard<'_, Turns<Waiter, Interrupt>>,
        wants: &TurnRequest<'_>,
        interrupt: Interrupt,
        wait: &Wait<'_>,
    ) {
        let has_turn = Arc::new(AtomicBool::new(false));
        let waiter = Waiter {
            has_turn: Arc::clone(&has_turn),
            thread: thread::current(),
            interrupt,
            computed_us: wants.computed_us,
        };
        let turn = wants.turn(&turns, waiter);
        let level = turn.level;
        turns.wait(turn);
        let pushed_aside = turns.displaced_by(level);
        let pushed_aside = pushed_aside.map(|turn| Arc::clone(&turn.with));
        self.give(turns);
        if let Some(interrupt) = pushed_aside {
            interrupt();
        }
        let is_given = || has_turn.load(Ordering::Acquire);
        wait.stop.wait(wait.at_most, is_given);
        if !is_given() {
            let mut turns = self.lock();
            turns.give_up(wants.run);
            self.note_waiting(&turns);
        }
    }

    /// Gives turns to the next guests while there is room.
    fn give(&self, mut turns: MutexGuard<'_, Turns<Waiter, Interrupt>>) {
        let mut woken = Vec::new();
        while let Some(Turn {
            run,
            caller,
            level,
            is_failing,
            is_assured,
            with,
        }) = turns.next()
        {
            let turn = Turn {
                run,
                caller,
                level,
                is_failing,
                is_assured,
                with: with.interrupt,
            };
            turns.begin(turn, with.computed_us);
            with.has_turn.store(true, Ordering::Release);
            woken.push(with.thread);
        }
        self.note_waiting(&turns);
        drop(turns);
        woken.iter().for_each(Thread::unpark);
    }

    fn note_waiting(&self, turns: &Turns<Waiter, Interrupt>) {
        self.waiting.store(turns.waiting(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Turns<Waiter, Interrupt>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
