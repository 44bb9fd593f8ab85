//! Reads the step of a guest from its memory at the end of a turn, and validates it against the
//! offered tools. Nothing in it is trusted before that.

use sandbox_protocol::codec::{CodecError, decode_step};
use sandbox_protocol::{OpenCall, Step};
use thiserror::Error;

use super::memory;

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum BadGuestOutput {
    #[error("the guest's frame lies outside its memory")]
    Outside,
    #[error(transparent)]
    Frame(#[from] CodecError),
    #[error("the guest reused or skipped a call number")]
    Ticket,
    #[error("the guest called a tool that was never offered")]
    Tool,
}

/// Reads all steps of one guest.
#[derive(Debug)]
pub(super) struct StepReader {
    /// The number of tools of each server. A call of any other tool is invalid.
    tools: Vec<usize>,
    next_ticket: u32,
}

impl StepReader {
    pub(super) fn new(tools: &[usize]) -> Self {
        Self {
            tools: tools.to_vec(),
            next_ticket: 0,
        }
    }

    /// Returns the step whose frame an answer refers to.
    pub(super) fn step(&mut self, memory: &[u8], answer: u64) -> Result<Step, BadGuestOutput> {
        let frame = memory::frame(memory, answer).ok_or(BadGuestOutput::Outside)?;
        let step = decode_step(frame)?;
        step.calls.iter().try_for_each(|call| self.check(call))?;
        Ok(step)
    }

    /// Checks a call: tickets count up by one, and every call is of a tool that was offered.
    fn check(&mut self, call: &OpenCall) -> Result<(), BadGuestOutput> {
        let offered = self.tools.get(usize::from(call.server));
        if call.ticket.0 != self.next_ticket {
            return Err(BadGuestOutput::Ticket);
        }
        if offered.is_none_or(|&tools| usize::from(call.tool) >= tools) {
            return Err(BadGuestOutput::Tool);
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

    /// Two servers, with two tools and one tool.
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

    /// Returns a memory of two pages that contains the frame at this position.
    fn memory(frame: &[u8], at: usize) -> Vec<u8> {
        let mut memory = vec![0xa5; 128 * 1024];
        memory[at..at + frame.len()].copy_from_slice(frame);
        memory
    }

    fn answer(address: u32, length: u32) -> u64 {
        u64::from(address) << 32 | u64::from(length)
    }

    fn read(frame: &[u8]) -> Result<Step, BadGuestOutput> {
        let memory = memory(frame, 64);
        StepReader::new(&TOOLS).step(&memory, answer(64, frame.len() as u32))
    }

    #[test]
    fn calls_must_name_offered_tools_and_count_up() {
        for (calls, expected) in [
            (vec![call(0, 0, 0), call(1, 0, 1), call(2, 1, 0)], Ok(3)),
            (vec![call(1, 0, 0)], Err(BadGuestOutput::Ticket)),
            (
                vec![call(0, 0, 0), call(0, 0, 0)],
                Err(BadGuestOutput::Ticket),
            ),
            (vec![call(u32::MAX, 0, 0)], Err(BadGuestOutput::Ticket)),
            (vec![call(0, 0, 2)], Err(BadGuestOutput::Tool)),
            (vec![call(0, 1, 1)], Err(BadGuestOutput::Tool)),
            (vec![call(0, 2, 0)], Err(BadGuestOutput::Tool)),
            (vec![call(0, u16::MAX, u16::MAX)], Err(BadGuestOutput::Tool)),
        ] {
            let found = read(&frame(calls.clone())).map(|step| step.calls.len());
            assert_eq!(found, expected, "{calls:?}");
        }
    }

    #[test]
    fn ticket_numbers_continue_across_turns() {
        let mut reader = StepReader::new(&TOOLS);
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
    fn frame_length_and_place_must_match_exactly() {
        let frame = frame(vec![call(0, 0, 0)]);
        let (at, length) = (4_096_u32, frame.len() as u32);
        let memory = memory(&frame, at as usize);
        let size = memory.len() as u32;
        let step = |address, length| StepReader::new(&TOOLS).step(&memory, answer(address, length));
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
        /// STB-06: every memory and every answer give a step or an error.
        #[test]
        fn arbitrary_guest_bytes_never_panic_the_host(
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
                if let Ok(step) = StepReader::new(&TOOLS).step(&memory, answer(address, length)) {
                    for (number, call) in step.calls.iter().enumerate() {
                        prop_assert_eq!(call.ticket.0 as usize, number);
                        prop_assert!(usize::from(call.tool) < TOOLS[usize::from(call.server)]);
                    }
                }
            }
        }

        #[test]
        fn mutated_frame_is_read_within_bounds(
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
