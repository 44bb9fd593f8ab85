//! Buffers numbered messages that are unrelated to the host's requests. A host whose stream broke
//! gets the messages that it missed.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

/// Maximum number of messages kept for a host that is not listening. The oldest are dropped first.
const KEPT_MAX: usize = 64;

/// A buffer of numbered messages. Cheap to clone; all clones share one buffer.
#[derive(Debug, Clone)]
pub(super) struct SseReplayBuffer(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    latest: u64,
    kept: VecDeque<(u64, Arc<[u8]>)>,
    /// Number of the last message that a reader has received.
    heard: u64,
    /// Number of readers so far. Only the last one may read.
    readers: u64,
    is_read: bool,
    is_over: bool,
}

/// A reader of the buffer. It ends when a newer reader begins.
#[derive(Debug)]
pub(super) struct ReplayReader {
    replay: SseReplayBuffer,
    state: watch::Receiver<State>,
    number: u64,
    seen: u64,
}

impl Default for SseReplayBuffer {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl SseReplayBuffer {
    pub(super) fn push(&self, message: Vec<u8>) {
        self.0.send_modify(|state| {
            state.latest += 1;
            state.kept.push_back((state.latest, message.into()));
            if state.kept.len() > KEPT_MAX {
                state.kept.pop_front();
            }
        });
    }

    /// Starts reading after message `seen`, or after the last message that a reader has received.
    pub(super) fn read(&self, seen: Option<u64>) -> ReplayReader {
        let (mut number, mut from) = (0, 0);
        self.0.send_modify(|state| {
            state.readers += 1;
            state.is_read = true;
            number = state.readers;
            from = seen.unwrap_or(state.heard).min(state.latest);
        });
        ReplayReader {
            replay: self.clone(),
            state: self.0.subscribe(),
            number,
            seen: from,
        }
    }

    /// Whether a reader exists now.
    pub(super) fn is_read(&self) -> bool {
        self.0.borrow().is_read
    }

    /// Ends the current and all later readers.
    pub(super) fn end(&self) {
        self.0.send_modify(|state| state.is_over = true);
    }
}

impl ReplayReader {
    /// Returns the next message with its number, or `None` if a newer reader has begun or the
    /// buffer has ended.
    pub(super) async fn next(&mut self) -> Option<(u64, Arc<[u8]>)> {
        let (number, seen) = (self.number, self.seen);
        let is_there =
            |state: &State| state.is_over || state.readers != number || state.latest > seen;
        let next = {
            let state = self.state.wait_for(is_there).await.ok()?;
            if state.is_over || state.readers != number {
                return None;
            }
            state.kept.iter().find(|(id, _)| *id > seen).cloned()?
        };
        self.seen = next.0;
        self.replay.0.send_modify(|state| state.heard = next.0);
        Some(next)
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        self.replay.0.send_modify(|state| {
            if state.readers == self.number {
                state.is_read = false;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn texts(reader: &mut ReplayReader, count: usize) -> String {
        let mut said = String::new();
        for _ in 0..count {
            let (id, message) = reader.next().await.unwrap();
            said.push_str(&format!("{id}{} ", String::from_utf8_lossy(&message)));
        }
        said
    }

    #[tokio::test]
    async fn reader_gets_unread_and_following_events() {
        let replay = SseReplayBuffer::default();
        replay.push(b"a".to_vec());
        let mut first = replay.read(None);
        assert_eq!(texts(&mut first, 1).await, "1a ");
        replay.push(b"b".to_vec());
        replay.push(b"c".to_vec());
        assert_eq!(texts(&mut first, 1).await, "2b ");
        let mut second = replay.read(None);
        assert!(first.next().await.is_none(), "a newer reader exists");
        assert_eq!(texts(&mut second, 1).await, "3c ");
        drop(first);
        assert!(replay.is_read());
        drop(second);
        assert!(!replay.is_read());
    }

    #[tokio::test]
    async fn returning_reader_resumes_after_last_seen_event() {
        let replay = SseReplayBuffer::default();
        for text in ["a", "b", "c"] {
            replay.push(text.into());
        }
        assert_eq!(texts(&mut replay.read(None), 3).await, "1a 2b 3c ");
        assert_eq!(texts(&mut replay.read(Some(1)), 2).await, "2b 3c ");
        // A number that was never issued counts as the latest number.
        let mut reader = replay.read(Some(77));
        replay.push(b"d".to_vec());
        assert_eq!(texts(&mut reader, 1).await, "4d ");
        replay.end();
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn replay_buffer_is_bounded() {
        let replay = SseReplayBuffer::default();
        for _ in 0..=KEPT_MAX {
            replay.push(b"x".to_vec());
        }
        assert_eq!(replay.read(None).next().await.unwrap().0, 2);
    }
}
