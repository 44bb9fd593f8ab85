//! Tests of the JSON text of values, through the value of a script.

use sandbox_protocol::{GuestLimits, Start, StepState};

use crate::Guest;

#[track_caller]
fn check(script: &str, expected: &str) {
    let start = Start {
        script: script.to_owned(),
        script_name: "script.js".to_owned(),
        stubs: Vec::new(),
        input: Vec::new(),
        seed: 1,
        now_ms: 0,
        limits: GuestLimits {
            console_bytes_max: 1_000,
            console_flood_bytes_max: 1_000,
            args_bytes_max: 1_000,
            value_bytes_max: 10_000,
            json_depth_max: 32,
            recursion_max: 100,
        },
    };
    let thread = std::thread::Builder::new().stack_size(16 * 1024 * 1024);
    let run = move || Guest::new().unwrap().start(start).state;
    let state = thread.spawn(run).unwrap().join().unwrap();
    let value = expected.as_bytes().to_vec();
    assert_eq!(state, StepState::Done { value }, "{script}");
}

#[test]
fn each_name_of_an_error_stands_once() {
    check(
        "class E extends Error { constructor(m) { super(m); this.name = 'E'; this.code = 4 } } return new E('x')",
        r#"{"name":"E","message":"x","code":4}"#,
    );
    check(
        "class E extends Error { name = 'E'; message = 'own'; hint = 'h' } return [new E('x')]",
        r#"[{"name":"E","message":"own","hint":"h"}]"#,
    );
    check(
        "return Object.assign(new TypeError('t'), { message: 'other', name: 'Other', names: 1 })",
        r#"{"name":"Other","message":"other","names":1}"#,
    );
    check(
        "return new RangeError('r')",
        r#"{"name":"RangeError","message":"r"}"#,
    );
}
