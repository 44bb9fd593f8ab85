//! Reads this process's memory, open files and threads from the operating system. Works only on
//! Linux; elsewhere nothing is measured or checked.

use std::time::{Duration, Instant};

use crate::process::Process;

/// Maximum wait for the release of resources. Resources that are still held then count as kept.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    pub resident_bytes: u64,
    pub open_files: usize,
    pub threads: usize,
}

impl Vitals {
    /// Reads the current values, after the allocator has returned its freed memory to the system.
    /// Returns `None` if there is no `/proc`.
    #[must_use]
    pub fn now() -> Option<Self> {
        give_back_what_is_freed();
        Some(Self {
            resident_bytes: Process(std::process::id()).resident_bytes()?,
            open_files: std::fs::read_dir("/proc/self/fd").ok()?.count(),
            threads: std::fs::read_dir("/proc/self/task").ok()?.count(),
        })
    }

    fn is_within(self, before: Self, slack_bytes: u64) -> bool {
        self.resident_bytes <= before.resident_bytes + slack_bytes
            && self.open_files <= before.open_files
            && self.threads <= before.threads
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "calls a function of the C library")]
fn give_back_what_is_freed() {
    // SAFETY: the function takes a number, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back_what_is_freed() {}

/// Waits until the process is back to its earlier state, because parts of a run may still be
/// closing when its report arrives. Returns an error with the resources that the process kept.
pub fn settled_back(before: Option<Vitals>, slack_bytes: u64) -> Result<(), String> {
    let Some(before) = before else { return Ok(()) };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Vitals::now() {
            Some(now) if now.is_within(before, slack_bytes) => return Ok(()),
            Some(now) if Instant::now() > deadline => {
                return Err(format!("before {before:?}, after {now:?}"));
            }
            _ => std::thread::park_timeout(Duration::from_millis(1)),
        }
    }
}
