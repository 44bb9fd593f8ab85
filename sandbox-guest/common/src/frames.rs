//! Exchanges frames with the host as addresses and lengths. The host writes a frame to the address
//! from [`room`] and calls [`start`] or [`resume`]. It reads the answer at the address that these
//! functions return, which is valid until the next call.

#![expect(unsafe_code, reason = "the host writes the bytes of a frame")]

use std::cell::Cell;

use sandbox_protocol::codec::{CodecError, decode_start, encode_step, take_resume};
use sandbox_protocol::{Resume, Start, Step};

use crate::panic_message;

thread_local! {
    /// The frame from the host, then the frame to the host. Initially all zeros, so that it is
    /// placed with the other zeroed statics, which every run writes.
    static FRAME: Cell<Option<Box<Frame>>> = const { Cell::new(None) };
    /// Length in bytes of the frame from the host.
    static LENGTH: Cell<usize> = const { Cell::new(0) };
}

struct Frame(Vec<u8>);

/// Ends the guest permanently, and leaves a message with the reason.
pub fn end(why: &str) -> ! {
    panic_message::fault(why);
    std::process::abort()
}

/// Returns the address at which the host may write this many bytes.
pub fn room(length: u32) -> u32 {
    let length = length as usize;
    let mut frame = Box::new(Frame(Vec::with_capacity(length)));
    let at = frame.0.as_mut_ptr().expose_provenance();
    FRAME.set(Some(frame));
    LENGTH.set(length);
    u32::try_from(at).unwrap_or(0)
}

/// Returns the frame that the host wrote.
fn written() -> Vec<u8> {
    let mut frame = FRAME.take().map_or(Vec::new(), |frame| frame.0);
    let length = LENGTH.take().min(frame.capacity());
    // SAFETY: there is room for this many bytes, and all of them are initialised: by the host, or,
    // if the host wrote fewer than announced, by earlier use of the memory. No memory of a Wasm
    // guest is undefined.
    unsafe { frame.set_len(length) };
    frame
}

/// Passes the host's frame to `answer` and returns the address of the reply's frame.
pub fn exchange(answer: impl FnOnce(&[u8]) -> Result<Vec<u8>, CodecError>) -> u64 {
    match answer(&written()) {
        Ok(frame) => leave(frame),
        Err(error) => end(&error.to_string()),
    }
}

/// Decodes the frame that starts a run, runs, and returns the step's frame: its address in the
/// upper and its length in the lower half.
pub fn start(run: impl FnOnce(Start) -> Step) -> u64 {
    let frame = written();
    match decode_start(&frame) {
        Ok(start) => {
            drop(frame);
            answer(&run(start))
        }
        Err(error) => end(&error.to_string()),
    }
}

/// Decodes the frame that continues a run, runs, and returns the step's frame.
pub fn resume(run: impl FnOnce(Resume) -> Step) -> u64 {
    match take_resume(written()) {
        Ok(resume) => answer(&run(resume)),
        Err(error) => end(&error.to_string()),
    }
}

fn answer(step: &Step) -> u64 {
    match encode_step(step) {
        Ok(frame) => leave(frame),
        Err(error) => end(&error.to_string()),
    }
}

/// Stores a frame for the host and returns its address.
fn leave(frame: Vec<u8>) -> u64 {
    let (address, length) = (frame.as_ptr().addr() as u64, frame.len() as u64);
    FRAME.set(Some(Box::new(Frame(frame))));
    (address << 32) | length
}
