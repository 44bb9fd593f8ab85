//! Makes room on the engine's heap. The engine's collector runs whenever the heap has grown by two
//! fifths, and then marks all live objects. This work is useless while a script creates many values
//! that all stay in use. The collector's threshold is private and never falls, so a temporary
//! allocation on the heap raises it.
//!
//! The collector counts objects, and not the memory that the objects own: a thousand lists of a
//! megabyte each count little. So replaced functions ask the allocator how much large blocks have
//! grown. They do so only at points where all live objects can be found.

use std::cell::Cell;
use std::mem::MaybeUninit;

use boa_gc::{Finalize, Gc, Trace, force_collect};

#[cfg(target_arch = "wasm32")]
use crate::heap;

const BLOCK_BYTES: usize = 64 * 1024;

/// Minimum room in bytes; a smaller amount is not worth the collections that the temporary
/// allocation itself causes.
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

/// Makes room for about this many bytes of objects before the next collection.
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

/// Collects garbage if large blocks have grown much since the last collection.
#[inline]
pub(crate) fn sweep_when_full() {
    // Outside Wasm, the machine has enough memory.
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

    /// Records the moment when it is collected.
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
