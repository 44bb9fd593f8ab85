//! The few words that stand at a fixed place in the guest's memory, for the
//! host to read when the guest can no longer answer.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Bytes of a panic's text that are kept.
const FAULT_BYTES_MAX: usize = 240;

/// Address and length of what was printed since the last step, then the length
/// of the fault's text and the text itself.
#[derive(Debug)]
#[repr(C)]
pub struct Landmark {
    printed_address: AtomicU32,
    printed_length: AtomicU32,
    fault_length: AtomicU32,
    fault: [AtomicU8; FAULT_BYTES_MAX],
}

pub static LANDMARK: Landmark = Landmark {
    printed_address: AtomicU32::new(0),
    printed_length: AtomicU32::new(0),
    fault_length: AtomicU32::new(0),
    fault: [const { AtomicU8::new(0) }; FAULT_BYTES_MAX],
};

/// Notes where the printed bytes are. On a 64-bit machine, where the guest runs
/// for debugging only, the words mean nothing.
pub fn printed_at(printed: &[u8]) {
    let address = u32::try_from(printed.as_ptr().addr()).unwrap_or(0);
    let length = u32::try_from(printed.len()).unwrap_or(0);
    LANDMARK.printed_address.store(address, Ordering::Relaxed);
    LANDMARK.printed_length.store(length, Ordering::Relaxed);
}

/// Notes why the guest is about to end.
pub fn fault(text: &str) {
    let mut length = 0;
    for (kept, byte) in LANDMARK.fault.iter().zip(text.bytes()) {
        kept.store(byte, Ordering::Relaxed);
        length += 1;
    }
    LANDMARK.fault_length.store(length, Ordering::Relaxed);
}
