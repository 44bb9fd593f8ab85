//! Which of the blocks that an image holds lie side by side: those that runs write.
//!
//! What is made for an image is made in the same order each time. So the factory
//! makes it twice. The first time the guest keeps a list of where each block is,
//! and the factory lets a few scripts run and sees which blocks they wrote. The
//! second time it says so beforehand, and the guest makes these together.

#![cfg_attr(
    target_arch = "wasm32",
    expect(unsafe_code, reason = "memory that another program reads and writes")
)]

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks that a plan knows; what is made later has no place of its own.
const BLOCKS_MAX: usize = 256 * 1024;
const WORD_BITS: usize = u32::BITS as usize;

/// What the factory reads and writes. Its own words for this layout are in its `plan` module.
#[repr(C)]
pub(crate) struct Plan {
    /// Blocks made so far.
    made: AtomicU32,
    /// Not zero: a list is wanted, of [`BLOCKS_MAX`] addresses and lengths, at this address.
    list: AtomicU32,
    /// A bit for each block that runs write.
    written: [AtomicU32; BLOCKS_MAX / WORD_BITS],
}

pub(crate) static PLAN: Plan = Plan {
    made: AtomicU32::new(0),
    list: AtomicU32::new(0),
    written: [const { AtomicU32::new(0) }; BLOCKS_MAX / WORD_BITS],
};

/// The number of the next block.
#[cfg(target_arch = "wasm32")]
pub(crate) fn next() -> usize {
    PLAN.made.fetch_add(1, Ordering::Relaxed) as usize
}

pub(crate) fn is_written(number: usize) -> bool {
    let word = PLAN.written.get(number / WORD_BITS);
    word.is_some_and(|word| word.load(Ordering::Relaxed) >> (number % WORD_BITS) & 1 == 1)
}

/// Enters a block into the list, if one is wanted.
#[cfg(target_arch = "wasm32")]
pub(crate) fn note(number: usize, block: *mut u8, bytes: usize) {
    let list = PLAN.list.load(Ordering::Relaxed) as usize;
    if list == 0 || number >= BLOCKS_MAX {
        return;
    }
    let entry = ptr::with_exposed_provenance_mut::<[u32; 2]>(list);
    let of = [block.expose_provenance(), bytes].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    // SAFETY: the factory has made room for the whole list there, and nobody else uses it.
    unsafe { entry.add(number).write(of) };
}

const TOGETHER_BYTES: usize = 128 * 1024;
/// What is larger takes pages of its own in any case.
const BLOCK_BYTES_MAX: usize = 8 * 1024;

/// The blocks that lie side by side.
pub(crate) struct Together {
    used_bytes: usize,
    room: UnsafeCell<Room>,
}

#[repr(align(4096))]
struct Room {
    _bytes: [u8; TOGETHER_BYTES],
}

impl Together {
    pub(crate) const fn new() -> Self {
        Self {
            used_bytes: 0,
            room: UnsafeCell::new(Room {
                _bytes: [0; TOGETHER_BYTES],
            }),
        }
    }

    /// The next so many bytes, which are a multiple of the grain; null when they are too many.
    pub(crate) fn take(&mut self, bytes: usize) -> *mut u8 {
        if bytes > BLOCK_BYTES_MAX || bytes > TOGETHER_BYTES - self.used_bytes {
            return ptr::null_mut();
        }
        let block = self.room.get().cast::<u8>().wrapping_add(self.used_bytes);
        self.used_bytes += bytes;
        block
    }

    pub(crate) fn has(&self, block: *const u8) -> bool {
        let begin = self.room.get().addr();
        (begin..begin + TOGETHER_BYTES).contains(&block.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_together_lies_side_by_side_until_the_room_is_used() {
        let mut together = Together::new();
        let first = together.take(24);
        assert_eq!(together.take(8).addr(), first.addr() + 24);
        assert!(together.has(first) && !together.has(ptr::null()));
        assert!(together.take(BLOCK_BYTES_MAX + 8).is_null());
        let blocks = std::iter::from_fn(|| Some(together.take(4096)));
        let blocks = blocks.take_while(|block| !block.is_null()).count();
        assert_eq!(blocks, TOGETHER_BYTES / 4096 - 1);
        assert!(!together.take(4096 - 32).is_null());
        assert!(together.take(8).is_null());
    }

    #[test]
    fn a_block_is_known_by_its_number() {
        PLAN.written[1].store(0b100, Ordering::Relaxed);
        assert!(is_written(34));
        for other in [2, 33, 35, BLOCKS_MAX, usize::MAX] {
            assert!(!is_written(other));
        }
        PLAN.written[1].store(0, Ordering::Relaxed);
    }
}
