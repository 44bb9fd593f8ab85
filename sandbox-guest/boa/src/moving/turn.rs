//! Items of an array change places, all at once. The engine lets nobody but itself write to
//! its lists of items; this does, and only ever puts the same items in another order.

#![expect(unsafe_code, reason = "the engine's lists of items have no other door")]

use std::ptr;
use std::slice;

use boa_engine::object::{IndexPropertyValues, JsObject};

/// The first `count` items from `from` on go behind all others.
pub(super) fn left(object: &JsObject, from: usize, count: usize) {
    turn(object, from, |items| items.min(count));
}

/// The last `count` items go before all others from `from` on.
pub(super) fn right(object: &JsObject, from: usize, count: usize) {
    turn(object, from, |items| items.saturating_sub(count));
}

/// Turns the items from `from` on to the left by so many as `by` says of their number.
fn turn(object: &JsObject, from: usize, by: impl Fn(usize) -> usize) {
    // Nobody else reads or writes the object for as long as this is held.
    let object = object.borrow_mut();
    match object.properties().index_property_values() {
        IndexPropertyValues::DenseI32(items) => {
            let (start, count) = (items.as_slice().as_ptr(), items.len());
            // SAFETY: they are the items of an object that is borrowed for this.
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

/// The list is memory of its own on the heap, which its owner writes to by a pointer, never by
/// a reference that is kept. What is read here is its address alone: what is written goes
/// through a pointer to that address of which the compiler assumes nothing, and no reference
/// that was made to the items is used any more.
///
/// # Safety
/// - There are `count` items at `start`, in memory that is written to elsewhere.
/// - Nobody reads or writes them meanwhile.
unsafe fn turn_items<T>(start: *const T, count: usize, from: usize, by: impl Fn(usize) -> usize) {
    if from >= count {
        return;
    }
    let start = ptr::with_exposed_provenance_mut::<T>(start.expose_provenance());
    // SAFETY: the caller's. Each item stays one item: none is copied, and none is let go of.
    let items = unsafe { slice::from_raw_parts_mut(start.add(from), count - from) };
    items.rotate_left(by(items.len()));
}
