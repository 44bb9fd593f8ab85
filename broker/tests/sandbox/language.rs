//! What the language promises, and an engine has had wrong: what a script prints is what stands
//! beside it.

use airlock::sandbox::GuestBounds;

use crate::harness::{BOUNDS, drive, echo, run, start};

#[track_caller]
fn prints(script: &str, expected: &str) {
    let told = run(script);
    let printed: Vec<&str> = told.console.iter().map(|line| line.trim_end()).collect();
    for (printed, expected) in printed.iter().zip(expected.lines()) {
        assert_eq!(*printed, expected);
    }
    assert_eq!(printed.len(), expected.lines().count(), "{:?}", told.end);
}

#[test]
fn values_are_as_specified() {
    prints(
        include_str!("language/values.js"),
        include_str!("language/values.txt"),
    );
}

#[test]
fn jumps_lead_where_they_say_and_close_what_they_leave() {
    prints(
        include_str!("language/jumps.js"),
        include_str!("language/jumps.txt"),
    );
}

#[test]
fn names_are_found_where_they_stand() {
    prints(
        include_str!("language/names.js"),
        include_str!("language/names.txt"),
    );
}

#[test]
fn names_are_declared_where_others_stand() {
    prints(
        include_str!("language/declared.js"),
        include_str!("language/declared.txt"),
    );
}

/// Each pair in each operator; the expectation is what V8 says.
#[test]
fn bigints_stand_in_order_beside_numbers() {
    prints(
        include_str!("language/bigints.js"),
        include_str!("language/bigints.txt"),
    );
}

/// The expectation is what V8 says.
#[test]
fn keys_become_texts_when_their_values_are_there() {
    prints(
        include_str!("language/keys.js"),
        include_str!("language/keys.txt"),
    );
}

/// The expectation is what V8 says, but for the last lines, which the console of both guests prints.
#[test]
fn what_is_converted_within_itself_has_no_invented_value() {
    prints(
        include_str!("language/conversions.js"),
        include_str!("language/conversions.txt"),
    );
}

/// Each function of the language, given objects that fail at their n-th use.
#[test]
fn errors_come_out_of_what_is_built_in() {
    let bounds = GuestBounds {
        cpu_ms_max: 300_000,
        ..BOUNDS
    };
    let answered = drive(&start(include_str!("language/errors.js")), bounds, echo);
    let value: serde_json::Value = serde_json::from_str(&answered.value()).unwrap();
    let tried = value["tried"].as_u64().unwrap();
    assert!(tried > 50_000, "{tried}");
    assert_eq!(value["answered"], serde_json::json!(["invents.of"]));
}
