//! Waiting for what another process or thread is about to do.

use std::time::{Duration, Instant};

/// Longer than anything takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// Until it is so.
pub fn wait_until(mut ready: impl FnMut() -> bool) {
    let since = Instant::now();
    while !ready() {
        assert!(since.elapsed() < PATIENCE, "it never came");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
