//! Tests of scripts whose results are wrong without the corrections (`../../engine/corrections`).

mod depth;
mod fields;
mod jumps;
mod rests;
mod spreads;

use sandbox_protocol::{GuestLimits, Start, StepState};

use crate::Guest;

/// Stack size in bytes: the engine's parser needs more than a test's thread has.
const STACK_BYTES: usize = 64 * 1024 * 1024;

#[track_caller]
fn comes_to(script: &str, expected: &str) {
    match run(script) {
        StepState::Done { value } => {
            assert_eq!(String::from_utf8_lossy(&value), expected, "{script}");
        }
        other => panic!("{script}: {other:?}"),
    }
}

fn run(script: &str) -> StepState {
    let start = Start {
        script: script.to_owned(),
        script_name: "script.js".to_owned(),
        stubs: Vec::new(),
        input: Vec::new(),
        seed: 1,
        now_ms: 0,
        limits: GuestLimits {
            console_bytes_max: 1_000_000,
            console_flood_bytes_max: 1_000_000,
            args_bytes_max: 1_000_000,
            value_bytes_max: 10_000_000,
            json_depth_max: 128,
            recursion_max: 200,
        },
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let run = move || Guest::new().unwrap().start(start).state;
    thread.spawn(run).unwrap().join().unwrap()
}
