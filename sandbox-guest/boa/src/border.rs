//! The border: what the host can call. With [`crate::heap`] the only `unsafe` of this crate.
//!
//! - `init()` builds the engine; the factory calls it once and freezes the memory.
//! - `landmark()` answers the address of [`crate::landmark::LANDMARK`].
//! - `plan()` answers the address of [`crate::plan::PLAN`], for the factory.
//! - `alloc(length)` answers where the host may write that many bytes.
//! - `start()` and `resume()` read the frame that was written there, run, and
//!   answer the step's frame as address in the upper and length in the lower
//!   half of a 64-bit word. It is valid until the next call of any export.

#![expect(
    unsafe_code,
    reason = "exported symbols and the random source have no safe form"
)]

use std::cell::{Cell, RefCell};
use std::ptr;

use sandbox_protocol::Step;
use sandbox_protocol::codec::{decode_start, encode_step, take_resume};

use crate::Guest;
use crate::console;
use crate::heap;
use crate::landmark::{self, LANDMARK};
use crate::plan::PLAN;

thread_local! {
    static GUEST: RefCell<Option<Guest>> = const { RefCell::new(None) };
    /// The frame from the host, then the one to it.
    static FRAME: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// How long the frame from the host is.
    static LENGTH: Cell<usize> = const { Cell::new(0) };
}

/// Ends the guest for good, leaving word of why.
fn end(why: &str) -> ! {
    landmark::fault(why);
    std::process::abort()
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn init() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("the guest panicked");
        landmark::fault(match console::has_flooded() {
            true => console::FLOOD,
            false => text,
        });
    }));
    match Guest::new() {
        Ok(guest) => GUEST.set(Some(guest)),
        Err(why) => end(&why),
    }
    heap::settle();
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn landmark() -> u32 {
    u32::try_from(ptr::from_ref(&LANDMARK).addr()).unwrap_or(0)
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn plan() -> u32 {
    u32::try_from(ptr::from_ref(&PLAN).addr()).unwrap_or(0)
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(length: u32) -> u32 {
    let length = length as usize;
    FRAME.with_borrow_mut(|frame| {
        *frame = Vec::with_capacity(length);
        LENGTH.set(length);
        u32::try_from(frame.as_mut_ptr().expose_provenance()).unwrap_or(0)
    })
}

/// What the host wrote where `alloc` said.
fn frame() -> Vec<u8> {
    let mut frame = FRAME.take();
    let length = LENGTH.take().min(frame.capacity());
    // SAFETY: there is room for as much, and all of it was written: by the host, or, where it
    // wrote less than it said, by whoever had the memory before. None of a guest's memory is undefined.
    unsafe { frame.set_len(length) };
    frame
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> u64 {
    let frame = frame();
    match decode_start(&frame) {
        Ok(start) => {
            drop(frame);
            answer(|guest| guest.start(start))
        }
        Err(error) => end(&error.to_string()),
    }
}

// SAFETY: the name belongs to this module alone.
#[unsafe(no_mangle)]
pub extern "C" fn resume() -> u64 {
    match take_resume(frame()) {
        Ok(resume) => answer(|guest| guest.resume(resume)),
        Err(error) => end(&error.to_string()),
    }
}

fn answer(run: impl FnOnce(&mut Guest) -> Step) -> u64 {
    let step = GUEST.with_borrow_mut(|guest| match guest {
        Some(guest) => run(guest),
        None => end("the guest was never initialised"),
    });
    let frame = match encode_step(&step) {
        Ok(frame) => frame,
        Err(error) => end(&error.to_string()),
    };
    FRAME.with_borrow_mut(|kept| {
        *kept = frame;
        let address = kept.as_ptr().addr() as u64;
        (address << 32) | kept.len() as u64
    })
}

/// What the engine's dependencies take for randomness: nothing. All that a
/// script sees as random comes from the run's seed.
///
/// SAFETY: the name and signature are those that `getrandom` asks for; `length`
/// bytes at `bytes` are valid for writes by its contract.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    bytes: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: see above.
    unsafe { ptr::write_bytes(bytes, 0x5a, length) };
    Ok(())
}
