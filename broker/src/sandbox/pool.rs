//! The pool's memories: which there are, and whether a guest uses any of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cheap to clone; all clones are one pool.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    guests: usize,
    /// Where each memory begins that a guest has had.
    memories: BTreeSet<usize>,
}

/// A guest takes a memory of the pool, until this is dropped.
#[derive(Debug)]
pub(super) struct InPool(Pool);

impl Pool {
    /// To be called before a guest takes a memory; what it returns is dropped after the guest.
    pub(super) fn enter(&self) -> InPool {
        self.lock().guests += 1;
        InPool(self.clone())
    }

    /// Returns to the system what ended guests have left in the memories, if no guest is there.
    pub(super) fn return_memory(&self) {
        // No guest comes while it is held.
        let state = self.lock();
        if state.guests == 0 {
            state.memories.iter().copied().for_each(restore);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InPool {
    /// The guest's memory begins here.
    pub(super) fn has(&self, memory: *const u8) {
        self.0.lock().memories.insert(memory.expose_provenance());
    }
}

impl Drop for InPool {
    fn drop(&mut self) {
        self.0.lock().guests -= 1;
    }
}

/// Address space of each memory.
#[cfg(target_os = "linux")]
const MEMORY_BYTES: usize = 4 * 1024 * 1024 * 1024;

/// Makes a memory that no guest has what it is before a guest runs.
#[cfg(target_os = "linux")]
fn restore(begin: usize) {
    use rustix::mm::{Advice, madvise};

    let memory = std::ptr::with_exposed_provenance_mut::<u8>(begin);
    // SAFETY: all of it is the address space that the pool keeps for this one memory, mapped
    // privately. No guest has it and none is being made. The pool has restored it after its last
    // guest, so that its pages read the same whether they are there or not: as the image has them,
    // or as zeros.
    #[expect(
        unsafe_code,
        reason = "advice about memory that nobody holds has no safe form"
    )]
    let restored = unsafe { madvise(memory.cast(), MEMORY_BYTES, Advice::LinuxDontNeed) };
    // A kernel that refuses keeps the pages.
    let _ = restored;
}

#[cfg(not(target_os = "linux"))]
fn restore(_begin: usize) {}
