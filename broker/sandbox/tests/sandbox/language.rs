//! Tests parts of the language that an engine once implemented incorrectly. Each script
//! `language/*.js` must print the text of the `.txt` file with its name.

use airlock_sandbox::GuestBounds;

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
fn values_follow_the_specification() {
    prints(
        include_str!("language/values.js"),
        include_str!("language/values.txt"),
    );
}

#[test]
fn jumps_go_to_target_and_close_iterators() {
    prints(
        include_str!("language/jumps.js"),
        include_str!("language/jumps.txt"),
    );
}

#[test]
fn names_resolve_in_their_scope() {
    prints(
        include_str!("language/names.js"),
        include_str!("language/names.txt"),
    );
}

#[test]
fn declarations_shadow_correctly() {
    prints(
        include_str!("language/declared.js"),
        include_str!("language/declared.txt"),
    );
}

/// Compares each pair with each operator. The expected text is V8's output.
#[test]
fn bigints_compare_with_numbers() {
    prints(
        include_str!("language/bigints.js"),
        include_str!("language/bigints.txt"),
    );
}

/// The expected text is V8's output.
#[test]
fn computed_keys_are_converted_after_evaluation() {
    prints(
        include_str!("language/keys.js"),
        include_str!("language/keys.txt"),
    );
}

/// The expected text is V8's output, except for the last lines, which test the guests' console.
#[test]
fn what_is_converted_within_itself_has_no_invented_value() {
    prints(
        include_str!("language/conversions.js"),
        include_str!("language/conversions.txt"),
    );
}

/// Calls each built-in function with objects that throw at their n-th use.
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
