//! The exports: the functions that the host can call.
//!
//! - `init()` builds the engine; the image builder calls it once and freezes the memory.
//! - `plan()` returns the address of [`guest_common::plan::PLAN`], for the image builder.
//! - `landmark()` returns the address of [`guest_common::panic_message::LANDMARK`].
//! - `alloc(length)` returns the address at which the host may write that many bytes.
//! - `start()` and `resume()` read the frame written there, run, and return the step's frame as
//!   [`guest_common::frames`] defines: its address in the upper half of a 64-bit word, its length
//!   in the lower half. The frame is valid until the next call.

#![expect(unsafe_code, reason = "exported symbols have no safe form")]

use std::cell::RefCell;
use std::ptr;

use guest_common::frames;
use guest_common::panic_message::{self, LANDMARK};
use guest_common::plan::PLAN;
use sandbox_protocol::Step;

use crate::{Guest, clock, heap};

thread_local! {
    static GUEST: RefCell<Option<Guest>> = const { RefCell::new(None) };
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn init() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("the guest panicked");
        panic_message::fault(text);
    }));
    match Guest::new() {
        Ok(guest) => GUEST.set(Some(guest)),
        Err(why) => frames::end(&why),
    }
    heap::settle();
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn plan() -> u32 {
    u32::try_from(ptr::from_ref(&PLAN).addr()).unwrap_or(0)
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn landmark() -> u32 {
    u32::try_from(ptr::from_ref(&LANDMARK).addr()).unwrap_or(0)
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(length: u32) -> u32 {
    frames::room(length)
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> u64 {
    frames::start(|start| with_guest(|guest| guest.start(start)))
}

// SAFETY: no other module defines this name.
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

/// The only function that the engine's C code requires from its host: microseconds since the epoch.
/// This crate defines it, so it is not an import.
///
/// SAFETY: the engine's build links to this name and signature.
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    clock::now_ms() as f64 * 1000.0
}
