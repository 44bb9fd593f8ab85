//! Renewals that are under way. A server replaces the refresh token when it answers, so a renewal
//! must not end with the request that waits for it, and the process must not exit before the answer
//! is stored. The same holds for a login after the person has done their part.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// Maximum wait for renewals at the end of the process: the 10 s of a request, and the write.
const EXIT_WALL: Duration = Duration::from_secs(12);

static RENEWALS: Renewals = Renewals {
    state: Mutex::new(State {
        under_way: 0,
        is_exiting: false,
    }),
    ended: Condvar::new(),
};

struct Renewals {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    under_way: usize,
    is_exiting: bool,
}

/// A renewal whose request may have been sent and whose answer is not stored yet.
pub(super) struct UnderWay(());

impl UnderWay {
    /// Returns `None` if the process is about to exit. Nothing may be sent then.
    pub(super) fn begin() -> Option<Self> {
        let mut state = RENEWALS.lock();
        if state.is_exiting {
            return None;
        }
        state.under_way += 1;
        Some(Self(()))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        RENEWALS.lock().under_way -= 1;
        RENEWALS.ended.notify_all();
    }
}

impl Renewals {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a renewal to its end on a thread of its own, which neither the caller nor the end of the
/// caller's runtime stops.
pub(super) async fn run_to_end<T: Send + 'static>(
    renewal: impl Future<Output = T> + Send + 'static,
) -> std::io::Result<T> {
    let (tell, told) = oneshot::channel();
    let thread = std::thread::Builder::new().name("airlock-login".to_owned());
    thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // The caller may be gone.
        drop(tell.send(runtime.map(|it| it.block_on(renewal))));
    })?;
    told.await.map_err(std::io::Error::other)?
}

/// Waits until every renewal is stored. The process can exit then; no further renewal begins.
pub(crate) fn finish_before_exit() {
    let mut state = RENEWALS.lock();
    state.is_exiting = true;
    let ended = RENEWALS
        .ended
        .wait_timeout_while(state, EXIT_WALL, |it| it.under_way > 0);
    drop(ended);
}
