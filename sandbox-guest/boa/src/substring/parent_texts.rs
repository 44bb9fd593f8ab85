//! The original texts that parts refer to, by their memory address.

use std::collections::BTreeMap;

use boa_engine::JsString;
use boa_engine::string::{JsStr, JsStrVariant};

/// Maximum size in bytes of a part that is always copied. Copying is then as fast as keeping
/// another text alive.
const SHORT_BYTES: usize = 512;

/// A part is copied if it would keep at least this many times its own size alive.
const TIMES_TOO_MUCH: usize = 4;

/// Number of bytes of new texts after which unused texts are released.
const MET_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Number of texts that start before a part and are searched for the part. These texts are
/// disjoint, or nested if other code created the parts.
const LOOKS: usize = 8;

/// Minimum number of new texts after which unused texts are released.
const FEW: usize = 16;

/// Texts that have parts. Unused texts are released when the number of added texts reaches the
/// number in use, or when [`MET_BYTES_MAX`] bytes were added.
#[derive(Debug)]
pub(super) struct ParentTexts {
    /// Texts by the address of their first character.
    texts: BTreeMap<usize, Text>,
    /// Number of texts in use at the last release, and number added since.
    had: usize,
    met: usize,
    met_bytes: usize,
}

#[derive(Debug)]
struct Text {
    whole: JsString,
    /// Number of bytes of this text that may still be copied into parts.
    may_copy_bytes: usize,
}

/// The memory range of a text's characters.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    bytes: usize,
    unit_bytes: usize,
}

impl ParentTexts {
    pub(super) const fn new() -> Self {
        Self {
            texts: BTreeMap::new(),
            had: 0,
            met: 0,
            met_bytes: 0,
        }
    }

    /// Returns a part of a text. The part keeps only the original text alive, or no text.
    pub(super) fn part(&mut self, text: &JsString, from: usize, to: usize) -> JsString {
        let place = Place::of(text);
        let key = match self.key(place) {
            Some(key) => key,
            None => self.meet(text, place),
        };
        let Some(below) = self.texts.get_mut(&key) else {
            return text.slice(from, to);
        };
        let bytes = (to - from) * place.unit_bytes;
        let keeps_bytes = below.whole.len() * place.unit_bytes;
        if bytes * TIMES_TOO_MUCH <= keeps_bytes && bytes <= below.may_copy_bytes {
            below.may_copy_bytes -= bytes;
            return copied(text, from, to);
        }
        let offset = (place.start - key) / place.unit_bytes;
        below.whole.slice(offset + from, offset + to)
    }

    /// Returns the key of the text that contains a text.
    fn key(&self, place: Place) -> Option<usize> {
        let end = place.start + place.bytes;
        let before = self.texts.range(..=place.start).rev().take(LOOKS);
        let has_it = |(key, below): &(&usize, &Text)| {
            let of_below = Place::of(&below.whole);
            **key + of_below.bytes >= end && of_below.unit_bytes == place.unit_bytes
        };
        before.into_iter().find(has_it).map(|(key, _)| *key)
    }

    fn meet(&mut self, text: &JsString, place: Place) -> usize {
        if self.met >= self.had.max(FEW) || self.met_bytes >= MET_BYTES_MAX {
            self.clear_out();
        }
        self.met += 1;
        self.met_bytes += place.bytes;
        let below = Text {
            whole: text.clone(),
            may_copy_bytes: place.bytes,
        };
        self.texts.insert(place.start, below);
        place.start
    }

    /// Releases texts that are no longer used.
    pub(super) fn clear_out(&mut self) {
        self.texts
            .retain(|_, below| below.whole.refcount() != Some(1));
        (self.had, self.met, self.met_bytes) = (self.texts.len(), 0, 0);
    }
}

impl Place {
    fn of(text: &JsString) -> Self {
        let (start, unit_bytes) = match text.variant() {
            JsStrVariant::Latin1(bytes) => (bytes.as_ptr().addr(), size_of::<u8>()),
            JsStrVariant::Utf16(units) => (units.as_ptr().addr(), size_of::<u16>()),
        };
        Self {
            start,
            bytes: text.len() * unit_bytes,
            unit_bytes,
        }
    }
}

/// Returns the offset of a part within a text; `None` if the part is not inside the text.
pub(super) fn place(part: &JsString, text: &JsString) -> Option<usize> {
    let [part, text] = [part, text].map(Place::of);
    let offset = part.start.checked_sub(text.start)?;
    let is_within = offset + part.bytes <= text.bytes && part.unit_bytes == text.unit_bytes;
    is_within.then_some(offset / text.unit_bytes)
}

/// Returns a copy of a part that is short enough to be copied.
pub(super) fn short(text: &JsString, from: usize, to: usize) -> Option<JsString> {
    let bytes = (to - from) * Place::of(text).unit_bytes;
    (bytes <= SHORT_BYTES).then(|| copied(text, from, to))
}

fn copied(text: &JsString, from: usize, to: usize) -> JsString {
    match text.variant() {
        JsStrVariant::Latin1(bytes) => {
            JsString::from(JsStr::latin1(bytes.get(from..to).unwrap_or_default()))
        }
        JsStrVariant::Utf16(units) => {
            JsString::from(JsStr::utf16(units.get(from..to).unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> JsString {
        JsString::from("x".repeat(length))
    }

    #[test]
    fn a_part_of_a_part_holds_on_to_the_text_alone() {
        let mut below = ParentTexts::new();
        let whole = text(10_000);
        let first = below.part(&whole, 1, 10_000);
        let second = below.part(&first, 1, 9_999);
        assert_eq!(first.refcount(), Some(1));
        assert_eq!(place(&second, &whole), Some(2));
        // References: the text itself, its two parts, and the entry in this table.
        assert_eq!(whole.refcount(), Some(4));
    }

    #[test]
    fn a_part_that_is_small_beside_the_text_lets_it_go() {
        let mut below = ParentTexts::new();
        let whole = text(100_000);
        let small = below.part(&whole, 0, 10_000);
        assert_eq!(place(&small, &whole), None);
        // But only up to a limit: copying all of them would take far too long.
        let small: Vec<JsString> = (0..50)
            .map(|at| below.part(&whole, at, at + 10_000))
            .collect();
        let copied = small.iter().filter(|part| place(part, &whole).is_none());
        assert_eq!(copied.count(), 9);
    }

    #[test]
    fn what_nobody_has_any_more_is_let_go_of() {
        let mut below = ParentTexts::new();
        let kept = text(2_000);
        let part = below.part(&kept, 0, 1_500);
        for _ in 0..1_000 {
            let whole = text(2_000);
            below.part(&whole, 0, 1_500);
            assert!(below.texts.len() <= FEW + 1, "{}", below.texts.len());
        }
        below.clear_out();
        assert_eq!(below.texts.len(), 1);
        drop((kept, part));
        below.clear_out();
        assert!(below.texts.is_empty());
    }

    #[test]
    fn short_parts_and_parts_of_elsewhere_are_known() {
        let whole = text(3_000);
        assert!(short(&whole, 0, SHORT_BYTES).is_some());
        assert!(short(&whole, 0, SHORT_BYTES + 1).is_none());
        let wide = JsString::from("€".repeat(1_000));
        assert!(short(&wide, 0, SHORT_BYTES / 2 + 1).is_none());
        assert_eq!(place(&wide.slice(3, 9), &wide), Some(3));
        assert_eq!(place(&whole, &wide), None);
    }
}
