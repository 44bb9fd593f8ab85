//! Large pages for guests that use much memory. A guest that builds a large result spends much of
//! its time on the first access to each page. With large pages, there are fewer first accesses.

use std::fmt;

/// Offset in bytes at which large pages begin. It is larger than every image.
const FROM_BYTES: usize = 8 * 1024 * 1024;

/// The minimum memory in bytes of a guest with large pages. Smaller guests gain little, and on a
/// machine that is short of memory they would wait while the kernel makes room for a large page.
const LARGE_BYTES_MIN: usize = 16 * 1024 * 1024;

/// Requests large pages for a guest's memory, once.
pub(super) struct LargePages {
    /// The address of the memory, or `None` once large pages were requested.
    base: Option<usize>,
}

impl fmt::Debug for LargePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LargePages").finish_non_exhaustive()
    }
}

impl LargePages {
    pub(super) const fn none() -> Self {
        Self { base: None }
    }

    /// Creates the value for a memory at a fixed address, with address space for all its growth.
    pub(super) fn new(memory: *const u8) -> Self {
        Self {
            base: Some(memory.expose_provenance()),
        }
    }

    /// Requests large pages. Called before the memory grows. The first request covers all later
    /// growth.
    pub(super) fn grow(&mut self, desired: usize, bytes_max: u64) {
        if desired < LARGE_BYTES_MIN {
            return;
        }
        if let Some(base) = self.base.take() {
            let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
            ask(base, bytes_max.min(ADDRESSABLE_BYTES));
        }
    }
}

/// Maximum size of a guest's memory in bytes.
const ADDRESSABLE_BYTES: usize = 4 * 1024 * 1024 * 1024;

#[cfg(target_os = "linux")]
fn ask(base: usize, bytes_max: usize) {
    use rustix::mm::{Advice, madvise};

    let Some(bytes) = bytes_max.checked_sub(FROM_BYTES) else {
        return;
    };
    let from = std::ptr::with_exposed_provenance_mut::<u8>(base + FROM_BYTES);
    // SAFETY: the whole range is the address space that is reserved for this one memory. Mapped
    // data stays as it is; only the size of the pages behind it is up to the kernel.
    #[expect(
        unsafe_code,
        reason = "`madvise` has no safe form for memory that Rust does not own"
    )]
    let asked = unsafe { madvise(from.cast(), bytes, Advice::LinuxHugepage) };
    // A kernel without large pages uses small ones.
    let _ = asked;
}

#[cfg(not(target_os = "linux"))]
fn ask(_base: usize, _bytes_max: usize) {}
