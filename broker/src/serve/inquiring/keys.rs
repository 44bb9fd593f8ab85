//! The keys under which a host gets what servers want of it: a server's own, so
//! that a host which knows the server knows it again, unless it could be taken
//! for something else; then one of ours.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What ours begin with. What begins as any of ours does is never taken from a server.
const OURS: &str = "inquiry-";
const RESERVED: [&str; 3] = [OURS, super::asking::KEY, super::sampling::KEY];
const CHARS_MAX: usize = 64;

/// Those of one run.
#[derive(Debug, Default)]
pub(super) struct Keys(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    latest: u64,
    /// Servers' own that the host has and has not answered.
    open: HashSet<String>,
}

/// Nobody else gets it until this is dropped.
#[derive(Debug)]
pub(super) struct Key<'a> {
    keys: &'a Keys,
    text: String,
}

impl Keys {
    pub(super) fn next(&self, theirs: Option<&str>) -> Key<'_> {
        let mut given = self.given();
        let free = theirs.filter(|it| is_plain(it) && given.open.insert((*it).to_owned()));
        let text = match free {
            Some(theirs) => theirs.to_owned(),
            None => {
                given.latest += 1;
                format!("{OURS}{}", given.latest)
            }
        };
        Key { keys: self, text }
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        self.keys.given().open.remove(&self.text);
    }
}

/// Nothing hides in it, and it is none of ours.
fn is_plain(key: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=CHARS_MAX).contains(&key.len())
        && key.bytes().all(is_fit)
        && !RESERVED.iter().any(|ours| key.starts_with(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_own_key_is_taken_where_nobody_else_has_it_open() {
        let keys = Keys::default();
        let first = keys.next(Some("user_name"));
        let second = keys.next(Some("user_name"));
        let third = keys.next(None);
        let given = [&first, &second, &third].map(Key::as_str);
        assert_eq!(given, ["user_name", "inquiry-1", "inquiry-2"]);
        drop(second);
        assert_eq!(keys.next(Some("user_name")).as_str(), "inquiry-3");
        drop(first);
        assert_eq!(keys.next(Some("user_name")).as_str(), "user_name");
    }

    #[test]
    fn no_server_has_a_key_of_ours_or_one_that_hides_something() {
        let keys = Keys::default();
        let long = "x".repeat(CHARS_MAX + 1);
        for theirs in [
            "call-1",
            "inquiry-7",
            "extract-1",
            "",
            "a b",
            "a\u{202e}",
            "é",
            &long,
        ] {
            assert!(
                keys.next(Some(theirs)).as_str().starts_with(OURS),
                "{theirs}"
            );
        }
        assert_eq!(keys.next(Some(&long[1..])).as_str(), &long[1..]);
    }
}
