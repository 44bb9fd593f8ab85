//! Limits the work of instrumenting a script. The script decides how often its text is copied and
//! how many locations it has. Beyond the limits the script is not instrumented, and the original
//! error is reported unchanged.

use std::cell::Cell;

/// Maximum number of bytes written in total. Text that enclosing expressions copy again counts
/// again.
pub(super) const WORK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Cost in bytes of an instrumented location, without its texts.
const PLACE_BYTES: usize = 512;
/// Maximum number of instrumented locations.
pub(super) const PLACES_MAX: usize = 20_000;
/// Maximum size in bytes of the instrumented script; a guest accepts no larger one.
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

    /// Counts a text that was just written, and returns it.
    pub(super) fn written(&self, text: String) -> String {
        self.write(text.len());
        text
    }

    pub(super) fn place(&self) {
        self.places.set(self.places.get() + 1);
        self.write(PLACE_BYTES);
    }

    /// Whether a limit is exceeded. The result is then discarded, so the remaining work only has to
    /// end soon.
    pub(super) fn is_spent(&self) -> bool {
        self.bytes.get() > WORK_BYTES_MAX || self.places.get() > PLACES_MAX
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }
}
