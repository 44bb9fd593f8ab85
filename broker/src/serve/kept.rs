//! What was too long for a result, or no text at all: kept for the session whose run
//! answered it, until later ones need the room.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::settings::Settings;

/// Things that are kept for one session, whatever their length.
const THINGS_MAX: usize = 64;

/// Something that is read piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    Text(Arc<str>),
    Binary { bytes: Arc<[u8]>, mime: Arc<str> },
}

/// What is kept for all sessions together. Cheap to clone; all clones are one room.
#[derive(Debug, Clone, Default)]
pub(super) struct Storeroom(Arc<Room>);

#[derive(Debug, Default)]
struct Room {
    lockers: AtomicU64,
    /// Oldest first.
    things: Mutex<VecDeque<Thing>>,
}

#[derive(Debug)]
struct Thing {
    locker: u64,
    uri: String,
    kept: Kept,
}

/// One session's part of the room; empty when the session is gone.
#[derive(Debug)]
pub(super) struct Locker {
    room: Storeroom,
    number: u64,
    bytes_max: usize,
    bytes_max_of_all: usize,
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary { bytes, .. } => bytes.len(),
        }
    }
}

impl Storeroom {
    pub(super) fn locker(&self, settings: &Settings) -> Locker {
        Locker {
            room: self.clone(),
            number: self.0.lockers.fetch_add(1, Ordering::Relaxed),
            bytes_max: settings.kept_bytes_max,
            bytes_max_of_all: settings.kept_bytes_max_of_all,
        }
    }

    fn things(&self) -> MutexGuard<'_, VecDeque<Thing>> {
        let things = self.0.things.lock();
        things.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Locker {
    /// Older things make room: first the session's own, then anybody's. The latest one always
    /// stays.
    pub(super) fn keep(&self, uri: String, kept: Kept) {
        let mut things = self.room.things();
        things.push_back(Thing {
            locker: self.number,
            uri,
            kept,
        });
        let own = |it: &Thing| it.locker == self.number;
        make_room(&mut things, own, THINGS_MAX, self.bytes_max);
        make_room(&mut things, |_| true, usize::MAX, self.bytes_max_of_all);
    }

    pub(super) fn find(&self, uri: &str) -> Option<Kept> {
        let things = self.room.things();
        let is_it = |it: &&Thing| it.locker == self.number && it.uri == uri;
        things.iter().rev().find(is_it).map(|it| it.kept.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        let things = self.room.things();
        things.iter().all(|it| it.locker != self.number)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        self.room.things().retain(|it| it.locker != self.number);
    }
}

/// Takes away the oldest of those that `counts` until the others fit, but never the last.
fn make_room(
    things: &mut VecDeque<Thing>,
    counts: impl Fn(&Thing) -> bool,
    things_max: usize,
    bytes_max: usize,
) {
    let counted = things.iter().filter(|it| counts(it));
    let (mut number, mut bytes) = counted.fold((0, 0_usize), |(number, bytes), it| {
        (number + 1, bytes + it.kept.bytes())
    });
    things.retain(|it| {
        let is_too_much = number > things_max || (number > 1 && bytes > bytes_max);
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

    fn text(text: &str) -> Kept {
        Kept::Text(text.into())
    }

    fn settings(of_one: usize, of_all: usize) -> Settings {
        Settings {
            kept_bytes_max: of_one,
            kept_bytes_max_of_all: of_all,
            ..Settings::default()
        }
    }

    fn there(locker: &Locker, uris: &[&str]) -> Vec<bool> {
        uris.iter().map(|uri| locker.find(uri).is_some()).collect()
    }

    #[test]
    fn older_things_of_a_session_make_room_for_its_later_ones() {
        let room = Storeroom::default();
        let [one, other] = [(); 2].map(|()| room.locker(&settings(10, 1_000)));
        other.keep("a".into(), text("12345"));
        one.keep("a".into(), text("12345"));
        one.keep("b".into(), text("12345"));
        assert_eq!(there(&one, &["a", "b"]), [true, true]);
        one.keep("c".into(), text("123456789012"));
        assert_eq!(there(&one, &["a", "b", "c"]), [false, false, true]);
        assert_eq!(there(&other, &["a"]), [true]);
        for number in 0..=THINGS_MAX {
            other.keep(number.to_string(), text(""));
        }
        assert_eq!(there(&other, &["a", "0", "1"]), [false, false, true]);
    }

    #[test]
    fn all_sessions_together_have_a_bound_and_one_that_is_gone_keeps_nothing() {
        let room = Storeroom::default();
        let [one, other, third] = [(); 3].map(|()| room.locker(&settings(100, 10)));
        one.keep("a".into(), text("12345"));
        other.keep("a".into(), text("12345"));
        assert_eq!(there(&one, &["a"]), [true]);
        third.keep("a".into(), text("1234567"));
        assert!(one.is_empty() && other.is_empty());
        assert_eq!(there(&third, &["a"]), [true]);
        drop(third);
        assert!(room.things().is_empty());
    }

    #[test]
    fn the_latest_of_the_same_address_is_found() {
        let locker = Storeroom::default().locker(&settings(100, 100));
        locker.keep("a".into(), text("old"));
        locker.keep("a".into(), text("new"));
        assert_eq!(locker.find("a"), Some(text("new")));
    }
}
