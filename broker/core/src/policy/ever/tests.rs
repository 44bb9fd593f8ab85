//! What is found without a solver, and which questions are the same.

use std::sync::Arc;

use codegen::description::Description;

use super::*;
use crate::catalog::Effects;
use crate::flow::Labelling;
use crate::policy::{PolicyFile, Vocabulary};

fn rules(text: &str) -> (Rules, Vec<Subject>) {
    let schema = json!({"type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer"}, "mode": {"enum": ["a", "b"]}}});
    let mut vocabulary = Vocabulary::new();
    let subjects = ["s.one", "s.two"].map(|name| {
        let tool = ToolId::parse(name).unwrap();
        let listed = json!({"name": &*tool.tool.0, "inputSchema": schema});
        let description = Description::parse("s", &listed).unwrap();
        let shape = codegen::shape::of(&description);
        vocabulary.add(&tool, Effects::default(), &[].into(), &shape);
        Subject::new(
            tool,
            Labelling::default(),
            &schema,
            &Surroundings::default(),
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
fn the_edges_of_a_rule_are_found_by_trying() {
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
fn tools_of_which_the_same_is_asked_have_one_key() {
    let key = |text: &str, at: usize| {
        let (rules, subjects) = rules(text);
        let policies = rules.policies().unwrap();
        Theory::of(&[policies], &subjects[at])
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
fn a_rule_that_may_err_is_taken_apart() {
    let text = "@@ permit(principal, action, resource) \
                when { context.disclosed && context.args.n == 1 };";
    let (rules, subjects) = rules(text);
    let policies = rules.policies().unwrap();
    let theory = Theory::of(&[policies], &subjects[0]).unwrap().unwrap();
    let texts: Vec<String> = theory
        .policies(Lets {
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
fn what_permits_nothing_by_its_text_is_no_question() {
    let text = "@prompt(\"?\") @@ permit(principal, action, resource) \
                when { context.args.n == 1 && context.approval >= 1 };";
    let (rules, subjects) = rules(text);
    let theory = Theory::of(&[rules.policies().unwrap()], &subjects[0]);
    let theory = theory.unwrap().unwrap();
    let [none, grant] = [0, 1].map(|approval| Lets { side: 0, approval });
    assert!(theory.is_settled(none, None) && !theory.is_settled(grant, None));
    // Neither does one side let through what it does not.
    assert!(theory.is_settled(grant, Some(grant)) && !theory.is_settled(grant, Some(none)));
}
