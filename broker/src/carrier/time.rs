//! How long somebody has for what is wanted of them. The time does not pass while it stands in
//! line behind another question, nor while a host has it in hand and has not come back.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::upstream::wall::{Held, Over, Wall};

/// Cheap to clone; all clones are the same time.
#[derive(Debug, Clone)]
pub struct Time {
    wall: Wall,
    in_hand_max: Duration,
}

/// Nothing of the time passes until this is dropped.
#[derive(Debug)]
pub struct Still {
    _held: Option<Held>,
    /// Ends what is held elsewhere.
    _ends: Option<oneshot::Sender<()>>,
}

impl Time {
    pub(crate) fn new(within: Duration) -> Self {
        Self::of(Wall::new(within), within)
    }

    pub(crate) fn of(wall: Wall, in_hand_max: Duration) -> Self {
        Self { wall, in_hand_max }
    }

    /// It is not the turn of this yet.
    #[must_use]
    pub fn stand_still(&self) -> Still {
        Still {
            _held: Some(self.wall.hold()),
            _ends: None,
        }
    }

    /// A host has gone away with it, and comes back or not. Called where a tokio runtime is
    /// entered.
    pub(crate) fn in_hand(&self) -> Still {
        let (held, longest) = (self.wall.hold(), self.in_hand_max);
        let (ends, ended) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(longest, ended).await;
            drop(held);
        });
        Still {
            _held: None,
            _ends: Some(ends),
        }
    }

    pub(crate) async fn limit<T>(&self, future: impl Future<Output = T>) -> Result<T, Over> {
        self.wall.limit(future).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_host_that_does_not_come_back_is_not_waited_for_without_end() {
        let wall = Wall::new(Duration::from_secs(10));
        let time = Time::of(wall, Duration::from_secs(300));
        let (begun, in_hand) = (Instant::now(), time.in_hand());
        let over = time.limit(std::future::pending::<()>()).await;
        assert_eq!((over, begun.elapsed().as_secs()), (Err(Over), 310));
        drop(in_hand);

        let time = Time::of(Wall::new(Duration::from_secs(10)), Duration::from_secs(300));
        let in_hand = time.in_hand();
        let comes_back = async {
            sleep(Duration::from_secs(40)).await;
            drop(in_hand);
            sleep(Duration::from_secs(9)).await;
        };
        assert_eq!(time.limit(comes_back).await, Ok(()));
    }
}
