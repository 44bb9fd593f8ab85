//! Tests of the results that need no solver, and of the keys of questions.

use std::sync::Arc;

use codegen::description::Description;

use crate::*;
use airlock_core::catalog::Effects;
use airlock_core::labels::Labelling;
use airlock_core::policy::{PolicyFile, Vocabulary};

fn rules(text: &str) -> (Rules, Vec<ToolSubject>) {
    let schema = json!({"type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer"}, "mode": {"enum": ["a", "b"]}}});
    let mut vocabulary = Vocabulary::new();
    let subjects = ["s.one", "s.two"].map(|name| {
        let tool = ToolId::parse(name).unwrap();
        let listed = json!({"name": &*tool.tool.0, "inputSchema": schema});
        let description = Description::parse("s", &listed).unwrap();
        let shape = codegen::shape::tool_shape(&description);
        vocabulary.add(&tool, Effects::default(), &[].into(), &shape);
        ToolSubject::new(
            tool,
            Labelling::default(),
            &schema,
            &FlowSettings::default(),
        )
        .unwrap()
    });
    let file = PolicyFile {
        name: "a.cedar".into(),
        text: text.replace("@@", "@id(\"x\") @owner(\"o\") @reason(\"r\")"),
        tightens: false,
    };
    let policies = Policies::load(&[file], vocabulary, true).unwrap();
    let rules = Rules::new(Vec::new(), false).with_policies(Arc::new(policies));
    (rules, subjects.into())
}

#[test]
fn rule_boundaries_are_found_by_search() {
    for (condition, is_found) in [
        ("context.args.n == 4711", true),
        ("context.args.n > 9 && context.args.n < 11", true),
        ("context.args has mode && context.args.mode != \"a\"", true),
        ("context.time.hour == 3 && context.time.weekday == 7", true),
        ("!context.unmodelled.isEmpty()", true),
        (
            "context.counts.calls_run >= 20 && !context.script_trusted",
            true,
        ),
        ("context.args has mode && context.args.mode == \"c\"", false),
        ("context has dest_hosts", false),
    ] {
        let text = format!("@@ permit(principal, action, resource) when {{ {condition} }};");
        let (rules, subjects) = rules(&text);
        let seen = explore(&rules, &subjects[0], &LEVELS, &[], 200);
        assert_eq!(seen.of(Level::Allow).is_some(), is_found, "{condition}");
        assert!(seen.of(Level::Deny).is_some(), "{condition}");
    }
}

#[test]
fn equivalent_tools_share_a_key() {
    let key = |text: &str, at: usize| {
        let (rules, subjects) = rules(text);
        let policies = rules.policies().unwrap();
        SolverProblem::new(&[policies], &subjects[at])
            .unwrap()
            .unwrap()
            .key()
    };
    let all = "@@ permit(principal, action, resource) when { context.args.n == 1 };";
    assert_eq!(key(all, 0), key(all, 1));
    let one = "@@ permit(principal, action == Action::\"s.one\", resource) \
               when { context.args.n == 1 };";
    assert_eq!(key(one, 0), key(all, 0));
    assert_ne!(key(one, 0), key(one, 1));
}

#[test]
fn erring_rule_is_split() {
    let text = "@@ permit(principal, action, resource) \
                when { context.disclosed && context.args.n == 1 };";
    let (rules, subjects) = rules(text);
    let policies = rules.policies().unwrap();
    let theory = SolverProblem::new(&[policies], &subjects[0])
        .unwrap()
        .unwrap();
    let texts: Vec<String> = theory
        .policies(AllowQuery {
            side: 0,
            approval: 0,
        })
        .unwrap()
        .policies()
        .map(|policy| policy.to_cedar().unwrap())
        .collect();
    let errs =
        |text: &&String| text.starts_with("forbid") && text.contains("!(context.args has n)");
    assert_eq!(texts.iter().filter(errs).count(), 1, "{texts:#?}");
}

#[test]
fn rule_without_permit_is_no_query() {
    let text = "@prompt(\"?\") @@ permit(principal, action, resource) \
                when { context.args.n == 1 && context.approval >= 1 };";
    let (rules, subjects) = rules(text);
    let theory = SolverProblem::new(&[rules.policies().unwrap()], &subjects[0]);
    let theory = theory.unwrap().unwrap();
    let [none, grant] = [0, 1].map(|approval| AllowQuery { side: 0, approval });
    assert!(theory.is_settled(none, None) && !theory.is_settled(grant, None));
    // The comparison of a query with itself is settled. The comparison with a stricter query is
    // not.
    assert!(theory.is_settled(grant, Some(grant)) && !theory.is_settled(grant, Some(none)));
}

/// The rule matches no number that it can see, but it denies calls with numbers that it cannot see.
#[test]
fn rule_that_matches_nothing_denies_unseen_arguments() {
    let all = "@@ permit(principal, action, resource);";
    let never = "@id(\"y\") @owner(\"o\") @reason(\"r\") forbid(principal, action, resource) \
                 when { context.args.n == 1 && context.args.n == 2 };";
    let (both, subjects) = rules(&format!("{all}\n{never}"));
    let seen = explore(&both, &subjects[0], &LEVELS, &[], 200);
    assert!(seen.of(Level::Deny).is_some());
    assert!(seen.of(Level::Allow).is_some());
    let (less, _) = rules(all);
    let sides = [both, less];
    let policies: Vec<_> = sides.iter().map(|it| it.policies().unwrap()).collect();
    let theory = SolverProblem::new(&policies, &subjects[0])
        .unwrap()
        .unwrap();
    let [before, after] = [0, 1].map(|side| AllowQuery { side, approval: 0 });
    assert!(!theory.is_same() && !theory.is_settled(after, Some(before)));
    assert!(theory.is_settled(before, Some(after)));
}
