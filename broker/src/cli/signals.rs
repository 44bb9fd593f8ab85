//! Ctrl-C and its like: the first one ends the run cleanly, a second one at once.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::exit;
use crate::broker::Cancel;

/// A file that may not grow any more then fails the write, which has words for it, and
/// does not end the process. Call it inside the runtime.
pub(super) fn outlive_full_files() {
    // Once somebody listens to a signal, it ends nobody for as long as the process lives.
    let _ = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
}

/// Cancels on SIGINT, SIGTERM and SIGHUP. Call it inside the runtime.
pub(super) fn cancel_on_signals(cancel: &Cancel) {
    for (kind, why) in [
        (SignalKind::interrupt(), "interrupted (Ctrl-C)"),
        (SignalKind::terminate(), "terminated (SIGTERM)"),
        (SignalKind::hangup(), "the terminal is gone (SIGHUP)"),
    ] {
        let cancel = cancel.clone();
        if let Ok(mut signal) = signal(kind) {
            tokio::spawn(async move {
                signal.recv().await;
                cancel.cancel(why);
                signal.recv().await;
                std::process::exit(i32::from(exit::CANCELLED));
            });
        }
    }
}
