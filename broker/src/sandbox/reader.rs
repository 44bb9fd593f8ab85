//! What a guest says at the end of a turn, read from its memory and held against
//! what it was offered. Nothing of it is believed before that.

use sandbox_protocol::codec::{CodecError, decode_step};
use sandbox_protocol::{OpenCall, Step};
use thiserror::Error;

use super::memory;

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Nonsense {
    #[error("the guest's frame lies outside its memory")]
    Outside,
    #[error(transparent)]
    Frame(#[from] CodecError),
    #[error("the guest reused or skipped the number of a call")]
    Ticket,
    #[error("the guest called a tool that was never offered")]
    Tool,
}

/// Reads all the steps of one guest.
#[derive(Debug)]
pub(super) struct Reader {
    /// How many tools each server has; a call of another one makes no sense.
    tools: Vec<usize>,
    next_ticket: u32,
}

impl Reader {
    pub(super) fn new(tools: &[usize]) -> Self {
        Self {
            tools: tools.to_vec(),
            next_ticket: 0,
        }
    }

    /// The step whose frame an answer speaks of.
    pub(super) fn step(&mut self, memory: &[u8], answer: u64) -> Result<Step, Nonsense> {
        let frame = memory::frame(memory, answer).ok_or(Nonsense::Outside)?;
        let step = decode_step(frame)?;
        step.calls.iter().try_for_each(|call| self.check(call))?;
        Ok(step)
    }

    /// Tickets count up by one, and every call is of a tool that was offered.
    fn check(&mut self, call: &OpenCall) -> Result<(), Nonsense> {
        let offered = self.tools.get(usize::from(call.server));
        if call.ticket.0 != self.next_ticket {
            return Err(Nonsense::Ticket);
        }
        if offered.is_none_or(|&tools| usize::from(call.tool) >= tools) {
            return Err(Nonsense::Tool);
        }
        self.next_ticket = self.next_ticket.saturating_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sandbox_protocol::codec::encode_step;
    use sandbox_protocol::{CallTicket, StepState};

    use super::*;

    /// Two servers, with two tools and with one.
    const TOOLS: [usize; 2] = [2, 1];

    fn call(ticket: u32, server: u16, tool: u16) -> OpenCall {
        OpenCall {
            ticket: CallTicket(ticket),
            server,
            tool,
            args: b"{}".to_vec(),
            line: 1,
            column: 1,
        }
    }

    fn frame(calls: Vec<OpenCall>) -> Vec<u8> {
        let state = StepState::Waiting { wake_at_ms: None };
        let step = Step {
            console: Vec::new(),
            console_dropped_bytes: 0,
            calls,
            state,
        };
        encode_step(&step).unwrap()
    }

    /// A memory of two pages with the frame at this place.
    fn memory(frame: &[u8], at: usize) -> Vec<u8> {
        let mut memory = vec![0xa5; 128 * 1024];
        memory[at..at + frame.len()].copy_from_slice(frame);
        memory
    }

    fn answer(address: u32, length: u32) -> u64 {
        u64::from(address) << 32 | u64::from(length)
    }

    fn read(frame: &[u8]) -> Result<Step, Nonsense> {
        let memory = memory(frame, 64);
        Reader::new(&TOOLS).step(&memory, answer(64, frame.len() as u32))
    }

    #[test]
    fn calls_are_of_tools_that_were_offered_and_count_up_by_one() {
        for (calls, expected) in [
            (vec![call(0, 0, 0), call(1, 0, 1), call(2, 1, 0)], Ok(3)),
            (vec![call(1, 0, 0)], Err(Nonsense::Ticket)),
            (vec![call(0, 0, 0), call(0, 0, 0)], Err(Nonsense::Ticket)),
            (vec![call(u32::MAX, 0, 0)], Err(Nonsense::Ticket)),
            (vec![call(0, 0, 2)], Err(Nonsense::Tool)),
            (vec![call(0, 1, 1)], Err(Nonsense::Tool)),
            (vec![call(0, 2, 0)], Err(Nonsense::Tool)),
            (vec![call(0, u16::MAX, u16::MAX)], Err(Nonsense::Tool)),
        ] {
            let found = read(&frame(calls.clone())).map(|step| step.calls.len());
            assert_eq!(found, expected, "{calls:?}");
        }
    }

    #[test]
    fn the_numbers_of_one_turn_go_on_in_the_next() {
        let mut reader = Reader::new(&TOOLS);
        let mut turn = |ticket| {
            let frame = frame(vec![call(ticket, 0, 0)]);
            let memory = memory(&frame, 0);
            reader.step(&memory, answer(0, frame.len() as u32)).is_ok()
        };
        assert!(turn(0));
        assert!(turn(1));
        assert!(!turn(1));
    }

    #[test]
    fn a_frame_is_taken_at_its_very_length_and_place_or_not_at_all() {
        let frame = frame(vec![call(0, 0, 0)]);
        let (at, length) = (4_096_u32, frame.len() as u32);
        let memory = memory(&frame, at as usize);
        let size = memory.len() as u32;
        let step = |address, length| Reader::new(&TOOLS).step(&memory, answer(address, length));
        assert!(step(at, length).is_ok());
        for (address, length) in [
            (at, length - 1),
            (at, length + 1),
            (at, 0),
            (at - 1, length + 1),
            (at + 1, length - 1),
            (at, size - at),
            (at, size - at + 1),
            (at, u32::MAX),
            (0, u32::MAX),
            (size, 0),
            (size, 1),
            (size - 1, 2),
            (u32::MAX, 0),
            (u32::MAX, u32::MAX),
        ] {
            assert!(step(address, length).is_err(), "{address} {length}");
        }
    }

    proptest! {
        /// STB-06: whatever the memory holds and the answer says, it is a step or nonsense.
        #[test]
        fn no_answer_and_no_byte_makes_the_host_stumble(
            address in any::<u32>(),
            length in prop_oneof![0..400_u32, any::<u32>()],
            changes in proptest::collection::vec((0..400_usize, any::<u8>()), 0..6),
            overlap in 0..64_usize,
        ) {
            let good = frame(vec![call(0, 0, 0), call(1, 1, 0)]);
            let mut memory = memory(&good, 0);
            memory[overlap..overlap + good.len()].copy_from_slice(&good);
            for (at, byte) in changes {
                memory[at] = byte;
            }
            for address in [address, address % 512, 0, overlap as u32] {
                if let Ok(step) = Reader::new(&TOOLS).step(&memory, answer(address, length)) {
                    for (number, call) in step.calls.iter().enumerate() {
                        prop_assert_eq!(call.ticket.0 as usize, number);
                        prop_assert!(usize::from(call.tool) < TOOLS[usize::from(call.server)]);
                    }
                }
            }
        }

        #[test]
        fn a_frame_that_was_changed_is_read_within_its_bounds(
            at in 0..200_usize,
            byte in any::<u8>(),
        ) {
            let mut frame = frame(vec![call(0, 0, 0), call(1, 1, 0)]);
            let length = frame.len();
            frame[at % length] = byte;
            if let Ok(step) = read(&frame) {
                prop_assert!(step.calls.iter().map(|call| call.args.len()).sum::<usize>() <= length);
            }
        }
    }
}
