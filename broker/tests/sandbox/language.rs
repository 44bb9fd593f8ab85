//! What the language promises, and an engine has had wrong: what a script prints is what stands
//! beside it.

use crate::harness::run;

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
