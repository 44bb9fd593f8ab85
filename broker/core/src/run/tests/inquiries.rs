//! What servers ask of the host: recorded, carried, ended, and not on the run's time.

use super::*;
use crate::catalog::Whose;
use crate::code::Code;
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId, Wants};
use crate::limits::INQUIRIES_MAX;

fn inquired(number: u32, call: u32) -> Event {
    inquired_of_one_of(number, call, &[])
}

fn inquired_of_one_of(number: u32, call: u32, or: &[u32]) -> Event {
    Event::Inquired(Inquiry {
        id: InquiryId(number),
        call: CallId(call),
        or: or.iter().copied().map(CallId).collect(),
        wants: Wants::Form,
        digest: Digest::of(b"?"),
        again: false,
    })
}

fn ended(number: u32, end: InquiryEnd) -> Event {
    let inquiry = InquiryId(number);
    Event::InquiryEnded { inquiry, end }
}

#[test]
fn an_inquiry_is_recorded_before_it_is_carried_and_its_end_before_the_server_hears_of_it() {
    let mut world = World::open();
    world.hear(0, waits(&[(0, 0)]));
    let heard = world.hear(1, inquired(1, 1));
    assert_eq!(heard, ["append inquired 1", "carry 1"]);
    let heard = world.hear(5, ended(1, InquiryEnd::Declined));
    assert_eq!(heard, ["append inquiry-ended 1 Declined", "end 1 Declined"]);
    assert_eq!(world.hear(6, ended(1, InquiryEnd::Answered)), [""; 0]);
    let heard = world.hear(7, replies(1, "1"));
    assert_eq!(heard.first().map(String::as_str), Some("append settled 1"));
}

#[test]
fn nobody_is_asked_for_a_call_that_is_not_under_way() {
    let mut world = World::start(&["ask *"], Limits::default());
    world.hear(0, waits(&[(0, 0)]));
    for call in [0, 1, 2] {
        let heard = world.hear(1, inquired(call, call));
        assert_eq!(heard, [format!("end {call} Withdrawn")]);
    }
}

#[test]
fn what_is_open_when_the_call_or_the_run_ends_is_withdrawn() {
    let mut world = World::open();
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear_all(1, vec![inquired(1, 1), inquired(2, 2)]);
    let heard = world.hear(2, replies(1, "1"));
    assert_eq!(heard[0], "append inquiry-ended 1 Withdrawn");
    assert!(heard.contains(&"end 1 Withdrawn".into()), "{heard:?}");
    let why = "enough".into();
    let heard = world.hear(3, Event::Cancelled { why });
    assert!(
        heard.contains(&"append inquiry-ended 2 Withdrawn".into()),
        "{heard:?}"
    );
    assert!(heard.contains(&"end 2 Withdrawn".into()), "{heard:?}");
}

#[test]
fn what_may_be_about_several_calls_is_open_until_the_last_of_them_ends() {
    let mut world = World::open();
    world.hear(0, waits(&[(0, 0), (1, 1), (2, 2)]));
    let heard = world.hear(1, inquired_of_one_of(1, 1, &[2, 9]));
    assert_eq!(heard, ["append inquired 1", "carry 1"]);
    for (call, ends) in [(1, false), (3, false), (2, true)] {
        let heard = world.hear(2, replies(call, "1"));
        let is_withdrawn = heard.contains(&"end 1 Withdrawn".to_owned());
        assert_eq!(is_withdrawn, ends, "{heard:?}");
    }
}

#[test]
fn what_is_about_no_call_any_more_is_about_another_one_that_it_may_be_about() {
    let mut world = World::open();
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(1, replies(1, "1"));
    let heard = world.hear(2, inquired_of_one_of(1, 1, &[2]));
    assert_eq!(heard, ["append inquired 1", "carry 1"]);
}

#[test]
fn a_run_puts_only_so_many() {
    let mut world = World::open();
    world.hear(0, waits(&[(0, 0)]));
    for number in 1..=INQUIRIES_MAX {
        world.hear_all(
            1,
            vec![inquired(number, 1), ended(number, InquiryEnd::Answered)],
        );
    }
    let one_more = INQUIRIES_MAX + 1;
    let heard = world.hear(2, inquired(one_more, 1));
    assert_eq!(heard, [format!("end {one_more} TooMany")]);
}

#[test]
fn a_question_keeps_its_time_while_the_person_is_busy_with_a_form_and_after_it() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = World::start(&["allow fs.read", "ask fs.write"], limits);
    // One call asks its host for a form; the other is asked about.
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(60, inquired(1, 1));
    assert_eq!(world.hear(101, Event::Woke), [""; 0]);
    world.hear(150, ended(1, InquiryEnd::Answered));
    assert_eq!(world.hear(249, Event::Woke), [""; 0]);
    let heard = world.hear(250, Event::Woke);
    assert_eq!(heard.first().unwrap(), "withdraw 2", "{heard:?}");
}

#[test]
fn a_form_that_nobody_fills_in_holds_no_question_open_for_ever() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = World::start(&["allow fs.read", "ask fs.write"], limits);
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(60, inquired(1, 1));
    assert_eq!(world.hear(159, Event::Woke), [""; 0]);
    let heard = world.hear(160, Event::Woke);
    assert_eq!(heard.first().unwrap(), "withdraw 2", "{heard:?}");
    // Nor does one that expires.
    let mut world = World::start(&["allow fs.read", "ask fs.write"], limits);
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(60, inquired(1, 1));
    let heard = world.hear(130, ended(1, InquiryEnd::Expired));
    assert!(heard.contains(&"withdraw 2".to_owned()), "{heard:?}");
}

#[test]
fn time_in_which_only_the_host_is_waited_for_is_not_the_runs() {
    let limits = Limits {
        run_wall_ms_max: 100,
        human_wall_ms_max: 1_000,
        ..Limits::default()
    };
    let mut world = World::start(&["allow *"], limits);
    world.hear(0, waits(&[(0, 0)]));
    world.hear(10, inquired(1, 1));
    assert_eq!(world.hear(900, Event::Woke), [""; 0]);
    world.hear(910, ended(1, InquiryEnd::Answered));
    assert_eq!(world.hear(990, Event::Woke), [""; 0]);
    world.hear(1_010, Event::Woke);
    assert_eq!(world.report().code, Some(Code::LimitTime));
}

#[test]
fn another_call_under_way_keeps_the_time_the_runs() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = World::start(&["allow *"], limits);
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(10, inquired(1, 1));
    world.hear(110, Event::Woke);
    assert_eq!(world.report().code, Some(Code::LimitTime));
}

#[test]
fn a_value_that_is_read_beside_a_question_lets_the_time_stand_still() {
    let limits = Limits {
        run_wall_ms_max: 100,
        human_wall_ms_max: 1_000,
        ..Limits::default()
    };
    let mut spec = spec(&["ask fs.write", "allow *"], limits);
    let mut tools: Vec<_> = TOOLS.iter().map(|id| tool(id)).collect();
    tools[2].whose = Whose::OwnBeyond;
    spec.standing.catalog = Arc::new(catalog_of(tools));
    let mut world = World::of(spec);
    world.hear(0, waits(&[(0, 1), (1, 2)]));
    assert_eq!(world.hear(900, Event::Woke), [""; 0]);
    // Beside nothing but the extraction the time is the run's, unless the host is away with it.
    world.hear(810, answers(1, Answer::Refuse));
    world.hear(850, Event::InHand { calls: 1 });
    assert_eq!(world.hear(950, Event::Woke), [""; 0]);
    world.hear(950, Event::InHand { calls: 0 });
    world.hear(1_010, Event::Woke);
    assert_eq!(world.report().code, Some(Code::LimitTime));
}
