//! Tests that encoded messages decode to the same values, and that invalid bytes are refused.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sandbox_protocol::codec::{
    self, CodecError, append_line, decode_lines, decode_resume, decode_start, decode_step,
    encode_resume, encode_start, encode_step, split_resume, take_resume,
};
use sandbox_protocol::{
    CallOutcome, CallTicket, ConsoleLevel, ConsoleLine, Failure, GuestLimits, OpenCall, Outcome,
    Resume, ScriptError, ServerStubs, Start, Step, StepState, ToolStub, VERSION,
};

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..24)
}

fn limits() -> impl Strategy<Value = GuestLimits> {
    (any::<u32>(), any::<u64>(), any::<[u32; 4]>()).prop_map(|(kept, flood, [a, v, d, r])| {
        GuestLimits {
            console_bytes_max: kept,
            console_flood_bytes_max: flood,
            args_bytes_max: a,
            value_bytes_max: v,
            json_depth_max: d,
            recursion_max: r,
        }
    })
}

fn stubs() -> impl Strategy<Value = Vec<ServerStubs>> {
    let names = (text(), text(), text(), vec(text(), 0..3), any::<bool>());
    let tool = names.prop_map(|(member, flat, short, order, hidden)| ToolStub {
        member,
        flat,
        short,
        order,
        hidden,
    });
    let server = (text(), vec(tool, 0..4)).prop_map(|(name, tools)| ServerStubs { name, tools });
    vec(server, 0..4)
}

prop_compose! {
    fn start()(
        script in text(), script_name in text(), stubs in stubs(), input in bytes(),
        seed in any::<u64>(), now_ms in any::<u64>(), limits in limits(),
    ) -> Start {
        Start { script, script_name, stubs, input, seed, now_ms, limits }
    }
}

prop_compose! {
    fn failure()(
        code in text(), tool in text(), message in text(), retryable in any::<bool>(),
        content in bytes(), structured_content in bytes(),
    ) -> Failure {
        Failure { code, tool, message, retryable, content, structured_content }
    }
}

fn resume() -> impl Strategy<Value = Resume> {
    let outcome = prop_oneof![
        bytes().prop_map(Outcome::Value),
        failure().prop_map(Outcome::Failure)
    ];
    let settled = (any::<u32>(), outcome).prop_map(|(ticket, outcome)| CallOutcome {
        ticket: CallTicket(ticket),
        outcome,
    });
    (any::<u64>(), vec(settled, 0..5)).prop_map(|(now_ms, outcomes)| Resume { now_ms, outcomes })
}

fn level() -> impl Strategy<Value = ConsoleLevel> {
    prop_oneof![
        Just(ConsoleLevel::Debug),
        Just(ConsoleLevel::Log),
        Just(ConsoleLevel::Info),
        Just(ConsoleLevel::Warn),
        Just(ConsoleLevel::Error),
    ]
}

fn lines() -> impl Strategy<Value = Vec<ConsoleLine>> {
    vec(
        (level(), text()).prop_map(|(level, text)| ConsoleLine { level, text }),
        0..5,
    )
}

prop_compose! {
    fn call()(
        ticket in any::<u32>(), server in any::<u16>(), tool in any::<u16>(), args in bytes(),
        line in any::<u32>(), column in any::<u32>(),
    ) -> OpenCall {
        OpenCall { ticket: CallTicket(ticket), server, tool, args, line, column }
    }
}

prop_compose! {
    fn script_error()(
        name in text(), message in text(), code in text(), line in any::<u32>(),
        column in any::<u32>(), stack in text(), ticket in option::of(any::<u32>()),
    ) -> ScriptError {
        ScriptError { name, message, code, line, column, stack, ticket: ticket.map(CallTicket) }
    }
}

fn state() -> impl Strategy<Value = StepState> {
    prop_oneof![
        option::of(any::<u64>()).prop_map(|wake_at_ms| StepState::Waiting { wake_at_ms }),
        bytes().prop_map(|value| StepState::Done { value }),
        script_error().prop_map(StepState::Failed),
        Just(StepState::Deadlocked),
        Just(StepState::StackExhausted),
        Just(StepState::OutputFlood),
        Just(StepState::ValueTooLarge),
    ]
}

prop_compose! {
    fn step()(
        console in lines(), console_dropped_bytes in any::<u64>(), calls in vec(call(), 0..5),
        state in state(),
    ) -> Step {
        Step { console, console_dropped_bytes, calls, state }
    }
}

proptest! {
    #[test]
    fn a_start_comes_back_as_it_was(start in start()) {
        prop_assert_eq!(decode_start(&encode_start(&start).unwrap()), Ok(start));
    }

    #[test]
    fn a_resume_comes_back_as_it_was(resume in resume()) {
        let frame = encode_resume(&resume).unwrap();
        let (first, last) = split_resume(&resume).unwrap();
        prop_assert_eq!([&first, last].concat(), frame.clone());
        prop_assert_eq!(decode_resume(&frame), Ok(resume.clone()));
        prop_assert_eq!(take_resume(frame), Ok(resume));
    }

    #[test]
    fn a_step_comes_back_as_it_was(step in step()) {
        prop_assert_eq!(decode_step(&encode_step(&step).unwrap()), Ok(step));
    }

    #[test]
    fn printed_lines_come_back_as_they_were(lines in lines()) {
        let mut printed = Vec::new();
        for line in &lines {
            append_line(&mut printed, line.level, &line.text);
        }
        prop_assert_eq!(decode_lines(&printed), Ok(lines));
    }

    #[test]
    fn every_cut_is_refused(step in step(), start in start(), resume in resume()) {
        let frame = encode_step(&step).unwrap();
        for length in 0..frame.len() {
            prop_assert!(decode_step(&frame[..length]).is_err());
        }
        let frame = encode_start(&start).unwrap();
        for length in 0..frame.len() {
            prop_assert!(decode_start(&frame[..length]).is_err());
        }
        let frame = encode_resume(&resume).unwrap();
        for length in 0..frame.len() {
            prop_assert!(decode_resume(&frame[..length]).is_err());
            prop_assert!(take_resume(frame[..length].to_vec()).is_err());
        }
    }

    /// Every accepted frame equals its own encoding.
    #[test]
    fn a_flipped_bit_is_refused_or_means_another_message(
        step in step(), at in any::<prop::sample::Index>(), bit in 0_u8..8,
    ) {
        let mut frame = encode_step(&step).unwrap();
        let at = at.index(frame.len());
        frame[at] ^= 1 << bit;
        if let Ok(other) = decode_step(&frame) {
            prop_assert_eq!(encode_step(&other).unwrap(), frame);
        }
    }

    #[test]
    fn garbage_never_panics(garbage in vec(any::<u8>(), 0..200), kind in 0_u8..5) {
        let mut frame = VERSION.to_le_bytes().to_vec();
        frame.push(kind);
        frame.extend_from_slice(&garbage);
        let _ = decode_start(&frame);
        prop_assert_eq!(decode_resume(&frame), take_resume(frame.clone()));
        let _ = decode_step(&frame);
        let _ = decode_lines(&garbage);
        let _ = decode_step(&garbage);
    }
}

#[test]
fn a_count_without_items_reserves_nothing() {
    let mut frame = VERSION.to_le_bytes().to_vec();
    frame.push(3);
    frame.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        decode_step(&frame),
        Err(CodecError::Truncated { what: "console" })
    );
}

#[test]
fn another_version_is_refused_by_name() {
    let mut frame = encode_resume(&Resume {
        now_ms: 0,
        outcomes: Vec::new(),
    })
    .unwrap();
    frame[0] = 9;
    assert_eq!(
        decode_resume(&frame),
        Err(CodecError::WrongVersion { found: 9 })
    );
}

#[test]
fn a_step_is_not_a_resume() {
    let frame = encode_resume(&Resume {
        now_ms: 0,
        outcomes: Vec::new(),
    })
    .unwrap();
    assert_eq!(decode_step(&frame), Err(CodecError::WrongKind { found: 2 }));
}

#[test]
fn bytes_behind_the_message_are_refused() {
    let mut frame = encode_resume(&Resume {
        now_ms: 0,
        outcomes: Vec::new(),
    })
    .unwrap();
    frame.push(0);
    assert_eq!(
        decode_resume(&frame),
        Err(CodecError::Trailing { bytes: 1 })
    );
}

#[test]
fn an_oversized_frame_is_refused_before_it_is_read() {
    let frame = vec![0; codec::FRAME_BYTES_MAX + 1];
    assert_eq!(decode_step(&frame), Err(CodecError::TooLarge));
}
