//! Reads the output of a guest from its memory. Every address and length comes from the guest, and
//! is checked before a byte is read.

use sandbox_protocol::ConsoleLine;
use sandbox_protocol::codec::decode_lines;

/// Maximum length in bytes of the fault text that the guest keeps. The guest's `landmark` module
/// defines the layout that is read here.
const FAULT_BYTES_MAX: usize = 240;

/// Maximum number of printed bytes that are read from a guest that was stopped.
const PRINTED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Returns the frame to which an answer refers. The upper half of the answer is the address, and
/// the lower half is the length.
pub(super) fn frame(memory: &[u8], answer: u64) -> Option<&[u8]> {
    let address = usize::try_from(answer >> 32).ok()?;
    let length = usize::try_from(answer & u64::from(u32::MAX)).ok()?;
    bytes(memory, address, length)
}

/// The final output that the guest left at its landmark.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FinalOutput {
    /// The lines that were printed in the turn that did not end.
    pub(super) console: Vec<ConsoleLine>,
    /// The reason for which the guest stopped itself, or an empty text.
    pub(super) fault: String,
}

impl FinalOutput {
    pub(super) fn read(memory: &[u8], landmark: u32) -> Self {
        Self {
            console: printed(memory, landmark).unwrap_or_default(),
            fault: fault(memory, landmark).unwrap_or_default(),
        }
    }
}

fn bytes(memory: &[u8], address: usize, length: usize) -> Option<&[u8]> {
    memory.get(address..address.checked_add(length)?)
}

fn word(memory: &[u8], landmark: u32, index: usize) -> Option<usize> {
    let address = usize::try_from(landmark).ok()?.checked_add(index * 4)?;
    let word = bytes(memory, address, 4)?.first_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

fn printed(memory: &[u8], landmark: u32) -> Option<Vec<ConsoleLine>> {
    let (address, length) = (word(memory, landmark, 0)?, word(memory, landmark, 1)?);
    decode_lines(bytes(memory, address, length.min(PRINTED_BYTES_MAX))?).ok()
}

fn fault(memory: &[u8], landmark: u32) -> Option<String> {
    let length = word(memory, landmark, 2)?.min(FAULT_BYTES_MAX);
    let address = usize::try_from(landmark).ok()?.checked_add(12)?;
    let text = String::from_utf8_lossy(bytes(memory, address, length)?);
    Some(text.chars().filter(|c| !c.is_control()).collect())
}

#[cfg(test)]
mod tests {
    use sandbox_protocol::ConsoleLevel;
    use sandbox_protocol::codec::append_line;

    use super::*;

    fn answer(address: u32, length: u32) -> u64 {
        u64::from(address) << 32 | u64::from(length)
    }

    #[test]
    fn frame_outside_memory_is_rejected() {
        let memory = [7; 64];
        assert_eq!(frame(&memory, answer(60, 4)), Some(&[7; 4][..]));
        for (address, length) in [
            (60, 5),
            (64, 1),
            (65, 0),
            (0, u32::MAX),
            (u32::MAX, 1),
            (u32::MAX, u32::MAX),
        ] {
            assert_eq!(frame(&memory, answer(address, length)), None);
        }
        assert_eq!(frame(&memory, u64::MAX), None);
    }

    #[test]
    fn final_output_is_read_from_landmark() {
        let mut memory = vec![0; 128];
        let mut lines = Vec::new();
        append_line(&mut lines, ConsoleLevel::Log, "almost");
        memory[64..64 + lines.len()].copy_from_slice(&lines);
        memory[0..4].copy_from_slice(&64_u32.to_le_bytes());
        memory[4..8].copy_from_slice(&(lines.len() as u32).to_le_bytes());
        memory[8..12].copy_from_slice(&3_u32.to_le_bytes());
        memory[12..15].copy_from_slice(b"w\nh");
        let words = FinalOutput::read(&memory, 0);
        assert_eq!(words.console[0].text, "almost");
        assert_eq!(words.fault, "wh");
    }

    #[test]
    fn invalid_landmark_yields_no_output() {
        let memory = vec![0xff; 256];
        for landmark in [0, 128, 250, 256, u32::MAX] {
            let words = FinalOutput::read(&memory, landmark);
            assert!(words.console.is_empty());
        }
        assert_eq!(FinalOutput::read(&[], 0), FinalOutput::default());
    }
}
