//! The guest's heap. Nearly all blocks of a script are small and have one of a few sizes, so small
//! blocks come from lists, one for each size. Larger blocks come from dlmalloc.
//!
//! The heap also reduces the host's work. A run writes a few words in many places of the image,
//! mostly reference counts, and each such place costs a page. So blocks that runs write are placed
//! side by side ([`guest_common::plan`]). Blocks that are free when the image is frozen are never
//! used again, so that the blocks of a run are close together too. And memory grows in steps that
//! fit large pages.

#![expect(unsafe_code, reason = "an allocator has no safe form")]

#[cfg(target_arch = "wasm32")]
pub(crate) use global::{has_grown, settle, swept};

use std::ptr;

/// Sizes are rounded up to a multiple of this number of bytes, which is also their alignment.
const GRAIN_BYTES: usize = 8;
/// Size in bytes of the largest block that comes from a list.
const SMALL_BYTES_MAX: usize = 512;
const LISTS: usize = SMALL_BYTES_MAX / GRAIN_BYTES;

/// Number of bytes that are cut into small blocks at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// Total size of the large blocks in use: now, and after the last collection.
#[derive(Clone, Copy)]
struct HeldBytes {
    bytes: usize,
    bytes_before: usize,
}

impl HeldBytes {
    /// Whether another collection is worthwhile, given that its cost grows with the live memory.
    fn have_grown(self) -> bool {
        let growth_min = GROWTH_BYTES_MIN.max(self.bytes_before / 2);
        self.bytes > self.bytes_before + growth_min
    }
}

const GROWTH_BYTES_MIN: usize = 24 * 1024 * 1024;

/// Small blocks: the freed ones by size, and the rest of the latest chunk.
struct SmallBlocks {
    lists: [*mut FreeBlock; LISTS],
    rest: *mut u8,
    rest_bytes: usize,
}

/// A freed block, which holds the pointer to the next one.
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

    /// Returns the list for blocks with this size and alignment. Blocks of two sizes share a list
    /// if the results are equal.
    const fn list_of(size: usize, align: usize) -> Option<usize> {
        if size == 0 || size > SMALL_BYTES_MAX || align > GRAIN_BYTES {
            return None;
        }
        Some((size - 1) / GRAIN_BYTES)
    }

    /// Returns a block of a list; null if the list is empty and `chunk` returns null.
    ///
    /// # Safety
    /// `chunk` must return null or [`CHUNK_BYTES`] unused bytes, aligned to a grain.
    unsafe fn take(&mut self, list: usize, chunk: impl FnOnce() -> *mut u8) -> *mut u8 {
        let Some(head) = self.lists.get_mut(list) else {
            return ptr::null_mut();
        };
        if let Some(free) = unsafe { head.as_ref() } {
            let block = *head;
            *head = free.next;
            return block.cast();
        }
        let size = (list + 1) * GRAIN_BYTES;
        if self.rest_bytes < size {
            let chunk = chunk();
            if chunk.is_null() {
                return chunk;
            }
            // SAFETY: the rest is unused, and as long as its list requires.
            unsafe { self.keep_rest() };
            (self.rest, self.rest_bytes) = (chunk, CHUNK_BYTES);
        }
        let block = self.rest;
        // SAFETY: the rest is at least this long.
        self.rest = unsafe { block.add(size) };
        self.rest_bytes -= size;
        block
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

    /// Turns the rest of a chunk into a block. The rest is always smaller than the largest block.
    unsafe fn keep_rest(&mut self) {
        if let Some(list) = (self.rest_bytes / GRAIN_BYTES).checked_sub(1) {
            let rest = self.rest;
            // SAFETY: the caller guarantees this.
            unsafe { self.give(list, rest) };
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod global {
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::UnsafeCell;

    use dlmalloc::Dlmalloc;

    use super::{CHUNK_BYTES, GRAIN_BYTES, HeldBytes, SmallBlocks};
    use guest_common::plan::{self, Together};

    /// Once a run has begun, memory grows by a multiple of this number of bytes.
    const STEP_BYTES: usize = 2 * 1024 * 1024;

    /// Memory that an image reserves, so that short runs need no more. With this reserve, an image
    /// has 8 MiB, which is the smallest sensible memory limit.
    const SPARE_BYTES: usize = 448 * 1024;

    #[global_allocator]
    static HEAP: Heap = Heap(UnsafeCell::new(HeapParts {
        small: SmallBlocks::new(),
        large: Dlmalloc::new(),
        held: HeldBytes {
            bytes: 0,
            bytes_before: 0,
        },
        is_settled: false,
        together: Together::empty(),
    }));

    struct Heap(UnsafeCell<HeapParts>);

    struct HeapParts {
        small: SmallBlocks,
        large: Dlmalloc,
        held: HeldBytes,
        /// Whether the image's content is complete.
        is_settled: bool,
        together: Together,
    }

    // SAFETY: a guest has one thread.
    unsafe impl Sync for Heap {}

    /// Must be called when the image's content is complete.
    pub(crate) fn settle() {
        // SAFETY: no allocation is in progress here.
        let heap = unsafe { &mut *HEAP.0.get() };
        // SAFETY: the block is new, so nothing else refers to it.
        unsafe {
            let spare = heap.large.malloc(SPARE_BYTES, GRAIN_BYTES);
            heap.large.free(spare, SPARE_BYTES, GRAIN_BYTES);
        }
        heap.small = SmallBlocks::new();
        heap.large.set_granularity(STEP_BYTES);
        heap.is_settled = true;
    }

    /// Whether large blocks have grown much since the last call of `swept`.
    #[inline]
    pub(crate) fn has_grown() -> bool {
        // SAFETY: no allocation is in progress here.
        unsafe { &*HEAP.0.get() }.held.have_grown()
    }

    /// Records that garbage was collected just now.
    pub(crate) fn swept() {
        // SAFETY: no allocation is in progress here.
        let held = unsafe { &mut (*HEAP.0.get()).held };
        held.bytes_before = held.bytes;
    }

    impl HeapParts {
        /// # Safety
        /// Same contract as `alloc`.
        #[inline]
        unsafe fn take(&mut self, size: usize, align: usize) -> *mut u8 {
            let large = &mut self.large;
            match SmallBlocks::list_of(size, align) {
                // SAFETY: the chunk is new and comes from dlmalloc.
                Some(list) => unsafe {
                    self.small
                        .take(list, || large.malloc(CHUNK_BYTES, GRAIN_BYTES))
                },
                None => {
                    // SAFETY: the caller guarantees this.
                    let block = unsafe { large.malloc(size, align) };
                    self.held.bytes += if block.is_null() { 0 } else { size };
                    block
                }
            }
        }

        /// Returns a block for the image, at the address that the plan assigns.
        ///
        /// # Safety
        /// Same contract as `alloc`.
        #[cold]
        unsafe fn take_for_image(&mut self, size: usize, align: usize) -> *mut u8 {
            let number = plan::next();
            let mut block = std::ptr::null_mut();
            if align <= GRAIN_BYTES {
                let bytes = size.next_multiple_of(GRAIN_BYTES);
                block = self.together.take(bytes, plan::writers(number));
            }
            if block.is_null() {
                // SAFETY: the caller guarantees this.
                block = unsafe { self.take(size, align) };
            }
            plan::note(number, block, size);
            block
        }
    }

    // SAFETY: both parts return blocks with the requested size and alignment. The layout of a
    // block, or its address, determines the part that it belongs to.
    unsafe impl GlobalAlloc for Heap {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: there is one thread, and an allocation never starts another one.
            let parts = unsafe { &mut *self.0.get() };
            let (size, align) = (layout.size(), layout.align());
            if parts.is_settled {
                unsafe { parts.take(size, align) }
            } else {
                unsafe { parts.take_for_image(size, align) }
            }
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as in `alloc`; the block came from there with this layout.
            let parts = unsafe { &mut *self.0.get() };
            let (size, align) = (layout.size(), layout.align());
            match SmallBlocks::list_of(size, align) {
                // A planned address is not reused for other blocks of the image.
                Some(_) if !parts.is_settled && parts.together.has(block) => {}
                Some(list) => unsafe { parts.small.give(list, block) },
                // There are few such blocks, and they do not come from dlmalloc.
                None if parts.together.has(block) => {}
                None => {
                    parts.held.bytes = parts.held.bytes.saturating_sub(size);
                    unsafe { parts.large.free(block, size, align) }
                }
            }
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            let (before, align) = (layout.size(), layout.align());
            // SAFETY: as in `alloc`.
            let parts = unsafe { &mut *self.0.get() };
            match (
                SmallBlocks::list_of(before, align),
                SmallBlocks::list_of(size, align),
            ) {
                // Until the image is complete, each call counts as a new block in the plan.
                (None, None) if parts.is_settled && !parts.together.has(block) => {
                    let block = unsafe { parts.large.realloc(block, before, align, size) };
                    if !block.is_null() {
                        parts.held.bytes = parts.held.bytes.saturating_sub(before) + size;
                    }
                    block
                }
                (Some(from), Some(to)) if from == to => block,
                _ => unsafe { self.moved(block, layout, size) },
            }
        }
    }

    impl Heap {
        /// # Safety
        /// Same contract as `realloc`.
        unsafe fn moved(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            let Ok(wanted) = Layout::from_size_align(size, layout.align()) else {
                return std::ptr::null_mut();
            };
            // SAFETY: both blocks are at least as long as the copied bytes, and they are distinct.
            unsafe {
                let new = self.alloc(wanted);
                if !new.is_null() {
                    new.copy_from_nonoverlapping(block, size.min(layout.size()));
                    self.dealloc(block, layout);
                }
                new
            }
        }
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
    fn blocks_lie_apart_and_come_again_when_they_were_given_back() {
        let mut small = SmallBlocks::new();
        let mut held: Vec<(usize, *mut u8)> = Vec::new();
        let mut chance = 7_usize;
        for _ in 0..20_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            if chance >> 62 == 0 && !held.is_empty() {
                let (size, block) = held.swap_remove((chance >> 8) % held.len());
                let list = SmallBlocks::list_of(size, 8).unwrap();
                unsafe { small.give(list, block) };
                continue;
            }
            let size = (chance >> 16) % SMALL_BYTES_MAX + 1;
            let list = SmallBlocks::list_of(size, 8).unwrap();
            let block = unsafe { small.take(list, chunk) };
            assert!(block.addr().is_multiple_of(GRAIN_BYTES));
            held.push((size, block));
        }
        held.sort_by_key(|(_, block)| block.addr());
        for pair in held.windows(2) {
            assert!(pair[0].1.addr() + pair[0].0 <= pair[1].1.addr());
        }
        let again = held[0];
        let list = SmallBlocks::list_of(again.0, 8).unwrap();
        unsafe { small.give(list, again.1) };
        assert_eq!(unsafe { small.take(list, ptr::null_mut) }, again.1);
    }

    #[test]
    fn the_rest_of_a_chunk_is_not_lost() {
        let mut small = SmallBlocks::new();
        let largest = SmallBlocks::list_of(SMALL_BYTES_MAX, 8).unwrap();
        let odd = SmallBlocks::list_of(24, 8).unwrap();
        unsafe { small.take(odd, chunk) };
        let mut taken = 24;
        while taken + SMALL_BYTES_MAX <= CHUNK_BYTES {
            unsafe { small.take(largest, ptr::null_mut) };
            taken += SMALL_BYTES_MAX;
        }
        unsafe { small.take(largest, chunk) };
        let rest = SmallBlocks::list_of(CHUNK_BYTES - taken, 8).unwrap();
        assert!(!small.lists[rest].is_null());
    }

    #[test]
    fn large_blocks_have_grown_when_they_are_half_as_much_again() {
        let held = |bytes, bytes_before| HeldBytes {
            bytes,
            bytes_before,
        };
        let least = GROWTH_BYTES_MIN;
        assert!(!held(least, 0).have_grown() && held(least + 1, 0).have_grown());
        assert!(!held(6 * least, 4 * least).have_grown());
        assert!(held(6 * least + 1, 4 * least).have_grown());
        assert!(!held(0, 4 * least).have_grown());
    }

    #[test]
    fn what_is_large_or_aligned_wider_comes_from_no_list() {
        for (size, align, expected) in [
            (1, 1, Some(0)),
            (8, 8, Some(0)),
            (9, 8, Some(1)),
            (512, 8, Some(63)),
            (513, 8, None),
            (16, 16, None),
            (0, 1, None),
        ] {
            assert_eq!(
                SmallBlocks::list_of(size, align),
                expected,
                "{size} {align}"
            );
        }
    }

    #[test]
    fn without_a_chunk_there_is_no_block() {
        let mut small = SmallBlocks::new();
        assert!(unsafe { small.take(3, ptr::null_mut) }.is_null());
    }
}
