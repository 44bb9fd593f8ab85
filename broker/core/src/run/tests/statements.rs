//! Tests of statements that people make during a run about calls whose outcome is unknown.

use super::resuming::{ChainStory, same, wait, write};
use super::*;
use crate::code::Code;
use crate::journal::read;
use crate::report::Status;
use crate::statement::StatedOutcome;

/// Lets a person answer the questions of the run.
fn attended(spec: &mut RunSpec) {
    spec.reaches_person = true;
}

fn happened(result: Option<&str>) -> Answer {
    let result = result.map(str::to_owned);
    stated(StatedOutcome::Happened { result })
}

fn did_not_happen() -> Answer {
    stated(StatedOutcome::DidNotHappen)
}

fn stated(outcome: StatedOutcome) -> Answer {
    let by = "ada".into();
    Answer::Stated { outcome, by }
}

/// Returns a run that has asked what became of its first call.
fn asked() -> ChainStory {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", attended);
    lose_and_retry(&mut story);
    story
}

fn lose_and_retry(story: &mut ChainStory) {
    assert_eq!(story.hear(wait(vec![write(0, "{}")])), ["call 1"]);
    story.hear(lost(1));
    assert_eq!(story.hear(wait(vec![write(1, "{}")])), ["ask 2"]);
}

/// Returns the single effect, without the time of a resume.
fn only(effects: &[String]) -> String {
    assert_eq!(effects.len(), 1, "{effects:?}");
    match effects[0].strip_prefix("resume @") {
        Some(resumed) => resumed.split_once(' ').unwrap().1.to_owned(),
        None => effects[0].clone(),
    }
}

#[track_caller]
fn check(answer: Answer, expected: &str, entries: &[&str]) -> ChainStory {
    let mut story = asked();
    let heard = only(&story.hear(answers(2, answer)));
    assert!(heard.starts_with(expected), "{heard}");
    let kinds = story.kinds();
    let tail = &kinds[kinds.len() - entries.len()..];
    for (kind, expected) in tail.iter().zip(entries) {
        assert!(kind.starts_with(expected), "{kinds:?}");
    }
    story
}

#[test]
fn statement_during_run_settles_unknown_outcome() {
    let stated = [
        "answered 2 Stated",
        "stated a:1",
        "reused 2 from a:1",
        "resumed",
    ];
    let story = check(happened(Some("7")), "1=7", &stated);
    assert!(
        story
            .kinds()
            .iter()
            .any(|kind| kind.contains(r#"Some("7")"#))
    );
    let left = ["answered 2 Stated", "stated a:1 DidNotHappen", "allowed 2"];
    check(did_not_happen(), "call 2", &left);
}

#[test]
fn reused_call_says_who_stated_its_outcome() {
    let mut story = check(happened(Some("7")), "1=7", &[]);
    let journal = read(story.lines().as_bytes()).unwrap();
    let by = journal.lines.iter().find_map(|line| match &line.body {
        Body::Stated(stated) => Some(stated.statement.by.as_str()),
        _ => None,
    });
    assert_eq!(by, Some("ada"));
    assert!(journal.reused(CallId(2)).unwrap().stated);
    // The run that resumes gets the statement from the chain.
    story.start("b", "t", attended);
    story.hear(wait(vec![write(0, "{}")]));
    let journal = read(story.lines().as_bytes()).unwrap();
    assert!(journal.reused(CallId(1)).unwrap().stated);
    story.hear(returns("1"));
    let reasons = &story.report().calls[0].reasons;
    assert_eq!(reasons, &["a person stated what became of call a:1"]);
}

#[test]
fn answer_that_states_nothing_allows_nothing() {
    for (answer, word) in [
        (Answer::AllowOnce, "answered 2 Invalid"),
        (Answer::Refuse, "answered 2 Refuse"),
        (Answer::Unanswered, "answered 2 Unanswered"),
    ] {
        check(answer, "1!outcome-unknown", &[word, "denied 2", "resumed"]);
    }
}

#[test]
fn statement_about_ordinary_question_allows_nothing() {
    let mut story = ChainStory::new(&["ask *"]);
    story.start("a", "s", attended);
    assert_eq!(story.hear(wait(vec![write(0, "{}")])), ["ask 1"]);
    let heard = story.hear(answers(1, did_not_happen()));
    assert!(heard[0].contains("0!unanswered"), "{heard:?}");
}

#[test]
fn call_without_known_result_is_not_retried() {
    let mut story = check(happened(None), "1!result-invalid", &[]);
    let heard = story.hear(wait(vec![write(2, "{}")]));
    assert!(heard[0].contains("2!outcome-unknown"), "{heard:?}");
}

#[test]
fn stated_result_that_cannot_be_used_is_asked_for_again() {
    let mut story = asked();
    for _ in 0..3 {
        let heard = story.hear(answers(2, happened(Some("{no"))));
        assert_eq!(heard, ["ask 2"]);
    }
    let heard = only(&story.hear(answers(2, happened(Some("{no")))));
    assert!(heard.starts_with("1!outcome-unknown"), "{heard}");
}

#[test]
fn one_statement_settles_all_questions_about_a_call() {
    let both = |outcome: Answer| {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", attended);
        story.hear(wait(vec![write(0, "{}")]));
        story.hear(lost(1));
        let heard = story.hear(wait(vec![write(1, "{}"), write(2, "{}")]));
        assert_eq!(heard, ["ask 2", "ask 3"]);
        story.hear(answers(2, outcome))
    };
    assert_eq!(both(did_not_happen()), ["withdraw 3", "call 2", "call 3"]);
    // The call happened once, so its result is that of one call.
    let heard = both(happened(Some("7")));
    assert_eq!(heard[..2], ["withdraw 3", "call 3"], "{heard:?}");
    assert!(heard[2].contains(" 1=7"), "{heard:?}");
}

#[test]
fn statement_settles_call_of_earlier_run() {
    for (answer, expected) in [
        (happened(Some("7")), "resume @"),
        (did_not_happen(), "call 1"),
    ] {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", attended);
        assert_eq!(story.hear(wait(vec![write(0, "{}")])), ["call 1"]);
        story.start("b", "t", attended);
        assert_eq!(story.hear(wait(vec![write(0, "{}")])), ["ask 1"]);
        let heard = story.hear(answers(1, answer));
        assert!(heard[0].starts_with(expected), "{heard:?}");
        assert!(
            story
                .kinds()
                .iter()
                .any(|kind| kind.starts_with("stated a:1"))
        );
    }
}

#[test]
fn later_run_acts_on_statement_of_earlier_one() {
    let mut story = check(happened(Some("7")), "1=7", &[]);
    // No recorded step shows what the run did with the statement.
    assert!(!story.start("b", "s", attended));
    let heard = story.hear(wait(vec![write(0, "{}")]));
    assert!(heard[0].ends_with(" 0=7"), "{heard:?}");
    let mut story = check(did_not_happen(), "call 2", &[]);
    story.hear(replies(2, "8"));
    story.start("b", "s", attended);
    let heard = story.hear(wait(vec![write(0, "{}")]));
    assert!(heard[0].ends_with(" 0=8"), "{heard:?}");
}

#[test]
fn no_person_means_no_question() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(wait(vec![write(0, "{}")]));
    story.hear(lost(1));
    let heard = only(&story.hear(wait(vec![write(1, "{}")])));
    assert!(heard.starts_with("1!outcome-unknown"), "{heard}");
    assert!(!story.kinds().iter().any(|kind| kind.starts_with("asked")));
}

#[test]
fn suspended_run_asks_again_what_became_of_a_call() {
    let mut story = ChainStory::new(&["allow *"]);
    story.suspend_after_ms = Some(10);
    story.start("a", "s", attended);
    lose_and_retry(&mut story);
    story.at_ms += 100;
    let heard = story.hear(Event::Woke);
    assert_eq!(heard, ["withdraw 2", "stop", "finish paused -"]);
    assert!(story.start("b", "s", attended));
    assert_eq!(story.hear(wait(vec![write(0, "{}")])).len(), 1);
    assert_eq!(story.hear(wait(vec![write(1, "{}")])), ["ask 2"]);
    assert_eq!(story.hear(answers(2, did_not_happen())), ["call 2"]);
}

fn abandoned() -> Event {
    Event::Abandoned {
        why: "the host has left".into(),
        may_wait: true,
    }
}

#[test]
fn answer_in_the_turn_in_which_the_host_leaves_is_kept() {
    for is_answer_first in [true, false] {
        let mut story = ChainStory::new(&["ask *"]);
        story.suspend_after_ms = Some(60_000);
        story.start("a", "s", attended);
        let heard = story.hear(waits(&[(0, 1), (1, 2)]));
        assert_eq!(heard, ["ask 1", "ask 2"]);
        let mut events = vec![answers(1, Answer::AllowOnce), abandoned()];
        if !is_answer_first {
            events.reverse();
        }
        let heard = story.hear_all(events);
        assert_eq!(heard, ["withdraw 2", "stop", "finish paused -"]);
        assert_eq!(story.report().status, Status::Paused);
        // The run that continues acts on the answer, and puts the other question again.
        assert!(story.start("b", "s", attended));
        assert_eq!(story.hear(waits(&[(0, 1), (1, 2)])), ["ask 2", "call 1"]);
        assert!(story.report.is_none());
    }
}

#[test]
fn statement_in_the_turn_in_which_the_host_leaves_is_kept() {
    let mut story = ChainStory::new(&["allow *"]);
    story.suspend_after_ms = Some(60_000);
    story.start("a", "s", attended);
    lose_and_retry(&mut story);
    let heard = story.hear_all(vec![answers(2, happened(Some("7"))), abandoned()]);
    assert_eq!(heard, ["stop", "finish paused -"]);
    story.start("b", "s", attended);
    let heard = story.hear(wait(vec![write(0, "{}")]));
    assert!(heard[0].ends_with(" 0=7"), "{heard:?}");
}

#[test]
fn denied_call_is_not_asked_about() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", attended);
    story.hear(wait(vec![write(0, "{}")]));
    story.rules = vec!["deny *"];
    story.start("b", "t", attended);
    let heard = story.hear(wait(vec![write(0, "{}")]));
    let code = Code::OutcomeUnknown.as_str();
    assert!(heard[0].contains(&format!("0!{code}")), "{heard:?}");
}
