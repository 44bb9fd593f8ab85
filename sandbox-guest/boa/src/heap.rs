//! The guest's heap. Nearly all that a script makes is small and of few sizes, so
//! small blocks come from lists, one for each size; what is larger is dlmalloc's.
//!
//! The rest is done for the host's sake. A run writes a few words here and there in
//! what the image holds, mostly counts of references, and each costs a page: so
//! what runs write is made side by side ([`guest_common::plan`]). What is free when the
//! image is frozen is forgotten, so that what a run makes lies close together
//! too. And memory grows by steps that a large page covers.

#![expect(unsafe_code, reason = "an allocator has no safe form")]

#[cfg(target_arch = "wasm32")]
pub(crate) use global::{has_grown, settle, swept};

use std::ptr;

/// Sizes are rounded up to a multiple of this, which is also what they are aligned to.
const GRAIN_BYTES: usize = 8;
/// The largest block that comes from a list.
const SMALL_BYTES_MAX: usize = 512;
const LISTS: usize = SMALL_BYTES_MAX / GRAIN_BYTES;

/// What is cut into small blocks at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// How many bytes the large blocks are that somebody has, now and when what nobody needed was
/// last given back.
#[derive(Clone, Copy)]
struct Held {
    bytes: usize,
    bytes_before: usize,
}

impl Held {
    /// Whether it is worth it to look again, which takes as long as what lives is large.
    fn have_grown(self) -> bool {
        let growth_min = GROWTH_BYTES_MIN.max(self.bytes_before / 2);
        self.bytes > self.bytes_before + growth_min
    }
}

const GROWTH_BYTES_MIN: usize = 24 * 1024 * 1024;

/// Small blocks: those that were given back by their size, and the rest of the latest chunk.
struct Small {
    lists: [*mut Free; LISTS],
    rest: *mut u8,
    rest_bytes: usize,
}

/// A block that was given back holds the way to the next one.
struct Free {
    next: *mut Free,
}

impl Small {
    const fn new() -> Self {
        Self {
            lists: [ptr::null_mut(); LISTS],
            rest: ptr::null_mut(),
            rest_bytes: 0,
        }
    }

    /// Whether blocks like this come from the lists. The lists of two sizes are the same when
    /// their answers are.
    const fn list_of(size: usize, align: usize) -> Option<usize> {
        if size == 0 || size > SMALL_BYTES_MAX || align > GRAIN_BYTES {
            return None;
        }
        Some((size - 1) / GRAIN_BYTES)
    }

    /// A block of a list; null when there is none and `chunk` gives none to cut it from.
    ///
    /// # Safety
    /// What `chunk` gives is null or [`CHUNK_BYTES`] that nobody else uses, aligned to a grain.
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
            // SAFETY: nobody has the rest, and it is as long as its list says.
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
    /// The block came from this list, and nobody uses it any more.
    unsafe fn give(&mut self, list: usize, block: *mut u8) {
        if let Some(head) = self.lists.get_mut(list) {
            let free = block.cast::<Free>();
            // SAFETY: a block is aligned to a grain and holds at least a pointer.
            unsafe { free.write(Free { next: *head }) };
            *head = free;
        }
    }

    /// What is left of a chunk is a block too. It is never as large as the largest.
    unsafe fn keep_rest(&mut self) {
        if let Some(list) = (self.rest_bytes / GRAIN_BYTES).checked_sub(1) {
            let rest = self.rest;
            // SAFETY: the caller's.
            unsafe { self.give(list, rest) };
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod global {
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::UnsafeCell;

    use dlmalloc::Dlmalloc;

    use super::{CHUNK_BYTES, GRAIN_BYTES, Held, Small};
    use guest_common::plan::{self, Together};

    /// Memory grows by a multiple of this once a run has begun.
    const STEP_BYTES: usize = 2 * 1024 * 1024;

    /// Memory that an image has in hand, so that short runs need no more. With it an image has
    /// 8 MiB, which is the smallest limit that anybody would give.
    const SPARE_BYTES: usize = 448 * 1024;

    #[global_allocator]
    static HEAP: Heap = Heap(UnsafeCell::new(Parts {
        small: Small::new(),
        large: Dlmalloc::new(),
        held: Held {
            bytes: 0,
            bytes_before: 0,
        },
        is_settled: false,
        together: Together::empty(),
    }));

    struct Heap(UnsafeCell<Parts>);

    struct Parts {
        small: Small,
        large: Dlmalloc,
        held: Held,
        /// Whether everything is made that the image holds.
        is_settled: bool,
        together: Together,
    }

    // SAFETY: a guest has one thread.
    unsafe impl Sync for Heap {}

    /// To be called when everything is made that an image holds.
    pub(crate) fn settle() {
        // SAFETY: no allocation goes on here.
        let heap = unsafe { &mut *HEAP.0.get() };
        // SAFETY: nobody has seen the block.
        unsafe {
            let spare = heap.large.malloc(SPARE_BYTES, GRAIN_BYTES);
            heap.large.free(spare, SPARE_BYTES, GRAIN_BYTES);
        }
        heap.small = Small::new();
        heap.large.set_granularity(STEP_BYTES);
        heap.is_settled = true;
    }

    /// Whether large blocks have become much more since `swept` was called last.
    #[inline]
    pub(crate) fn has_grown() -> bool {
        // SAFETY: no allocation goes on here.
        unsafe { &*HEAP.0.get() }.held.have_grown()
    }

    /// What nobody needs was given back just now.
    pub(crate) fn swept() {
        // SAFETY: no allocation goes on here.
        let held = unsafe { &mut (*HEAP.0.get()).held };
        held.bytes_before = held.bytes;
    }

    impl Parts {
        /// # Safety
        /// As for `alloc`.
        #[inline]
        unsafe fn take(&mut self, size: usize, align: usize) -> *mut u8 {
            let large = &mut self.large;
            match Small::list_of(size, align) {
                // SAFETY: the chunk is new and dlmalloc's.
                Some(list) => unsafe {
                    self.small
                        .take(list, || large.malloc(CHUNK_BYTES, GRAIN_BYTES))
                },
                None => {
                    // SAFETY: the caller's.
                    let block = unsafe { large.malloc(size, align) };
                    self.held.bytes += if block.is_null() { 0 } else { size };
                    block
                }
            }
        }

        /// A block that the image will hold, in the place that the plan has for it.
        ///
        /// # Safety
        /// As for `alloc`.
        #[cold]
        unsafe fn take_for_image(&mut self, size: usize, align: usize) -> *mut u8 {
            let number = plan::next();
            let mut block = std::ptr::null_mut();
            if align <= GRAIN_BYTES {
                let bytes = size.next_multiple_of(GRAIN_BYTES);
                block = self.together.take(bytes, plan::writers(number));
            }
            if block.is_null() {
                // SAFETY: the caller's.
                block = unsafe { self.take(size, align) };
            }
            plan::note(number, block, size);
            block
        }
    }

    // SAFETY: both parts answer with blocks of the size and alignment that they are asked for, and
    // which of them a block belongs to is told by its layout, or by where it lies.
    unsafe impl GlobalAlloc for Heap {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: one thread, and no allocation happens within an allocation.
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
            match Small::list_of(size, align) {
                // Other blocks of the image do not come to lie there.
                Some(_) if !parts.is_settled && parts.together.has(block) => {}
                Some(list) => unsafe { parts.small.give(list, block) },
                // There are few of them, and they are not dlmalloc's.
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
            match (Small::list_of(before, align), Small::list_of(size, align)) {
                // Until then each counts as one that is made, wherever it lies.
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
        /// As for `realloc`.
        unsafe fn moved(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            let Ok(wanted) = Layout::from_size_align(size, layout.align()) else {
                return std::ptr::null_mut();
            };
            // SAFETY: both blocks are at least as long as what is copied, and they are two.
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

    /// Chunks that live as long as the test.
    fn chunk() -> *mut u8 {
        let words = vec![0_u64; CHUNK_BYTES / size_of::<u64>()];
        words.leak().as_mut_ptr().cast()
    }

    #[test]
    fn blocks_lie_apart_and_come_again_when_they_were_given_back() {
        let mut small = Small::new();
        let mut held: Vec<(usize, *mut u8)> = Vec::new();
        let mut chance = 7_usize;
        for _ in 0..20_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            if chance >> 62 == 0 && !held.is_empty() {
                let (size, block) = held.swap_remove((chance >> 8) % held.len());
                let list = Small::list_of(size, 8).unwrap();
                unsafe { small.give(list, block) };
                continue;
            }
            let size = (chance >> 16) % SMALL_BYTES_MAX + 1;
            let list = Small::list_of(size, 8).unwrap();
            let block = unsafe { small.take(list, chunk) };
            assert!(block.addr().is_multiple_of(GRAIN_BYTES));
            held.push((size, block));
        }
        held.sort_by_key(|(_, block)| block.addr());
        for pair in held.windows(2) {
            assert!(pair[0].1.addr() + pair[0].0 <= pair[1].1.addr());
        }
        let again = held[0];
        let list = Small::list_of(again.0, 8).unwrap();
        unsafe { small.give(list, again.1) };
        assert_eq!(unsafe { small.take(list, ptr::null_mut) }, again.1);
    }

    #[test]
    fn the_rest_of_a_chunk_is_not_lost() {
        let mut small = Small::new();
        let largest = Small::list_of(SMALL_BYTES_MAX, 8).unwrap();
        let odd = Small::list_of(24, 8).unwrap();
        unsafe { small.take(odd, chunk) };
        let mut taken = 24;
        while taken + SMALL_BYTES_MAX <= CHUNK_BYTES {
            unsafe { small.take(largest, ptr::null_mut) };
            taken += SMALL_BYTES_MAX;
        }
        unsafe { small.take(largest, chunk) };
        let rest = Small::list_of(CHUNK_BYTES - taken, 8).unwrap();
        assert!(!small.lists[rest].is_null());
    }

    #[test]
    fn large_blocks_have_grown_when_they_are_half_as_much_again() {
        let held = |bytes, bytes_before| Held {
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
            assert_eq!(Small::list_of(size, align), expected, "{size} {align}");
        }
    }

    #[test]
    fn without_a_chunk_there_is_no_block() {
        let mut small = Small::new();
        assert!(unsafe { small.take(3, ptr::null_mut) }.is_null());
    }
}
