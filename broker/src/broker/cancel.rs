//! Ending a run from outside, also while its script computes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use crate::sandbox::StopHandle;

/// Cancels one run. Cheap to clone; cancelling twice is cancelling once.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    /// Reaches a guest that computes.
    stop: StopHandle,
    /// Reaches a run that waits.
    wanted: Arc<Mutex<Wanted>>,
    /// Held while a run polls what lives on the runtime.
    listening: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Wanted {
    why: Option<String>,
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

    /// The guest is stopped, servers are told about calls in flight, and the report is made.
    pub fn cancel(&self, why: &str) {
        self.stop.stop();
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.why.get_or_insert_with(|| why.to_owned());
        if let Some(waker) = wanted.waker.take() {
            waker.wake();
        }
    }

    /// Cancels, and returns only when the run polls nothing any more that lives on the runtime.
    pub(super) fn cancel_and_hush(&self, why: &str) {
        self.cancel(why);
        drop(self.listening());
    }

    /// Whoever holds this and then finds nothing cancelled may poll timers and servers: the
    /// runtime that they live on stays until it is let go.
    pub(crate) fn listening(&self) -> MutexGuard<'_, ()> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop_handle(&self) -> &StopHandle {
        &self.stop
    }

    /// What comes of `future`, unless somebody cancels first: nothing of it is polled after that.
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

    /// Waits until somebody cancels, and says why.
    pub async fn cancelled(&self) -> String {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Why the run is to end, when it is. One task polls at a time.
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
