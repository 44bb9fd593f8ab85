//! Handles Ctrl-C and similar signals. The first signal cancels. If the program has not ended after
//! a time limit or at a second signal, the process exits at once. A separate thread waits for
//! signals, so that busy threads do not delay this.

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
use crate::login::finish_before_exit;

/// Maximum time for the program to end if it is cancelled during its start.
const START_WALL: Duration = Duration::from_millis(800);

/// Ignores SIGXFSZ: a write to a file at its size limit then fails with an error instead of ending
/// the process. Must be called inside the runtime.
pub(super) fn outlive_full_files() {
    // After a handler was registered, the signal never ends the process.
    let _ = signal(SignalKind::from_raw(Number::XFSZ.as_raw()));
}

/// The signals that this process handles.
#[derive(Debug)]
pub(super) struct Signals {
    is_started: Arc<AtomicBool>,
}

impl Signals {
    /// Cancels on SIGINT, SIGTERM and SIGHUP. `end_wall` is the maximum time for the program to end
    /// once it has started.
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
        // Without the thread, signals keep their default effect and end the program.
        if thread.spawn(move || listener.listen(&registered)).is_ok() {
            let _ = wait.recv();
        }
        Self { is_started }
    }

    /// Records that the start is complete.
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
            let is_expired = match wall {
                Some(wall) => tokio::time::timeout(wall, signals.next()).await.is_err(),
                None => {
                    signals.next().await;
                    false
                }
            };
            if !is_started {
                let what = "airlock was cancelled during its start";
                let problem = Problem::new("cancelled", what, why, "");
                self.screen.problem(&problem);
            }
            // A second signal ends the process at once.
            if is_expired {
                finish_before_exit();
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
            _ = self.hangup.recv() => "the terminal was closed (SIGHUP)",
        }
    }
}
