//! Long texts with room behind them. One that is appended to is the beginning of a text
//! that is longer than anybody sees; appending writes behind its end, and answers a
//! longer beginning of the same. Who holds the shorter one sees nothing of it.

#![expect(unsafe_code, reason = "writes into a text where nobody reads")]

use std::ptr::{self, NonNull};

use boa_engine::JsString;
use boa_engine::string::{JsStr, JsStrVariant, RawJsString};
use rustc_hash::FxHashMap;

/// Shorter texts are copied.
pub(super) const WORTH_IT: usize = 1_024;

/// Room that is made at once, beside the text; a smaller text gets as much as it is long.
const ROOM_BYTES_MAX: usize = 8 * 1024 * 1024;

/// When so much was made, it is looked what nobody has any more.
const MADE_BYTES_MAX: usize = 8 * 1024 * 1024;

const BLANKS: [u8; 16 * 1024] = [0; 16 * 1024];
const WIDE_BLANKS: [u16; 8 * 1024] = [0; 8 * 1024];

/// The texts that have room, by where they lie in memory. Whenever more were made than were kept
/// the last time, or [`MADE_BYTES_MAX`] of them, those are let go of that nobody has any more.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    rooms: FxHashMap<usize, Room>,
    /// How many somebody had when that was last looked at, and how many were made since.
    kept: usize,
    made: usize,
    made_bytes: usize,
}

/// A text of which somebody has the beginning.
#[derive(Debug)]
struct Room {
    whole: JsString,
    /// So much of it is somebody's.
    used: usize,
}

impl Rooms {
    pub(super) fn append(&mut self, text: &JsString, more: &JsString) -> JsString {
        if let Some(room) = self.rooms.get_mut(&address(text))
            && room.used == text.len()
        {
            if room.take(more.as_str()) {
                return room.beginning();
            }
            // What it is copied to comes into its place.
            self.rooms.remove(&address(text));
        }
        if self.made > self.kept || self.made_bytes >= MADE_BYTES_MAX {
            self.clear_out();
        }
        let room = Room::behind(text.as_str(), more.as_str());
        let longer = room.beginning();
        self.made += 1;
        self.made_bytes += room.bytes();
        self.rooms.insert(address(&room.whole), room);
        longer
    }

    /// Lets go of texts that nobody has any more.
    pub(crate) fn clear_out(&mut self) {
        self.rooms.retain(|_, room| room.is_somebodys());
        self.kept = self.rooms.len();
        (self.made, self.made_bytes) = (0, 0);
    }
}

impl Room {
    /// Two texts, one behind the other, and room behind both.
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

    fn is_somebodys(&self) -> bool {
        self.whole.refcount() != Some(1)
    }

    fn bytes(&self) -> usize {
        match self.whole.variant() {
            JsStrVariant::Latin1(whole) => whole.len(),
            JsStrVariant::Utf16(whole) => size_of_val(whole),
        }
    }

    /// Writes more behind what is used, where there is room for it.
    fn take(&mut self, more: JsStr<'_>) -> bool {
        let end = self.used + more.len();
        if end > self.whole.len() {
            return false;
        }
        let is_wide = !self.whole.as_str().is_latin1();
        match more.variant() {
            JsStrVariant::Latin1(more) if !is_wide => {
                // SAFETY: it is narrow, and there is room for it; the rest is said at `write`.
                unsafe { self.write(more) };
            }
            JsStrVariant::Utf16(more) if is_wide => {
                // SAFETY: it is wide, and there is room for it; the rest is said at `write`.
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

    /// Writes behind what is used.
    ///
    /// Whoever has the text has a slice of it that ends at `used` or before, made from what a
    /// `JsString` points to; nobody has a reference to what is written. The pointer that is
    /// written through is the one that the text's memory was asked for with, not one that was
    /// made from a reference: it may write there, and no reference that is still used covers
    /// what it writes.
    ///
    /// # Safety
    /// - The text was made by [`Room::behind`]: it lies in memory of its own on the heap, with
    ///   its characters in a row, each of them a `T`.
    /// - `used + more.len()` is not more than its length.
    unsafe fn write<T: Copy>(&mut self, more: &[T]) {
        let offset = address(&self.whole) - raw(&self.whole).as_ptr().addr();
        let text = raw(&self.whole).as_ptr().cast::<u8>();
        // SAFETY: this is where the characters begin, in the same memory.
        let start = unsafe { text.add(offset) }.cast::<T>();
        // SAFETY: the caller's; `more` is elsewhere, or of the same text and ends at `used`.
        unsafe { ptr::copy_nonoverlapping(more.as_ptr(), start.add(self.used), more.len()) };
    }
}

/// Pieces of nothing, so many characters of it in all.
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

/// Where a text's characters are.
fn address(text: &JsString) -> usize {
    match text.variant() {
        JsStrVariant::Latin1(bytes) => bytes.as_ptr().addr(),
        JsStrVariant::Utf16(units) => units.as_ptr().addr(),
    }
}

/// The pointer that a text is.
fn raw(text: &JsString) -> NonNull<RawJsString> {
    let raw = text.clone().into_raw();
    // SAFETY: it comes from the line before, and is made a text again once.
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

    #[test]
    fn what_was_had_before_stays_as_it_was() {
        let mut rooms = Rooms::default();
        let first = rooms.append(&text(WORTH_IT), &more());
        let second = rooms.append(&first, &more());
        let other = rooms.append(&first, &JsString::from("é"));
        let wide = rooms.append(&second, &JsString::from("€"));
        let wider = rooms.append(&wide, &more());
        let doubled = rooms.append(&wider, &wider);
        let own = |text: &JsString| text.to_std_string_lossy();
        let expected = "a".repeat(WORTH_IT) + "bc";
        assert_eq!(own(&first), expected);
        assert_eq!(own(&second), format!("{expected}bc"));
        assert_eq!(own(&other), format!("{expected}é"));
        assert_eq!(own(&wide), format!("{expected}bc€"));
        assert_eq!(own(&doubled), format!("{expected}bc€bc").repeat(2));
    }

    #[test]
    fn however_many_texts_are_made_longer_in_turn_each_has_room() {
        let mut rooms = Rooms::default();
        let mut texts: Vec<_> = (0..200).map(|_| text(WORTH_IT)).collect();
        for _ in 0..10 {
            for text in &mut texts {
                *text = rooms.append(text, &more());
            }
        }
        assert_eq!(rooms.rooms.len(), texts.len());
        let places: Vec<_> = texts.iter().map(address).collect();
        for text in &mut texts {
            *text = rooms.append(text, &more());
        }
        assert_eq!(texts.iter().map(address).collect::<Vec<_>>(), places);
    }

    #[test]
    fn what_nobody_has_is_let_go_of_while_others_are_made() {
        let mut rooms = Rooms::default();
        for _ in 0..20 {
            let mut large = text(1 << 20);
            for _ in 0..3 {
                large = rooms.append(&large, &more());
            }
            drop(large);
            // A script's next texts begin small.
            let mut small = text(WORTH_IT);
            for _ in 0..10 {
                small = rooms.append(&small, &small);
            }
            let bytes: usize = rooms.rooms.values().map(Room::bytes).sum();
            assert!(bytes < 8 << 20, "{bytes}");
        }
        rooms.clear_out();
        assert!(rooms.rooms.is_empty());
    }

    #[test]
    fn of_small_texts_that_nobody_has_there_are_never_more_than_of_others() {
        let mut rooms = Rooms::default();
        let kept: Vec<_> = (0..100)
            .map(|_| rooms.append(&text(WORTH_IT), &more()))
            .collect();
        for _ in 0..1_000 {
            drop(rooms.append(&text(WORTH_IT), &more()));
            assert!(
                rooms.rooms.len() <= 2 * kept.len() + 2,
                "{}",
                rooms.rooms.len()
            );
        }
    }

    #[test]
    fn among_many_texts_large_ones_are_let_go_of_soon() {
        let mut rooms = Rooms::default();
        let small: Vec<_> = (0..1_000)
            .map(|_| rooms.append(&text(WORTH_IT), &more()))
            .collect();
        for _ in 0..20 {
            drop(rooms.append(&text(5 << 20), &more()));
            let bytes: usize = rooms.rooms.values().map(Room::bytes).sum();
            assert!(bytes < 3 * MADE_BYTES_MAX, "{bytes}");
        }
        rooms.clear_out();
        assert_eq!(rooms.rooms.len(), small.len());
    }

    #[test]
    fn room_is_as_long_as_the_text_and_at_most_eight_mebibytes() {
        let room = |text: &JsString| {
            let room = Room::behind(text.as_str(), more().as_str());
            room.bytes() - room.used * (room.bytes() / room.whole.len())
        };
        assert_eq!(room(&text(5_000)), 5_002);
        assert_eq!(room(&text(20 << 20)), ROOM_BYTES_MAX);
        let wide = JsString::from("€".repeat(5 << 20).as_str());
        assert_eq!(room(&wide), ROOM_BYTES_MAX);
        assert_eq!(room(&JsString::from("€".repeat(5_000).as_str())), 2 * 5_002);
    }
}
