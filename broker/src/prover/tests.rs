//! Compares proofs with the policy engine on ten thousand calls per rule set, and tests programs
//! that are not solvers.

// Installs cvc5 with the same code that the tests of commands use.
#[path = "../../../tests/src/apt.rs"]
mod apt;
mod idle;
mod random_pairs;
mod real;
#[expect(
    unreachable_pub,
    reason = "the tests of commands use this module from another crate"
)]
#[path = "../../../tests/src/solver.rs"]
mod solver;

use std::sync::LazyLock;

use airlock_core::catalog::Effects;
use airlock_core::id::ToolId;
use airlock_core::labels::{Field, Labelling, Writes};
use airlock_core::level::Level;
use airlock_core::policy::{Policies, PolicyFile, Vocabulary};
use airlock_core::rules::{PatternRule, Rules};
use airlock_core::tool_pattern::ToolPattern;
use airlock_policy_analysis::{Example, FlowSettings, ToolSubject};
use codegen::description::Description;
use serde_json::json;

use super::*;
use crate::tempdir::TempDir;

/// Number of generated calls for each rule set with proofs.
const CALLS: usize = 10_000;

struct Set {
    rules: Rules,
    subject: ToolSubject,
}

/// Returns a rule set for one tool with arguments of every kind.
fn set(texts: &str, labelling: Labelling) -> Set {
    let schema = json!({"type": "object", "required": ["path", "count", "serial"], "properties": {
        "serial": {"type": "integer"},
        "path": {"type": "string"},
        "count": {"type": "integer", "minimum": 0, "maximum": 1000},
        "mode": {"enum": ["read", "write", "delete"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "force": {"type": "boolean"},
        "size": {"type": "number"},
        "to": {"type": "string"},
        "filter": {"type": "object", "properties": {
            "owner": {"type": "string"}, "depth": {"type": "integer"}}},
    }});
    try_set(texts, labelling, &schema, &FlowSettings::default()).unwrap()
}

/// Returns a rule set for one tool, or `None` if airlock refuses the rules.
fn try_set(
    texts: &str,
    labelling: Labelling,
    schema: &Value,
    around: &FlowSettings,
) -> Option<Set> {
    let tool = ToolId::parse("box.put").unwrap();
    let listed = json!({"name": "put", "inputSchema": schema});
    let description = Description::parse("box", &listed).unwrap();
    let mut vocabulary = Vocabulary::new();
    let groups = ["own".to_owned()].into();
    vocabulary.add(
        &tool,
        Effects::default(),
        &groups,
        &codegen::shape::tool_shape(&description),
    );
    let rules = texts.split("---").enumerate().map(|(at, text)| {
        let prompt = if text.contains("approval") {
            "@prompt(\"?\")"
        } else {
            ""
        };
        let text = text.trim().trim_end_matches(';');
        format!("@id(\"r{at}\") @owner(\"o\") @reason(\"r\") {prompt} {text};\n")
    });
    let file = PolicyFile {
        name: "a.cedar".into(),
        text: rules.collect(),
        tightens: false,
    };
    let policies = Policies::load(&[file], vocabulary, true).ok()?;
    Some(Set {
        rules: Rules::new(Vec::new(), false).with_policies(std::sync::Arc::new(policies)),
        subject: ToolSubject::new(tool, labelling, schema, around)?,
    })
}

impl Set {
    /// Adds a pattern that asks about every call of the tool.
    fn under(self, level: Level) -> Self {
        let pattern = PatternRule {
            level,
            pattern: ToolPattern::parse("box.*").unwrap(),
            origin: None,
        };
        let policies = self.rules.policies().unwrap().clone();
        let rules = Rules::new(vec![pattern], false).with_policies(policies.into());
        Self { rules, ..self }
    }
}

fn mailing() -> Labelling {
    Labelling {
        writes: Writes {
            external: true,
            state: false,
        },
        destinations: vec![Field::parse("/to").unwrap()],
        paths: vec![Field::parse("/path").unwrap()],
        ..Labelling::default()
    }
}

const ALL: &str = "(principal, action, resource)";

/// Returns rule sets whose boundaries are numbers, texts, sets, optional values and facts.
fn sets() -> Vec<Set> {
    let texts = [
        "permit@ when { context.args.count < 10 && context.args.count > 8 } --- \
         forbid@ when { context.args.count == 9 } --- permit@ when { context.approval >= 1 }",
        "permit@ when { context.args has mode && context.args.mode == \"write\" } --- \
         forbid@ unless { context.args has mode && [\"read\", \"delete\"].contains(context.args.mode) }",
        "permit@ when { context.args has tags && !context.args.tags.isEmpty() && \
         [\"a\", \"b\"].containsAll(context.args.tags) } --- \
         forbid@ when { context.args has tags && context.args.tags.containsAny([\"a\", \"b\"]) } \
         unless { context.approval >= 2 }",
        "permit@ when { context.args has filter && context.args.filter has depth && \
         context.args.filter.depth * 2 == 7 } --- permit@ when { context.approval >= 2 }",
        "permit@ when { context.counts.calls_run < 3 && context.counts.calls_session >= 5 && \
         context.time.hour < 6 && context.time.weekday >= 6 } --- \
         forbid@ when { context.labels.contains(\"untrusted\") } unless { context.approval >= 1 }",
        "permit@ when { context.disclosed || context.args.serial == 3 } --- \
         forbid@ when { context.args.serial < 10 } unless { context.approval >= 1 } --- \
         forbid@ when { !(context.args has serial) } --- \
         forbid@ when { context.args has serial && context.args.serial > 10 && context.args.serial != 20 }",
        "permit@ when { context has dest_hosts && [\"docs.rs\"].containsAll(context.dest_hosts) } --- \
         forbid@ unless { context has dest_domains && context.dest_domains.contains(\"corp.example\") } --- \
         permit@ when { context.approval >= 1 && context.script_trusted }",
        "permit@ when { context has dest_explained && context.dest_explained } --- \
         forbid@ when { context.dest_unexplained.isEmpty() && context has dest_explained } \
         unless { context.approval >= 1 }",
        "permit@ when { if context.args has force then context.args.force else context.disclosed } --- \
         forbid@ when { !context.unmodelled.isEmpty() } --- \
         forbid@ unless { context.writes.external } --- \
         forbid@ when { context has path_roots && context.path_roots.contains(\"outside\") } \
         unless { context.approval >= 2 }",
        "permit@ when { context.args.count >= 1001 } --- permit@ when { !context.disclosed } --- \
         permit@ when { context.writes.state }",
    ];
    let labellings = [Labelling::default(), mailing()];
    texts
        .iter()
        .map(|text| text.replace('@', ALL))
        .flat_map(|text| labellings.clone().map(|it| set(&text, it)))
        .collect()
}

fn prover() -> Option<Prover> {
    let named = std::env::var_os("CVC5").map(PathBuf::from);
    let mut prover = Prover::new(Some(named.or_else(solver::path)?));
    // A long limit, because the test checks proofs and not their speed, even on a busy machine.
    prover.wall = Duration::from_secs(600);
    Some(prover)
}

/// Runs a task on one shared runtime, because the solver lives only as long as the runtime that
/// started it.
fn run<T>(task: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    });
    RUNTIME.block_on(task)
}

const WANTED: [Level; 3] = [Level::Allow, Level::AskRun, Level::AskCall];

fn can(prover: &mut Prover, set: &Set) -> Vec<LevelAnswer> {
    let case = ReachabilityCase {
        rules: &set.rules,
        subject: &set.subject,
        seeds: &[],
    };
    run(prover.can(case, &WANTED))
}

/// Compares answers with calls and returns a contradiction. No call may match an answer that was
/// proved impossible. Some call must match each possible answer, so that a wrong proof would be
/// noticed.
fn against(answers: &[LevelAnswer], calls: &[Example]) -> Option<String> {
    answers.iter().find_map(|answer| {
        let level = answer.level;
        let met = calls.iter().find(|it| it.level == level);
        match (&answer.found, met) {
            (Reachability::Never(_), Some(call)) => {
                Some(format!("{level:?} is met: {}", call.call()))
            }
            (Reachability::Example(_), None) => Some(format!("no {level:?} is met")),
            (Reachability::Example(example), _) if example.level != level => {
                Some(format!("{level:?} is shown by {:?}", example.level))
            }
            (Reachability::Open { why }, _) => Some(format!("{level:?} is open: {why}")),
            _ => None,
        }
    })
}

/// Generates the required number of calls, although a schema rejects most of them.
fn sampled(set: &Set, seed: u64) -> Vec<Example> {
    const ROUNDS_MAX: u64 = 8;
    let mut calls = Vec::new();
    for round in 0..ROUNDS_MAX {
        let seed = seed + 1_000 * round;
        calls.extend(airlock_policy_analysis::schema_sample(
            &set.rules,
            &set.subject,
            seed,
            CALLS,
        ));
        if calls.len() >= CALLS {
            break;
        }
    }
    calls
}

/// Compares ten thousand calls per rule set with the answers, and returns the number of proofs.
fn hold(sets: &[Set]) -> usize {
    let Some(mut prover) = prover() else { return 0 };
    let mut proved = 0;
    for (at, set) in sets.iter().enumerate() {
        let tool = &set.subject.tool;
        let calls = sampled(set, 7 + at as u64);
        assert!(calls.len() >= CALLS, "{tool}: {} calls", calls.len());
        let answers = can(&mut prover, set);
        assert_eq!(against(&answers, &calls), None, "set {at}, {tool}");
        // The test attaches each proof to a wrong answer, and detects that it is wrong.
        for answer in answers {
            let found = match answer.found {
                Reachability::Never(_) => {
                    proved += 1;
                    continue;
                }
                _ => Reachability::Never(ProofGround::Proof),
            };
            let level = answer.level;
            let wrong = against(&[LevelAnswer { level, found }], &calls);
            assert!(wrong.is_some_and(|it| it.contains("is met")), "{tool}");
        }
    }
    assert!(
        proved > 0 && prover.trouble().is_none(),
        "{proved} {:?}",
        prover.trouble()
    );
    proved
}

#[test]
fn impossible_levels_are_not_reached_by_10000_calls_of_unlabelled_tool() {
    hold(&sets().into_iter().step_by(2).collect::<Vec<_>>());
}

#[test]
fn impossible_levels_are_not_reached_by_10000_calls_of_labelled_tool() {
    hold(&sets().into_iter().skip(1).step_by(2).collect::<Vec<_>>());
}

#[test]
fn impossible_levels_are_not_reached_by_10000_calls_with_ask_patterns() {
    let asked = [Level::AskRun, Level::AskCall].into_iter().cycle();
    let sets = sets().into_iter().step_by(3).zip(asked);
    hold(
        &sets
            .map(|(set, level)| set.under(level))
            .collect::<Vec<_>>(),
    );
}

/// A pattern asks about a call that policies allow without approval. The policies are never
/// evaluated with more approval, so an error at a higher level does not affect the call.
#[test]
fn level_without_approval_is_queried_where_pattern_asks() {
    let Some(mut prover) = prover() else { return };
    let text = "permit@ when { context.args.serial > 5000 && \
                context.args.count * 37 + context.counts.calls_run * 11 == 20011 && \
                context.counts.calls_run > 40 && context.counts.calls_run < 61 } --- \
                permit@ when { context.approval >= 1 && \
                context.args.serial > 4000 && context.args.serial * 4000000000000000 > 0 }";
    let of = |text: &str| set(&text.replace('@', ALL), Labelling::default()).under(Level::AskRun);
    let new = of(text);
    let found = can(&mut prover, &new);
    assert_eq!(levels(&found), ["never", "yes", "never"], "{found:?}");

    let old = of("permit@ when { context.args.count < 0 }");
    let change = |prover: &mut Prover, old: &Set, new: &Set| {
        let pair = RulePair {
            old: &old.rules,
            new: &new.rules,
        };
        run(prover.diff(pair, &new.subject, &[]))
    };
    let widened = change(&mut prover, &old, &new);
    assert!(
        matches!(widened.widened, DiffOutcome::Example(_)),
        "{widened:?}"
    );
    assert!(
        matches!(widened.narrowed, DiffOutcome::Never(_)),
        "{widened:?}"
    );
    // A policy that asks for approval changes nothing if the pattern requires the approval anyway.
    let free = of("permit@ when { context.args.serial * 3 > 0 }");
    let granted = of(
        "permit@ when { context.approval >= 1 && context.args.serial * 3 > 0 } --- \
                      permit@ when { context.args.serial * 3 > 0 }",
    );
    let same = change(&mut prover, &free, &granted);
    assert!(matches!(same.widened, DiffOutcome::Never(_)), "{same:?}");
    assert!(matches!(same.narrowed, DiffOutcome::Never(_)), "{same:?}");
}

#[test]
fn changed_pattern_is_a_difference() {
    let mut nobody = Prover::new(None);
    let of = || set(&"permit@".replace('@', ALL), Labelling::default());
    let [free, asked] = [of(), of().under(Level::AskCall)];
    let pair = RulePair {
        old: &free.rules,
        new: &asked.rules,
    };
    let change = run(nobody.diff(pair, &free.subject, &[]));
    assert!(
        matches!(change.widened, DiffOutcome::Never(_)),
        "{change:?}"
    );
    assert!(
        matches!(change.narrowed, DiffOutcome::Example(_)),
        "{change:?}"
    );
}

fn levels(found: &[LevelAnswer]) -> Vec<&'static str> {
    let word = |answer: &LevelAnswer| match answer.found {
        Reachability::Example(_) => "yes",
        Reachability::Never(_) => "never",
        Reachability::Open { .. } => "open",
    };
    found.iter().map(word).collect()
}

/// Checks the levels: without asking, with a grant, with an approval of the call itself.
fn check(text: &str, expected: [&str; 3]) {
    let Some(mut prover) = prover() else { return };
    let set = set(&text.replace('@', ALL), Labelling::default());
    let found = can(&mut prover, &set);
    assert_eq!(levels(&found), expected, "{text}: {found:?}");
}

#[test]
fn reachability_is_reported_per_level() {
    let none = ["never", "never", "never"];
    check("permit@ when { context.args.count < 0 }", none);
    check(
        "permit@ when { context.args has mode && context.args.mode == \"burn\" }",
        none,
    );
    check(
        "permit@; --- forbid@ unless { context.approval >= 2 }",
        ["never", "never", "yes"],
    );
    check(
        "permit@ when { context.args.count == 977 }",
        ["yes", "never", "never"],
    );
    check("permit@ when { context has dest_hosts }", none);
    check(
        "permit@; --- forbid@ when { context.labels.contains(\"untrusted\") } \
         unless { context.approval >= 1 }",
        ["yes", "yes", "never"],
    );
    // Only a solver finds this call.
    check(
        "permit@ when { context.args.count * 37 + context.counts.calls_run * 11 == 20011 && \
         context.counts.calls_run > 40 && context.counts.calls_run < 61 }",
        ["yes", "never", "never"],
    );
}

/// The argument is a required number that may not fit into 64 bits. Rules do not see such a number,
/// and a rule that reads it or tests for it denies the call.
#[test]
fn required_unmodelled_number_is_considered() {
    let never = ["never", "never", "never"];
    check("permit@ when { !(context.args has serial) }", never);
    check("permit@ when { !(context.args has count) }", never);
    let serial = "permit@ when { context.args.serial > 5 || !(context.args has serial) }";
    check(serial, ["yes", "never", "never"]);
    let other = "permit@; --- forbid@ when { context.args.serial < 5 } --- \
                 forbid@ when { context.args has serial && context.args.serial >= 5 }";
    check(other, never);
}

/// Calls with an argument that rules do not see are denied at every approval level, so these rules
/// do not differ.
#[test]
fn unmodelled_argument_denies_at_every_approval() {
    let Some(mut prover) = prover() else { return };
    let of = |text: &str| set(&text.replace('@', ALL), Labelling::default());
    let old = of("permit@ --- forbid@ when { context.approval < 1 && context.args.serial > 5 }");
    let new = of(
        "permit@ --- forbid@ when { !(context.args has serial) || context.args.serial > 5 } \
         unless { context.approval >= 1 }",
    );
    let both = [&old, &new].map(|it| it.rules.policies().unwrap());
    let theory = SolverProblem::new(&both, &old.subject).unwrap().unwrap();
    let [more, less] = [1, 0].map(|side| AllowQuery { side, approval: 1 });
    for (one, other) in [(more, less), (less, more)] {
        let found = run(prover.ask(&theory, one, Some(other)));
        assert_eq!(found, ProofVerdict::Proved);
    }
}

#[test]
fn without_solver_only_textual_results_are_certain() {
    let of = |text: &str| set(&text.replace('@', ALL), Labelling::default());
    let set = of(
        "permit@ when { context.args.count == 1 && context.args.count == 2 } --- \
                  permit@ when { context.approval >= 1 }",
    );
    let mut nobody = Prover::new(None);
    let found = can(&mut nobody, &set);
    // With an approval of the call itself, the same rules apply as with a grant.
    assert_eq!(levels(&found), ["open", "yes", "never"]);
    let asking = of("permit@ when { context.approval >= 1 }");
    let asked = can(&mut nobody, &asking);
    assert_eq!(levels(&asked)[0], "never");
    let is_proved = |it: &LevelAnswer| matches!(it.found, Reachability::Never(ProofGround::Proof));
    assert!(
        !found.iter().chain(&asked).any(is_proved),
        "{found:?} {asked:?}"
    );
    // If a solver was asked, the answer states it, even when the same question is repeated.
    let Some(mut prover) = prover() else { return };
    for _ in 0..2 {
        let found = can(&mut prover, &set);
        assert!(is_proved(&found[0]) && !is_proved(&found[2]), "{found:?}");
    }
}

/// Creates a shell script in place of the solver. A child process writes it: other tests' processes
/// could inherit a file that is open for writing here, and such a file cannot be executed.
fn liar(scratch: &TempDir, script: &str) -> Prover {
    let text = scratch.file("script", &format!("#!/bin/sh\n{script}\n"));
    let path = scratch.path().join("cvc5");
    let mut install = std::process::Command::new("install");
    let made = install.args(["-m", "755"]).arg(text).arg(&path).status();
    assert!(made.unwrap().success());
    let mut prover = Prover::new(Some(path));
    prover.wall = Duration::from_millis(500);
    prover
}

#[test]
fn faulty_solver_proves_nothing() {
    let text = "permit@ when { context.args.count == 1 && context.args.count == 2 }";
    let set = set(&text.replace('@', ALL), Labelling::default());
    for script in [
        "exit 1",
        "sleep 600",
        "while true; do echo unsat; done",
        "echo sat; echo unsat; echo 'hello, world'; sleep 600",
        "printf 'sat\\nunsat\\n'; head -c 10000000 /dev/zero",
        "while read line; do case $line in *check-sat*) echo sat;; esac; done",
    ] {
        let scratch = TempDir::new();
        let mut prover = liar(&scratch, script);
        let found = can(&mut prover, &set);
        assert_eq!(levels(&found)[0], "open", "{script}");
        assert!(prover.trouble().is_some(), "{script}");
    }
    let mut missing = Prover::new(Some("/no/such/cvc5".into()));
    assert_eq!(levels(&can(&mut missing, &set))[0], "open");
    assert!(missing.trouble().unwrap().contains("cannot be started"));
}
