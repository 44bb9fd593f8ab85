//! Moves items of an array to other positions, all at once. The engine does not expose its list of
//! items for writing. This module writes to that list, and only reorders the items.

#![expect(unsafe_code, reason = "the engine offers no safe access to its items")]

use std::ptr;
use std::slice;

use boa_engine::object::{IndexPropertyValues, JsObject};

/// Moves `count` items, beginning at `from`, to the end.
pub(super) fn left(object: &JsObject, from: usize, count: usize) {
    turn(object, from, |items| items.min(count));
}

/// Moves the last `count` items to the position `from`.
pub(super) fn right(object: &JsObject, from: usize, count: usize) {
    turn(object, from, |items| items.saturating_sub(count));
}

/// Rotates the items from `from` on to the left; `by` computes the distance from the number of
/// items.
fn turn(object: &JsObject, from: usize, by: impl Fn(usize) -> usize) {
    // Nothing else reads or writes the object while this borrow is held.
    let object = object.borrow_mut();
    match object.properties().index_property_values() {
        IndexPropertyValues::DenseI32(items) => {
            let (start, count) = (items.as_slice().as_ptr(), items.len());
            // SAFETY: these are the items of the object that is borrowed here.
            unsafe { turn_items(start, count, from, by) };
        }
        IndexPropertyValues::DenseF64(items) => {
            let (start, count) = (items.as_slice().as_ptr(), items.len());
            // SAFETY: as above.
            unsafe { turn_items(start, count, from, by) };
        }
        IndexPropertyValues::DenseElement(items) => {
            let (start, count) = (items.as_slice().as_ptr(), items.len());
            // SAFETY: as above.
            unsafe { turn_items(start, count, from, by) };
        }
        _ => {}
    }
}

/// Rotates the items. The list is separate memory on the heap. Its owner writes to the list through
/// a pointer and keeps no reference. This function receives only the address, and writes through a
/// pointer about which the compiler assumes nothing. No reference to the items is used afterwards.
///
/// # Safety
/// - There must be `count` items at `start`, in memory that other code may write.
/// - Nothing else may read or write them meanwhile.
unsafe fn turn_items<T>(start: *const T, count: usize, from: usize, by: impl Fn(usize) -> usize) {
    if from >= count {
        return;
    }
    let start = ptr::with_exposed_provenance_mut::<T>(start.expose_provenance());
    // SAFETY: the caller guarantees this. The items are only reordered: none is copied or dropped.
    let items = unsafe { slice::from_raw_parts_mut(start.add(from), count - from) };
    items.rotate_left(by(items.len()));
}
