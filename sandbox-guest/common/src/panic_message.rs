//! A few words at a fixed address in the guest's memory, which the host reads when the guest can no
//! longer answer.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Maximum number of bytes of a panic's text that are stored.
const FAULT_BYTES_MAX: usize = 240;

/// Address and length of the output since the last step, then the length of the panic's text and
/// the text itself.
#[derive(Debug)]
#[repr(C)]
pub struct PanicMessage {
    printed_address: AtomicU32,
    printed_length: AtomicU32,
    fault_length: AtomicU32,
    fault: [AtomicU8; FAULT_BYTES_MAX],
}

pub static LANDMARK: PanicMessage = PanicMessage {
    printed_address: AtomicU32::new(0),
    printed_length: AtomicU32::new(0),
    fault_length: AtomicU32::new(0),
    fault: [const { AtomicU8::new(0) }; FAULT_BYTES_MAX],
};

/// Records where the printed bytes are. On a 64-bit machine, where a guest runs only for debugging,
/// these words have no meaning.
pub fn printed_at(printed: &[u8]) {
    let address = u32::try_from(printed.as_ptr().addr()).unwrap_or(0);
    let length = u32::try_from(printed.len()).unwrap_or(0);
    LANDMARK.printed_address.store(address, Ordering::Relaxed);
    LANDMARK.printed_length.store(length, Ordering::Relaxed);
}

/// Records why the guest ends.
pub fn fault(text: &str) {
    let mut length = 0;
    for (kept, byte) in LANDMARK.fault.iter().zip(text.bytes()) {
        kept.store(byte, Ordering::Relaxed);
        length += 1;
    }
    LANDMARK.fault_length.store(length, Ordering::Relaxed);
}
