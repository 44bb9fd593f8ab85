//! Tests of calls that are in flight when a run ends, and of calls whose outcome is unknown.

use super::*;
use crate::limits::{CANCEL_DRAIN_WALL_MS_MAX, DRAIN_WALL_MS_MAX};
use crate::resume::ledger::CallKey;

fn settled(effects: &[Effect]) -> Vec<(u32, Option<&str>, bool)> {
    let entries = effects.iter().filter_map(|effect| match effect {
        Effect::Append { entry, .. } => Some(&entry.body),
        _ => None,
    });
    let settled = entries.filter_map(|body| match body {
        Body::Settled(it) => Some((it.call.0, it.payload.as_deref(), it.told)),
        _ => None,
    });
    settled.collect()
}

#[test]
fn failed_fan_out_records_outcomes_of_all_calls() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 1), (1, 1), (2, 1), (3, 0)]));
    world.hear(1, replies(1, "1"));
    // The read is cancelled, and the two writes are awaited.
    let heard = world.hear(2, throws("tool-failed", Some(0)));
    assert_eq!(heard, ["cancel 4", "stop", "append settled 4"]);
    assert!(!world.run.is_finished());
    let effects = world.run.handle(T0 + 3, replies(3, "3"));
    assert_eq!(settled(&effects), [(3, Some("3"), false)]);
    let ended = world.hear(4, replies(2, "2"));
    assert_eq!(
        ended,
        [
            "append settled 2",
            "append ended sync",
            "finish failed script-error"
        ]
    );
    let outcomes = [
        "returned -",
        "returned -",
        "returned -",
        "unknown outcome-unknown",
    ];
    assert_eq!(world.outcomes(), outcomes);
    let can_resume = world.report().can_resume.clone().unwrap();
    assert_eq!((can_resume.recorded, can_resume.indeterminate), (3, 0));
}

#[test]
fn drain_ends_after_its_time() {
    for (end, wall_ms, finish) in [
        (returns("1"), DRAIN_WALL_MS_MAX, "finish done -"),
        (
            Event::Cancelled {
                why: "enough".into(),
                may_wait: true,
            },
            CANCEL_DRAIN_WALL_MS_MAX,
            "finish cancelled cancelled",
        ),
    ] {
        let mut world = RunStory::open();
        world.hear(0, waits(&[(0, 1), (1, 0)]));
        world.hear(1, replies(2, "1"));
        let heard = world.hear_raw(1, vec![end]);
        assert_eq!(heard, ["stop", &format!("wake @{}", wall_ms + 1)]);
        assert_eq!(world.hear(wall_ms, Event::Woke), [""; 0]);
        let ended = world.hear(wall_ms + 1, Event::Woke);
        assert_eq!(ended.last().unwrap(), finish);
        assert_eq!(world.outcomes()[0], "unknown outcome-unknown");
        assert_eq!(world.report().indeterminate.len(), 1);
    }
}

#[test]
fn cancellation_shortens_drain() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 1), (1, 0)]));
    world.hear(1, replies(2, "1"));
    world.hear(1, returns("1"));
    let cancelled = |may_wait| Event::Cancelled {
        why: "enough".into(),
        may_wait,
    };
    let heard = world.hear_raw(2, vec![cancelled(true)]);
    assert_eq!(heard, [format!("wake @{}", CANCEL_DRAIN_WALL_MS_MAX + 2)]);
    // The runtime on which servers live ends.
    let ended = world.hear(3, cancelled(false));
    assert_eq!(ended.last().unwrap(), "finish done -");
}

#[test]
fn inquiry_during_drain_does_not_reach_host() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 1), (1, 0)]));
    world.hear(1, replies(2, "1"));
    world.hear(2, returns("1"));
    let inquiry = crate::inquiry::Inquiry {
        id: crate::inquiry::InquiryId(1),
        call: CallId(1),
        or: Vec::new(),
        wants: crate::inquiry::InquiryKind::Form,
        digest: Digest::sha256(b"q"),
        again: false,
    };
    let heard = world.hear(3, Event::Inquired(inquiry));
    assert_eq!(heard, ["end 1 Withdrawn"]);
}

#[test]
fn call_equal_to_unknown_one_does_not_leave() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 1)]));
    world.hear(1, lost(1));
    let heard = world.hear(2, waits(&[(1, 1)]));
    assert_eq!(
        heard,
        [
            "append denied 2",
            "append resumed",
            "resume @2 1!outcome-unknown"
        ]
    );
    // Other arguments leave.
    let other = step(
        vec![open_call(2, 1, r#"{"n":1}"#)],
        StepState::Waiting { wake_at_ms: None },
    );
    assert_eq!(world.hear(3, other), ["append allowed 3 sync", "call 3"]);
    world.hear(4, replies(3, "1"));
    world.hear(5, returns("1"));
    let outcomes = [
        "unknown outcome-unknown",
        "not-sent outcome-unknown",
        "returned -",
    ];
    assert_eq!(world.outcomes(), outcomes);
    let why = &world.report().calls[1].reasons;
    assert!(why[0].contains("call 1 has the same arguments"), "{why:?}");
}

#[test]
fn repeatable_call_with_unknown_outcome_leaves_again() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0)]));
    world.hear(1, lost(1));
    assert_eq!(
        world.hear(2, waits(&[(1, 0)])),
        ["append allowed 2", "call 2"]
    );
}

#[test]
fn queued_call_does_not_leave_after_equal_one_became_unknown() {
    let limits = Limits {
        calls_in_flight_max: 1,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow *"], limits);
    let heard = world.hear(0, waits(&[(0, 1), (1, 1)]));
    assert_eq!(heard, ["append allowed 1 sync", "call 1"]);
    let heard = world.hear(1, lost(1));
    assert_eq!(
        heard,
        [
            "append settled 1",
            "append denied 2",
            "append resumed",
            "resume @1 0!outcome-unknown 1!outcome-unknown"
        ]
    );
}

#[test]
fn approved_call_does_not_leave_after_equal_one_became_unknown() {
    let mut world = RunStory::start(&["ask *"], Limits::default());
    world.hear(0, waits(&[(0, 1), (1, 1)]));
    world.hear(1, answers(1, Answer::AllowOnce));
    world.hear(2, lost(1));
    world.hear(3, waits(&[]));
    let heard = world.hear(4, answers(2, Answer::AllowOnce));
    assert_eq!(heard[1], "append denied 2");
    assert!(heard.iter().all(|it| !it.starts_with("call")), "{heard:?}");
}

#[test]
fn endless_retries_of_unknown_call_stop_run() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 1)]));
    world.hear(1, lost(1));
    for ticket in 1.. {
        if world.run.is_finished() {
            break;
        }
        world.hear(2, waits(&[(ticket, 1)]));
    }
    assert_eq!(world.report().code, Some(crate::code::Code::LimitCalls));
}

#[test]
fn key_of_masked_arguments_is_the_recorded_one() {
    let mut spec = spec(&["allow *"], Limits::default());
    spec.redact = crate::testing::redact_texts(|text| {
        text.contains("tok").then(|| text.replace("tok", "***"))
    });
    let (run, _) = Run::start(spec, T0);
    let key = |text: &str| {
        let tool = tool("fs.write");
        run.key_of(&tool, &crate::testing::args(text))
    };
    let CallKey { args, .. } = key(r#"{"a":"***"}"#).0;
    let masked = key(r#"{"a":"tok"}"#);
    assert_eq!((masked.0.args, masked.1), (args, true));
    assert!(!key(r#"{"a":"b"}"#).1);
}
