//! Deadlines, sleeps that cost nothing, and sleeps that are waited out.

use super::*;
use crate::outcome::Code;
use crate::report::Status;

#[test]
fn a_sleep_before_the_first_call_costs_nothing() {
    let mut world = World::open();
    assert_eq!(
        world.hear_raw(3, vec![sleeps_until(5_000)]),
        ["resume @5000"]
    );
    let heard = world.hear_raw(4, vec![waits(&[(0, 0)])]);
    // 4,997 ms were jumped over and count.
    assert_eq!(heard, ["append allowed 1", "call 1", "wake @25003"]);
    assert_eq!(world.run.deadline_at_ms(), T0 + 25_003);
}

#[test]
fn a_sleep_after_a_call_is_waited_out() {
    let mut world = World::open();
    world.hear(0, waits(&[(0, 0)]));
    world.hear(1, replies(1, "1"));
    assert_eq!(world.hear_raw(2, vec![sleeps_until(500)]), ["wake @500"]);
    // Woken too early: the alarm is set again.
    assert_eq!(world.hear_raw(499, vec![Event::Woke]), ["wake @500"]);
    assert_eq!(
        world.hear_raw(500, vec![Event::Woke]),
        ["append resumed", "resume @500"]
    );
}

#[test]
fn polling_with_sleeps_ends_at_the_deadline_of_the_runs_own_clock() {
    let mut world = World::start(
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
fn the_deadline_stops_a_run_that_waits() {
    let mut world = World::start(
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
fn a_value_that_arrives_at_the_deadline_counts() {
    let mut world = World::start(
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
fn time_in_which_only_a_human_is_waited_for_does_not_count() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ask_wall_ms_max: 10_000,
        ..Limits::default()
    };
    let mut world = World::start(&["ask fs.write", "allow fs.read"], limits);
    world.hear(10, waits(&[(0, 1)]));
    let heard = world.hear(5_000, answers(1, Answer::AllowOnce));
    assert_eq!(heard.last().unwrap(), "call 1");
    assert_eq!(world.run.deadline_at_ms(), T0 + 100 + 4_990);
    assert_eq!(
        world.hear(5_090, Event::Woke).last().unwrap(),
        "finish stopped limit-time"
    );
}

#[test]
fn waiting_for_humans_has_a_limit_of_its_own() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ask_wall_ms_max: 1_000,
        human_wall_ms_max: 1_500,
        ..Limits::default()
    };
    let mut world = World::start(&["ask fs.write"], limits);
    let heard = world.hear_raw(10, vec![waits(&[(0, 1)])]);
    assert_eq!(heard.last().unwrap(), "wake @1010");
    world.hear(1_000, answers(1, Answer::AllowOnce));
    world.hear(1_000, replies(1, "1"));
    let heard = world.hear_raw(1_000, vec![waits(&[(1, 1)])]);
    // Neither the question nor the script's time ends first, but the patience with humans.
    assert_eq!(heard.last().unwrap(), "wake @1510");
    let heard = world.hear(1_510, Event::Woke);
    assert!(heard.contains(&"withdraw 2".to_owned()), "{heard:?}");
    assert!(heard.last().unwrap().starts_with("resume @"), "{heard:?}");
    // The script goes on, with the time that is its own; nobody is asked any more.
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
fn who_is_asked_is_told_no_more_time_than_there_is() {
    let limits = Limits {
        ask_wall_ms_max: 1_000,
        human_wall_ms_max: 400,
        ..Limits::default()
    };
    let mut world = World::start(&["ask fs.write"], limits);
    let effects = world.run.handle_all(T0 + 10, vec![waits(&[(0, 1)])]);
    let waits_ms = effects.iter().find_map(|it| match it {
        Effect::Ask(question) => Some(question.asker.as_ref()?.waits_ms),
        _ => None,
    });
    assert_eq!(waits_ms, Some(400));
    assert_eq!(describe(effects.last().unwrap()), "wake @410");
}

#[test]
fn a_call_in_flight_beside_a_question_keeps_the_deadline_running() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = World::start(&["ask fs.write", "allow fs.read"], limits);
    world.hear(0, waits(&[(0, 1), (1, 0)]));
    assert_eq!(
        world.hear(100, Event::Woke).last().unwrap(),
        "finish stopped limit-time"
    );
}
