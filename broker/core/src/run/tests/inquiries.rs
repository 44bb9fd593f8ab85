//! Tests of servers' inquiries: recorded, passed on, ended, and not counted as run time.

use super::*;
use crate::catalog::ToolOwner;
use crate::code::Code;
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId, InquiryKind};
use crate::limits::INQUIRIES_MAX;

fn inquired(number: u32, call: u32) -> Event {
    inquired_of_one_of(number, call, &[])
}

fn inquired_of_one_of(number: u32, call: u32, or: &[u32]) -> Event {
    Event::Inquired(Inquiry {
        id: InquiryId(number),
        call: CallId(call),
        or: or.iter().copied().map(CallId).collect(),
        wants: InquiryKind::Form,
        digest: Digest::sha256(b"?"),
        again: false,
    })
}

fn ended(number: u32, end: InquiryEnd) -> Event {
    let inquiry = InquiryId(number);
    Event::InquiryEnded {
        inquiry,
        end,
        login: None,
    }
}

#[test]
fn inquiry_is_recorded_before_carrying_and_its_end_before_reply() {
    let mut world = RunStory::open();
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
fn inquiry_for_call_not_in_flight_is_refused() {
    let mut world = RunStory::start(&["ask *"], Limits::default());
    world.hear(0, waits(&[(0, 0)]));
    for call in [0, 1, 2] {
        let heard = world.hear(1, inquired(call, call));
        assert_eq!(heard, [format!("end {call} Withdrawn")]);
    }
}

#[test]
fn open_inquiry_is_withdrawn_with_call_or_run() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear_all(1, vec![inquired(1, 1), inquired(2, 2)]);
    let heard = world.hear(2, replies(1, "1"));
    assert_eq!(heard[0], "append inquiry-ended 1 Withdrawn");
    assert!(heard.contains(&"end 1 Withdrawn".into()), "{heard:?}");
    let why = "enough".into();
    let heard = world.hear(
        3,
        Event::Cancelled {
            why,
            may_wait: true,
        },
    );
    assert!(
        heard.contains(&"append inquiry-ended 2 Withdrawn".into()),
        "{heard:?}"
    );
    assert!(heard.contains(&"end 2 Withdrawn".into()), "{heard:?}");
}

#[test]
fn ambiguous_inquiry_stays_open_until_last_call_ends() {
    let mut world = RunStory::open();
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
fn inquiry_moves_to_another_possible_call() {
    let mut world = RunStory::open();
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(1, replies(1, "1"));
    let heard = world.hear(2, inquired_of_one_of(1, 1, &[2]));
    assert_eq!(heard, ["append inquired 1", "carry 1"]);
}

#[test]
fn inquiries_per_run_are_bounded() {
    let mut world = RunStory::open();
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
fn question_time_pauses_during_form() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow fs.read", "ask fs.write"], limits);
    // The server of one call asks for a form; the other call waits for an approval.
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(60, inquired(1, 1));
    assert_eq!(world.hear(101, Event::Woke), [""; 0]);
    world.hear(150, ended(1, InquiryEnd::Answered));
    assert_eq!(world.hear(249, Event::Woke), [""; 0]);
    let heard = world.hear(250, Event::Woke);
    assert_eq!(heard.first().unwrap(), "withdraw 2", "{heard:?}");
}

#[test]
fn unanswered_form_does_not_hold_question_open() {
    let limits = Limits {
        ask_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow fs.read", "ask fs.write"], limits);
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(60, inquired(1, 1));
    assert_eq!(world.hear(159, Event::Woke), [""; 0]);
    let heard = world.hear(160, Event::Woke);
    assert_eq!(heard.first().unwrap(), "withdraw 2", "{heard:?}");
    // An expired form also stops extending the time of the open question.
    let mut world = RunStory::start(&["allow fs.read", "ask fs.write"], limits);
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(60, inquired(1, 1));
    let heard = world.hear(130, ended(1, InquiryEnd::Expired));
    assert!(heard.contains(&"withdraw 2".to_owned()), "{heard:?}");
}

#[test]
fn host_only_waiting_time_does_not_count() {
    let limits = Limits {
        run_wall_ms_max: 100,
        human_wall_ms_max: 1_000,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow *"], limits);
    world.hear(0, waits(&[(0, 0)]));
    world.hear(10, inquired(1, 1));
    assert_eq!(world.hear(900, Event::Woke), [""; 0]);
    world.hear(910, ended(1, InquiryEnd::Answered));
    assert_eq!(world.hear(990, Event::Woke), [""; 0]);
    world.hear(1_010, Event::Woke);
    assert_eq!(world.report().code, Some(Code::LimitTime));
}

#[test]
fn other_call_in_flight_keeps_run_time_counting() {
    let limits = Limits {
        run_wall_ms_max: 100,
        ..Limits::default()
    };
    let mut world = RunStory::start(&["allow *"], limits);
    world.hear(0, waits(&[(0, 0), (1, 1)]));
    world.hear(10, inquired(1, 1));
    world.hear(110, Event::Woke);
    world.hear(110, replies(2, "1"));
    assert_eq!(world.report().code, Some(Code::LimitTime));
}

#[test]
fn extraction_beside_question_pauses_time() {
    let limits = Limits {
        run_wall_ms_max: 100,
        human_wall_ms_max: 1_000,
        ..Limits::default()
    };
    let mut spec = spec(&["ask fs.write", "allow *"], limits);
    let mut tools: Vec<_> = TOOLS.iter().map(|id| tool(id)).collect();
    tools[2].owner = ToolOwner::OwnForwarding;
    spec.decision_context.catalog = Arc::new(catalog_of(tools));
    let mut world = RunStory::new(spec);
    world.hear(0, waits(&[(0, 1), (1, 2)]));
    assert_eq!(world.hear(900, Event::Woke), [""; 0]);
    // While only the extraction is in progress, time counts as run time, unless the request was
    // passed to the host.
    world.hear(810, answers(1, Answer::Refuse));
    world.hear(850, Event::HeldByHost { calls: 1 });
    assert_eq!(world.hear(950, Event::Woke), [""; 0]);
    world.hear(950, Event::HeldByHost { calls: 0 });
    world.hear(1_010, Event::Woke);
    assert_eq!(world.report().code, Some(Code::LimitTime));
}
