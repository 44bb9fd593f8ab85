//! The ticker: a thread that makes computing guests check their bounds once per millisecond. The
//! thread sleeps while no guest computes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::EngineWeak;

const TICK: Duration = Duration::from_millis(1);

/// Maximum number of ticks without a computing guest before the thread sleeps. Waking it costs more
/// than a few idle ticks.
const IDLE_TICKS_MAX: u32 = 20;

pub(super) struct Ticker {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    computing: AtomicUsize,
    asleep: AtomicBool,
    ended: AtomicBool,
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

impl Ticker {
    pub(super) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let theirs = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("guest ticker".to_owned())
            .spawn(move || tick(&theirs, &engine))?;
        Ok(Self {
            state,
            thread: Some(thread),
        })
    }

    /// Ticks until the returned guard is dropped.
    pub(super) fn while_computing(&self) -> ComputingGuard<'_> {
        self.state.computing.fetch_add(1, Ordering::SeqCst);
        if self.state.asleep.swap(false, Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        ComputingGuard(&self.state)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

pub(super) struct ComputingGuard<'a>(&'a State);

impl Drop for ComputingGuard<'_> {
    fn drop(&mut self) {
        self.0.computing.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(state: &State, engine: &EngineWeak) {
    let mut idle = 0;
    while !state.ended.load(Ordering::SeqCst) {
        if state.computing.load(Ordering::SeqCst) > 0 {
            idle = 0;
        } else {
            idle += 1;
        }
        if idle > IDLE_TICKS_MAX {
            state.asleep.store(true, Ordering::SeqCst);
            // A guest that began in between has either seen `asleep` or is counted here.
            if state.computing.load(Ordering::SeqCst) == 0 && !state.ended.load(Ordering::SeqCst) {
                thread::park();
            }
            state.asleep.store(false, Ordering::SeqCst);
            idle = 0;
            continue;
        }
        thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}
