//! Tests of calls: decided, recorded, sent within limits, and returned to the guest.

use super::*;

#[test]
fn call_is_recorded_before_sending_and_outcome_before_resume() {
    let mut world = RunStory::open();
    let left = world.hear(1, waits(&[(0, 0), (1, 1)]));
    assert_eq!(
        left,
        [
            "append allowed 1",
            "append allowed 2 sync",
            "call 1",
            "call 2"
        ]
    );
    let heard = world.hear(9, replies(2, "[2]"));
    assert_eq!(
        heard,
        ["append settled 2", "append resumed", "resume @9 1=[2]"]
    );
    let ended = world.hear(10, returns("7"));
    let expected = [
        "cancel 1",
        "stop",
        "append settled 1",
        "append ended sync",
        "finish done -",
    ];
    assert_eq!(ended, expected);
    assert_eq!(world.outcomes(), ["unknown outcome-unknown", "returned -"]);
    assert_eq!(world.report().value.as_ref().unwrap().get(), "7");
}

#[test]
fn simultaneous_outcomes_arrive_in_one_resume_in_order() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0), (1, 0), (2, 0)]));
    let heard = world.hear_all(5, vec![replies(3, "3"), replies(1, "1")]);
    let expected = [
        "append settled 3",
        "append settled 1",
        "append resumed",
        "resume @5 2=3 0=1",
    ];
    assert_eq!(heard, expected);
}

#[test]
fn reply_during_computation_waits_for_next_step() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0), (1, 0)]));
    world.hear(1, replies(1, "1"));
    assert_eq!(world.hear(2, replies(2, "2")), ["append settled 2"]);
    assert_eq!(
        world.hear(3, waits(&[])),
        ["append resumed", "resume @3 1=2"]
    );
}

#[test]
fn calls_in_flight_are_bounded_and_others_queue() {
    let mut world = RunStory::start(
        &["allow *"],
        Limits {
            calls_in_flight_max: 2,
            ..Limits::default()
        },
    );
    let left = world.hear(0, waits(&[(0, 0), (1, 0), (2, 0), (3, 0)]));
    assert_eq!(
        left,
        ["append allowed 1", "append allowed 2", "call 1", "call 2"]
    );
    let heard = world.hear(1, replies(2, "2"));
    let expected = [
        "append settled 2",
        "append allowed 3",
        "append resumed",
        "call 3",
        "resume @1 1=2",
    ];
    assert_eq!(heard, expected);
    let ended = world.hear(2, returns(""));
    let expected = [
        "cancel 1",
        "cancel 3",
        "stop",
        "append settled 1",
        "append settled 3",
        "append unsent 4",
        "append ended",
        "finish done -",
    ];
    assert_eq!(ended, expected);
    assert_eq!(world.outcomes()[3], "not-sent -");
    assert!(world.report().value.is_none());
}

#[test]
fn denied_or_invalid_call_is_rejected_at_once() {
    let mut world = RunStory::start(&["allow *", "deny fs.delete"], Limits::default());
    let calls = vec![
        open_call(0, 2, "{}"),
        open_call(1, 0, r#"{"bad":1}"#),
        open_call(2, 0, "[]"),
        open_call(3, 0, r#"{"n":9007199254740993}"#),
    ];
    let heard = world.hear(0, step(calls, StepState::Waiting { wake_at_ms: None }));
    let expected = [
        "append denied 1",
        "append denied 2",
        "append denied 3",
        "append denied 4",
        "append resumed",
        "resume @0 0!denied 1!invalid-arguments 2!invalid-arguments 3!invalid-arguments",
    ];
    assert_eq!(heard, expected);
    world.hear(1, throws("denied", Some(0)));
    let report = world.report();
    assert_eq!(report.code, Some(crate::code::Code::Denied));
    assert_eq!(report.calls[0].reasons, ["rule --deny 'fs.delete'"]);
}

#[test]
fn unknown_late_or_repeated_reply_is_ignored() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0)]));
    for call in [0, 2, u32::MAX] {
        assert_eq!(world.hear(1, replies(call, "1")), [""; 0]);
    }
    world.hear(2, replies(1, "1"));
    assert_eq!(world.hear(3, replies(1, "2")), [""; 0]);
    world.hear(4, returns("1"));
    for event in [replies(1, "3"), waits(&[(1, 0)]), returns("2"), Event::Woke] {
        assert_eq!(world.hear(5, event), [""; 0]);
    }
}

#[test]
fn guest_inventing_tools_or_tickets_is_stopped() {
    let nowhere = OpenCall {
        server: 9,
        ..open_call(0, 0, "{}")
    };
    let missing = open_call(0, 99, "{}");
    let twice = vec![open_call(1, 0, "{}"), open_call(1, 0, "{}")];
    let backwards = vec![open_call(1, 0, "{}"), open_call(0, 0, "{}")];
    for calls in [vec![nowhere], vec![missing], twice, backwards] {
        let mut world = RunStory::open();
        let heard = world.hear(0, step(calls, StepState::Waiting { wake_at_ms: None }));
        assert!(
            !heard.iter().any(|effect| effect.starts_with("call")),
            "{heard:?}"
        );
        assert_eq!(heard.last().unwrap(), "finish failed engine-fault");
    }
}

#[test]
fn call_limit_stops_run_before_sending_that_step() {
    let mut world = RunStory::start(
        &["allow *"],
        Limits {
            calls_max: 2,
            ..Limits::default()
        },
    );
    let heard = world.hear(0, waits(&[(0, 0), (1, 0), (2, 0), (3, 0)]));
    let expected = [
        "stop",
        "append denied 3",
        "append unsent 1",
        "append unsent 2",
        "append ended",
        "finish stopped limit-calls",
    ];
    assert_eq!(heard, expected);
    assert_eq!(
        world.outcomes(),
        ["not-sent -", "not-sent -", "denied limit-calls"]
    );
}

#[test]
fn oversized_arguments_fail_the_call_and_not_the_run() {
    let mut world = RunStory::start(
        &["allow *"],
        Limits {
            json_depth_max: 3,
            ..Limits::default()
        },
    );
    let calls = vec![open_call(0, 0, r#"{"a":[[[]]]}"#)];
    let heard = world.hear(0, step(calls, StepState::Waiting { wake_at_ms: None }));
    assert!(heard.last().unwrap().starts_with("resume"), "{heard:?}");
    world.hear(1, throws("limit-payload", Some(0)));
    assert_eq!(world.outcomes(), ["denied limit-payload"]);
    assert_eq!(world.report().code, Some(crate::code::Code::LimitPayload));
}

#[test]
fn too_many_denials_stop_the_run() {
    let mut world = RunStory::start(&["deny *"], Limits::default());
    for i in 0..99 {
        let heard = world.hear(0, waits(&[(i, 0)]));
        assert!(
            heard.last().unwrap().starts_with("resume"),
            "{i}: {heard:?}"
        );
    }
    assert_eq!(
        world.hear(0, waits(&[(99, 0)])).last().unwrap(),
        "finish stopped limit-calls"
    );
    assert!(
        world
            .report()
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("100 calls were denied")
    );
}

#[test]
fn unawaited_arguments_are_bounded() {
    let mut world = RunStory::open();
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(4_000_000));
    let calls = (0..20).map(|ticket| open_call(ticket, 0, &large)).collect();
    let heard = world.hear(0, step(calls, StepState::Waiting { wake_at_ms: None }));
    assert_eq!(heard.last().unwrap(), "finish stopped limit-payload");
    assert!(!heard.iter().any(|it| it.starts_with("call")), "{heard:?}");
    let mut world = RunStory::open();
    for round in 0..40 {
        world.hear(
            0,
            step(
                vec![open_call(round, 0, &large)],
                StepState::Waiting { wake_at_ms: None },
            ),
        );
        assert!(world.report.is_none(), "settled calls do not count");
        world.hear(0, replies(round + 1, "1"));
    }
}
