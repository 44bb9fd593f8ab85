//! How much work making a watched script may be. A script decides how often its
//! text is copied and how many places it has; beyond a bound it is not looked at
//! twice, and the error that it ended with stands as it is.

use std::cell::Cell;

/// Bytes of text that may be written, those included that are written once more further out.
pub(super) const WORK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a place costs, in the same bytes, without its texts.
const PLACE_BYTES: usize = 512;
/// Places that are watched or followed.
pub(super) const PLACES_MAX: usize = 20_000;
/// The watched text as a guest takes it.
pub(super) const TEXT_BYTES_MAX: usize = 2 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Budget {
    bytes: Cell<usize>,
    places: Cell<usize>,
}

impl Budget {
    pub(super) fn write(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// A text that was just made.
    pub(super) fn written(&self, text: String) -> String {
        self.write(text.len());
        text
    }

    pub(super) fn place(&self) {
        self.places.set(self.places.get() + 1);
        self.write(PLACE_BYTES);
    }

    /// From here on nothing has to be right any more, only over soon.
    pub(super) fn is_spent(&self) -> bool {
        self.bytes.get() > WORK_BYTES_MAX || self.places.get() > PLACES_MAX
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }
}
