//! The deadline for the answer to a question. It is paused while the question waits behind another
//! one. It is also paused after a host has received the question, until the host's next request.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::deadline::{Deadline, DeadlineExceeded, DeadlinePause};

/// A deadline for an answer. Cheap to clone; all clones share the same time.
#[derive(Debug, Clone)]
pub struct AnswerDeadline {
    deadline: Deadline,
    in_hand_max: Duration,
}

/// Pauses the deadline until it is dropped.
#[derive(Debug)]
pub struct AnswerDeadlinePause {
    _held: Option<DeadlinePause>,
    /// Ends the pause that another task holds.
    _ends: Option<oneshot::Sender<()>>,
}

impl AnswerDeadline {
    pub(crate) fn new(within: Duration) -> Self {
        Self::with_deadline(Deadline::new(within), within)
    }

    pub(crate) fn with_deadline(deadline: Deadline, in_hand_max: Duration) -> Self {
        Self {
            deadline,
            in_hand_max,
        }
    }

    /// Pauses the deadline while the question waits for its turn.
    #[must_use]
    pub fn stand_still(&self) -> AnswerDeadlinePause {
        AnswerDeadlinePause {
            _held: Some(self.deadline.hold()),
            _ends: None,
        }
    }

    /// Pauses the deadline while the question waits for the host's next request. That request may
    /// never come, so the pause has a maximum. Must be called inside a tokio runtime.
    pub(crate) fn in_hand(&self) -> AnswerDeadlinePause {
        let (held, longest) = (self.deadline.hold(), self.in_hand_max);
        let (ends, ended) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(longest, ended).await;
            drop(held);
        });
        AnswerDeadlinePause {
            _held: None,
            _ends: Some(ends),
        }
    }

    pub(crate) async fn limit<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, DeadlineExceeded> {
        self.deadline.limit(future).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn absent_host_is_waited_for_within_limit() {
        let deadline = Deadline::new(Duration::from_secs(10));
        let time = AnswerDeadline::with_deadline(deadline, Duration::from_secs(300));
        let (begun, in_hand) = (Instant::now(), time.in_hand());
        let over = time.limit(std::future::pending::<()>()).await;
        assert_eq!(
            (over, begun.elapsed().as_secs()),
            (Err(DeadlineExceeded), 310)
        );
        drop(in_hand);

        let time = AnswerDeadline::with_deadline(
            Deadline::new(Duration::from_secs(10)),
            Duration::from_secs(300),
        );
        let in_hand = time.in_hand();
        let comes_back = async {
            sleep(Duration::from_secs(40)).await;
            drop(in_hand);
            sleep(Duration::from_secs(9)).await;
        };
        assert_eq!(time.limit(comes_back).await, Ok(()));
    }
}
