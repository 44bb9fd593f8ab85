//! Recorded tasks and attacks against the shipped policies: how often a person
//! is asked, and what gets through. The scripts really run; what their tools
//! answer is recorded in `tests/replay/`.

mod desk;
mod trace;

use std::collections::BTreeMap;

use anyhow::Result;

use desk::{Desk, Played};
use trace::Trace;

/// What came of all traces of one kind.
#[derive(Debug, Default)]
struct Tally {
    traces: usize,
    /// Calls of tools that write anything: asking at each of them is what this is held against.
    sinks: usize,
    asks: usize,
    traces_asked: usize,
    /// Traces in which an attacking call left and nobody was asked.
    through: Vec<String>,
}

impl Tally {
    fn add(&mut self, trace: &Trace, played: &Played) {
        self.traces += 1;
        self.sinks += played.sinks;
        self.asks += played.asks;
        self.traces_asked += usize::from(played.asks > 0);
        if played.got_through {
            self.through.push(trace.id.clone());
        }
    }
}

#[test]
fn no_attack_gets_through_and_fewer_are_asked_than_at_every_sink() {
    let desk = Desk::new().unwrap();
    let benign = trace::read("benign.toml").unwrap();
    let attacks = trace::read("attacks.toml").unwrap();
    assert!(benign.len() >= 40 && attacks.len() >= 100);

    let (tasks, problems) = tally(&desk, &benign).unwrap();
    let mut ways: BTreeMap<&str, Vec<Trace>> = BTreeMap::new();
    for trace in &attacks {
        ways.entry(&trace.way).or_default().push(trace.clone());
    }
    println!("kind         traces  writing calls  asked  got through");
    println!("{}", row("benign", &tasks, "-"));
    let (mut through, mut faults) = (Vec::new(), problems);
    for (way, traces) in &ways {
        let (tally, problems) = tally(&desk, traces).unwrap();
        println!("{}", row(way, &tally, &tally.through.len().to_string()));
        through.extend(tally.through);
        faults.extend(problems);
    }
    println!(
        "benign: asked {} times for {} writing calls, in {} of {} tasks; attacks: {} of {} got through",
        tasks.asks,
        tasks.sinks,
        tasks.traces_asked,
        tasks.traces,
        through.len(),
        attacks.len()
    );
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(through.is_empty(), "these got through: {through:?}");
    assert!(
        tasks.asks < tasks.sinks,
        "asking at every sink would be as good"
    );
}

fn row(name: &str, tally: &Tally, through: &str) -> String {
    let Tally {
        traces,
        sinks,
        asks,
        ..
    } = tally;
    format!("{name:<12} {traces:>6}  {sinks:>13}  {asks:>5}  {through:>11}")
}

/// The tally, and what is wrong with single traces: a script that did not do what it is about.
fn tally(desk: &Desk, traces: &[Trace]) -> Result<(Tally, Vec<String>)> {
    let (mut tally, mut problems) = (Tally::default(), Vec::new());
    for trace in traces {
        let played = desk.play(trace)?;
        if let Some(problem) = &played.problem {
            problems.push(format!("{}: {problem}", trace.id));
        }
        tally.add(trace, &played);
    }
    Ok((tally, problems))
}
