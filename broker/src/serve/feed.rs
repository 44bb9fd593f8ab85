//! What a host is told outside of its requests, until it has heard it: numbered,
//! and kept for a while for a host whose stream broke.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

/// Messages that are kept for a host that does not listen right now; older ones make room.
const KEPT_MAX: usize = 64;

/// Cheap to clone; all clones are the same feed.
#[derive(Debug, Clone)]
pub(super) struct Feed(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    latest: u64,
    kept: VecDeque<(u64, Arc<[u8]>)>,
    /// The last one that was handed to a reader.
    heard: u64,
    /// Counts those who have read; the last one goes on reading.
    readers: u64,
    is_read: bool,
    is_over: bool,
}

/// Whoever reads a feed, until somebody else does.
#[derive(Debug)]
pub(super) struct Reader {
    feed: Feed,
    state: watch::Receiver<State>,
    number: u64,
    seen: u64,
}

impl Default for Feed {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Feed {
    pub(super) fn push(&self, message: Vec<u8>) {
        self.0.send_modify(|state| {
            state.latest += 1;
            state.kept.push_back((state.latest, message.into()));
            if state.kept.len() > KEPT_MAX {
                state.kept.pop_front();
            }
        });
    }

    /// From behind what was `seen`, or what was last handed to anybody.
    pub(super) fn read(&self, seen: Option<u64>) -> Reader {
        let (mut number, mut from) = (0, 0);
        self.0.send_modify(|state| {
            state.readers += 1;
            state.is_read = true;
            number = state.readers;
            from = seen.unwrap_or(state.heard).min(state.latest);
        });
        Reader {
            feed: self.clone(),
            state: self.0.subscribe(),
            number,
            seen: from,
        }
    }

    /// Somebody reads it right now.
    pub(super) fn is_read(&self) -> bool {
        self.0.borrow().is_read
    }

    /// Nobody reads it any more.
    pub(super) fn end(&self) {
        self.0.send_modify(|state| state.is_over = true);
    }
}

impl Reader {
    /// The next message with its number; none when somebody else reads, or it is over.
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
        self.feed.0.send_modify(|state| state.heard = next.0);
        Some(next)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.0.send_modify(|state| {
            if state.readers == self.number {
                state.is_read = false;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn texts(reader: &mut Reader, count: usize) -> String {
        let mut said = String::new();
        for _ in 0..count {
            let (id, message) = reader.next().await.unwrap();
            said.push_str(&format!("{id}{} ", String::from_utf8_lossy(&message)));
        }
        said
    }

    #[tokio::test]
    async fn a_reader_gets_what_nobody_has_heard_and_what_follows() {
        let feed = Feed::default();
        feed.push(b"a".to_vec());
        let mut first = feed.read(None);
        assert_eq!(texts(&mut first, 1).await, "1a ");
        feed.push(b"b".to_vec());
        feed.push(b"c".to_vec());
        assert_eq!(texts(&mut first, 1).await, "2b ");
        let mut second = feed.read(None);
        assert!(first.next().await.is_none(), "somebody else reads");
        assert_eq!(texts(&mut second, 1).await, "3c ");
        drop(first);
        assert!(feed.is_read());
        drop(second);
        assert!(!feed.is_read());
    }

    #[tokio::test]
    async fn whoever_comes_back_gets_what_followed_what_it_has_seen() {
        let feed = Feed::default();
        for text in ["a", "b", "c"] {
            feed.push(text.into());
        }
        assert_eq!(texts(&mut feed.read(None), 3).await, "1a 2b 3c ");
        assert_eq!(texts(&mut feed.read(Some(1)), 2).await, "2b 3c ");
        // A number that was never given is behind everything there is.
        let mut reader = feed.read(Some(77));
        feed.push(b"d".to_vec());
        assert_eq!(texts(&mut reader, 1).await, "4d ");
        feed.end();
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn only_so_much_is_kept() {
        let feed = Feed::default();
        for _ in 0..=KEPT_MAX {
            feed.push(b"x".to_vec());
        }
        assert_eq!(feed.read(None).next().await.unwrap().0, 2);
    }
}
