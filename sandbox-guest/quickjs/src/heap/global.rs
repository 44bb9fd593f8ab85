//! The only heap of the guest, used by Rust's allocator and, under the names of the C library, by
//! the engine.

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32::{memory_grow, memory_size};
use std::cell::UnsafeCell;
use std::ptr;

use dlmalloc::Dlmalloc;

use super::{
    BYTES_MAX, CHUNK_BYTES, GRAIN_BYTES, HEAD_BYTES, SmallBlocks, TOGETHER_BYTES, Together,
    set_usable, usable,
};
use guest_common::plan::{self, Writers};

/// Once a run has begun, memory grows by a multiple of this number of bytes.
const STEP_BYTES: usize = 2 * 1024 * 1024;

/// Memory in bytes that an image reserves, so that short runs need no more.
const SPARE_BYTES: usize = 512 * 1024;

/// Unit in bytes by which memory grows.
const WASM_PAGE_BYTES: usize = 64 * 1024;

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(ptr::null_mut()));

/// Address of the heap's own state, after its creation.
struct Heap(UnsafeCell<*mut HeapParts>);

struct HeapParts {
    small: SmallBlocks,
    large: Dlmalloc,
    /// The planned blocks, followed by the first blocks of a run.
    together: Together,
    /// Whether the image's content is complete.
    is_settled: bool,
}

unsafe extern "C" {
    /// Defined by the linker: the address of the first byte after all statics.
    static __heap_base: u8;
}

// SAFETY: a guest has one thread.
unsafe impl Sync for Heap {}

/// Returns the only heap.
#[expect(
    clippy::mut_from_ref,
    reason = "there is one thread, and this code does not allocate"
)]
fn heap() -> &'static mut HeapParts {
    // SAFETY: at most one such reference is in use at a time, and a pointer that is not null was
    // initialised.
    unsafe {
        let parts = *HEAP.0.get();
        if parts.is_null() {
            begin()
        } else {
            &mut *parts
        }
    }
}

/// Creates the heap in the first memory after the statics, because every run writes those too.
#[cold]
fn begin() -> &'static mut HeapParts {
    let own_bytes = size_of::<HeapParts>().next_multiple_of(GRAIN_BYTES);
    let bytes = own_bytes + TOGETHER_BYTES;
    let base = (&raw const __heap_base).expose_provenance();
    let end = memory_size(0) * WASM_PAGE_BYTES;
    // A list that was requested before the heap existed occupies the next memory.
    let is_next = base.next_multiple_of(WASM_PAGE_BYTES) == end;
    let at = if is_next {
        base.next_multiple_of(PARTS_ALIGN_BYTES)
    } else {
        end
    };
    let missing = (at + bytes).saturating_sub(end).div_ceil(WASM_PAGE_BYTES);
    if memory_grow(0, missing) == usize::MAX {
        std::process::abort();
    }
    let place = ptr::with_exposed_provenance_mut::<HeapParts>(at);
    // SAFETY: the memory is aligned, large enough and unused; the block is new.
    unsafe {
        place.write(HeapParts {
            small: SmallBlocks::new(),
            large: Dlmalloc::new(),
            together: Together::new(at + own_bytes),
            is_settled: false,
        });
        *HEAP.0.get() = place;
        // dlmalloc would start at the address of this heap, so its first request is larger than the
        // memory left there. From then on, dlmalloc has its own address.
        let parts = &mut *place;
        let first = parts.large.malloc(WASM_PAGE_BYTES, GRAIN_BYTES);
        parts.large.free(first, WASM_PAGE_BYTES, GRAIN_BYTES);
        parts
    }
}

const PARTS_ALIGN_BYTES: usize = 16;
const _: () = assert!(align_of::<HeapParts>() <= PARTS_ALIGN_BYTES);

/// Must be called when the image's content is complete.
pub(crate) fn settle() {
    let heap = heap();
    // SAFETY: the blocks are new, so nothing else refers to them.
    unsafe {
        let spare = heap.large.malloc(SPARE_BYTES, GRAIN_BYTES);
        heap.large.free(spare, SPARE_BYTES, GRAIN_BYTES);
        fill_holes(&mut heap.large, spare);
        heap.small = SmallBlocks::new();
        let (rest, rest_bytes) = heap.together.rest();
        if rest_bytes > GRAIN_BYTES {
            heap.small.cut_from(rest, rest_bytes);
        }
    }
    heap.large.set_granularity(STEP_BYTES);
    heap.is_settled = true;
}

/// Permanently allocates the free memory before this address. A run then uses new pages, and does
/// not write into gaps between the image's blocks.
///
/// # Safety
/// No block from this address on may be in use.
unsafe fn fill_holes(large: &mut Dlmalloc, from: *mut u8) {
    let mut bytes = SPARE_BYTES;
    while bytes >= GRAIN_BYTES {
        // SAFETY: the block is new, so nothing else refers to it.
        unsafe {
            let hole = large.malloc(bytes, GRAIN_BYTES);
            if hole.is_null() {
                return;
            }
            if hole.addr() >= from.addr() {
                large.free(hole, bytes, GRAIN_BYTES);
                bytes /= 2;
            }
        }
    }
}

impl HeapParts {
    fn take(&mut self, bytes: usize) -> *mut u8 {
        if self.is_settled {
            self.take_anywhere(bytes)
        } else {
            self.take_for_image(bytes)
        }
    }

    fn take_anywhere(&mut self, bytes: usize) -> *mut u8 {
        let large = &mut self.large;
        match SmallBlocks::list_of(bytes) {
            // SAFETY: the chunk is new and comes from dlmalloc.
            Some(list) => unsafe {
                self.small
                    .take(list, || large.malloc(CHUNK_BYTES, GRAIN_BYTES))
            },
            None => {
                if bytes > BYTES_MAX {
                    return ptr::null_mut();
                }
                // SAFETY: a block of this size has room for its header.
                unsafe {
                    let block = large.malloc(bytes + GRAIN_BYTES, GRAIN_BYTES);
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

    /// Returns a block for the image, at the address that the plan assigns.
    #[cold]
    fn take_for_image(&mut self, bytes: usize) -> *mut u8 {
        let number = plan::next();
        let list = SmallBlocks::list_of(bytes);
        let bytes = list.map_or(bytes, SmallBlocks::usable);
        let mut block = ptr::null_mut();
        if plan::writers(number) != Writers::Nobody && bytes <= BYTES_MAX {
            let whole = (bytes + GRAIN_BYTES).next_multiple_of(GRAIN_BYTES);
            if let Some(at) = self.together.take(whole) {
                block = ptr::with_exposed_provenance_mut(at + GRAIN_BYTES);
                // SAFETY: this many bytes were taken.
                unsafe { set_usable(block, bytes) };
            }
        }
        if block.is_null() {
            block = self.take_anywhere(bytes);
        }
        plan::note(number, block.wrapping_sub(HEAD_BYTES), bytes + HEAD_BYTES);
        block
    }

    /// # Safety
    /// The block must come from this heap and must no longer be used.
    unsafe fn give(&mut self, block: *mut u8) {
        // SAFETY: the caller guarantees this.
        let bytes = unsafe { usable(block) };
        match SmallBlocks::list_of(bytes) {
            // A planned address is not reused for other blocks of the image.
            Some(_) if !self.is_settled && self.together.has(block) => {}
            // SAFETY: the header of the block determines its list.
            Some(list) => unsafe { self.small.give(list, block) },
            // There are few such blocks, and they do not come from dlmalloc.
            None if self.together.has(block) => {}
            // SAFETY: dlmalloc's block starts there.
            None => unsafe {
                self.large
                    .free(block.sub(GRAIN_BYTES), bytes + GRAIN_BYTES, GRAIN_BYTES);
            },
        }
    }

    /// # Safety
    /// The block must come from this heap.
    unsafe fn resize(&mut self, block: *mut u8, bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees this.
        let before = unsafe { usable(block) };
        match (SmallBlocks::list_of(before), SmallBlocks::list_of(bytes)) {
            (Some(from), Some(to)) if from == to => return block,
            // Until the image is complete, each call counts as a new block in the plan.
            (None, None) if self.is_settled && !self.together.has(block) => {
                if bytes > BYTES_MAX {
                    return ptr::null_mut();
                }
                let (whole, grain) = (bytes + GRAIN_BYTES, GRAIN_BYTES);
                // SAFETY: dlmalloc's block starts there.
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
            // SAFETY: both are at least as long as the copied bytes, and they are distinct.
            unsafe {
                new.copy_from_nonoverlapping(block, bytes.min(before));
                self.give(block);
            }
        }
        new
    }
}

// SAFETY: blocks are as long as requested and aligned to a grain; blocks with a larger alignment
// come from dlmalloc directly.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > GRAIN_BYTES {
            // SAFETY: the caller guarantees this.
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

// The functions of the C library, which the engine's C code calls by these names.

// SAFETY: the C library defines these names; its own definitions are then not linked.
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
        // SAFETY: the block is that long.
        unsafe { block.write_bytes(0, bytes) };
    }
    block
}

// SAFETY: as above; the block came from one of these functions.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        return malloc(bytes);
    }
    // SAFETY: the caller guarantees this.
    unsafe { heap().resize(block, bytes) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut u8) {
    if !block.is_null() {
        // SAFETY: the caller guarantees this.
        unsafe { heap().give(block) };
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *const u8) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller guarantees this.
    unsafe { usable(block) }
}

const _: () = assert!(HEAD_BYTES < GRAIN_BYTES);
