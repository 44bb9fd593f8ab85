//! Tests of deadlines, and of sleeps that are skipped or waited for.

use super::*;
use crate::outcome::Code;
use crate::report::Status;

#[test]
fn sleep_before_first_call_is_skipped() {
    let mut world = RunStory::open();
    assert_eq!(
        world.hear_raw(3, vec![sleeps_until(5_000)]),
        ["resume @5000"]
    );
    let heard = world.hear_raw(4, vec![waits(&[(0, 0)])]);
    // The jump of 4,997 ms counts against the run's time.
    assert_eq!(heard, ["append allowed 1", "call 1", "wake @25003"]);
    assert_eq!(world.run.deadline_at_ms(), T0 + 25_003);
}

#[test]
fn sleep_after_call_is_waited() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0)]));
    world.hear(1, replies(1, "1"));
    assert_eq!(world.hear_raw(2, vec![sleeps_until(500)]), ["wake @500"]);
    // The alarm rang too early, so it is set again.
    assert_eq!(world.hear_raw(499, vec![Event::Woke]), ["wake @500"]);
    assert_eq!(
        world.hear_raw(500, vec![Event::Woke]),
        ["append resumed", "resume @500"]
    );
}

#[test]
fn polling_with_sleeps_hits_deadline() {
    let mut world = RunStory::start(
        &[],
        Limits {
            run_wall_ms_max: 50,
            ..Limits::default()
        },
    );
    for i in 1..50 {
        assert_eq!(world.hear(0, sleeps_until(i)), [format!("resume @{i}")]);
    }
    assert_eq!(
        world.hear(0, sleeps_until(50)).last().unwrap(),
        "finish stopped limit-time"
    );
    assert_eq!(world.report().usage.wall_ms, 0);
}

#[test]
fn deadline_stops_waiting_run() {
    let mut world = RunStory::start(
        &["allow *"],
        Limits {
            run_wall_ms_max: 100,
            ..Limits::default()
        },
    );
    world.hear(0, waits(&[(0, 0)]));
    assert_eq!(world.hear(99, Event::Woke), [""; 0]);
    let ended = world.hear(100, Event::Woke);
    let expected = [
        "cancel 1",
        "stop",
        "append settled 1",
        "append ended",
        "finish stopped limit-time",
    ];
    assert_eq!(ended, expected);
    assert!(
        world
            .report()
            .error
            .as_ref()
            .unwrap()
            .message
            .contains("100 ms")
    );
}

#[test]
fn value_arriving_at_deadline_counts() {
    let mut world = RunStory::start(
        &["allow *"],
        Limits {
            run_wall_ms_max: 100,
            ..Limits::default()
        },
    );
    assert_eq!(
        world.hear(100, returns("1")).last().unwrap(),
        "finish done -"
    );
}

#[test]
fn human_only_waiting_time_does_not_count() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ask_wall_ms_max: 10_000,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask fs.write", "allow fs.read"], limits);
    world.hear(10, waits(&[(0, 1)]));
    let heard = world.hear(5_000, answers(1, Answer::AllowOnce));
    assert_eq!(heard.last().unwrap(), "call 1");
    assert_eq!(world.run.deadline_at_ms(), T0 + 100 + 4_990);
    assert_eq!(world.hear(5_090, Event::Woke), ["stop"]);
    assert_eq!(
        world.hear(5_091, replies(1, "1")).last().unwrap(),
        "finish stopped limit-time"
    );
}

#[test]
fn human_waiting_has_its_own_limit() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ask_wall_ms_max: 1_000,
        human_wall_ms_max: 1_500,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask fs.write"], limits);
    let heard = world.hear_raw(10, vec![waits(&[(0, 1)])]);
    assert_eq!(heard.last().unwrap(), "wake @1010");
    world.hear(1_000, answers(1, Answer::AllowOnce));
    world.hear(1_000, replies(1, "1"));
    let heard = world.hear_raw(1_000, vec![waits(&[(1, 1)])]);
    // The total time for human answers ends before the time of the question and before the run's
    // own time.
    assert_eq!(heard.last().unwrap(), "wake @1510");
    let heard = world.hear(1_510, Event::Woke);
    assert!(heard.contains(&"withdraw 2".to_owned()), "{heard:?}");
    assert!(heard.last().unwrap().starts_with("resume @"), "{heard:?}");
    // The script continues with its own time; no more questions are sent.
    let heard = world.hear(1_520, waits(&[(2, 1)]));
    assert!(!heard.iter().any(|it| it.starts_with("ask ")), "{heard:?}");
    assert!(heard.last().unwrap().starts_with("resume @"), "{heard:?}");
    world.hear(1_530, returns("1"));
    let codes: Vec<_> = world.report().calls.iter().map(|it| it.code).collect();
    assert_eq!(
        codes,
        [None, Some(Code::Unanswered), Some(Code::Unanswered)]
    );
    assert_eq!(world.report().status, Status::Done);
}

#[test]
fn question_shows_remaining_time() {
    let limits = Limits {
        ask_wall_ms_max: 1_000,
        human_wall_ms_max: 400,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask fs.write"], limits);
    let effects = world.run.handle_all(T0 + 10, vec![waits(&[(0, 1)])]);
    let waits_ms = effects.iter().find_map(|it| match it {
        Effect::Ask(question) => Some(question.asker.as_ref()?.waits_ms),
        _ => None,
    });
    assert_eq!(waits_ms, Some(400));
    assert_eq!(describe(effects.last().unwrap()), "wake @410");
}

#[test]
fn call_in_flight_beside_question_counts_time() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["ask fs.write", "allow fs.read"], limits);
    world.hear(0, waits(&[(0, 1), (1, 0)]));
    assert_eq!(
        world.hear(100, Event::Woke).last().unwrap(),
        "finish stopped limit-time"
    );
}
