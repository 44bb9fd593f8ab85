//! The demo server's slow answers: they wait side by side and can be cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// More than this many wait for one of the others before they begin to wait.
const WAITING_MAX: usize = 8_192;

/// Dropping it drops all that still waits.
pub(super) struct Waiting {
    outbox: mpsc::Sender<Vec<u8>>,
    places: Arc<Semaphore>,
    by_id: Arc<Mutex<HashMap<String, AbortHandle>>>,
    tasks: JoinSet<()>,
}

#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'a RawValue,
}

impl Waiting {
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
        // Held until the handle is in the map: the task may end before we come back.
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
        let cancelled =
            params.and_then(|params| serde_json::from_str::<Cancelled<'_>>(params.get()).ok());
        let Some(cancelled) = cancelled else { return };
        if let Some(handle) = lock(&self.by_id).remove(cancelled.request_id.get()) {
            handle.abort();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
