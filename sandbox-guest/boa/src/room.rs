//! Room on the engine's heap. Its collector runs whenever the heap has grown by
//! two fifths, and then marks all that lives; while many values are made that
//! all stay, that is work for nothing. How much it lets grow is its own secret
//! and never becomes less: so a ballast is put on the heap and taken off again.
//!
//! It knows of the objects, and of nothing that they have: a thousand lists of a megabyte each
//! are little to it. So how much large blocks have grown is asked of the allocator, wherever
//! something of ours is called and all that is alive can be found.

use std::cell::Cell;
use std::mem::MaybeUninit;

use boa_gc::{Finalize, Gc, Trace, force_collect};

#[cfg(target_arch = "wasm32")]
use crate::heap;

const BLOCK_BYTES: usize = 64 * 1024;

/// Less is not worth the collections that the ballast itself costs.
const ROOM_BYTES_MIN: usize = 1024 * 1024;
const ROOM_BYTES_MAX: usize = 32 * 1024 * 1024;

thread_local! {
    static MADE_BYTES: Cell<usize> = const { Cell::new(0) };
}

#[derive(Trace, Finalize)]
#[boa_gc(unsafe_empty_trace)]
struct Block {
    _bytes: MaybeUninit<[u8; BLOCK_BYTES]>,
}

/// Lets about this many bytes of objects be made before the next collection.
pub(crate) fn make(bytes: usize) {
    let bytes = bytes.min(ROOM_BYTES_MAX);
    if bytes < ROOM_BYTES_MIN || bytes <= MADE_BYTES.get() {
        return;
    }
    MADE_BYTES.set(bytes);
    let ballast: Vec<Gc<Block>> = (0..bytes.div_ceil(BLOCK_BYTES))
        .map(|_| {
            Gc::new(Block {
                _bytes: MaybeUninit::uninit(),
            })
        })
        .collect();
    drop(ballast);
    force_collect();
}

/// Collects what nobody has any more when large blocks have become much more since the last time.
#[inline]
pub(crate) fn sweep_when_full() {
    // Elsewhere the machine has room.
    #[cfg(target_arch = "wasm32")]
    if heap::has_grown() {
        sweep();
    }
}

#[cfg(target_arch = "wasm32")]
#[cold]
fn sweep() {
    force_collect();
    heap::swept();
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Tells when it is collected.
    #[derive(Trace)]
    #[boa_gc(unsafe_empty_trace)]
    struct Sentinel(Rc<Cell<bool>>);

    impl Finalize for Sentinel {
        fn finalize(&self) {
            self.0.set(true);
        }
    }

    fn is_collected_while_blocks_are_made(blocks: usize) -> bool {
        let collected = Rc::new(Cell::new(false));
        drop(Gc::new(Sentinel(Rc::clone(&collected))));
        for _ in 0..blocks {
            drop(Gc::new(Block {
                _bytes: MaybeUninit::uninit(),
            }));
        }
        collected.get()
    }

    #[test]
    fn where_room_was_made_nothing_is_collected() {
        let blocks = 4 * ROOM_BYTES_MIN / BLOCK_BYTES;
        assert!(is_collected_while_blocks_are_made(blocks));
        make(5 * ROOM_BYTES_MIN);
        assert!(!is_collected_while_blocks_are_made(blocks));
        assert!(is_collected_while_blocks_are_made(3 * blocks));
    }
}
