//! Long texts with spare room after them, so that `text += more` does not copy the text each time.
//! A text that is appended to twice becomes a prefix of a longer buffer. Appending then writes after
//! the end of the text and returns a longer prefix of the same buffer. Holders of the shorter text
//! cannot observe the change.

#![expect(unsafe_code, reason = "writes into the unused part of a text")]

use std::ptr::{self, NonNull};

use boa_engine::JsString;
use boa_engine::string::{JsStr, JsStrVariant, RawJsString};
use rustc_hash::FxHashMap;

/// Minimum length of a text that gets room; shorter texts are copied.
pub(crate) const LENGTH_MIN: usize = 1_024;

/// Number of texts that are remembered as results of one concatenation.
const REMEMBERED: usize = 1_024;

/// Maximum room in bytes; a smaller text gets as much room as its own length.
const ROOM_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Number of new bytes after which unused buffers are released.
const MADE_BYTES_MAX: usize = 8 * 1024 * 1024;

const BLANKS: [u8; 16 * 1024] = [0; 16 * 1024];
const WIDE_BLANKS: [u16; 8 * 1024] = [0; 8 * 1024];

/// The texts that have room, by their memory address. Unused texts are released when more texts
/// were added than were in use at the last release, or when [`MADE_BYTES_MAX`] bytes were added.
#[derive(Debug)]
pub(crate) struct Ropes {
    rooms: FxHashMap<usize, Rope>,
    /// Addresses of texts that are results of one concatenation, each at a slot that follows from
    /// the address. Another text may have the same address later, and then gets room too early.
    grown_once: Box<[usize; REMEMBERED]>,
    /// Number of texts in use at the last release, and number made since.
    kept: usize,
    made: usize,
    made_bytes: usize,
}

/// A buffer whose beginning is in use.
#[derive(Debug)]
struct Rope {
    whole: JsString,
    /// Number of characters in use.
    used: usize,
}

impl Default for Ropes {
    fn default() -> Self {
        Self {
            rooms: FxHashMap::default(),
            grown_once: Box::new([0; REMEMBERED]),
            kept: 0,
            made: 0,
            made_bytes: 0,
        }
    }
}

impl Ropes {
    /// Concatenates two texts.
    pub(crate) fn append(&mut self, text: &JsString, more: &JsString) -> JsString {
        if let Some(room) = self.rooms.get_mut(&address(text))
            && room.used == text.len()
        {
            if room.take(more.as_str()) {
                return room.beginning();
            }
            // The buffer to which the text is copied replaces this one.
            self.rooms.remove(&address(text));
        } else if self.slot(text).is_none_or(|slot| *slot != address(text)) {
            let longer = JsString::concat(text.as_str(), more.as_str());
            if let Some(slot) = self.slot(&longer) {
                *slot = address(&longer);
            }
            return longer;
        }
        if self.made > self.kept || self.made_bytes >= MADE_BYTES_MAX {
            self.clear_out();
        }
        let room = Rope::behind(text.as_str(), more.as_str());
        let longer = room.beginning();
        self.made += 1;
        self.made_bytes += room.bytes();
        self.rooms.insert(address(&room.whole), room);
        longer
    }

    /// Returns the place in [`Self::grown_once`] for this text.
    fn slot(&mut self, text: &JsString) -> Option<&mut usize> {
        // Addresses of texts of this length differ by at least 1,024.
        self.grown_once
            .get_mut(address(text) / LENGTH_MIN % REMEMBERED)
    }

    /// Releases texts that are no longer used.
    pub(crate) fn clear_out(&mut self) {
        self.rooms.retain(|_, room| room.is_in_use());
        self.kept = self.rooms.len();
        (self.made, self.made_bytes) = (0, 0);
    }
}

impl Rope {
    /// Concatenates two texts, with room after them.
    fn behind(text: JsStr<'_>, more: JsStr<'_>) -> Self {
        let used = text.len() + more.len();
        let mut parts = vec![text, more];
        if text.is_latin1() && more.is_latin1() {
            let room = used.min(ROOM_BYTES_MAX);
            fill(&mut parts, room, &BLANKS, JsStr::latin1);
        } else {
            let room = used.min(ROOM_BYTES_MAX / 2);
            fill(&mut parts, room, &WIDE_BLANKS, JsStr::utf16);
        }
        let whole = JsString::concat_array(&parts);
        Self { whole, used }
    }

    fn beginning(&self) -> JsString {
        self.whole.slice(0, self.used)
    }

    fn is_in_use(&self) -> bool {
        self.whole.refcount() != Some(1)
    }

    fn bytes(&self) -> usize {
        match self.whole.variant() {
            JsStrVariant::Latin1(whole) => whole.len(),
            JsStrVariant::Utf16(whole) => size_of_val(whole),
        }
    }

    /// Appends more text if there is room for it.
    fn take(&mut self, more: JsStr<'_>) -> bool {
        let end = self.used + more.len();
        if end > self.whole.len() {
            return false;
        }
        let is_wide = !self.whole.as_str().is_latin1();
        match more.variant() {
            JsStrVariant::Latin1(more) if !is_wide => {
                // SAFETY: the text is narrow, and there is room; see `write` for the rest.
                unsafe { self.write(more) };
            }
            JsStrVariant::Utf16(more) if is_wide => {
                // SAFETY: the text is wide, and there is room; see `write` for the rest.
                unsafe { self.write(more) };
            }
            JsStrVariant::Latin1(more) => {
                let more: Vec<u16> = more.iter().copied().map(u16::from).collect();
                // SAFETY: as above.
                unsafe { self.write(&more) };
            }
            JsStrVariant::Utf16(_) => return false,
        }
        self.used = end;
        true
    }

    /// Writes after the used part.
    ///
    /// Holders of the text have slices that end at or before `used`, made from the pointer inside a
    /// `JsString`; no reference covers the written part. The pointer used here is the one with
    /// which the text's memory was allocated, and was not derived from a reference. So this
    /// function may write there, and no live reference covers the written memory.
    ///
    /// # Safety
    /// - [`Rope::behind`] must have created the text: its characters, each a `T`, are contiguous in
    ///   separate memory on the heap.
    /// - `used + more.len()` must not exceed its length.
    unsafe fn write<T: Copy>(&mut self, more: &[T]) {
        let offset = address(&self.whole) - raw(&self.whole).as_ptr().addr();
        let text = raw(&self.whole).as_ptr().cast::<u8>();
        // SAFETY: the characters start here, in the same allocation.
        let start = unsafe { text.add(offset) }.cast::<T>();
        // SAFETY: the caller guarantees this; `more` lies elsewhere, or in the same text and ends
        // at `used`.
        unsafe { ptr::copy_nonoverlapping(more.as_ptr(), start.add(self.used), more.len()) };
    }
}

/// Adds filler pieces with this total number of characters.
fn fill<'a, T>(
    parts: &mut Vec<JsStr<'a>>,
    room: usize,
    blanks: &'a [T],
    piece: impl Fn(&'a [T]) -> JsStr<'a>,
) {
    let mut left = room;
    while let Some(blanks) = blanks.get(..left.min(blanks.len())).filter(|_| left > 0) {
        parts.push(piece(blanks));
        left -= blanks.len();
    }
}

/// Returns the address of a text's characters.
fn address(text: &JsString) -> usize {
    match text.variant() {
        JsStrVariant::Latin1(bytes) => bytes.as_ptr().addr(),
        JsStrVariant::Utf16(units) => units.as_ptr().addr(),
    }
}

/// Returns the pointer inside a text.
fn raw(text: &JsString) -> NonNull<RawJsString> {
    let raw = text.clone().into_raw();
    // SAFETY: the pointer comes from the line before, and is turned back into a text exactly once.
    drop(unsafe { JsString::from_raw(raw) });
    raw
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> JsString {
        JsString::from("a".repeat(length).as_str())
    }

    fn more() -> JsString {
        JsString::from("bc")
    }

    /// Appends twice; the second result has room.
    fn append_twice(ropes: &mut Ropes, text: &JsString) -> JsString {
        let longer = ropes.append(text, &JsString::default());
        ropes.append(&longer, &more())
    }

    #[test]
    fn text_gets_room_when_it_grows_again() {
        let mut ropes = Ropes::default();
        let once = ropes.append(&text(LENGTH_MIN), &more());
        assert!(ropes.rooms.is_empty());
        let other = ropes.append(&text(LENGTH_MIN), &more());
        let twice = ropes.append(&once, &more());
        assert_eq!(ropes.rooms.len(), 1);
        let third = ropes.append(&twice, &more());
        assert_eq!(address(&third), address(&twice));
        assert_ne!(address(&other), address(&twice));
    }

    #[test]
    fn shorter_texts_stay_unchanged() {
        let mut ropes = Ropes::default();
        let first = append_twice(&mut ropes, &text(LENGTH_MIN));
        let second = ropes.append(&first, &more());
        let other = ropes.append(&first, &JsString::from("é"));
        let wide = ropes.append(&second, &JsString::from("€"));
        let wider = ropes.append(&wide, &more());
        let doubled = ropes.append(&wider, &wider);
        let own = |text: &JsString| text.to_std_string_lossy();
        let expected = "a".repeat(LENGTH_MIN) + "bc";
        assert_eq!(own(&first), expected);
        assert_eq!(own(&second), format!("{expected}bc"));
        assert_eq!(own(&other), format!("{expected}é"));
        assert_eq!(own(&wide), format!("{expected}bc€"));
        assert_eq!(own(&doubled), format!("{expected}bc€bc").repeat(2));
    }

    #[test]
    fn many_texts_that_grow_in_turn_keep_their_rooms() {
        let mut ropes = Ropes::default();
        let mut texts: Vec<_> = (0..200).map(|_| text(LENGTH_MIN)).collect();
        for _ in 0..10 {
            for text in &mut texts {
                *text = ropes.append(text, &more());
            }
        }
        assert_eq!(ropes.rooms.len(), texts.len());
        let places: Vec<_> = texts.iter().map(address).collect();
        for text in &mut texts {
            *text = ropes.append(text, &more());
        }
        assert_eq!(texts.iter().map(address).collect::<Vec<_>>(), places);
    }

    #[test]
    fn unused_texts_are_released_while_others_grow() {
        let mut ropes = Ropes::default();
        for _ in 0..20 {
            let mut large = text(1 << 20);
            for _ in 0..3 {
                large = ropes.append(&large, &more());
            }
            drop(large);
            // The next texts of a script start short.
            let mut small = text(LENGTH_MIN);
            for _ in 0..10 {
                small = ropes.append(&small, &small);
            }
            let bytes: usize = ropes.rooms.values().map(Rope::bytes).sum();
            assert!(bytes < 8 << 20, "{bytes}");
        }
        ropes.clear_out();
        assert!(ropes.rooms.is_empty());
    }

    #[test]
    fn unused_small_texts_never_outnumber_used_ones() {
        let mut ropes = Ropes::default();
        let kept: Vec<_> = (0..100)
            .map(|_| append_twice(&mut ropes, &text(LENGTH_MIN)))
            .collect();
        for _ in 0..1_000 {
            drop(append_twice(&mut ropes, &text(LENGTH_MIN)));
            assert!(
                ropes.rooms.len() <= 2 * kept.len() + 2,
                "{}",
                ropes.rooms.len()
            );
        }
    }

    #[test]
    fn unused_large_texts_are_released_soon() {
        let mut ropes = Ropes::default();
        let small: Vec<_> = (0..1_000)
            .map(|_| append_twice(&mut ropes, &text(LENGTH_MIN)))
            .collect();
        for _ in 0..20 {
            drop(append_twice(&mut ropes, &text(5 << 20)));
            let bytes: usize = ropes.rooms.values().map(Rope::bytes).sum();
            assert!(bytes < 3 * MADE_BYTES_MAX, "{bytes}");
        }
        ropes.clear_out();
        assert_eq!(ropes.rooms.len(), small.len());
    }

    #[test]
    fn room_is_as_long_as_the_text_and_at_most_eight_mebibytes() {
        let room = |text: &JsString| {
            let room = Rope::behind(text.as_str(), more().as_str());
            room.bytes() - room.used * (room.bytes() / room.whole.len())
        };
        assert_eq!(room(&text(5_000)), 5_002);
        assert_eq!(room(&text(20 << 20)), ROOM_BYTES_MAX);
        let wide = JsString::from("€".repeat(5 << 20).as_str());
        assert_eq!(room(&wide), ROOM_BYTES_MAX);
        assert_eq!(room(&JsString::from("€".repeat(5_000).as_str())), 2 * 5_002);
    }
}
