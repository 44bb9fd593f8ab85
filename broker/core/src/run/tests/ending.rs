//! Tests that each run ends exactly once, and that the end is recorded and reported correctly.

use super::*;
use crate::code::Code;
use crate::effect::{GuestStop, Whereabouts};
use crate::limits::Limit;
use crate::report::Status;

fn check(event: Event, expected: &str) -> RunStory {
    let mut world = RunStory::open();
    let heard = world.hear(1, event);
    let last: Vec<_> = heard
        .iter()
        .rev()
        .take(2)
        .rev()
        .map(String::as_str)
        .collect();
    assert_eq!(last, ["append ended", expected], "{heard:?}");
    assert_eq!(
        world.hear(
            2,
            Event::Cancelled {
                why: String::new(),
                may_wait: true
            }
        ),
        [""; 0]
    );
    world
}

fn stopped(stop: GuestStop) -> Event {
    Event::GuestStopped {
        stop,
        usage: GuestUsage::default(),
        whereabouts: None,
    }
}

fn limit(limit: Limit) -> GuestStop {
    GuestStop::Limit {
        limit,
        console: Vec::new(),
    }
}

#[test]
fn each_end_has_status_and_code() {
    check(returns("1"), "finish done -");
    check(returns(""), "finish done -");
    check(returns("{nonsense"), "finish failed engine-fault");
    check(throws("", None), "finish failed script-error");
    check(
        step(Vec::new(), StepState::Deadlocked),
        "finish failed deadlock",
    );
    check(waits(&[]), "finish failed deadlock");
    check(
        step(Vec::new(), StepState::StackExhausted),
        "finish stopped limit-stack",
    );
    check(
        step(Vec::new(), StepState::OutputFlood),
        "finish stopped limit-output",
    );
    check(stopped(limit(Limit::Cpu)), "finish stopped limit-cpu");
    check(stopped(limit(Limit::Memory)), "finish stopped limit-memory");
    check(
        stopped(GuestStop::Interrupted {
            console: Vec::new(),
        }),
        "finish cancelled cancelled",
    );
    check(
        Event::Cancelled {
            why: "ctrl-c".into(),
            may_wait: true,
        },
        "finish cancelled cancelled",
    );
}

#[test]
fn oversized_script_or_input_never_reaches_guest() {
    let small = Limits {
        script_bytes_max: 3,
        ..Limits::default()
    };
    let (_, effects) = Run::start(spec(&[], small), T0);
    let effects: Vec<_> = effects.iter().map(describe).collect();
    assert_eq!(
        effects,
        [
            "append run-started",
            "append ended",
            "finish stopped limit-source"
        ]
    );
    let small = RunSpec {
        input: b"[1,2,3]".to_vec(),
        ..spec(
            &[],
            Limits {
                input_bytes_max: 3,
                ..Limits::default()
            },
        )
    };
    let (run, effects) = Run::start(small, T0);
    assert_eq!(
        describe(effects.last().unwrap()),
        "finish stopped limit-payload"
    );
    assert!(run.is_finished());
}

#[test]
fn only_limit_and_deadlock_report_script_position() {
    let ended = |mut end: Event| {
        if let Event::Stepped { whereabouts, .. } | Event::GuestStopped { whereabouts, .. } =
            &mut end
        {
            *whereabouts = Some(Whereabouts {
                line: 3,
                column: 5,
                doing: "in round 7".into(),
                stack: "    at f (s.js:3:5)".into(),
            });
        }
        let mut world = RunStory::open();
        world.hear(1, end);
        world.report().error.clone().unwrap()
    };
    for end in [
        stopped(limit(Limit::Cpu)),
        step(Vec::new(), StepState::StackExhausted),
        step(Vec::new(), StepState::Deadlocked),
    ] {
        let error = ended(end);
        assert!(error.message.ends_with("; in round 7"), "{error:?}");
        assert_eq!((error.line, error.column), (Some(3), Some(5)));
        assert_eq!(error.stack, "    at f (s.js:3:5)");
    }
    let fault = ended(stopped(GuestStop::EngineFault {
        why: "unreachable".into(),
        console: Vec::new(),
    }));
    assert_eq!(fault.line, None);
    assert!(!fault.message.contains("round"), "{fault:?}");
}

#[test]
fn console_of_unfinished_step_is_delivered() {
    let console = vec![ConsoleLine {
        level: ConsoleLevel::Warn,
        text: "almost".into(),
    }];
    let fault = GuestStop::EngineFault {
        why: "unreachable".into(),
        console: console.clone(),
    };
    let limit = GuestStop::Limit {
        limit: Limit::Cpu,
        console: console.clone(),
    };
    let interrupted = GuestStop::Interrupted { console };
    for (stop, end) in [
        (fault, "finish failed engine-fault"),
        (limit, "finish stopped limit-cpu"),
        (interrupted, "finish cancelled cancelled"),
    ] {
        let world = check(stopped(stop), end);
        assert_eq!(world.report().console[0].text, "almost");
        assert_eq!(world.report().console[0].level, "warn");
    }
}

#[test]
fn invalid_limits_or_input_refuse_to_start() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let bad_limits = Limits {
        json_depth_max: 513,
        ..Limits::default()
    };
    let stuck = Limits {
        calls_in_flight_max: 0,
        ..Limits::default()
    };
    for (limits, input, code, says) in [
        (bad_limits, "", "internal", "`json_depth_max` is 513"),
        (stuck, "", "internal", "`calls_in_flight_max` is 0"),
        (Limits::default(), "{", "internal", "not JSON"),
        (Limits::default(), &deep, "limit-payload", "256 levels"),
    ] {
        let mut spec = spec(&[], limits);
        spec.input = input.into();
        let (_, effects) = Run::start(spec, T0);
        let words: Vec<_> = effects.iter().map(describe).collect();
        assert_eq!(words[..2], ["append run-started", "append ended"]);
        let Some(Effect::Finish(report)) = effects.last() else {
            panic!("{words:?}")
        };
        let error = report.error.as_ref().unwrap();
        assert_eq!(error.code.as_str(), code);
        assert!(error.message.contains(says), "{}", error.message);
    }
}

#[test]
fn calls_of_last_step_are_listed_as_not_sent() {
    let limits = Limits {
        calls_max: 3,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow *"], limits);
    let calls = vec![
        open_call(0, 0, "{}"),
        open_call(0, 0, "{}"),
        open_call(1, 0, "{}"),
        open_call(2, 1, "{"),
        open_call(3, 1, "{}"),
        open_call(4, 9, "{}"),
    ];
    let heard = world.hear(0, step(calls, StepState::Waiting { wake_at_ms: None }));
    // The second call repeats a number, which ends the run.
    let expected = [
        "stop",
        "append unsent 2",
        "append unsent 3",
        "append unsent 1",
        "append ended",
        "finish failed engine-fault",
    ];
    assert_eq!(heard, expected);
    let outcomes = ["not-sent -", "not-sent -", "not-sent -"];
    assert_eq!(world.outcomes(), outcomes);
    assert_eq!(world.report().usage.calls_not_recorded, 2);
}

#[test]
fn script_cannot_forge_tool_error_code() {
    let ended = |code: &str, ticket: Option<u32>| {
        let mut world = RunStory::start(&["deny fs.delete", "allow *"], Limits::default());
        world.hear(0, waits(&[(0, 2), (1, 0)]));
        world.hear(1, throws(code, ticket));
        world.report().error.clone().unwrap()
    };
    let denied = ended("denied", Some(0));
    assert_eq!(
        (denied.code, denied.line, denied.column),
        (Code::Denied, Some(2), Some(5))
    );
    for (code, ticket) in [
        ("denied", None),
        ("refused", Some(0)),
        ("denied", Some(1)),
        ("denied", Some(9)),
    ] {
        assert_eq!(
            ended(code, ticket).code,
            Code::ScriptError,
            "{code} {ticket:?}"
        );
    }
}

/// The guest refuses such arguments before there is a call.
#[test]
fn uncaught_limit_of_arguments_without_a_call_keeps_its_code() {
    let mut world = RunStory::start(&["allow *"], Limits::default());
    world.hear(0, throws("limit-payload", None));
    let report = world.report();
    assert_eq!(report.status, Status::Failed);
    assert_eq!(report.code, Some(Code::LimitPayload));
    assert_eq!(report.error.as_ref().unwrap().code, Code::LimitPayload);
}

#[test]
fn console_is_bounded_and_flood_stops_run() {
    let limits = Limits {
        console_bytes_max: 20,
        console_flood_bytes_max: 60,
        ..Limits::default()
    };
    let mut world = RunStory::start(&[], limits);
    let wake = StepState::Waiting {
        wake_at_ms: Some(T0 + 1),
    };
    assert_eq!(
        world.hear(0, prints("hello", wake.clone())),
        ["show hello", "resume @1"]
    );
    let heard = world.hear(1, prints(&"x".repeat(30), wake.clone()));
    assert_eq!(heard[0], "show console output beyond 20 bytes is dropped");
    let ended = world.hear(2, prints(&"y".repeat(30), wake));
    assert_eq!(ended.last().unwrap(), "finish stopped limit-output");
    let report = world.report();
    let texts: Vec<_> = report
        .console
        .iter()
        .map(|line| line.text.as_str())
        .collect();
    assert_eq!(
        texts,
        ["hello", "62 more bytes of console output were dropped"]
    );
    assert_eq!(
        (report.console_dropped_bytes, report.usage.output_bytes),
        (62, 68)
    );
}

#[test]
fn full_journal_ends_run_with_final_entry() {
    let limits = Limits {
        journal_bytes_max: 3_000,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow *"], limits);
    world.hear(0, waits(&[(0, 0)]));
    let ended = world.hear(1, replies(1, &format!("\"{}\"", "x".repeat(1_500))));
    assert_eq!(
        ended,
        [
            "stop",
            "append settled 1",
            "append ended",
            "finish stopped limit-journal"
        ]
    );
    assert_eq!(world.outcomes(), ["returned -"]);
}

#[test]
fn call_without_journal_entry_is_not_sent() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0)]));
    world.hear(1, replies(1, "1"));
    world.hear(2, waits(&[(1, 1)]));
    let ended = world.hear_all(3, vec![returns("1"), append_fails()]);
    assert_eq!(ended, ["stop", "finish stopped journal-unwritable"]);
    assert_eq!(
        world.outcomes(),
        ["returned -", "not-sent journal-unwritable"]
    );
    assert_eq!(world.hear(4, append_fails()), [""; 0]);
}

#[test]
fn earlier_call_is_unknown_after_journal_failure() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 1), (1, 0)]));
    world.hear(1, replies(2, "1"));
    let ended = world.hear(2, append_fails());
    assert_eq!(
        ended,
        ["cancel 1", "stop", "finish stopped journal-unwritable"]
    );
    assert_eq!(world.outcomes(), ["unknown outcome-unknown", "returned -"]);
}

#[test]
fn unwritten_end_is_reported() {
    let mut world = RunStory::open();
    let mut called = waits(&[(0, 1)]);
    if let Event::Stepped { step, .. } = &mut called {
        let text = "hello".into();
        step.console.push(ConsoleLine {
            level: ConsoleLevel::Log,
            text,
        });
    }
    world.hear(0, called);
    world.hear(1, lost(1));
    assert_eq!(world.hear(2, returns("1")).last().unwrap(), "finish done -");
    assert_eq!(
        world.hear(2, append_fails()),
        ["finish stopped journal-unwritable"]
    );
    assert_eq!(world.hear(2, append_fails()), [""; 0]);
    assert_eq!(world.outcomes(), ["unknown outcome-unknown"]);
    assert_eq!(world.report().console[0].text, "hello");
    assert!(world.report().value.is_none());
}

#[test]
fn fsync_follows_its_mode() {
    let synced = |fsync: Fsync| {
        let spec = RunSpec {
            fsync,
            ..spec(&["allow *"], Limits::default())
        };
        let (mut run, mut effects) = Run::start(spec, T0);
        effects.extend(run.handle(T0, waits(&[(0, 0), (1, 1)])));
        effects.extend(run.handle(T0, replies(1, "1")));
        effects.extend(run.handle(T0, replies(2, "1")));
        effects.extend(run.handle(T0, returns("")));
        let sync = |effect: &Effect| matches!(effect, Effect::Append { sync: true, .. });
        effects
            .iter()
            .filter(|effect| sync(effect))
            .map(describe)
            .collect::<Vec<_>>()
    };
    assert_eq!(synced(Fsync::Always).len(), 7);
    assert_eq!(
        synced(Fsync::Writes),
        ["append allowed 2 sync", "append ended sync"]
    );
    assert_eq!(synced(Fsync::Never), [""; 0]);
}
