//! Threads with a large stack, on which the checker guest may run. The guest recurses as deep as a
//! script nests, and may use more stack than an ordinary thread has.
//!
//! A thread that has finished its work waits a while for more. Starting a thread changes the memory
//! map of the process several times, and each change waits for all threads that use the map.

use std::cell::Cell;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::thread_priority;

/// Stack size of a large thread in bytes. Only the used part takes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Maximum stack in bytes that the checker guest may use.
pub(super) const GUEST_STACK_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of threads that wait for work. Each may hold the stack that it has used.
const IDLE_MAX: usize = 8;

/// How long a thread waits for work.
const IDLE_WALL: Duration = Duration::from_secs(2);

type Work = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<IdleThread>> = Mutex::new(Vec::new());

struct IdleThread {
    id: thread::ThreadId,
    work: Sender<Work>,
}

thread_local! {
    static IS_LARGE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on a thread whose stack is large enough for the checker. Checks on this thread need
/// no other thread.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut work: Work = Box::new(work);
    loop {
        let Some(thread) = idle_threads().pop() else {
            break;
        };
        match thread.work.send(work) {
            Ok(()) => return Ok(()),
            Err(unsent) => work = unsent.0,
        }
    }
    let thread = Builder::new().name("run".to_owned());
    let started = thread.stack_size(STACK_BYTES).spawn(move || {
        IS_LARGE.set(true);
        run_all(work);
    });
    started.map(drop)
}

/// Runs work until there is none for a while.
fn run_all(first: Work) {
    let (sender, receiver) = channel();
    let mut next = Some(first);
    while let Some(work) = next {
        thread_priority::run_soon();
        work();
        next = wait_for_work(&sender, &receiver);
    }
}

fn wait_for_work(sender: &Sender<Work>, receiver: &Receiver<Work>) -> Option<Work> {
    let id = thread::current().id();
    {
        let mut idle = idle_threads();
        if idle.len() >= IDLE_MAX {
            return None;
        }
        let work = sender.clone();
        idle.push(IdleThread { id, work });
    }
    match receiver.recv_timeout(IDLE_WALL) {
        Ok(work) => return Some(work),
        Err(RecvTimeoutError::Disconnected) => return None,
        Err(RecvTimeoutError::Timeout) => {}
    }
    let mut idle = idle_threads();
    let place = idle.iter().position(|it| it.id == id);
    if let Some(place) = place {
        idle.remove(place);
        return None;
    }
    drop(idle);
    // Another thread has just chosen this one.
    receiver.recv().ok()
}

fn idle_threads() -> MutexGuard<'static, Vec<IdleThread>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `run` on this thread if its stack is large, and otherwise on a new thread that is awaited.
/// Returns `None` if no thread can be started.
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

/// Does the same as [`run`], without blocking the current thread.
pub(super) async fn run_aside<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if IS_LARGE.get() {
        return Some(run());
    }
    let (done, result) = oneshot::channel();
    spawn(move || drop(done.send(run()))).ok()?;
    result.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs work on a large thread, and returns the thread's id.
    fn thread_of(work: impl FnOnce() + Send + 'static) -> Option<thread::ThreadId> {
        let (done, id) = channel();
        spawn(move || {
            let own = thread::current().id();
            work();
            let _ = done.send(own);
        })
        .unwrap();
        id.recv().ok()
    }

    #[test]
    fn idle_thread_gets_the_next_work() {
        // Other tests use these threads too, so one piece of work may find its thread busy.
        let mut threads: Vec<_> = (0..50)
            .map(|_| {
                thread::sleep(Duration::from_millis(2));
                thread_of(|| ()).unwrap()
            })
            .collect();
        threads.sort_unstable_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert!(threads.len() < 50, "{threads:?}");
    }

    #[test]
    fn work_that_panics_ends_its_thread_only() {
        assert_eq!(thread_of(|| panic!("expected by the test")), None);
        assert!(thread_of(|| assert!(IS_LARGE.get())).is_some());
    }

    #[test]
    fn more_work_than_idle_threads_runs_at_once() {
        let (begun, all) = channel();
        let (go, wait) = channel::<()>();
        let wait = std::sync::Arc::new(Mutex::new(wait));
        for _ in 0..3 * IDLE_MAX {
            let (begun, wait) = (begun.clone(), std::sync::Arc::clone(&wait));
            let work = move || {
                let _ = begun.send(());
                let _ = wait.lock().map(|it| it.recv());
            };
            spawn(work).unwrap();
        }
        for _ in 0..3 * IDLE_MAX {
            all.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        drop(go);
    }
}
