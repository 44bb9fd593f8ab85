//! Long texts with room behind them. One that is appended to is the beginning of a text
//! that is longer than anybody sees; appending writes behind its end, and answers a
//! longer beginning of the same. Who holds the shorter one sees nothing of it.

#![expect(unsafe_code, reason = "writes into a text where nobody reads yet")]

use std::ptr;

use boa_engine::JsString;
use boa_engine::string::{JsStr, JsStrVariant};

/// Shorter texts are copied.
pub(super) const WORTH_IT: usize = 1_024;

/// Texts that a script makes longer turn about.
const ROOMS_MAX: usize = 4;

/// Room that is made at once, beside the text; a smaller text gets as much as it is long.
const ROOM_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Rooms(Vec<Room>);

/// A text of which somebody has the beginning.
#[derive(Debug)]
struct Room {
    whole: JsString,
    /// So much of it is somebody's.
    used: usize,
}

impl Rooms {
    pub(super) fn append(&mut self, text: &JsString, more: &JsString) -> JsString {
        let known = self.0.iter().position(|room| room.ends_with(text));
        let mut room = match known {
            Some(place) => self.0.remove(place),
            None => Room::behind(text),
        };
        if !room.take(more.as_str()) {
            room = Room::behind_both(text, more);
        }
        let whole = room.whole.slice(0, room.used);
        self.0.insert(0, room);
        self.0.truncate(ROOMS_MAX);
        whole
    }

    /// Lets go of texts that nobody has any more.
    pub(crate) fn clear_out(&mut self) {
        self.0.retain(|room| room.whole.refcount() != Some(1));
    }
}

impl Room {
    /// A text that has no room yet.
    fn behind(text: &JsString) -> Self {
        Self {
            whole: text.clone(),
            used: text.len(),
        }
    }

    fn behind_both(text: &JsString, more: &JsString) -> Self {
        let used = text.len() + more.len();
        let room = used.min(ROOM_MAX);
        let (text, more) = (text.as_str(), more.as_str());
        let whole = match (text.variant(), more.variant()) {
            (JsStrVariant::Latin1(_), JsStrVariant::Latin1(_)) => {
                JsString::concat_array(&[text, more, JsStr::latin1(&vec![0; room])])
            }
            _ => JsString::concat_array(&[text, more, JsStr::utf16(&vec![0; room])]),
        };
        Self { whole, used }
    }

    /// Whether a text is all of what is used, and not only equal to it.
    fn ends_with(&self, text: &JsString) -> bool {
        let address = |text: &JsString| match text.variant() {
            JsStrVariant::Latin1(bytes) => bytes.as_ptr().addr(),
            JsStrVariant::Utf16(units) => units.as_ptr().addr(),
        };
        self.used == text.len() && address(&self.whole) == address(text)
    }

    /// Writes more behind what is used, where there is room for it.
    fn take(&mut self, more: JsStr<'_>) -> bool {
        let end = self.used + more.len();
        if end > self.whole.len() {
            return false;
        }
        match (self.whole.variant(), more.variant()) {
            (JsStrVariant::Latin1(whole), JsStrVariant::Latin1(more)) => {
                // SAFETY: see `write`.
                unsafe { write(address_of(whole), self.used, more) };
            }
            (JsStrVariant::Utf16(whole), JsStrVariant::Utf16(more)) => {
                // SAFETY: see `write`.
                unsafe { write(address_of(whole), self.used, more) };
            }
            (JsStrVariant::Utf16(whole), JsStrVariant::Latin1(more)) => {
                let more: Vec<u16> = more.iter().copied().map(u16::from).collect();
                // SAFETY: see `write`.
                unsafe { write(address_of(whole), self.used, &more) };
            }
            (JsStrVariant::Latin1(_), JsStrVariant::Utf16(_)) => return false,
        }
        self.used = end;
        true
    }
}

fn address_of<T>(text: &[T]) -> usize {
    text.as_ptr().expose_provenance()
}

/// Writes into a text, behind its used part.
///
/// # Safety
/// - The text was made by [`Room::behind_both`]: it lies in memory of its own on the heap.
///   (Another has no room, and nothing is written.)
/// - Nobody reads behind `used`: the text itself never leaves its room, and every slice of
///   it that does ends there or before. There is one thread.
/// - `used + more.len()` is not more than the text's length, and `more` does not overlap
///   what is written: where it is of the same text, it ends at `used` or before.
/// - `address` is the text's. It comes as a number: of a function that has the text itself, as
///   what cannot be written to, the compiler may leave the writing out, and it does.
unsafe fn write<T: Copy>(address: usize, used: usize, more: &[T]) {
    let start = ptr::with_exposed_provenance_mut::<T>(address);
    // SAFETY: as above.
    unsafe { ptr::copy_nonoverlapping(more.as_ptr(), start.add(used), more.len()) };
}
