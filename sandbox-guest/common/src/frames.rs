//! Frames cross the guest's border as addresses and lengths. The host writes one where
//! [`room`] says, calls [`start`] or [`resume`], and reads the answer where these say, which is
//! valid until the next call.

#![expect(
    unsafe_code,
    reason = "what another program wrote becomes a frame only by saying so"
)]

use std::cell::Cell;

use sandbox_protocol::codec::{CodecError, decode_start, encode_step, take_resume};
use sandbox_protocol::{Resume, Start, Step};

use crate::landmark;

thread_local! {
    /// The frame from the host, then the one to it. All zeros at first, so that it lies with
    /// the other statics that are, which every run writes.
    static FRAME: Cell<Option<Box<Frame>>> = const { Cell::new(None) };
    /// How long the frame from the host is.
    static LENGTH: Cell<usize> = const { Cell::new(0) };
}

struct Frame(Vec<u8>);

/// Ends the guest for good, leaving word of why.
pub fn end(why: &str) -> ! {
    landmark::fault(why);
    std::process::abort()
}

/// Where the host may write so many bytes.
pub fn room(length: u32) -> u32 {
    let length = length as usize;
    let mut frame = Box::new(Frame(Vec::with_capacity(length)));
    let at = frame.0.as_mut_ptr().expose_provenance();
    FRAME.set(Some(frame));
    LENGTH.set(length);
    u32::try_from(at).unwrap_or(0)
}

/// What the host wrote there.
fn written() -> Vec<u8> {
    let mut frame = FRAME.take().map_or(Vec::new(), |frame| frame.0);
    let length = LENGTH.take().min(frame.capacity());
    // SAFETY: there is room for as much, and all of it was written: by the host, or, where it
    // wrote less than it said, by whoever had the memory before. None of a guest's memory is undefined.
    unsafe { frame.set_len(length) };
    frame
}

/// Hands over the frame from the host and answers the frame to it.
pub fn exchange(answer: impl FnOnce(&[u8]) -> Result<Vec<u8>, CodecError>) -> u64 {
    match answer(&written()) {
        Ok(frame) => leave(frame),
        Err(error) => end(&error.to_string()),
    }
}

/// Reads the frame that a run starts with, runs, and answers the step's frame: its address in
/// the upper and its length in the lower half.
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

/// The same with the frame that a run goes on with.
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

/// Keeps a frame for the host and answers where it is.
fn leave(frame: Vec<u8>) -> u64 {
    let (address, length) = (frame.as_ptr().addr() as u64, frame.len() as u64);
    FRAME.set(Some(Box::new(Frame(frame))));
    (address << 32) | length
}
