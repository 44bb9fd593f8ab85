//! The checker guest: [`codegen_script::Checker`] behind the functions that every guest exports. It
//! imports nothing. If a script causes too deep recursion or needs too much memory, the trap ends
//! only this guest.
//!
//! - `init()` prepares the memory that the image builder freezes.
//! - `landmark()` returns the address of [`guest_common::panic_message::LANDMARK`].
//! - `alloc(length)` returns the address at which the host may write that many bytes.
//! - `start()` and `resume()` read the frame written there and return the reply's frame: its
//!   address in the upper half of a 64-bit word, its length in the lower half.

#![expect(unsafe_code, reason = "exported symbols have no safe form")]

use std::cell::RefCell;
use std::ptr;

use codegen_script::Checker;
use guest_common::frames;
use guest_common::panic_message::{self, LANDMARK};

thread_local! {
    static CHECKER: RefCell<Checker> = RefCell::default();
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn init() {
    std::panic::set_hook(Box::new(|panic| {
        panic_message::fault(panic.payload_as_str().unwrap_or("the checker panicked"));
    }));
    CHECKER.with_borrow(|_| {});
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
    frames::exchange(|frame| CHECKER.with_borrow_mut(|checker| checker.start(frame)))
}

// SAFETY: no other module defines this name.
#[unsafe(no_mangle)]
pub extern "C" fn resume() -> u64 {
    frames::exchange(|frame| CHECKER.with_borrow_mut(|checker| checker.resume(frame)))
}
