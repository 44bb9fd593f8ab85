//! Reading what a guest says from its memory. Every address and length is the
//! guest's word, and is checked before a byte is read.

use sandbox_protocol::ConsoleLine;
use sandbox_protocol::codec::decode_lines;

/// Bytes of a fault's text that the guest keeps; see its `landmark` module,
/// which has the layout that is read here.
const FAULT_BYTES_MAX: usize = 240;

/// Printed bytes that are read from a guest that was stopped.
const PRINTED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The frame that an answer speaks of: its address in the upper half, its length
/// in the lower one.
pub(super) fn frame(memory: &[u8], answer: u64) -> Option<&[u8]> {
    let address = usize::try_from(answer >> 32).ok()?;
    let length = usize::try_from(answer & u64::from(u32::MAX)).ok()?;
    bytes(memory, address, length)
}

/// What the guest left at its landmark.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LastWords {
    /// Printed in the turn that did not end.
    pub(super) console: Vec<ConsoleLine>,
    /// Why it gave up, when it did so itself.
    pub(super) fault: String,
}

impl LastWords {
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
    fn a_frame_outside_the_memory_is_no_frame() {
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
    fn last_words_are_read_where_they_lie() {
        let mut memory = vec![0; 128];
        let mut lines = Vec::new();
        append_line(&mut lines, ConsoleLevel::Log, "almost");
        memory[64..64 + lines.len()].copy_from_slice(&lines);
        memory[0..4].copy_from_slice(&64_u32.to_le_bytes());
        memory[4..8].copy_from_slice(&(lines.len() as u32).to_le_bytes());
        memory[8..12].copy_from_slice(&3_u32.to_le_bytes());
        memory[12..15].copy_from_slice(b"w\nh");
        let words = LastWords::read(&memory, 0);
        assert_eq!(words.console[0].text, "almost");
        assert_eq!(words.fault, "wh");
    }

    #[test]
    fn nonsense_at_the_landmark_is_silence() {
        let memory = vec![0xff; 256];
        for landmark in [0, 128, 250, 256, u32::MAX] {
            let words = LastWords::read(&memory, landmark);
            assert!(words.console.is_empty());
        }
        assert_eq!(LastWords::read(&[], 0), LastWords::default());
    }
}
