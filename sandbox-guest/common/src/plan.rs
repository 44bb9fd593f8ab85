//! Decides which blocks of an image are placed side by side: the blocks that runs write.
//!
//! An image's blocks are allocated in the same order each time, so the image builder builds the
//! image twice. In the first build, the guest records where each block is, and the image builder
//! runs a few scripts and records which blocks they write. The second build gets this plan in
//! advance, and the guest allocates these blocks together. Blocks that every run writes are placed
//! at one end, and blocks that only some runs write at the other, so that a short run writes few
//! pages.

#![cfg_attr(
    target_arch = "wasm32",
    expect(unsafe_code, reason = "the image builder reads and writes this memory")
)]

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of blocks in a plan; later blocks get no special place.
const BLOCKS_MAX: usize = 256 * 1024;
const WORD_BITS: usize = u32::BITS as usize;

/// The data that the image builder reads and writes. Its own `plan` module describes the same
/// layout.
#[derive(Debug)]
#[repr(C)]
pub struct Plan {
    /// Number of blocks allocated so far.
    made: AtomicU32,
    /// If not zero, the address at which the guest must write a list of [`BLOCKS_MAX`] addresses
    /// and lengths.
    list: AtomicU32,
    /// One bit for each block; set if at least one run writes the block.
    written: Bits,
    /// One bit for each block; set if every run writes the block.
    by_all: Bits,
}

type Bits = [AtomicU32; BLOCKS_MAX / WORD_BITS];

/// Which runs write a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    Nobody,
    Some,
    All,
}

pub static PLAN: Plan = Plan {
    made: AtomicU32::new(0),
    list: AtomicU32::new(0),
    written: [const { AtomicU32::new(0) }; BLOCKS_MAX / WORD_BITS],
    by_all: [const { AtomicU32::new(0) }; BLOCKS_MAX / WORD_BITS],
};

/// Returns the number of the next block.
#[cfg(target_arch = "wasm32")]
pub fn next() -> usize {
    PLAN.made.fetch_add(1, Ordering::Relaxed) as usize
}

pub fn writers(number: usize) -> Writers {
    let has = |bits: &Bits| {
        let word = bits.get(number / WORD_BITS);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (number % WORD_BITS) & 1 == 1)
    };
    match (has(&PLAN.by_all), has(&PLAN.written)) {
        (true, _) => Writers::All,
        (false, true) => Writers::Some,
        (false, false) => Writers::Nobody,
    }
}

/// Adds a block to the list, if the image builder requested one.
#[cfg(target_arch = "wasm32")]
pub fn note(number: usize, block: *mut u8, bytes: usize) {
    let list = PLAN.list.load(Ordering::Relaxed) as usize;
    if list == 0 || number >= BLOCKS_MAX {
        return;
    }
    let entry = ptr::with_exposed_provenance_mut::<[u32; 2]>(list);
    let of = [block.expose_provenance(), bytes].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    // SAFETY: the image builder has made room for the whole list there, and nothing else uses that
    // room.
    unsafe { entry.add(number).write(of) };
}

const TOGETHER_BYTES: usize = 128 * 1024;
/// Maximum size of a planned block in bytes; a larger block needs its own pages anyway.
const BLOCK_BYTES_MAX: usize = 8 * 1024;

/// The blocks that are placed side by side.
#[derive(Debug)]
pub struct Together {
    /// Bytes used at the beginning, for blocks that all runs write.
    by_all_bytes: usize,
    /// Bytes used at the end, for blocks that some runs write.
    by_some_bytes: usize,
    room: UnsafeCell<BlockRoom>,
}

#[repr(align(4096))]
struct BlockRoom {
    _bytes: [u8; TOGETHER_BYTES],
}

impl Together {
    pub const fn empty() -> Self {
        Self {
            by_all_bytes: 0,
            by_some_bytes: 0,
            room: UnsafeCell::new(BlockRoom {
                _bytes: [0; TOGETHER_BYTES],
            }),
        }
    }

    /// Returns room for `bytes`, a multiple of the grain, in a block with these writers. Returns
    /// null if the block is too large, or if no run writes it.
    pub fn take(&mut self, bytes: usize, writers: Writers) -> *mut u8 {
        let free_bytes = TOGETHER_BYTES - self.by_all_bytes - self.by_some_bytes;
        if bytes > BLOCK_BYTES_MAX || bytes > free_bytes {
            return ptr::null_mut();
        }
        let at = match writers {
            Writers::Nobody => return ptr::null_mut(),
            Writers::All => {
                self.by_all_bytes += bytes;
                self.by_all_bytes - bytes
            }
            Writers::Some => {
                self.by_some_bytes += bytes;
                TOGETHER_BYTES - self.by_some_bytes
            }
        };
        self.room.get().cast::<u8>().wrapping_add(at)
    }

    pub fn has(&self, block: *const u8) -> bool {
        let begin = self.room.get().addr();
        (begin..begin + TOGETHER_BYTES).contains(&block.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_together_lies_side_by_side_until_the_room_is_used() {
        let mut together = Together::empty();
        let first = together.take(24, Writers::All);
        assert_eq!(together.take(8, Writers::All).addr(), first.addr() + 24);
        let last = together.take(16, Writers::Some);
        assert_eq!(last.addr() + 16, first.addr() + TOGETHER_BYTES);
        assert_eq!(together.take(8, Writers::Some).addr() + 8, last.addr());
        assert!(together.has(first) && together.has(last) && !together.has(ptr::null()));
        assert!(together.take(8, Writers::Nobody).is_null());
        assert!(together.take(BLOCK_BYTES_MAX + 8, Writers::All).is_null());
        let blocks = std::iter::from_fn(|| Some(together.take(4096, Writers::All)));
        let blocks = blocks.take_while(|block| !block.is_null()).count();
        assert_eq!(blocks, TOGETHER_BYTES / 4096 - 1);
        assert!(together.take(4096, Writers::Some).is_null());
        assert!(!together.take(4096 - 56, Writers::Some).is_null());
        assert!(together.take(8, Writers::All).is_null());
    }

    #[test]
    fn a_block_is_known_by_its_number() {
        PLAN.written[1].store(0b1100, Ordering::Relaxed);
        PLAN.by_all[1].store(0b0100, Ordering::Relaxed);
        assert_eq!(writers(34), Writers::All);
        assert_eq!(writers(35), Writers::Some);
        for other in [2, 33, 36, BLOCKS_MAX, usize::MAX] {
            assert_eq!(writers(other), Writers::Nobody);
        }
        PLAN.written[1].store(0, Ordering::Relaxed);
        PLAN.by_all[1].store(0, Ordering::Relaxed);
    }
}
