//! The memories of the pool, and whether a guest uses any of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pool. Cheap to clone; all clones share one pool.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    guests: usize,
    /// The addresses of all memories that guests have used.
    memories: BTreeSet<usize>,
}

/// Counts one guest in the pool until it is dropped.
#[derive(Debug)]
pub(super) struct PoolSlot(Pool);

impl Pool {
    /// Counts a guest. Called before the guest takes a memory; the result must be dropped after the
    /// guest.
    pub(super) fn enter(&self) -> PoolSlot {
        self.lock().guests += 1;
        PoolSlot(self.clone())
    }

    /// Gives the memory that ended guests have left back to the system, if no guest is in the pool.
    pub(super) fn return_memory(&self) {
        // No guest can enter while the lock is held.
        let state = self.lock();
        if state.guests == 0 {
            state.memories.iter().copied().for_each(restore);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolSlot {
    /// Records the address of the guest's memory.
    pub(super) fn has(&self, memory: *const u8) {
        self.0.lock().memories.insert(memory.expose_provenance());
    }
}

impl Drop for PoolSlot {
    fn drop(&mut self) {
        self.0.lock().guests -= 1;
    }
}

/// Address space of each memory in bytes.
#[cfg(target_os = "linux")]
const MEMORY_BYTES: usize = 4 * 1024 * 1024 * 1024;

/// Restores an unused memory to its state before a guest runs.
#[cfg(target_os = "linux")]
fn restore(begin: usize) {
    use rustix::mm::{Advice, madvise};

    let memory = std::ptr::with_exposed_provenance_mut::<u8>(begin);
    // SAFETY: the whole range is the address space that the pool keeps for this one memory, mapped
    // privately. No guest uses it and none is being created. The pool restored it after its last
    // guest, so its pages read the same whether they are resident or not: as in the image, or as
    // zeros.
    #[expect(
        unsafe_code,
        reason = "`madvise` has no safe form for memory that Rust does not own"
    )]
    let restored = unsafe { madvise(memory.cast(), MEMORY_BYTES, Advice::LinuxDontNeed) };
    // If the kernel refuses, the pages stay resident.
    let _ = restored;
}

#[cfg(not(target_os = "linux"))]
fn restore(_begin: usize) {}
