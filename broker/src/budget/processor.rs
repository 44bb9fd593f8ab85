//! The processor: how many sandboxes compute at the same time, and who waits for a turn.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use super::ledger::RunNumber;
use super::room::Wait;
use super::turns::{Level, Turn, Turns};

/// Makes a guest that computes look up soon. Called from any thread.
pub(crate) type Interrupt = Arc<dyn Fn() + Send + Sync>;

pub(super) struct Processor {
    turns: Mutex<Turns<Waiter, Interrupt>>,
    /// Those that wait, to be seen without the lock.
    waiting: AtomicUsize,
}

/// How to give a turn to a guest that waits.
struct Waiter {
    has_turn: Arc<AtomicBool>,
    thread: Thread,
    interrupt: Interrupt,
    computed_us: u64,
}

/// Who wants a turn.
pub(super) struct Wants<'a> {
    pub(super) run: RunNumber,
    pub(super) caller: &'a Arc<str>,
    /// So far.
    pub(super) computed_us: u64,
}

impl Wants<'_> {
    fn turn<T>(&self, with: T) -> Turn<T> {
        Turn {
            run: self.run,
            caller: Arc::clone(self.caller),
            level: Level::of(self.computed_us),
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

    /// Those that compute, and those that wait for their turn.
    pub(super) fn usage(&self) -> (usize, usize) {
        let turns = self.lock();
        (turns.computing(), turns.waiting())
    }

    pub(super) fn enter(&self, caller: &Arc<str>) {
        self.lock().enter(caller);
    }

    /// The run is over, wherever it was.
    pub(super) fn leave(&self, run: RunNumber, caller: &Arc<str>) {
        let mut turns = self.lock();
        turns.leave(caller);
        turns.end(run);
        self.give(turns);
    }

    /// Returns when the run has its turn, or when it is to be stopped instead.
    pub(super) fn begin(&self, wants: &Wants<'_>, interrupt: &Interrupt, wait: &Wait<'_>) {
        let mut turns = self.lock();
        if turns.has_room() {
            let turn = wants.turn(Arc::clone(interrupt));
            return turns.begin(turn, wants.computed_us);
        }
        self.wait(turns, wants, Arc::clone(interrupt), wait);
    }

    /// The run computes no longer. `used_us`: what its caller has not been charged for. What
    /// interrupted it, if it had a turn.
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

    /// Yields to a waiting guest whose turn it is, and returns when it is this one's
    /// again. Whether it made way.
    pub(super) fn make_way(&self, wants: &Wants<'_>, used_us: u64, wait: &Wait<'_>) -> bool {
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
        wants: &Wants<'_>,
        interrupt: Interrupt,
        wait: &Wait<'_>,
    ) {
        let level = Level::of(wants.computed_us);
        let has_turn = Arc::new(AtomicBool::new(false));
        turns.wait(wants.turn(Waiter {
            has_turn: Arc::clone(&has_turn),
            thread: thread::current(),
            interrupt,
            computed_us: wants.computed_us,
        }));
        let pushed_aside = turns.pushed_aside_by(level);
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

    /// Gives turns to those who are next, as long as there is room.
    fn give(&self, mut turns: MutexGuard<'_, Turns<Waiter, Interrupt>>) {
        let mut woken = Vec::new();
        while let Some(Turn {
            run,
            caller,
            level,
            is_assured,
            with,
        }) = turns.next()
        {
            let turn = Turn {
                run,
                caller,
                level,
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
