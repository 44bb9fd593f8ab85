//! Large pages for guests that grow large: touching memory for the first time
//! costs a good part of what a large result costs, and a large page is touched once.

use std::fmt;

/// Where large pages begin: behind the image, and some more.
const FROM_BYTES: usize = 8 * 1024 * 1024;

/// Guests that stay smaller have none. They have little to gain, and on a machine that is short
/// of memory the kernel makes room for a large page while the guest waits.
const LARGE_BYTES_MIN: usize = 16 * 1024 * 1024;

/// A guest's memory, as far as this module must know it.
pub(super) struct LargePages {
    /// Its address; none where there is nothing to ask for any more.
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

    /// For a memory that begins here and stays here, with room for as much as it may grow.
    pub(super) fn of(memory: *const u8) -> Self {
        Self {
            base: Some(memory.expose_provenance()),
        }
    }

    /// To be told before the memory grows. Asks once, for all that may come.
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

/// No guest can have more.
const ADDRESSABLE_BYTES: usize = 4 * 1024 * 1024 * 1024;

#[cfg(target_os = "linux")]
fn ask(base: usize, bytes_max: usize) {
    use rustix::mm::{Advice, madvise};

    let Some(bytes) = bytes_max.checked_sub(FROM_BYTES) else {
        return;
    };
    let from = std::ptr::with_exposed_provenance_mut::<u8>(base + FROM_BYTES);
    // SAFETY: all of it is the address space that is reserved for this one memory. What is mapped
    // there stays what it is; only the size of the pages behind it is up to the kernel.
    #[expect(
        unsafe_code,
        reason = "advice about memory that nobody holds has no safe form"
    )]
    let asked = unsafe { madvise(from.cast(), bytes, Advice::LinuxHugepage) };
    // A kernel without large pages has small ones.
    let _ = asked;
}

#[cfg(not(target_os = "linux"))]
fn ask(_base: usize, _bytes_max: usize) {}
