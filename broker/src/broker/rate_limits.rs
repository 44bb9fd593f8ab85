//! Keeps the rate limits that tools declare, so that no call is sent which its server would refuse.
//! All runs of the broker share them. The counts end with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use airlock_core::id::ToolId;
use codegen::tool_file_format::{RateLimit, RateLimitPer};
use tokio::time::Instant;

/// Maximum number of calls in a limit that is kept. A larger limit counts as none.
const CALLS_MAX: usize = 100_000;
/// Longest time that a call waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The times of the latest calls of each tool with a limit.
#[derive(Debug, Default)]
pub(super) struct RateLimits(Mutex<HashMap<ToolId, VecDeque<Instant>>>);

/// Why a call is not sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tool's rate limit, {calls} per {per}, is reached; call again in {seconds} s")]
pub(super) struct RateLimitReached {
    calls: usize,
    per: RateLimitPer,
    seconds: u64,
}

impl RateLimits {
    /// Waits until the tool may be called, and counts the call. A call that would wait too long is
    /// refused at once.
    pub(super) async fn admit(
        &self,
        tool: &ToolId,
        limit: &RateLimit,
    ) -> Result<(), RateLimitReached> {
        let calls = usize::try_from(limit.calls).unwrap_or(0);
        if !(1..=CALLS_MAX).contains(&calls) {
            return Ok(());
        }
        let window = window(limit.per);
        let until = {
            let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let times = times.entry(tool.clone()).or_default();
            let now = Instant::now();
            while times.front().is_some_and(|it| *it + window <= now) {
                times.pop_front();
            }
            // Calls that still wait are in the queue with the time at which they will be sent.
            let turn = match times.len().checked_sub(calls) {
                None => now,
                Some(before) => times.get(before).map_or(now, |it| *it + window).max(now),
            };
            let wait = turn.duration_since(now);
            if wait > WAIT_MAX {
                return Err(RateLimitReached {
                    calls,
                    per: limit.per,
                    seconds: wait.as_secs() + 1,
                });
            }
            times.push_back(turn);
            turn
        };
        tokio::time::sleep_until(until).await;
        Ok(())
    }
}

fn window(per: RateLimitPer) -> Duration {
    Duration::from_secs(match per {
        RateLimitPer::Second => 1,
        RateLimitPer::Minute => 60,
        RateLimitPer::Hour => 3_600,
        RateLimitPer::Day => 86_400,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(calls: i64, per: RateLimitPer) -> RateLimit {
        RateLimit {
            calls,
            note: None,
            per,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_for_their_turn() {
        let limits = RateLimits::default();
        let tool = ToolId::parse("s.t").unwrap();
        let (other, begun) = (ToolId::parse("s.other").unwrap(), Instant::now());
        let two = limit(2, RateLimitPer::Second);
        for expected in [0, 0, 1, 1, 2, 2, 3] {
            limits.admit(&tool, &two).await.unwrap();
            assert_eq!(begun.elapsed().as_secs(), expected);
        }
        limits.admit(&other, &two).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn call_that_would_wait_long_is_refused_with_the_time() {
        let limits = RateLimits::default();
        let tool = ToolId::parse("s.t").unwrap();
        let one = limit(1, RateLimitPer::Hour);
        limits.admit(&tool, &one).await.unwrap();
        let refused = limits.admit(&tool, &one).await.unwrap_err();
        let text = "the tool's rate limit, 1 per hour, is reached; call again in 3601 s";
        assert_eq!(refused.to_string(), text);
        tokio::time::advance(Duration::from_secs(3_600)).await;
        limits.admit(&tool, &one).await.unwrap();
        limits
            .admit(&tool, &limit(0, RateLimitPer::Day))
            .await
            .unwrap();
    }
}
