//! Threads on which the checker guest may run: it recurses as deep as a script nests, and its
//! engine lets it use more stack than an ordinary thread has.

use std::cell::Cell;
use std::thread::{self, Builder, JoinHandle};

use tokio::sync::oneshot;

/// What such a thread has. Only what is used of it becomes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Stack that the checker guest may use.
pub(super) const GUEST_STACK_BYTES: usize = 4 * 1024 * 1024;

thread_local! {
    static IS_LARGE: Cell<bool> = const { Cell::new(false) };
}

/// Starts a thread with a stack that is large enough for the checker, so that checks on it need no
/// other thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let large = move || {
        IS_LARGE.set(true);
        run()
    };
    Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(large)
}

/// Runs here where the stack is large, and else on a thread of its own, which is waited for. None
/// when no thread can be started.
pub(super) fn run<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    if IS_LARGE.get() {
        return Some(run());
    }
    thread::scope(|scope| {
        let large = Builder::new()
            .name("checker".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || {
                IS_LARGE.set(true);
                run()
            });
        large.ok()?.join().ok()
    })
}

/// The same, without holding up the thread that waits.
pub(super) async fn run_aside<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if IS_LARGE.get() {
        return Some(run());
    }
    let (done, result) = oneshot::channel();
    spawn("checker", move || drop(done.send(run()))).ok()?;
    result.await.ok()
}
