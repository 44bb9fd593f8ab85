//! The guest's heap, for the engine's C code and for Rust. Small blocks come from lists, one for
//! each size. Blocks that were never freed are cut from a chunk one after the other, whatever their
//! sizes. Larger blocks come from dlmalloc. As in the Boa guest, blocks that runs write are placed
//! side by side (`plan`), and blocks that are free when the image is frozen are never used again.
//!
//! C frees blocks without their size, so the four bytes before each block contain it.

#![expect(unsafe_code, reason = "an allocator has no safe form")]

#[cfg(target_arch = "wasm32")]
mod global;

#[cfg(target_arch = "wasm32")]
pub(crate) use global::settle;

use std::ptr;

/// Alignment of blocks in bytes.
const GRAIN_BYTES: usize = 8;
/// Size of the header before a block, which contains the number of usable bytes.
const HEAD_BYTES: usize = 4;
/// Size in bytes, with its header, of the largest block that comes from a list.
const SMALL_BYTES_MAX: usize = 1024;
const LISTS: usize = SMALL_BYTES_MAX / GRAIN_BYTES;

/// Number of bytes that are cut into small blocks at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// Small blocks: the freed ones by size, and the rest of the latest chunk.
struct SmallBlocks {
    lists: [*mut FreeBlock; LISTS],
    /// Address of the next block's header, such that the block itself is aligned.
    rest: *mut u8,
    rest_bytes: usize,
}

/// A freed block, which contains the pointer to the next one.
struct FreeBlock {
    next: *mut FreeBlock,
}

impl SmallBlocks {
    const fn new() -> Self {
        Self {
            lists: [ptr::null_mut(); LISTS],
            rest: ptr::null_mut(),
            rest_bytes: 0,
        }
    }

    /// Returns the list of blocks with this many usable bytes, if there is one.
    const fn list_of(bytes: usize) -> Option<usize> {
        if bytes > SMALL_BYTES_MAX - HEAD_BYTES {
            return None;
        }
        let whole = bytes + HEAD_BYTES;
        Some(if whole < 2 * GRAIN_BYTES {
            1
        } else {
            whole.div_ceil(GRAIN_BYTES) - 1
        })
    }

    const fn usable(list: usize) -> usize {
        (list + 1) * GRAIN_BYTES - HEAD_BYTES
    }

    /// Returns a block of a list; null if the list is empty and `chunk` returns null.
    ///
    /// # Safety
    /// `chunk` must return null or [`CHUNK_BYTES`] unused bytes, aligned to a grain.
    unsafe fn take(&mut self, list: usize, chunk: impl FnOnce() -> *mut u8) -> *mut u8 {
        let Some(head) = self.lists.get_mut(list) else {
            return ptr::null_mut();
        };
        // SAFETY: a block in a list has its size, and is unused.
        if let Some(free) = unsafe { head.as_ref() } {
            let block = *head;
            *head = free.next;
            return block.cast();
        }
        let whole = (list + 1) * GRAIN_BYTES;
        if self.rest_bytes < whole {
            let chunk = chunk();
            if chunk.is_null() {
                return chunk;
            }
            // SAFETY: the rest is unused, and the chunk is that long.
            unsafe { self.cut_from(chunk, CHUNK_BYTES) };
        }
        // SAFETY: the rest is at least this long, and starts at an address for a header.
        unsafe {
            let block = self.rest.add(HEAD_BYTES);
            self.rest = self.rest.add(whole);
            self.rest_bytes -= whole;
            set_usable(block, Self::usable(list));
            block
        }
    }

    /// # Safety
    /// The chunk must be that long and unused.
    unsafe fn cut_from(&mut self, chunk: *mut u8, bytes: usize) {
        // The rest of the last chunk becomes a block too.
        if let Some(list) = (self.rest_bytes / GRAIN_BYTES).checked_sub(1)
            && list > 0
        {
            // SAFETY: the rest is unused, and as long as its list requires.
            unsafe {
                let block = self.rest.add(HEAD_BYTES);
                set_usable(block, Self::usable(list));
                self.give(list, block);
            }
        }
        let before = GRAIN_BYTES - HEAD_BYTES;
        // SAFETY: a chunk is longer than that.
        self.rest = unsafe { chunk.add(before) };
        self.rest_bytes = (bytes - before) & !(GRAIN_BYTES - 1);
    }

    /// # Safety
    /// The block must come from this list and must no longer be used.
    unsafe fn give(&mut self, list: usize, block: *mut u8) {
        if let Some(head) = self.lists.get_mut(list) {
            let free = block.cast::<FreeBlock>();
            // SAFETY: a block is aligned to a grain and holds at least a pointer.
            unsafe { free.write(FreeBlock { next: *head }) };
            *head = free;
        }
    }
}

/// # Safety
/// The block must have a header.
unsafe fn set_usable(block: *mut u8, bytes: usize) {
    // Requests too large for a header were refused before.
    let bytes = u32::try_from(bytes).unwrap_or(0);
    // SAFETY: the caller guarantees this; the alignment of blocks is at least twice the size of a
    // header.
    unsafe { block.sub(HEAD_BYTES).cast::<u32>().write(bytes) };
}

/// # Safety
/// The block must have a header.
unsafe fn usable(block: *const u8) -> usize {
    // SAFETY: the caller guarantees this.
    unsafe { block.sub(HEAD_BYTES).cast::<u32>().read() as usize }
}

/// Maximum size of a block in bytes.
const BYTES_MAX: usize = i32::MAX as usize - 2 * GRAIN_BYTES;

const TOGETHER_BYTES: usize = 128 * 1024;
/// Maximum size in bytes of a planned block; a larger block needs its own pages anyway.
const TOGETHER_BLOCK_BYTES_MAX: usize = 16 * 1024;

/// Minimum size in bytes of a table; smaller blocks are not tables.
const FRONT_BYTES_MAX: usize = 2 * 1024;
/// Size of a table's header, which is not written after its creation.
const TABLE_HEAD_BYTES: usize = 4 * GRAIN_BYTES;

/// Size of the pages in which the host provides memory to a guest, at the first write to each.
const PAGE_BYTES: usize = 4096;

/// The blocks that runs write, in one range of memory: small ones from the front, and tables from
/// the back, because a run writes only a word or two of a table. The first blocks of a run are
/// placed between them.
struct Together {
    begin: usize,
    front: usize,
    back: usize,
}

impl Together {
    /// Manages [`TOGETHER_BYTES`] from this address on.
    const fn new(begin: usize) -> Self {
        Self {
            begin,
            front: begin,
            back: begin + TOGETHER_BYTES,
        }
    }

    /// Returns the address of `bytes`, a multiple of the grain, whose first grain is for the
    /// header.
    fn take(&mut self, bytes: usize) -> Option<usize> {
        if bytes <= FRONT_BYTES_MAX {
            let at = self.front;
            self.front = at.checked_add(bytes).filter(|end| *end <= self.back)?;
            return Some(at);
        }
        if bytes > TOGETHER_BLOCK_BYTES_MAX {
            return None;
        }
        let mut at = self.back.checked_sub(bytes)?;
        // A table that fits into a page does not cross a page boundary, except with its header.
        let end = (at + bytes) % PAGE_BYTES;
        if bytes <= PAGE_BYTES + TABLE_HEAD_BYTES && bytes > end + TABLE_HEAD_BYTES {
            at -= end;
        }
        if at < self.front {
            return None;
        }
        self.back = at;
        Some(at)
    }

    /// Returns the unused memory.
    fn rest(&mut self) -> (*mut u8, usize) {
        let bytes = self.back - self.front;
        (ptr::with_exposed_provenance_mut(self.front), bytes)
    }

    fn has(&self, block: *const u8) -> bool {
        (self.begin..self.begin + TOGETHER_BYTES).contains(&block.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a chunk that exists as long as the test.
    fn chunk() -> *mut u8 {
        let words = vec![0_u64; CHUNK_BYTES / size_of::<u64>()];
        words.leak().as_mut_ptr().cast()
    }

    #[test]
    fn blocks_lie_apart_know_their_size_and_come_again_when_they_were_given_back() {
        let mut small = SmallBlocks::new();
        let mut held: Vec<(usize, *mut u8)> = Vec::new();
        let mut chance = 7_usize;
        for _ in 0..20_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            if chance >> 62 == 0 && !held.is_empty() {
                let (size, block) = held.swap_remove((chance >> 8) % held.len());
                assert!(unsafe { usable(block) } >= size);
                let list = SmallBlocks::list_of(unsafe { usable(block) }).unwrap();
                unsafe { small.give(list, block) };
                continue;
            }
            let size = (chance >> 16) % (SMALL_BYTES_MAX - HEAD_BYTES + 1);
            let list = SmallBlocks::list_of(size).unwrap();
            let block = unsafe { small.take(list, chunk) };
            assert!(block.addr().is_multiple_of(GRAIN_BYTES));
            held.push((size, block));
        }
        held.sort_by_key(|(_, block)| block.addr());
        for pair in held.windows(2) {
            assert!(pair[0].1.addr() + pair[0].0 + HEAD_BYTES <= pair[1].1.addr());
        }
        let again = held[0].1;
        let list = SmallBlocks::list_of(unsafe { usable(again) }).unwrap();
        unsafe { small.give(list, again) };
        assert_eq!(unsafe { small.take(list, ptr::null_mut) }, again);
    }

    #[test]
    fn the_rest_of_a_chunk_is_not_lost() {
        let mut small = SmallBlocks::new();
        let largest = SmallBlocks::list_of(SMALL_BYTES_MAX - HEAD_BYTES).unwrap();
        let odd = SmallBlocks::list_of(20).unwrap();
        unsafe { small.take(odd, chunk) };
        while small.rest_bytes >= SMALL_BYTES_MAX {
            unsafe { small.take(largest, ptr::null_mut) };
        }
        let rest = small.rest_bytes / GRAIN_BYTES - 1;
        unsafe { small.take(largest, chunk) };
        assert!(!small.lists[rest].is_null());
    }

    #[test]
    fn a_list_holds_what_it_is_asked_for() {
        for bytes in 0..=SMALL_BYTES_MAX - HEAD_BYTES {
            let list = SmallBlocks::list_of(bytes).unwrap();
            assert!(list < LISTS && SmallBlocks::usable(list) >= bytes.max(size_of::<u32>()));
            assert_eq!(SmallBlocks::list_of(SmallBlocks::usable(list)), Some(list));
        }
        assert_eq!(SmallBlocks::list_of(SMALL_BYTES_MAX - HEAD_BYTES + 1), None);
        assert_eq!(SmallBlocks::list_of(usize::MAX), None);
    }

    #[test]
    fn what_runs_write_lies_side_by_side_small_blocks_before_tables() {
        let begin = 3 * PAGE_BYTES + 16;
        let mut together = Together::new(begin);
        let end = begin + TOGETHER_BYTES;
        assert_eq!(together.take(24), Some(begin));
        assert_eq!(together.take(3072), Some(end - 16 - 3072));
        assert_eq!(together.take(SMALL_BYTES_MAX), Some(begin + 24));
        assert_eq!(together.take(TOGETHER_BLOCK_BYTES_MAX + 8), None);
        let (rest, bytes) = together.rest();
        assert_eq!(rest.addr(), begin + 24 + SMALL_BYTES_MAX);
        assert_eq!(rest.addr() + bytes, end - 16 - 3072);
        assert!(together.has(rest) && !together.has(ptr::without_provenance(end)));
        let tables = std::iter::from_fn(|| together.take(8192)).count();
        assert_eq!(tables, TOGETHER_BYTES / 8192 - 1);
        while together.take(8).is_some() {}
        assert_eq!(together.rest().1, 0);
    }

    #[test]
    fn a_table_that_fits_into_a_page_lies_in_one() {
        let sizes = [4104, 4096, 2104, 3000, 2504, 4128, 2056];
        for begin in [0, 8, 2000, PAGE_BYTES - 8].map(|more| PAGE_BYTES + more) {
            let mut together = Together::new(begin);
            let mut last = begin + TOGETHER_BYTES;
            for bytes in sizes {
                let at = together.take(bytes).unwrap();
                assert!(at + bytes <= last);
                last = at;
                let (first, last) = (at + TABLE_HEAD_BYTES, at + bytes - 1);
                assert_eq!(first / PAGE_BYTES, last / PAGE_BYTES, "{bytes} at {at}");
            }
        }
    }

    #[test]
    fn without_a_chunk_there_is_no_block() {
        let mut small = SmallBlocks::new();
        assert!(unsafe { small.take(3, ptr::null_mut) }.is_null());
    }
}
