//! Ctrl-C and its like. The first signal cancels. A second one ends the program at
//! once, and so does the first if the program has not ended soon enough after it.
//! A thread of its own waits for signals, whatever the other threads compute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use airlock_core::problem::Problem;
use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit;
use super::screen::Screen;
use crate::broker::Cancel;

/// A start that was cancelled has this long to end by itself.
const START_WALL: Duration = Duration::from_millis(800);

/// A file that may not grow any more then fails the write, which has words for it, and
/// does not end the process. Call it inside the runtime.
pub(super) fn outlive_full_files() {
    // Once somebody listens to a signal, it ends nobody for as long as the process lives.
    let _ = signal(SignalKind::from_raw(Number::XFSZ.as_raw()));
}

/// The signals that this process listens to.
#[derive(Debug)]
pub(super) struct Signals {
    is_started: Arc<AtomicBool>,
}

impl Signals {
    /// Cancels on SIGINT, SIGTERM and SIGHUP. `end_wall`: how long the program may take to end
    /// by itself once it has started.
    pub(super) fn cancel(cancel: &Cancel, screen: &Screen, end_wall: Option<Duration>) -> Self {
        let is_started = Arc::new(AtomicBool::new(false));
        let listener = Listener {
            cancel: cancel.clone(),
            screen: screen.clone(),
            is_started: Arc::clone(&is_started),
            end_wall,
        };
        let (registered, wait) = mpsc::channel();
        let thread = std::thread::Builder::new().name("signals".to_owned());
        // Without the thread, each signal does what it does to any program: it ends this one.
        if thread.spawn(move || listener.listen(&registered)).is_ok() {
            let _ = wait.recv();
        }
        Self { is_started }
    }

    /// The start is over.
    pub(super) fn started(&self) {
        self.is_started.store(true, Ordering::Relaxed);
    }
}

struct Listener {
    cancel: Cancel,
    screen: Screen,
    is_started: Arc<AtomicBool>,
    end_wall: Option<Duration>,
}

impl Listener {
    fn listen(self, registered: &mpsc::Sender<()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let Ok(runtime) = runtime.enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut signals) = Three::register() else {
                return;
            };
            let _ = registered.send(());
            let why = signals.next().await;
            self.cancel.cancel(why);
            let is_started = self.is_started.load(Ordering::Relaxed);
            let wall = if is_started {
                self.end_wall
            } else {
                Some(START_WALL)
            };
            match wall {
                Some(wall) => drop(tokio::time::timeout(wall, signals.next()).await),
                None => drop(signals.next().await),
            }
            if !is_started {
                let problem = Problem::new("cancelled", "nothing was run", why, "");
                self.screen.problem(&problem);
            }
            std::process::exit(i32::from(exit::CANCELLED));
        });
    }
}

struct Three {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Three {
    fn register() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted (Ctrl-C)",
            _ = self.terminate.recv() => "terminated (SIGTERM)",
            _ = self.hangup.recv() => "the terminal is gone (SIGHUP)",
        }
    }
}
