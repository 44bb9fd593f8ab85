//! Tests that a run can be replayed exactly. The guest's steps and the journal determine what the
//! guest received, and when.

use std::collections::HashMap;

use sandbox_protocol::{CallOutcome, Failure, Resume};

use super::property::GuestStep;
use super::*;
use crate::journal::{ResumedEntry, VerifiedJournal, read};
use crate::report::ReportedOutcome;

/// Replays the recorded entries and compares the result with the original resumes.
pub(super) fn check(journal: &[u8], steps: &[GuestStep], resumes: &[Resume]) {
    let verified = read(journal).unwrap();
    let outcomes = outcomes(&verified);
    let tickets: Vec<_> = steps.iter().flat_map(|step| &step.tickets).collect();
    let entries: HashMap<u64, &ResumedEntry> = verified
        .lines
        .iter()
        .filter_map(|line| match &line.body {
            Body::Resumed(resumed) => Some((resumed.step, resumed)),
            _ => None,
        })
        .collect();
    for (number, (step, resume)) in steps.iter().zip(resumes).enumerate() {
        let replayed = match entries.get(&(number as u64 + 1)) {
            Some(entry) => Resume {
                now_ms: entry.now_ms,
                outcomes: entry
                    .calls
                    .iter()
                    .map(|call| CallOutcome {
                        ticket: *tickets[call.0 as usize - 1],
                        outcome: outcomes[call].clone(),
                    })
                    .collect(),
            },
            None => Resume {
                now_ms: step.wake_at_ms.expect("only a sleep is jumped over"),
                outcomes: Vec::new(),
            },
        };
        assert_eq!(&replayed, resume, "step {}", number + 1);
    }
}

fn outcomes(verified: &VerifiedJournal) -> HashMap<CallId, Outcome> {
    let of = |body: &Body| match body {
        Body::Decided(decided) => {
            let message = decided.told.clone()?;
            let failure = Failure {
                code: decided.code?.as_str().into(),
                tool: decided.tool.to_string(),
                message,
                retryable: false,
                content: Vec::new(),
                structured_content: Vec::new(),
            };
            Some((decided.call, Outcome::Failure(failure)))
        }
        Body::Settled(settled) if settled.told => {
            let text = settled.payload.clone()?;
            let outcome = match settled.outcome {
                ReportedOutcome::Returned => Outcome::Value(text.into_bytes()),
                _ => Outcome::Failure(failure(&text)),
            };
            Some((settled.call, outcome))
        }
        _ => None,
    };
    let lines = verified.lines.iter();
    lines.filter_map(|line| of(&line.body)).collect()
}

fn failure(text: &str) -> Failure {
    let members = crate::json::parse(text.as_bytes()).unwrap();
    let text = |name: &str| members[name].as_str().unwrap_or_default().to_owned();
    Failure {
        code: text("code"),
        tool: text("tool"),
        message: text("message"),
        retryable: members["retryable"] == true,
        content: text("content").into_bytes(),
        structured_content: text("structured_content").into_bytes(),
    }
}

/// Returns the entries of a run that sleeps twice, after computing for the given times.
fn two_sleeps(computed_ms: [u64; 2]) -> Vec<Body> {
    let (mut run, effects) = Run::start(spec(&[], Limits::default()), T0);
    let mut entries = effects;
    for (after_ms, wake_ms) in computed_ms.into_iter().zip([5, 17]) {
        entries.extend(run.handle(T0 + after_ms, sleeps_until(wake_ms)));
    }
    let of = |effect| match effect {
        Effect::Append { entry, .. } => Some(entry.body),
        _ => None,
    };
    entries.into_iter().filter_map(of).collect()
}

#[test]
fn replay_distinguishes_jumped_sleeps() {
    let jumped_first = two_sleeps([0, 12]);
    let jumped_second = two_sleeps([12, 12]);
    let steps = |entries: &[Body]| -> Vec<u64> {
        let resumed = entries.iter().filter_map(|body| match body {
            Body::Resumed(resumed) => Some(resumed.step),
            _ => None,
        });
        resumed.collect()
    };
    assert_eq!(
        (steps(&jumped_first), steps(&jumped_second)),
        (vec![2], vec![1])
    );
}

#[test]
fn header_maps_guest_indices_to_tools() {
    let Body::RunStarted(header) = &two_sleeps([0, 0])[0] else {
        panic!()
    };
    let tools: Vec<_> = header.tools.iter().map(|it| it.tool.to_string()).collect();
    assert_eq!(tools, TOOLS);
    assert_eq!(header.servers[0].global, "fs");
    assert_eq!(
        (header.tools[0].read_only, header.tools[1].read_only),
        (Some(true), None)
    );
}
