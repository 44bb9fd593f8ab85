//! The guest's clock. It does not advance on its own: it shows the time that the host sent last.

use std::cell::Cell;

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(0) };
    /// Start of `performance.now()`.
    static ORIGIN_MS: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn start_at(now_ms: u64) {
    NOW_MS.set(now_ms);
    ORIGIN_MS.set(now_ms);
}

/// Advances the clock. Time never goes back, whatever the host sends.
pub(crate) fn advance_to(now_ms: u64) {
    NOW_MS.set(now_ms.max(self::now_ms()));
}

pub(crate) fn now_ms() -> u64 {
    NOW_MS.get()
}

pub(crate) fn elapsed_ms() -> u64 {
    NOW_MS.get() - ORIGIN_MS.get()
}
