//! What the operating system says of this very process: memory, open files,
//! threads. Linux only; elsewhere there is nothing to compare and the checks
//! that need it say so.

use std::time::{Duration, Instant};

/// What is kept for longer stays.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    pub resident_bytes: u64,
    pub open_files: usize,
    pub threads: usize,
}

impl Vitals {
    /// What is freed and kept by the allocator belongs to nobody, and is given back first. `None`
    /// where there is no `/proc`.
    #[must_use]
    pub fn now() -> Option<Self> {
        give_back_what_is_freed();
        Some(Self {
            resident_bytes: resident_bytes("/proc/self/status")?,
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

/// As the file of a process says.
pub(crate) fn resident_bytes(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = kib.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "a function of the C library")]
fn give_back_what_is_freed() {
    // SAFETY: it takes a number, may be called at any time and from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back_what_is_freed() {}

/// Waits until the process is back to where it was, or says what it kept.
/// What ends a run may still be closing when its report is there.
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
