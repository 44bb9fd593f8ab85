//! The one heap of the guest: under Rust's allocator, and under the C library's names for the
//! engine.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;

use dlmalloc::Dlmalloc;

use super::{
    BYTES_MAX, CHUNK_BYTES, GRAIN_BYTES, HEAD_BYTES, SMALL_BYTES_MAX, Small, TOGETHER_BYTES,
    TOUCHED, Together, set_usable, usable,
};
use crate::plan::{self, PLAN, Writers};

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
    together: Together::new(),
    stage: Stage::Building,
}));

struct Heap(UnsafeCell<Parts>);

struct Parts {
    small: Small,
    large: Dlmalloc,
    together: Together,
    stage: Stage,
}

enum Stage {
    /// What is made belongs to the image.
    Building,
    Running,
    /// Running, and a factory wants to know what is written.
    Watched(Watch),
}

/// The second word of the blocks of the image, where the engine counts references.
struct Watch {
    blocks: *const [u32; 2],
    counts: *mut u32,
    made: usize,
}

/// Where what is made together lies.
#[repr(align(4096))]
struct Room(UnsafeCell<[u8; TOGETHER_BYTES]>);

static ROOM: Room = Room(UnsafeCell::new([0; TOGETHER_BYTES]));

// SAFETY: a guest has one thread.
unsafe impl Sync for Room {}

impl Room {
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.get().cast::<u8>().wrapping_add(offset)
    }

    fn has(&self, block: *const u8) -> bool {
        (block.addr().wrapping_sub(self.0.get().addr())) < TOGETHER_BYTES
    }
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
    heap.stage = match Watch::begin(&mut heap.large) {
        Some(watch) => Stage::Watched(watch),
        None => Stage::Running,
    };
}

impl Watch {
    /// Where the factory wants a list of blocks, which is made by now.
    fn begin(large: &mut Dlmalloc) -> Option<Self> {
        let plan = ptr::from_ref(&PLAN).cast::<u32>();
        // SAFETY: its first two words are how many blocks were made, and where their list is.
        let (made, list) = unsafe { (plan.read() as usize, plan.add(1).read() as usize) };
        if list == 0 {
            return None;
        }
        // SAFETY: as many words are read and written as there is room for.
        unsafe {
            let counts = large
                .malloc(made * size_of::<u32>(), GRAIN_BYTES)
                .cast::<u32>();
            let watch = Self {
                blocks: ptr::with_exposed_provenance(list),
                counts,
                made,
            };
            for number in 0..made {
                if let Some(head) = watch.head_at(number) {
                    counts.add(number).write(head.add(2).read());
                }
            }
            Some(watch)
        }
    }

    /// The head of a small block. Others may be gone, and something else be there.
    ///
    /// # Safety
    /// A block of this number was made.
    unsafe fn head_at(&self, number: usize) -> Option<*mut u32> {
        // SAFETY: the caller's.
        let [head, bytes] = unsafe { self.blocks.add(number).read() };
        let is_small = bytes as usize <= SMALL_BYTES_MAX;
        is_small.then(|| ptr::with_exposed_provenance_mut(head as usize))
    }

    #[cold]
    fn look(&self) {
        for number in 0..self.made {
            // SAFETY: the list is as long as that, and a block at least three words with its head.
            unsafe {
                if let Some(head) = self.head_at(number)
                    && head.add(2).read() != self.counts.add(number).read()
                {
                    *head |= TOUCHED;
                }
            }
        }
    }
}

impl Parts {
    fn take(&mut self, bytes: usize) -> *mut u8 {
        match &self.stage {
            Stage::Running => {}
            Stage::Building => return self.take_for_image(bytes),
            Stage::Watched(watch) => watch.look(),
        }
        self.take_anywhere(bytes)
    }

    fn is_building(&self) -> bool {
        matches!(self.stage, Stage::Building)
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
            if let Some(offset) = self.together.take(whole) {
                // SAFETY: as much was taken.
                unsafe {
                    block = ROOM.at(offset).add(GRAIN_BYTES);
                    set_usable(block, bytes);
                }
            }
        }
        if block.is_null() {
            block = self.take_anywhere(bytes);
        }
        // With its head, where a mark may stand.
        plan::note(number, block.wrapping_sub(HEAD_BYTES), bytes + HEAD_BYTES);
        block
    }

    /// # Safety
    /// The block came from here, and nobody uses it any more.
    unsafe fn give(&mut self, block: *mut u8) {
        if let Stage::Watched(watch) = &self.stage {
            watch.look();
        }
        // SAFETY: the caller's.
        let bytes = unsafe { usable(block) };
        match Small::list_of(bytes) {
            // Other blocks of the image do not come to lie there.
            Some(_) if self.is_building() && ROOM.has(block) => {}
            // SAFETY: its head says which list it is of.
            Some(list) => unsafe { self.small.give(list, block) },
            // There are few of them, and they are not dlmalloc's.
            None if ROOM.has(block) => {}
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
            (None, None) if !self.is_building() && !ROOM.has(block) => {
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
