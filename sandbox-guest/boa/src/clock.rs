//! The guest's clock. It does not advance on its own: it shows the time that the host sent last.

use std::cell::Cell;

use boa_engine::context::time::{Clock, JsInstant};

#[derive(Debug, Default)]
pub(crate) struct GivenClock {
    now_ms: Cell<u64>,
    /// Start of `performance.now()`.
    origin_ms: Cell<u64>,
}

impl GivenClock {
    pub(crate) fn start_at(&self, now_ms: u64) {
        self.now_ms.set(now_ms);
        self.origin_ms.set(now_ms);
    }

    /// Advances the clock. Time never goes back, whatever the host sends.
    pub(crate) fn advance_to(&self, now_ms: u64) {
        self.now_ms.set(self.now_ms.get().max(now_ms));
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.now_ms.get() - self.origin_ms.get()
    }
}

impl Clock for GivenClock {
    fn now(&self) -> JsInstant {
        let now_ms = self.now_ms.get();
        let nanos = u32::try_from(now_ms % 1000).unwrap_or(0) * 1_000_000;
        JsInstant::new(now_ms / 1000, nanos)
    }

    fn system_time_millis(&self) -> i64 {
        i64::try_from(self.now_ms.get()).unwrap_or(i64::MAX)
    }
}
