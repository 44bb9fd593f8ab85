//! The texts below parts of texts, known by where they lie in memory.

use std::collections::BTreeMap;

use boa_engine::JsString;
use boa_engine::string::{JsStr, JsStrVariant};

/// A part of so many bytes is copied: that takes no longer than to hold on to another text.
const SHORT_BYTES: usize = 512;

/// A part is copied that keeps so many times as much alive.
const TIMES_TOO_MUCH: usize = 4;

/// When so much was met, it is looked what nobody has any more.
const MET_BYTES_MAX: usize = 4 * 1024 * 1024;

/// In how many texts that begin before a part it is sought. They lie apart, or one within
/// the other where parts were made by others.
const LOOKS: usize = 8;

/// So few texts are not looked through.
const FEW: usize = 16;

/// Texts of which there are parts. Whenever as many were met as somebody had, or
/// [`MET_BYTES_MAX`] of them, those are let go of that nobody has any more.
#[derive(Debug)]
pub(super) struct Below {
    /// By the address of their first character.
    texts: BTreeMap<usize, Text>,
    /// How many somebody had when that was last looked for, and how many were met since.
    had: usize,
    met: usize,
    met_bytes: usize,
}

#[derive(Debug)]
struct Text {
    whole: JsString,
    /// So many bytes of it may still be copied into texts that shall not keep it alive.
    may_copy_bytes: usize,
}

/// Where the characters of a text lie.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    bytes: usize,
    unit_bytes: usize,
}

impl Below {
    pub(super) const fn new() -> Self {
        Self {
            texts: BTreeMap::new(),
            had: 0,
            met: 0,
            met_bytes: 0,
        }
    }

    /// A part of a text; it holds on to nothing but what lies below, or to nothing at all.
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

    /// The text that a text is a part of.
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

    /// Lets go of texts that nobody has any more.
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

/// How far behind the beginning of a text a part of it begins; `None` when it lies elsewhere.
pub(super) fn place(part: &JsString, text: &JsString) -> Option<usize> {
    let [part, text] = [part, text].map(Place::of);
    let offset = part.start.checked_sub(text.start)?;
    let is_within = offset + part.bytes <= text.bytes && part.unit_bytes == text.unit_bytes;
    is_within.then_some(offset / text.unit_bytes)
}

/// A part that is so short that it is better copied.
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
        let mut below = Below::new();
        let whole = text(10_000);
        let first = below.part(&whole, 1, 10_000);
        let second = below.part(&first, 1, 9_999);
        assert_eq!(first.refcount(), Some(1));
        assert_eq!(place(&second, &whole), Some(2));
        // It, the two parts, and what is known of it.
        assert_eq!(whole.refcount(), Some(4));
    }

    #[test]
    fn a_part_that_is_small_beside_the_text_lets_it_go() {
        let mut below = Below::new();
        let whole = text(100_000);
        let small = below.part(&whole, 0, 10_000);
        assert_eq!(place(&small, &whole), None);
        // But not for ever: copying all of them would take longer than anybody waits.
        let small: Vec<JsString> = (0..50)
            .map(|at| below.part(&whole, at, at + 10_000))
            .collect();
        let copied = small.iter().filter(|part| place(part, &whole).is_none());
        assert_eq!(copied.count(), 9);
    }

    #[test]
    fn what_nobody_has_any_more_is_let_go_of() {
        let mut below = Below::new();
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
