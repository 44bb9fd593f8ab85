//! Keeps values that were too long for a result, and binary data. A value belongs to the session of
//! its run. It is dropped when later values need the room.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::settings::ServeSettings;
use crate::broker::tool_index::READ;

/// Maximum number of values kept per session, whatever their length.
const ENTRIES_MAX: usize = 64;

/// A kept value, which is read piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredContent {
    Text(Arc<str>),
    Binary { bytes: Arc<[u8]>, mime: Arc<str> },
}

/// The values kept for all sessions. Cheap to clone; all clones share one store.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultStore(Arc<StoreState>);

#[derive(Debug, Default)]
struct StoreState {
    sessions: AtomicU64,
    /// Oldest first.
    entries: Mutex<VecDeque<StoredEntry>>,
}

#[derive(Debug)]
struct StoredEntry {
    results: u64,
    uri: String,
    kept: StoredContent,
}

/// The values of one session. They are dropped when the session is dropped.
#[derive(Debug)]
pub(super) struct SessionResults {
    store: ResultStore,
    number: u64,
    bytes_max: usize,
    bytes_max_of_all: usize,
}

impl StoredContent {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary { bytes, .. } => bytes.len(),
        }
    }
}

impl ResultStore {
    pub(super) fn results(&self, settings: &ServeSettings) -> SessionResults {
        SessionResults {
            store: self.clone(),
            number: self.0.sessions.fetch_add(1, Ordering::Relaxed),
            bytes_max: settings.kept_bytes_max,
            bytes_max_of_all: settings.kept_bytes_max_of_all,
        }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<StoredEntry>> {
        let entries = self.0.entries.lock();
        entries.unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionResults {
    /// Keeps a value, in place of the session's earlier one with the same address. Older values are
    /// dropped to make room, first from the session and then from any session. The latest value always stays.
    pub(super) fn keep(&self, uri: String, kept: StoredContent) {
        let mut entries = self.store.entries();
        entries.retain(|it| it.results != self.number || it.uri != uri);
        entries.push_back(StoredEntry {
            results: self.number,
            uri,
            kept,
        });
        let own = |it: &StoredEntry| it.results == self.number;
        make_room(&mut entries, own, ENTRIES_MAX, self.bytes_max);
        make_room(&mut entries, |_| true, usize::MAX, self.bytes_max_of_all);
    }

    pub(super) fn find(&self, uri: &str) -> Option<StoredContent> {
        let entries = self.store.entries();
        let is_it = |it: &&StoredEntry| it.results == self.number && it.uri == uri;
        entries.iter().find(is_it).map(|it| it.kept.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        let entries = self.store.entries();
        entries.iter().all(|it| it.results != self.number)
    }
}

impl Drop for SessionResults {
    fn drop(&mut self) {
        self.store.entries().retain(|it| it.results != self.number);
    }
}

/// Returns the call that reads a stored text from this byte on.
pub(super) fn read_call(uri: &str, from: usize) -> String {
    format!("{READ}({})", json!({"uri": uri, "from": from}))
}

/// Drops the oldest of the values that `counts` selects until the others fit, but never the last
/// one.
fn make_room(
    entries: &mut VecDeque<StoredEntry>,
    counts: impl Fn(&StoredEntry) -> bool,
    entries_max: usize,
    bytes_max: usize,
) {
    let counted = entries.iter().filter(|it| counts(it));
    let (mut number, mut bytes) = counted.fold((0, 0_usize), |(number, bytes), it| {
        (number + 1, bytes + it.kept.bytes())
    });
    entries.retain(|it| {
        let is_too_much = number > entries_max || (number > 1 && bytes > bytes_max);
        if !counts(it) || !is_too_much {
            return true;
        }
        number -= 1;
        bytes -= it.kept.bytes();
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> StoredContent {
        StoredContent::Text(text.into())
    }

    fn settings(of_one: usize, of_all: usize) -> ServeSettings {
        ServeSettings {
            kept_bytes_max: of_one,
            kept_bytes_max_of_all: of_all,
            ..ServeSettings::default()
        }
    }

    fn there(results: &SessionResults, uris: &[&str]) -> Vec<bool> {
        uris.iter().map(|uri| results.find(uri).is_some()).collect()
    }

    #[test]
    fn older_results_of_session_are_evicted_first() {
        let store = ResultStore::default();
        let [one, other] = [(); 2].map(|()| store.results(&settings(10, 1_000)));
        other.keep("a".into(), text("12345"));
        one.keep("a".into(), text("12345"));
        one.keep("b".into(), text("12345"));
        assert_eq!(there(&one, &["a", "b"]), [true, true]);
        one.keep("c".into(), text("123456789012"));
        assert_eq!(there(&one, &["a", "b", "c"]), [false, false, true]);
        assert_eq!(there(&other, &["a"]), [true]);
        for number in 0..=ENTRIES_MAX {
            other.keep(number.to_string(), text(""));
        }
        assert_eq!(there(&other, &["a", "0", "1"]), [false, false, true]);
    }

    #[test]
    fn total_bound_applies_and_ended_session_keeps_nothing() {
        let store = ResultStore::default();
        let [one, other, third] = [(); 3].map(|()| store.results(&settings(100, 10)));
        one.keep("a".into(), text("12345"));
        other.keep("a".into(), text("12345"));
        assert_eq!(there(&one, &["a"]), [true]);
        third.keep("a".into(), text("1234567"));
        assert!(one.is_empty() && other.is_empty());
        assert_eq!(there(&third, &["a"]), [true]);
        drop(third);
        assert!(store.entries().is_empty());
    }

    #[test]
    fn value_replaces_earlier_one_with_same_address() {
        let store = ResultStore::default();
        let [one, other] = [(); 2].map(|()| store.results(&settings(10, 100)));
        other.keep("a".into(), text("other"));
        one.keep("b".into(), text("12345"));
        one.keep("a".into(), text("old"));
        one.keep("a".into(), text("new"));
        assert_eq!(one.find("a"), Some(text("new")));
        assert_eq!(other.find("a"), Some(text("other")));
        assert_eq!(there(&one, &["b"]), [true]);
        assert_eq!(store.entries().len(), 3);
    }
}
