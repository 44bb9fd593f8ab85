//! The one heap of the guest: under Rust's allocator, and under the C library's names for the
//! engine.

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32::{memory_grow, memory_size};
use std::cell::UnsafeCell;
use std::ptr;

use dlmalloc::Dlmalloc;

use super::{
    BYTES_MAX, CHUNK_BYTES, GRAIN_BYTES, HEAD_BYTES, Small, TOGETHER_BYTES, Together, set_usable,
    usable,
};
use guest_common::plan::{self, Writers};

/// Memory grows by a multiple of this once a run has begun.
const STEP_BYTES: usize = 2 * 1024 * 1024;

/// Memory that an image has in hand, so that short runs need no more.
const SPARE_BYTES: usize = 512 * 1024;

/// What memory grows by.
const WASM_PAGE_BYTES: usize = 64 * 1024;

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(ptr::null_mut()));

/// Where the heap's own state is, once there is one.
struct Heap(UnsafeCell<*mut Parts>);

struct Parts {
    small: Small,
    large: Dlmalloc,
    /// The blocks that lie together, and behind them what a run makes first.
    together: Together,
    /// Whether everything is made that the image holds.
    is_settled: bool,
}

unsafe extern "C" {
    /// The linker's: the first byte behind all statics.
    static __heap_base: u8;
}

// SAFETY: a guest has one thread.
unsafe impl Sync for Heap {}

/// The one heap.
#[expect(
    clippy::mut_from_ref,
    reason = "one thread, and nothing in here allocates"
)]
fn heap() -> &'static mut Parts {
    // SAFETY: no two of these are used at once, and whoever is not null was made.
    unsafe {
        let parts = *HEAP.0.get();
        if parts.is_null() {
            begin()
        } else {
            &mut *parts
        }
    }
}

/// Makes the heap, in the first room behind the statics: they are written by every run too.
#[cold]
fn begin() -> &'static mut Parts {
    let own_bytes = size_of::<Parts>().next_multiple_of(GRAIN_BYTES);
    let bytes = own_bytes + TOGETHER_BYTES;
    let base = (&raw const __heap_base).expose_provenance();
    let end = memory_size(0) * WASM_PAGE_BYTES;
    // Whoever makes room for a list before there is a heap has taken what would come next.
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
    let place = ptr::with_exposed_provenance_mut::<Parts>(at);
    // SAFETY: the room is aligned, large enough, and nobody else's; nobody has seen the block.
    unsafe {
        place.write(Parts {
            small: Small::new(),
            large: Dlmalloc::new(),
            together: Together::new(at + own_bytes),
            is_settled: false,
        });
        *HEAP.0.get() = place;
        // dlmalloc would begin where this heap is: what it is asked for first is more than that.
        // It knows its own address from here on.
        let parts = &mut *place;
        let first = parts.large.malloc(WASM_PAGE_BYTES, GRAIN_BYTES);
        parts.large.free(first, WASM_PAGE_BYTES, GRAIN_BYTES);
        parts
    }
}

const PARTS_ALIGN_BYTES: usize = 16;
const _: () = assert!(align_of::<Parts>() <= PARTS_ALIGN_BYTES);

/// To be called when everything is made that an image holds.
pub(crate) fn settle() {
    let heap = heap();
    // SAFETY: nobody has seen these blocks.
    unsafe {
        let spare = heap.large.malloc(SPARE_BYTES, GRAIN_BYTES);
        heap.large.free(spare, SPARE_BYTES, GRAIN_BYTES);
        fill_holes(&mut heap.large, spare);
        heap.small = Small::new();
        let (rest, rest_bytes) = heap.together.rest();
        if rest_bytes > GRAIN_BYTES {
            heap.small.cut_from(rest, rest_bytes);
        }
    }
    heap.large.set_granularity(STEP_BYTES);
    heap.is_settled = true;
}

/// Takes what is free before this address for good: a run has fresh pages, and does not write
/// into those of the image for what would fit between its blocks.
///
/// # Safety
/// Nobody has a block from there on.
unsafe fn fill_holes(large: &mut Dlmalloc, from: *mut u8) {
    let mut bytes = SPARE_BYTES;
    while bytes >= GRAIN_BYTES {
        // SAFETY: nobody has seen the block.
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
                if bytes > BYTES_MAX {
                    return ptr::null_mut();
                }
                // SAFETY: a block of this size holds its head.
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

    /// A block that the image will hold, in the place that the plan has for it.
    #[cold]
    fn take_for_image(&mut self, bytes: usize) -> *mut u8 {
        let number = plan::next();
        let list = Small::list_of(bytes);
        let bytes = list.map_or(bytes, Small::usable);
        let mut block = ptr::null_mut();
        if plan::writers(number) != Writers::Nobody && bytes <= BYTES_MAX {
            let whole = (bytes + GRAIN_BYTES).next_multiple_of(GRAIN_BYTES);
            if let Some(at) = self.together.take(whole) {
                block = ptr::with_exposed_provenance_mut(at + GRAIN_BYTES);
                // SAFETY: as much was taken.
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
                if bytes > BYTES_MAX {
                    return ptr::null_mut();
                }
                let (whole, grain) = (bytes + GRAIN_BYTES, GRAIN_BYTES);
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
