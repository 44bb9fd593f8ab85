//! Caches the repeated parts of a text: keys, which often have the same order in each object, and
//! short strings. Each is created once.

use std::hash::BuildHasher;

use boa_engine::JsString;
use boa_engine::property::PropertyKey;
use boa_engine::string::JsStr;
use rustc_hash::{FxBuildHasher, FxHashMap};

const KEYS_MAX: usize = 512;
const KEY_BYTES_MAX: usize = 64;

/// Minimum size in bytes of a text whose strings are cached; for a shorter text, a cache gains too
/// little.
const TEXT_BYTES_MIN: usize = 16 * 1024;
const STRING_BYTES_MAX: usize = 24;
const STRINGS: usize = 256;

/// Number of strings after one key that are looked up before the cache is judged useful or not.
const TRIED_MIN: u32 = 64;

pub(super) struct KeyCache<'a> {
    keys: Vec<Key<'a>>,
    places: FxHashMap<&'a [u8], usize>,
    /// The key that was read last.
    latest: usize,
    /// Strings by hash; empty for a short text. A newer string replaces an older one.
    strings: Vec<Option<(&'a [u8], JsString)>>,
}

struct Key<'a> {
    raw: &'a [u8],
    key: PropertyKey,
    /// The key that followed this key the last time.
    next: usize,
    /// Number of short strings read after this key, and number of those that were in the cache.
    tried: u32,
    repeated: u32,
}

impl<'a> KeyCache<'a> {
    pub(super) fn new(text: &[u8]) -> Self {
        let strings = if text.len() < TEXT_BYTES_MIN {
            0
        } else {
            STRINGS
        };
        Self {
            keys: Vec::new(),
            places: FxHashMap::default(),
            latest: 0,
            strings: vec![None; strings],
        }
    }

    /// Returns the key that followed the latest key before, if `text` begins with it and its
    /// closing quote. Also returns the key's length without the quote.
    pub(super) fn following(&mut self, text: &[u8]) -> Option<(PropertyKey, usize)> {
        let next = self.keys.get(self.latest)?.next;
        let known = self.keys.get(next)?;
        let length = known.raw.len();
        if text.get(length) == Some(&b'"') && text.starts_with(known.raw) {
            self.latest = next;
            return Some((known.key.clone(), length));
        }
        None
    }

    /// Returns a key that was read before.
    pub(super) fn key(&mut self, raw: &[u8]) -> Option<PropertyKey> {
        let place = *self.places.get(raw)?;
        let key = self.keys.get(place)?.key.clone();
        self.follow(place);
        Some(key)
    }

    pub(super) fn remember(&mut self, raw: &'a [u8], key: &PropertyKey) {
        if self.keys.len() < KEYS_MAX && raw.len() <= KEY_BYTES_MAX {
            let place = self.keys.len();
            self.keys.push(Key {
                raw,
                key: key.clone(),
                next: 0,
                tried: 0,
                repeated: 0,
            });
            self.places.insert(raw, place);
            self.follow(place);
        }
    }

    fn follow(&mut self, place: usize) {
        if let Some(latest) = self.keys.get_mut(self.latest) {
            latest.next = place;
        }
        self.latest = place;
    }

    /// Returns the string with these bytes, all of them ASCII.
    pub(super) fn ascii(&mut self, raw: &'a [u8]) -> JsString {
        let make = || JsString::from(JsStr::latin1(raw));
        if raw.len() > STRING_BYTES_MAX || self.strings.is_empty() || !self.pays() {
            return make();
        }
        let place = FxBuildHasher.hash_one(raw) as usize % self.strings.len();
        let Some(known) = self.strings.get_mut(place) else {
            return make();
        };
        match known {
            Some((same, string)) if *same == raw => {
                if let Some(key) = self.keys.get_mut(self.latest) {
                    key.repeated += 1;
                }
                string.clone()
            }
            _ => known.insert((raw, make())).1.clone(),
        }
    }

    /// Whether strings after the latest key are worth caching: after some keys, such as a time,
    /// every string is new.
    fn pays(&mut self) -> bool {
        let Some(key) = self.keys.get_mut(self.latest) else {
            return true;
        };
        if key.tried >= TRIED_MIN && key.repeated < key.tried / 4 {
            return false;
        }
        key.tried = key.tried.saturating_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> PropertyKey {
        PropertyKey::from(JsString::from(text))
    }

    #[test]
    fn behind_a_key_whose_strings_never_come_again_none_is_looked_up() {
        let text = (0..200).map(|n| format!("a{n:04}same")).collect::<String>()
            + &" ".repeat(TEXT_BYTES_MIN);
        let mut known = KeyCache::new(text.as_bytes());
        known.remember(b"at", &key("at"));
        for n in 0..200 {
            let at = n * 9;
            assert_eq!(
                known.ascii(&text.as_bytes()[at..at + 5]),
                JsString::from(&text[at..at + 5])
            );
        }
        assert_eq!(known.keys[0].tried, TRIED_MIN);
        known.remember(b"level", &key("level"));
        for n in 0..200 {
            let at = n * 9 + 5;
            assert_eq!(
                known.ascii(&text.as_bytes()[at..at + 4]),
                JsString::from("same")
            );
        }
        assert_eq!((known.keys[1].tried, known.keys[1].repeated), (200, 199));
    }

    #[test]
    fn keys_that_follow_each_other_are_expected_and_others_are_looked_up() {
        let mut known = KeyCache::new(b"");
        assert_eq!(known.following(b"id\":1"), None);
        known.remember(b"id", &key("id"));
        known.remember(b"name", &key("name"));
        assert_eq!(known.key(b"id"), Some(key("id")));
        assert_eq!(known.following(b"name\": 2"), Some((key("name"), 4)));
        assert_eq!(known.following(b"id\":1"), Some((key("id"), 2)));
        assert_eq!(known.following(b"names\":1"), None);
        assert_eq!(known.following(b"nam"), None);
        assert_eq!(known.key(b"other"), None);
    }

    #[test]
    fn strings_are_the_same_whether_remembered_or_not() {
        let long = vec![b'x'; TEXT_BYTES_MIN];
        for mut known in [KeyCache::new(b""), KeyCache::new(&long)] {
            for number in 0..1_000 {
                let text = format!("string {}", number % 300);
                let text: &'static str = text.leak();
                assert_eq!(known.ascii(text.as_bytes()), JsString::from(text));
            }
            assert_eq!(known.ascii(b""), JsString::from(""));
        }
    }
}
