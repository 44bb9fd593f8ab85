//! The guest's heap, for the engine's C code and for Rust alike. Small blocks come from lists,
//! one for each size, and until one was given back they lie one after the other, whatever their
//! sizes; what is larger is dlmalloc's. As in the first guest, what runs write is made side by
//! side (`plan`), and what is free when the image is frozen is forgotten.
//!
//! C gives blocks back without saying how large they are: four bytes before each say so.

#![expect(unsafe_code, reason = "an allocator has no safe form")]

#[cfg(target_arch = "wasm32")]
pub(crate) use global::settle;

use std::ptr;

/// Blocks are aligned to this.
const GRAIN_BYTES: usize = 8;
/// Stands before a block: how many bytes whoever has it may use.
const HEAD_BYTES: usize = 4;
/// The largest block, with its head, that comes from a list.
const SMALL_BYTES_MAX: usize = 512;
const LISTS: usize = SMALL_BYTES_MAX / GRAIN_BYTES;

/// What is cut into small blocks at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// Small blocks: those that were given back by their size, and the rest of the latest chunk.
struct Small {
    lists: [*mut Free; LISTS],
    /// Where the next block begins, so that what follows its head is aligned.
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

    /// The list of blocks of which so many bytes can be used, if one has them.
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

    /// A block of a list; null when there is none and `chunk` gives none to cut it from.
    ///
    /// # Safety
    /// What `chunk` gives is null or [`CHUNK_BYTES`] that nobody else uses, aligned to a grain.
    unsafe fn take(&mut self, list: usize, chunk: impl FnOnce() -> *mut u8) -> *mut u8 {
        let Some(head) = self.lists.get_mut(list) else {
            return ptr::null_mut();
        };
        // SAFETY: what is in a list is a block of its size, and nobody's.
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
            // SAFETY: nobody has the rest, and the chunk is as long as that.
            unsafe { self.cut_from(chunk, CHUNK_BYTES) };
        }
        // SAFETY: the rest is at least this long, and begins where a head may.
        unsafe {
            let block = self.rest.add(HEAD_BYTES);
            self.rest = self.rest.add(whole);
            self.rest_bytes -= whole;
            set_usable(block, Self::usable(list));
            block
        }
    }

    /// # Safety
    /// The chunk is that long and nobody else's.
    unsafe fn cut_from(&mut self, chunk: *mut u8, bytes: usize) {
        // What is left of the last chunk is a block too.
        if let Some(list) = (self.rest_bytes / GRAIN_BYTES).checked_sub(1)
            && list > 0
        {
            // SAFETY: nobody has the rest, and it is as long as its list says.
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
    /// The block came from this list, and nobody uses it any more.
    unsafe fn give(&mut self, list: usize, block: *mut u8) {
        if let Some(head) = self.lists.get_mut(list) {
            let free = block.cast::<Free>();
            // SAFETY: a block is aligned to a grain and holds at least a pointer.
            unsafe { free.write(Free { next: *head }) };
            *head = free;
        }
    }
}

/// # Safety
/// The block has a head.
unsafe fn set_usable(block: *mut u8, bytes: usize) {
    // Whoever asks for more than 32 bits can say has been refused.
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    // SAFETY: the caller's; blocks are aligned to twice as much as a head.
    unsafe { block.sub(HEAD_BYTES).cast::<u32>().write(bytes) };
}

/// # Safety
/// The block has a head.
unsafe fn usable(block: *const u8) -> usize {
    // SAFETY: the caller's.
    unsafe { block.sub(HEAD_BYTES).cast::<u32>().read() as usize }
}

#[cfg(target_arch = "wasm32")]
mod global {
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::UnsafeCell;
    use std::ptr;

    use dlmalloc::Dlmalloc;

    use super::{CHUNK_BYTES, GRAIN_BYTES, HEAD_BYTES, Small, set_usable, usable};
    use crate::plan::{self, Together};

    /// Memory grows by a multiple of this once a run has begun.
    const STEP_BYTES: usize = 2 * 1024 * 1024;

    /// Memory that an image has in hand, so that short runs need no more.
    const SPARE_BYTES: usize = 512 * 1024;

    /// What the first blocks of a run are cut from, on pages of its own.
    const FIRST_BYTES: usize = 64 * 1024;
    const PAGE_BYTES: usize = 4096;

    #[global_allocator]
    static HEAP: Heap = Heap(UnsafeCell::new(Parts {
        small: Small::new(),
        large: Dlmalloc::new(),
        is_settled: false,
        together: Together::new(),
    }));

    struct Heap(UnsafeCell<Parts>);

    struct Parts {
        small: Small,
        large: Dlmalloc,
        /// Whether everything is made that the image holds.
        is_settled: bool,
        together: Together,
    }

    // SAFETY: a guest has one thread.
    unsafe impl Sync for Heap {}

    /// The one heap.
    #[expect(
        clippy::mut_from_ref,
        reason = "one thread, and nothing in here allocates"
    )]
    fn heap() -> &'static mut Parts {
        // SAFETY: no two of these are used at once.
        unsafe { &mut *HEAP.0.get() }
    }

    /// To be called when everything is made that an image holds.
    pub(crate) fn settle() {
        let heap = heap();
        // SAFETY: nobody has seen these blocks.
        unsafe {
            let spare = heap.large.malloc(SPARE_BYTES, GRAIN_BYTES);
            heap.large.free(spare, SPARE_BYTES, GRAIN_BYTES);
            let first = heap.large.malloc(FIRST_BYTES, PAGE_BYTES);
            heap.small = Small::new();
            if !first.is_null() {
                heap.small.cut_from(first, FIRST_BYTES);
            }
        }
        heap.large.set_granularity(STEP_BYTES);
        heap.is_settled = true;
    }

    impl Parts {
        fn take(&mut self, bytes: usize) -> *mut u8 {
            if self.is_settled {
                self.take_anywhere(bytes)
            } else {
                self.take_for_image(bytes)
            }
        }

        fn take_anywhere(&mut self, bytes: usize) -> *mut u8 {
            let large = &mut self.large;
            match Small::list_of(bytes) {
                // SAFETY: the chunk is new and dlmalloc's.
                Some(list) => unsafe {
                    self.small
                        .take(list, || large.malloc(CHUNK_BYTES, GRAIN_BYTES))
                },
                None => {
                    let Some(whole) = bytes.checked_add(GRAIN_BYTES) else {
                        return ptr::null_mut();
                    };
                    // SAFETY: a block of this size holds its head.
                    unsafe {
                        let block = large.malloc(whole, GRAIN_BYTES);
                        if block.is_null() {
                            return block;
                        }
                        let block = block.add(GRAIN_BYTES);
                        set_usable(block, bytes);
                        block
                    }
                }
            }
        }

        /// A block that the image will hold, in the place that the plan has for it.
        #[cold]
        fn take_for_image(&mut self, bytes: usize) -> *mut u8 {
            let number = plan::next();
            let list = Small::list_of(bytes);
            let bytes = list.map_or(bytes, Small::usable);
            let mut block = ptr::null_mut();
            if plan::is_written(number) {
                let whole = (bytes + GRAIN_BYTES).next_multiple_of(GRAIN_BYTES);
                block = self.together.take(whole);
                if !block.is_null() {
                    // SAFETY: as much was taken.
                    unsafe {
                        block = block.add(GRAIN_BYTES);
                        set_usable(block, bytes);
                    }
                }
            }
            if block.is_null() {
                block = self.take_anywhere(bytes);
            }
            plan::note(number, block, bytes);
            block
        }

        /// # Safety
        /// The block came from here, and nobody uses it any more.
        unsafe fn give(&mut self, block: *mut u8) {
            // SAFETY: the caller's.
            let bytes = unsafe { usable(block) };
            match Small::list_of(bytes) {
                // Other blocks of the image do not come to lie there.
                Some(_) if !self.is_settled && self.together.has(block) => {}
                // SAFETY: its head says which list it is of.
                Some(list) => unsafe { self.small.give(list, block) },
                // There are few of them, and they are not dlmalloc's.
                None if self.together.has(block) => {}
                // SAFETY: that is where dlmalloc's block begins.
                None => unsafe {
                    self.large
                        .free(block.sub(GRAIN_BYTES), bytes + GRAIN_BYTES, GRAIN_BYTES);
                },
            }
        }

        /// # Safety
        /// The block came from here.
        unsafe fn resize(&mut self, block: *mut u8, bytes: usize) -> *mut u8 {
            // SAFETY: the caller's.
            let before = unsafe { usable(block) };
            match (Small::list_of(before), Small::list_of(bytes)) {
                (Some(from), Some(to)) if from == to => return block,
                // Until then each counts as one that is made, wherever it lies.
                (None, None) if self.is_settled && !self.together.has(block) => {
                    let (Some(whole), grain) = (bytes.checked_add(GRAIN_BYTES), GRAIN_BYTES) else {
                        return ptr::null_mut();
                    };
                    // SAFETY: that is where dlmalloc's block begins.
                    unsafe {
                        let from = block.sub(grain);
                        let new = self.large.realloc(from, before + grain, grain, whole);
                        if new.is_null() {
                            return new;
                        }
                        let new = new.add(grain);
                        set_usable(new, bytes);
                        return new;
                    }
                }
                _ => {}
            }
            let new = self.take(bytes);
            if !new.is_null() {
                // SAFETY: both are at least as long as what is copied, and they are two.
                unsafe {
                    new.copy_from_nonoverlapping(block, bytes.min(before));
                    self.give(block);
                }
            }
            new
        }
    }

    // SAFETY: blocks are as long as asked for and aligned to a grain; what is aligned wider is
    // dlmalloc's as it is.
    unsafe impl GlobalAlloc for Heap {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if layout.align() > GRAIN_BYTES {
                // SAFETY: the caller's.
                return unsafe { heap().large.malloc(layout.size(), layout.align()) };
            }
            heap().take(layout.size())
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the block came from `alloc` with this layout.
            unsafe {
                if layout.align() > GRAIN_BYTES {
                    heap().large.free(block, layout.size(), layout.align());
                } else {
                    heap().give(block);
                }
            }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
            let (before, align) = (layout.size(), layout.align());
            // SAFETY: as in `dealloc`.
            unsafe {
                if align > GRAIN_BYTES {
                    heap().large.realloc(block, before, align, bytes)
                } else {
                    heap().resize(block, bytes)
                }
            }
        }
    }

    // What the engine's C code asks for by these names.

    // SAFETY: the names are the C library's, whose own are not linked then.
    #[unsafe(no_mangle)]
    extern "C" fn malloc(bytes: usize) -> *mut u8 {
        heap().take(bytes)
    }

    // SAFETY: as above.
    #[unsafe(no_mangle)]
    extern "C" fn calloc(count: usize, bytes: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(bytes) else {
            return ptr::null_mut();
        };
        let block = heap().take(bytes);
        if !block.is_null() {
            // SAFETY: it is as long as that.
            unsafe { block.write_bytes(0, bytes) };
        }
        block
    }

    // SAFETY: as above; the block came from one of these.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(block: *mut u8, bytes: usize) -> *mut u8 {
        if block.is_null() {
            return malloc(bytes);
        }
        // SAFETY: the caller's.
        unsafe { heap().resize(block, bytes) }
    }

    // SAFETY: as above.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn free(block: *mut u8) {
        if !block.is_null() {
            // SAFETY: the caller's.
            unsafe { heap().give(block) };
        }
    }

    // SAFETY: as above.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn malloc_usable_size(block: *const u8) -> usize {
        if block.is_null() {
            return 0;
        }
        // SAFETY: the caller's.
        unsafe { usable(block) }
    }

    const _: () = assert!(HEAD_BYTES < GRAIN_BYTES);
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
    fn blocks_lie_apart_know_their_size_and_come_again_when_they_were_given_back() {
        let mut small = Small::new();
        let mut held: Vec<(usize, *mut u8)> = Vec::new();
        let mut chance = 7_usize;
        for _ in 0..20_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            if chance >> 62 == 0 && !held.is_empty() {
                let (size, block) = held.swap_remove((chance >> 8) % held.len());
                assert!(unsafe { usable(block) } >= size);
                let list = Small::list_of(unsafe { usable(block) }).unwrap();
                unsafe { small.give(list, block) };
                continue;
            }
            let size = (chance >> 16) % (SMALL_BYTES_MAX - HEAD_BYTES + 1);
            let list = Small::list_of(size).unwrap();
            let block = unsafe { small.take(list, chunk) };
            assert!(block.addr().is_multiple_of(GRAIN_BYTES));
            held.push((size, block));
        }
        held.sort_by_key(|(_, block)| block.addr());
        for pair in held.windows(2) {
            assert!(pair[0].1.addr() + pair[0].0 + HEAD_BYTES <= pair[1].1.addr());
        }
        let again = held[0].1;
        let list = Small::list_of(unsafe { usable(again) }).unwrap();
        unsafe { small.give(list, again) };
        assert_eq!(unsafe { small.take(list, ptr::null_mut) }, again);
    }

    #[test]
    fn the_rest_of_a_chunk_is_not_lost() {
        let mut small = Small::new();
        let largest = Small::list_of(SMALL_BYTES_MAX - HEAD_BYTES).unwrap();
        let odd = Small::list_of(20).unwrap();
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
            let list = Small::list_of(bytes).unwrap();
            assert!(list < LISTS && Small::usable(list) >= bytes.max(size_of::<u32>()));
            assert_eq!(Small::list_of(Small::usable(list)), Some(list));
        }
        assert_eq!(Small::list_of(SMALL_BYTES_MAX - HEAD_BYTES + 1), None);
        assert_eq!(Small::list_of(usize::MAX), None);
    }

    #[test]
    fn without_a_chunk_there_is_no_block() {
        let mut small = Small::new();
        assert!(unsafe { small.take(3, ptr::null_mut) }.is_null());
    }
}
