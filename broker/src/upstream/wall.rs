//! How long a call may take. The time stands still while somebody else is asked
//! something on the call's behalf.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Cheap to clone; all clones are the same time.
#[derive(Debug, Clone)]
pub(crate) struct Wall {
    within: Duration,
    clock: Arc<watch::Sender<Clock>>,
}

#[derive(Debug, Clone, Copy)]
struct Clock {
    over_at: Instant,
    held: u32,
    held_since: Instant,
}

/// The time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Over;

/// Nothing of the time passes until this is dropped.
#[derive(Debug)]
pub(crate) struct Held(Wall);

impl Wall {
    pub(crate) fn new(within: Duration) -> Self {
        let now = Instant::now();
        let clock = Clock {
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

    pub(crate) fn hold(&self) -> Held {
        self.clock.send_modify(|clock| {
            if clock.held == 0 {
                clock.held_since = Instant::now();
            }
            clock.held += 1;
        });
        Held(self.clone())
    }

    /// How many hold it.
    pub(crate) fn holds(&self) -> u32 {
        self.clock.borrow().held
    }

    /// What comes of `future`, when it comes in time.
    pub(crate) async fn limit<T>(&self, future: impl Future<Output = T>) -> Result<T, Over> {
        tokio::select! {
            biased;
            value = future => Ok(value),
            () = self.over() => Err(Over),
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
                // The sender lives in `self`.
                _ = changes.changed() => {}
            }
        }
    }
}

impl Drop for Held {
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
    async fn the_time_stands_still_while_it_is_held() {
        let wall = Wall::new(Duration::from_secs(10));
        let begun = Instant::now();
        let (first, second) = (wall.hold(), wall.hold());
        let letting_go = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(first);
            tokio::time::sleep(Duration::from_secs(40)).await;
            drop(second);
        };
        let never = wall.limit(std::future::pending::<()>());
        let (ended, ()) = futures_util::join!(never, letting_go);
        assert_eq!(ended, Err(Over));
        assert_eq!(begun.elapsed(), Duration::from_secs(110));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_in_time_comes() {
        let wall = Wall::new(Duration::from_secs(10));
        assert_eq!(wall.limit(async { 1 }).await, Ok(1));
        let late = tokio::time::sleep(Duration::from_secs(11));
        assert_eq!(wall.limit(late).await, Err(Over));
    }
}
