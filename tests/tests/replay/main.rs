//! Replays recorded tasks and attacks under the shipped policies. Counts how often a person is
//! asked, and which attacks succeed. The scripts run in the sandbox; the tools' answers are
//! recorded in `tests/replay/`.

mod trace;
mod trace_runner;

use std::collections::BTreeMap;

use anyhow::Result;

use trace::Trace;
use trace_runner::{TraceOutcome, TraceRunner};

/// Number of questions about the benign tasks. A change of the policies must not ask more often.
const ASKED_MAX: usize = 11;

/// The results of all traces of one kind.
#[derive(Debug, Default)]
struct Tally {
    traces: usize,
    /// Number of calls of tools that write. A policy that always asks before writing would ask this
    /// often.
    sinks: usize,
    asks: usize,
    traces_asked: usize,
    /// Traces in which a call of the attack was made without a question.
    through: Vec<String>,
}

impl Tally {
    fn add(&mut self, trace: &Trace, played: &TraceOutcome) {
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
fn no_attack_succeeds_and_fewer_questions_than_sinks() {
    let runner = TraceRunner::new().unwrap();
    let benign = trace::read("benign.toml").unwrap();
    let attacks = trace::read("attacks.toml").unwrap();
    assert!(benign.len() >= 40 && attacks.len() >= 100);

    let (tasks, problems) = tally(&runner, &benign).unwrap();
    let mut ways: BTreeMap<&str, Vec<Trace>> = BTreeMap::new();
    for trace in &attacks {
        ways.entry(&trace.way).or_default().push(trace.clone());
    }
    println!("kind         traces  writing calls  asked  got through");
    println!("{}", row("benign", &tasks, "-"));
    let (mut through, mut faults) = (Vec::new(), problems);
    for (way, traces) in &ways {
        let (tally, problems) = tally(&runner, traces).unwrap();
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
    assert!(through.is_empty(), "attacks that succeeded: {through:?}");
    assert!(
        tasks.asks <= ASKED_MAX && ASKED_MAX < tasks.sinks,
        "{} questions for {} calls that write",
        tasks.asks,
        tasks.sinks
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

/// Returns the tally, and the problems of single traces: a task that failed, or an attack that made
/// no attempt.
fn tally(runner: &TraceRunner, traces: &[Trace]) -> Result<(Tally, Vec<String>)> {
    let (mut tally, mut problems) = (Tally::default(), Vec::new());
    for trace in traces {
        let played = runner.play(trace)?;
        if let Some(problem) = &played.problem {
            problems.push(format!("{}: {problem}", trace.id));
        }
        tally.add(trace, &played);
    }
    Ok((tally, problems))
}
