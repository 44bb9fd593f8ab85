//! The checker guest: [`codegen_script::Checker`] behind the calls that every guest exports. It
//! imports nothing. What a script's text makes of it, too deep a recursion or too much memory, is
//! a trap that ends this guest and nothing else.
//!
//! - `init()` prepares the memory that the factory freezes.
//! - `landmark()` answers the address of [`guest_common::landmark::LANDMARK`].
//! - `alloc(length)` answers where the host may write that many bytes.
//! - `start()` and `resume()` read the frame that was written there and answer the reply's frame:
//!   its address in the upper half of a 64-bit word, its length in the lower one.

#![expect(unsafe_code, reason = "exported symbols have no safe form")]

use std::cell::RefCell;
use std::ptr;

use codegen_script::Checker;
use guest_common::frames;
use guest_common::landmark::{self, LANDMARK};

thread_local! {
    static CHECKER: RefCell<Checker> = RefCell::default();
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn init() {
    std::panic::set_hook(Box::new(|panic| {
        landmark::fault(panic.payload_as_str().unwrap_or("the checker panicked"));
    }));
    CHECKER.with_borrow(|_| {});
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
    frames::exchange(|frame| CHECKER.with_borrow_mut(|checker| checker.start(frame)))
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn resume() -> u64 {
    frames::exchange(|frame| CHECKER.with_borrow_mut(|checker| checker.resume(frame)))
}
