//! Delayed answers of the demo server: they wait concurrently and can be cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of answers that are delayed at the same time. Further ones start their delay
/// later.
const WAITING_MAX: usize = 8_192;

/// The delayed answers. Dropping this drops all of them.
pub(super) struct SlowCalls {
    outbox: mpsc::Sender<Vec<u8>>,
    places: Arc<Semaphore>,
    by_id: Arc<Mutex<HashMap<String, AbortHandle>>>,
    tasks: JoinSet<()>,
}

#[derive(Deserialize)]
struct CancelledParams<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'a RawValue,
}

impl SlowCalls {
    pub(super) fn new(outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            outbox,
            places: Arc::new(Semaphore::new(WAITING_MAX)),
            by_id: Arc::default(),
            tasks: JoinSet::new(),
        }
    }

    pub(super) async fn start(&mut self, id: &str, delay: Duration, bytes: Vec<u8>) {
        while self.tasks.try_join_next().is_some() {}
        let Ok(place) = self.places.clone().acquire_owned().await else {
            return;
        };
        let (outbox, by_id, key) = (self.outbox.clone(), self.by_id.clone(), id.to_owned());
        // The lock is held until the handle is in the map, because the task may end before this
        // function continues.
        let mut handles = lock(&self.by_id);
        let handle = self.tasks.spawn(async move {
            tokio::time::sleep(delay).await;
            lock(&by_id).remove(&key);
            let _ = outbox.send(bytes).await;
            drop(place);
        });
        handles.insert(id.to_owned(), handle);
    }

    pub(super) fn cancel(&self, params: Option<&RawValue>) {
        let cancelled = params
            .and_then(|params| serde_json::from_str::<CancelledParams<'_>>(params.get()).ok());
        let Some(cancelled) = cancelled else { return };
        if let Some(handle) = lock(&self.by_id).remove(cancelled.request_id.get()) {
            handle.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
