//! Chooses the keys under which a host gets servers' inquiries. A server's own key is kept if
//! possible, so that a host that knows the server recognises the inquiry. If the key is in use or
//! looks like one of airlock's keys, airlock generates another key.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::serve::client_request::{APPROVAL_KEY, EXTRACTION_KEY};

/// Prefix of generated keys. A server's key that begins with one of airlock's prefixes is not used.
const OURS: &str = "inquiry-";
const RESERVED: [&str; 3] = [OURS, APPROVAL_KEY, EXTRACTION_KEY];
const CHARS_MAX: usize = 64;

/// The keys of one run.
#[derive(Debug, Default)]
pub(super) struct RequestKeys(Mutex<IssuedKeys>);

#[derive(Debug, Default)]
struct IssuedKeys {
    latest: u64,
    /// Servers' own keys, as long as the host has not answered their inquiries.
    open: HashSet<String>,
}

/// A key in use. No other inquiry gets the same key until this is dropped.
#[derive(Debug)]
pub(super) struct RequestKey<'a> {
    keys: &'a RequestKeys,
    text: String,
}

impl RequestKeys {
    pub(super) fn next(&self, theirs: Option<&str>) -> RequestKey<'_> {
        let mut given = self.given();
        let free = theirs.filter(|it| is_plain(it) && given.open.insert((*it).to_owned()));
        let text = match free {
            Some(theirs) => theirs.to_owned(),
            None => {
                given.latest += 1;
                format!("{OURS}{}", given.latest)
            }
        };
        RequestKey { keys: self, text }
    }

    fn given(&self) -> MutexGuard<'_, IssuedKeys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestKey<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

impl Drop for RequestKey<'_> {
    fn drop(&mut self) {
        self.keys.given().open.remove(&self.text);
    }
}

/// Whether a server's key has only plain characters and none of airlock's prefixes.
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
    fn server_key_is_used_if_free() {
        let keys = RequestKeys::default();
        let first = keys.next(Some("user_name"));
        let second = keys.next(Some("user_name"));
        let third = keys.next(None);
        let given = [&first, &second, &third].map(RequestKey::as_str);
        assert_eq!(given, ["user_name", "inquiry-1", "inquiry-2"]);
        drop(second);
        assert_eq!(keys.next(Some("user_name")).as_str(), "inquiry-3");
        drop(first);
        assert_eq!(keys.next(Some("user_name")).as_str(), "user_name");
    }

    #[test]
    fn server_cannot_use_reserved_or_hidden_key() {
        let keys = RequestKeys::default();
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
