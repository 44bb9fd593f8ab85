//! The border: what the host can call.
//!
//! - `init()` builds the engine; the factory calls it once and freezes the memory.
//! - `plan()` answers the address of [`guest_common::plan::PLAN`], for the factory.
//! - `landmark()` answers the address of [`guest_common::landmark::LANDMARK`].
//! - `alloc(length)` answers where the host may write that many bytes.
//! - `start()` and `resume()` read the frame that was written there, run, and
//!   answer the step's frame as [`guest_common::frames`] has it: as address in the
//!   upper and length in the lower half of a 64-bit word, until the next call.

#![expect(unsafe_code, reason = "exported symbols have no safe form")]

use std::cell::RefCell;
use std::ptr;

use guest_common::frames;
use guest_common::landmark::{self, LANDMARK};
use guest_common::plan::PLAN;
use sandbox_protocol::Step;

use crate::{Guest, clock, heap};

thread_local! {
    static GUEST: RefCell<Option<Guest>> = const { RefCell::new(None) };
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn init() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("the guest panicked");
        landmark::fault(text);
    }));
    match Guest::new() {
        Ok(guest) => GUEST.set(Some(guest)),
        Err(why) => frames::end(&why),
    }
    heap::settle();
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn plan() -> u32 {
    u32::try_from(ptr::from_ref(&PLAN).addr()).unwrap_or(0)
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn landmark() -> u32 {
    u32::try_from(ptr::from_ref(&LANDMARK).addr()).unwrap_or(0)
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(length: u32) -> u32 {
    frames::room(length)
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> u64 {
    frames::start(|start| with_guest(|guest| guest.start(start)))
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn resume() -> u64 {
    frames::resume(|resume| with_guest(|guest| guest.resume(resume)))
}

fn with_guest(run: impl FnOnce(&mut Guest) -> Step) -> Step {
    GUEST.with_borrow_mut(|guest| match guest {
        Some(guest) => run(guest),
        None => frames::end("the guest was never initialised"),
    })
}

/// The one thing that the engine's C code asks of its host: microseconds since
/// the epoch. Defined here, it is no import.
///
/// SAFETY: the name and signature are those that the engine's build links to.
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    clock::now_ms() as f64 * 1000.0
}
