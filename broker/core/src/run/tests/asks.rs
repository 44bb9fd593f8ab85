//! Tests of questions that are sent during other calls, answered, covered by a grant, or expired.

use std::num::NonZeroU32;

use super::*;
use crate::limits::{ASKS_OPEN_MAX, DENIALS_MAX};

fn uses(uses_max: u32) -> Answer {
    Answer::up_to(NonZeroU32::new(uses_max).unwrap())
}

#[test]
fn question_waits_beside_running_calls() {
    let mut world = RunStory::start(&["allow *", "ask fs.write"], Limits::default());
    let left = world.hear(0, waits(&[(0, 1), (1, 0)]));
    assert_eq!(
        left,
        ["append asked 1", "append allowed 2", "ask 1", "call 2"]
    );
    world.hear(5, replies(2, "2"));
    let heard = world.hear(6, answers(1, Answer::AllowOnce));
    assert_eq!(
        heard,
        [
            "append answered 1 AllowOnce",
            "append allowed 1 sync",
            "call 1"
        ]
    );
    assert_eq!(world.hear(7, answers(1, Answer::Refuse)), [""; 0]);
}

#[test]
fn refused_and_unanswered_have_distinct_codes() {
    let mut world = RunStory::start(&["ask *"], Limits::default());
    world.hear(0, waits(&[(0, 0), (1, 0)]));
    let heard = world.hear_all(
        1,
        vec![answers(2, Answer::Refuse), answers(1, Answer::Unanswered)],
    );
    let expected = [
        "append answered 2 Refuse",
        "append denied 2",
        "append answered 1 Unanswered",
        "append denied 1",
        "append resumed",
        "resume @1 1!refused 0!unanswered",
    ];
    assert_eq!(heard, expected);
    world.hear(2, throws("refused", Some(1)));
    assert_eq!(world.outcomes(), ["refused unanswered", "refused refused"]);
    let decisions: Vec<_> = world
        .report()
        .calls
        .iter()
        .map(|call| call.decision)
        .collect();
    assert_eq!(decisions, [crate::report::ReportedDecision::Ask; 2]);
}

#[test]
fn grant_for_twenty_allows_twenty_of_fifty_parallel_calls() {
    let limits = Limits {
        calls_in_flight_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask *"], limits);
    let calls: Vec<_> = (0..50).map(|ticket| (ticket, 1)).collect();
    world.hear(0, waits(&calls));
    let heard = world.hear(1, answers(1, uses(20)));
    let count = |word: &str| {
        heard
            .iter()
            .filter(|effect| effect.starts_with(word))
            .count()
    };
    assert_eq!(
        (count("call"), count("withdraw"), count("append allowed")),
        (20, 19, 20)
    );
    assert!(heard.contains(&"call 20".into()) && !heard.contains(&"call 21".into()));
    let more = world.hear(2, answers(30, uses(1)));
    assert_eq!(
        more,
        [
            "append answered 30 AllowTool",
            "append given 2",
            "append allowed 30 sync",
            "call 30"
        ]
    );
}

#[test]
fn grant_covers_later_calls_of_its_tool_only() {
    let mut world = RunStory::start(&["ask *"], Limits::default());
    world.hear(0, waits(&[(0, 1), (1, 2)]));
    let heard = world.hear(1, answers(1, uses(2)));
    assert!(!heard.contains(&"withdraw 2".into()), "{heard:?}");
    world.hear(2, replies(1, "1"));
    let again = world.hear(3, waits(&[(2, 1), (3, 1)]));
    assert_eq!(
        again,
        ["append asked 4", "append allowed 3 sync", "ask 4", "call 3"]
    );
}

#[test]
fn question_expires_and_other_answers_restart_its_time() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask *"], limits);
    assert!(
        world
            .hear_raw(0, vec![waits(&[(0, 0), (1, 0)])])
            .contains(&"wake @100".into())
    );
    let heard = world.hear_raw(60, vec![answers(1, Answer::Refuse)]);
    assert!(heard.last().unwrap().starts_with("resume"), "{heard:?}");
    assert!(
        world
            .hear_raw(61, vec![waits(&[])])
            .contains(&"wake @160".into())
    );
    assert_eq!(world.hear(159, Event::Woke), [""; 0]);
    let expected = [
        "withdraw 2",
        "append answered 2 Unanswered",
        "append denied 2",
        "append resumed",
        "resume @160 1!unanswered",
    ];
    assert_eq!(world.hear(160, Event::Woke), expected);
}

#[test]
fn open_question_is_withdrawn_at_end() {
    let mut world = RunStory::start(&["ask *", "allow fs.zzz"], Limits::default());
    world.hear(0, waits(&[(0, 0)]));
    world.hear(1, answers(1, Answer::Refuse));
    world.hear(2, waits(&[(1, 0)]));
    let last = vec![open_call(2, 0, "{}")];
    world.hear(3, answers(2, Answer::Refuse));
    let ended = world.hear(4, step(last, StepState::Done { value: Vec::new() }));
    assert_eq!(
        ended,
        ["stop", "append unsent 3", "append ended", "finish done -"]
    );
    assert_eq!(world.outcomes()[2], "not-sent -");

    let mut world = RunStory::start(&["ask *"], Limits::default());
    world.hear(0, waits(&[(0, 0)]));
    let ended = world.hear(
        1,
        Event::Cancelled {
            why: "ctrl-c".into(),
            may_wait: true,
        },
    );
    let expected = [
        "withdraw 1",
        "stop",
        "append answered 1 Withdrawn",
        "append unsent 1",
        "append ended",
        "finish cancelled cancelled",
    ];
    assert_eq!(ended, expected);
}

#[test]
fn refusal_of_one_call_beats_simultaneous_grant() {
    let answers_in_both_orders = [
        vec![answers(1, uses(20)), answers(2, Answer::Refuse)],
        vec![answers(2, Answer::Refuse), answers(1, uses(20))],
    ];
    for events in answers_in_both_orders {
        let mut world = RunStory::start(&["ask *"], Limits::default());
        world.hear(0, waits(&[(0, 1), (1, 1), (2, 1)]));
        let heard = world.hear_all(1, events);
        let left: Vec<_> = heard.iter().filter(|it| it.starts_with("call")).collect();
        assert_eq!(left, ["call 1", "call 3"], "{heard:?}");
        assert!(heard.contains(&"append denied 2".into()), "{heard:?}");
    }
}

#[test]
fn unanswered_question_stops_further_questions() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask *"], limits);
    world.hear(0, waits(&[(0, 0)]));
    world.hear(50, Event::Woke);
    let heard = world.hear(100, Event::Woke);
    assert_eq!(heard.last().unwrap(), "resume @100 0!unanswered");
    for again in 1..DENIALS_MAX - 1 {
        let heard = world.hear(101, waits(&[(again, 0)]));
        assert!(heard.last().unwrap().ends_with("!unanswered"), "{heard:?}");
        assert!(!heard.iter().any(|it| it.starts_with("ask")), "{heard:?}");
    }
    let ended = world.hear(102, waits(&[(DENIALS_MAX, 0)]));
    assert_eq!(ended.last().unwrap(), "finish stopped limit-calls");
}

#[test]
fn only_an_answer_restarts_other_questions() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask fs.write", "allow fs.read"], limits);
    world.hear(0, waits(&[(0, 1), (1, 0)]));
    world.hear(60, replies(2, "1"));
    world.hear(60, waits(&[(2, 1), (3, 1)]));
    let heard = world.hear(100, Event::Woke);
    assert_eq!(heard.first().unwrap(), "withdraw 1", "{heard:?}");
    world.hear(101, waits(&[]));
    // These questions were sent at 60 and stay open until 160, although another question expired in
    // between.
    world.hear(159, answers(3, Answer::Refuse));
    let heard = world.hear(160, waits(&[(4, 1)]));
    assert!(heard.contains(&"ask 5".into()), "{heard:?}");
}

#[test]
fn open_questions_are_bounded_and_others_queue() {
    let mut world = RunStory::start(&["ask *"], Limits::default());
    let calls: Vec<_> = (0..80).map(|ticket| (ticket, 1)).collect();
    let asks = |heard: &[String]| heard.iter().filter(|it| it.starts_with("ask ")).count();
    let heard = world.hear(0, waits(&calls));
    assert_eq!(asks(&heard), ASKS_OPEN_MAX);
    let heard = world.hear(1, answers(7, Answer::Refuse));
    assert!(heard.contains(&"ask 65".into()), "{heard:?}");
    assert_eq!(asks(&heard), 1);
}

#[test]
fn cost_per_call_is_constant_with_many_grants() {
    let limits = Limits {
        calls_max: 20_000,
        calls_in_flight_max: 1,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask *"], limits);
    let calls: Vec<_> = (0..20_000).map(|ticket| (ticket, 1)).collect();
    world.hear(0, waits(&calls));
    for call in 1..=10_000 {
        world.hear(1, answers(call, uses(1)));
    }
    let why = String::new();
    world.hear(
        2,
        Event::Cancelled {
            why,
            may_wait: false,
        },
    );
    assert_eq!(world.report().usage.calls, 20_000);
}
