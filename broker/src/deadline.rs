//! The time limit of a call. It is paused while the call waits for an answer of a person or of the
//! host.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A time limit. Cheap to clone; all clones share the same time.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    within: Duration,
    clock: Arc<watch::Sender<DeadlineState>>,
}

#[derive(Debug, Clone, Copy)]
struct DeadlineState {
    over_at: Instant,
    held: u32,
    held_since: Instant,
}

/// The error for an exceeded time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadlineExceeded;

/// Pauses the time limit until it is dropped.
#[derive(Debug)]
pub(crate) struct DeadlinePause(Deadline);

impl Deadline {
    pub(crate) fn new(within: Duration) -> Self {
        let now = Instant::now();
        let clock = DeadlineState {
            over_at: now + within,
            held: 0,
            held_since: now,
        };
        Self {
            within,
            clock: Arc::new(watch::Sender::new(clock)),
        }
    }

    pub(crate) fn within(&self) -> Duration {
        self.within
    }

    pub(crate) fn hold(&self) -> DeadlinePause {
        self.clock.send_modify(|clock| {
            if clock.held == 0 {
                clock.held_since = Instant::now();
            }
            clock.held += 1;
        });
        DeadlinePause(self.clone())
    }

    /// Returns the number of current pauses.
    pub(crate) fn holds(&self) -> u32 {
        self.clock.borrow().held
    }

    /// Returns the output of `future` if it completes in time.
    pub(crate) async fn limit<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, DeadlineExceeded> {
        tokio::select! {
            biased;
            value = future => Ok(value),
            () = self.over() => Err(DeadlineExceeded),
        }
    }

    async fn over(&self) {
        let mut changes = self.clock.subscribe();
        loop {
            let clock = *changes.borrow_and_update();
            let passes = async {
                if clock.held > 0 {
                    std::future::pending::<()>().await;
                }
                sleep_until(clock.over_at).await;
            };
            tokio::select! {
                () = passes => return,
                // This never fails, because the sender lives in `self`.
                _ = changes.changed() => {}
            }
        }
    }
}

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        self.0.clock.send_modify(|clock| {
            clock.held = clock.held.saturating_sub(1);
            if clock.held == 0 {
                clock.over_at += clock.held_since.elapsed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadline_pauses_while_held() {
        let deadline = Deadline::new(Duration::from_secs(10));
        let begun = Instant::now();
        let (first, second) = (deadline.hold(), deadline.hold());
        let letting_go = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(first);
            tokio::time::sleep(Duration::from_secs(40)).await;
            drop(second);
        };
        let never = deadline.limit(std::future::pending::<()>());
        let (ended, ()) = futures_util::join!(never, letting_go);
        assert_eq!(ended, Err(DeadlineExceeded));
        assert_eq!(begun.elapsed(), Duration::from_secs(110));
    }

    #[tokio::test(start_paused = true)]
    async fn result_within_deadline_is_returned() {
        let deadline = Deadline::new(Duration::from_secs(10));
        assert_eq!(deadline.limit(async { 1 }).await, Ok(1));
        let late = tokio::time::sleep(Duration::from_secs(11));
        assert_eq!(deadline.limit(late).await, Err(DeadlineExceeded));
    }
}
