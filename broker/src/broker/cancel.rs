//! Cancels a run from outside, also while its script computes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use airlock_sandbox::StopHandle;

/// Cancels one run. Cheap to clone; a second cancellation has no effect.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    /// Stops a guest that computes.
    stop: StopHandle,
    /// Wakes a run that waits.
    wanted: Arc<Mutex<CancelState>>,
    /// Held while a run polls timers and servers, which live on the runtime.
    listening: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct CancelState {
    why: Option<String>,
    /// Whether the caller dropped the run.
    is_abandoned: bool,
    /// Whether the runtime on which timers and servers live is about to end.
    is_runtime_ending: bool,
    waker: Option<std::task::Waker>,
}

impl Cancel {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.why.is_some()
    }

    /// Cancels the run: stops the guest, cancels calls in flight at their servers, and produces the
    /// report.
    pub fn cancel(&self, why: &str) {
        self.stop.stop();
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.why.get_or_insert_with(|| why.to_owned());
        if let Some(waker) = wanted.waker.take() {
            waker.wake();
        }
    }

    /// Cancels a run that its caller has dropped. A run that waits only for people and may be suspended
    /// is suspended instead.
    pub(crate) fn abandon(&self, why: &str) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_abandoned |= wanted.why.is_none();
        drop(wanted);
        self.cancel(why);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_abandoned
    }

    /// Cancels, and returns only when the run no longer polls timers or servers, which live on the
    /// runtime.
    pub(super) fn cancel_and_wait(&self, why: &str) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_runtime_ending = true;
        drop(wanted);
        self.cancel(why);
        drop(self.listening());
    }

    /// Ends a cancelled run that still waits for the outcomes of calls.
    pub(super) fn stop_waiting(&self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.is_runtime_ending = true;
        if let Some(waker) = wanted.waker.take() {
            waker.wake();
        }
    }

    /// Returns whether the run must not poll timers or servers any more. Otherwise a cancelled run
    /// may wait for outcomes for a short time.
    pub(crate) fn poll_runtime_end(&self, cx: &mut Context<'_>) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.waker = Some(cx.waker().clone());
        wanted.is_runtime_ending
    }

    /// Returns a lock. If the run is not cancelled, the holder may poll timers and servers: their
    /// runtime stays alive until the lock is released.
    pub(crate) fn listening(&self) -> MutexGuard<'_, ()> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop_handle(&self) -> &StopHandle {
        &self.stop
    }

    /// Returns the output of `future`, or `None` if the run is cancelled first. After a
    /// cancellation `future` is not polled again.
    pub(crate) async fn or<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            let _listening = self.listening();
            if self.poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Waits for a cancellation and returns its reason.
    pub async fn cancelled(&self) -> String {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Returns the reason of a cancellation once there is one. Only one task may poll at a time.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<String> {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &wanted.why {
            return Poll::Ready(why.clone());
        }
        if wanted
            .waker
            .as_ref()
            .is_none_or(|waker| !waker.will_wake(cx.waker()))
        {
            wanted.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}
