//! Tests of decisions and their reasons for given rules, grants and a call.

use super::*;
use crate::id::CallId;
use crate::labels::{Field, Labelling};
use crate::testing::{call, catalog_of, decision_context, grants, tool};
use std::num::NonZeroU32;

fn describe(decision: &Decision) -> String {
    match decision {
        Decision::Allow(call) => format!("allow: {}", call.reasons().join("; ")),
        Decision::Ask(pending) => format!("ask: {}", pending.question().reasons.join("; ")),
        Decision::Claim(covered) => format!("claim: grant {}", covered.grant()),
        Decision::Deny(refusal) => format!("{}: {}", refusal.code, refusal.reasons.join("; ")),
    }
}

fn check(rules: &[&str], tool: &str, args: &str, expected: &str) {
    let decision = decide(call(1, tool, args), &decision_context(rules), &mut grants());
    assert_eq!(describe(&decision), expected);
}

#[test]
fn decide_allows_asks_or_denies_with_reasons() {
    check(
        &["allow fs.*"],
        "fs.read",
        "{}",
        "allow: rule --allow 'fs.*'",
    );
    check(
        &["allow fs.*", "ask fs.read"],
        "fs.read",
        "{}",
        "ask: rule --ask 'fs.read'",
    );
    check(
        &["allow *", "deny fs.read"],
        "fs.read",
        "{}",
        "denied: rule --deny 'fs.read'",
    );
    check(
        &[],
        "fs.read",
        "{}",
        "denied: no rule matches, and the default is deny",
    );
    check(
        &["allow *"],
        "fs.absent",
        "{}",
        "not-disclosed: the tool is not known in this run",
    );
}

#[test]
fn invalid_arguments_are_refused_before_rules() {
    check(
        &["ask *"],
        "fs.read",
        r#"{"bad":1}"#,
        "invalid-arguments: `bad` is not expected",
    );
}

/// The tool is denied before its description is required, because reading the description would not
/// help. The answer is the same for every caller.
#[test]
fn denied_tool_answers_denied_before_anything_else() {
    let mut denying = decision_context(&["deny fs.read"]);
    denying.disclosed = DisclosedTools::Only(Arc::default());
    for args in ["{}", r#"{"bad":1}"#] {
        let decision = decide(call(1, "fs.read", args), &denying, &mut grants());
        assert_eq!(describe(&decision), "denied: rule --deny 'fs.read'");
    }
    let other = decide(call(1, "fs.write", "{}"), &denying, &mut grants());
    assert!(describe(&other).starts_with("not-disclosed: "));
}

#[test]
fn argument_outside_schema_is_refused_if_label_names_it() {
    let allowing = decision_context(&["allow *"]);
    let catalog = catalog_of(vec![Tool {
        labelling: Arc::new(Labelling {
            unfit: vec![Field::parse("/path").unwrap()],
            ..Labelling::default()
        }),
        ..tool("fs.read")
    }]);
    let labelled = DecisionContext {
        catalog: Arc::new(catalog),
        ..allowing
    };
    let decided = |args| {
        let decision = decide(call(1, "fs.read", args), &labelled, &mut grants());
        describe(&decision)
    };
    assert_eq!(decided(r#"{"file":"x"}"#), "allow: rule --allow '*'");
    assert_eq!(
        decided(r#"{"file":"x","path":"y"}"#),
        "invalid-arguments: `/path` is not in the tool's input schema, and a label names it"
    );
}

#[test]
fn stale_tool_is_refused_whatever_rules_say() {
    let allowing = decision_context(&["allow *"]);
    for (stale, expected) in [
        (false, "allow: rule --allow '*'"),
        (
            true,
            "description-changed: the server changed this tool's description, and the new one could not be loaded",
        ),
    ] {
        let catalog = allowing
            .catalog
            .with_stale(|tool| stale && *tool.id.tool.0 == *"read");
        let decision_context = DecisionContext {
            catalog: Arc::new(catalog),
            ..allowing.clone()
        };
        let decision = decide(call(1, "fs.read", "{}"), &decision_context, &mut grants());
        assert_eq!(describe(&decision), expected);
    }
}

#[test]
fn denial_names_rule_and_tool_to_script() {
    let decision = decide(
        call(1, "fs.read", "{}"),
        &decision_context(&["deny fs.*"]),
        &mut grants(),
    );
    let Decision::Deny(refusal) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(
        refusal.message,
        "the call to `fs.read` was denied: rule --deny 'fs.*'"
    );
}

fn ask(grants: &mut Grants, id: u32, tool: &str) -> PendingCall {
    match decide(call(id, tool, "{}"), &decision_context(&["ask *"]), grants) {
        Decision::Ask(pending) => pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answer_settles_its_call() {
    let cases = [
        (
            Answer::AllowOnce,
            "allow: rule --ask '*'; answered: allow-once",
        ),
        (Answer::Refuse, "refused: rule --ask '*'; answered: refuse"),
        (
            Answer::Unanswered,
            "unanswered: rule --ask '*'; the question was not answered",
        ),
    ];
    for (answer, expected) in cases {
        let mut grants = grants();
        let pending = ask(&mut grants, 1, "fs.read");
        assert_eq!(describe(&settle(pending, answer, &mut grants)), expected);
        ask(&mut grants, 2, "fs.read");
    }
}

#[test]
fn grant_allows_its_count_for_its_tool_only() {
    let mut grants = grants();
    let pending = ask(&mut grants, 1, "fs.read");
    let answer = Answer::up_to(NonZeroU32::new(2).unwrap());
    assert_eq!(
        describe(&settle(pending, answer, &mut grants)),
        "allow: rule --ask '*'; answered: up to 2 calls of this tool in this run where there are no arguments; grant 1, use 1 of 2"
    );
    ask(&mut grants, 2, "fs.delete");
    let denied = decide(
        call(3, "fs.read", "{}"),
        &decision_context(&["ask *", "deny fs.read"]),
        &mut grants,
    );
    assert!(matches!(denied, Decision::Deny(_)));
    let second = decide(
        call(4, "fs.read", "{}"),
        &decision_context(&["ask *"]),
        &mut grants,
    );
    assert_eq!(
        describe(&second),
        "allow: rule --ask '*'; grant 1, use 2 of 2"
    );
    assert_eq!(ask(&mut grants, 5, "fs.read").question().allowed_so_far, 2);
}

#[test]
fn ask_each_call_ignores_grants_and_creates_none() {
    let mut grants = grants();
    let uses_max = NonZeroU32::new(5).unwrap();
    let asked = ask(&mut grants, 1, "fs.read");
    let _ = settle(asked, Answer::up_to(uses_max), &mut grants);
    let each = decision_context(&["ask *", "ask-call fs.read", "ask-call fs.write"]);
    for (id, tool) in [(2, "fs.read"), (3, "fs.write")] {
        let Decision::Ask(pending) = decide(call(id, tool, "{}"), &each, &mut grants) else {
            panic!("{tool}");
        };
        let Decision::Ask(pending) = reconsider(pending, &mut grants) else {
            panic!("{tool}");
        };
        assert_eq!(
            describe(&settle(pending, Answer::up_to(uses_max), &mut grants)),
            format!(
                "allow: rule --ask-call '{tool}'; answered: allow-once only; a grant cannot cover it"
            )
        );
    }
    ask(&mut grants, 4, "fs.write");
}

#[test]
fn shown_digest_binds_call_tool_and_arguments() {
    let shown = |id: u32, tool: &str, args: &str| match decide(
        call(id, tool, args),
        &decision_context(&["ask *"]),
        &mut grants(),
    ) {
        Decision::Ask(pending) => pending.question().shown_digest(),
        other => panic!("{other:?}"),
    };
    let first = shown(1, "fs.read", r#"{"a":1}"#);
    assert_eq!(first, shown(1, "fs.read", r#"{ "a": 1.0 }"#));
    for other in [
        shown(2, "fs.read", r#"{"a":1}"#),
        shown(1, "fs.delete", r#"{"a":1}"#),
        shown(1, "fs.read", r#"{"a":2}"#),
    ] {
        assert_ne!(first, other);
    }
    assert_eq!(CallId(1), ask(&mut grants(), 1, "fs.read").question().call);
}

#[test]
fn uncheckable_tool_is_refused_whatever_rules_say() {
    let mut tool = crate::testing::tool("fs.read");
    tool.args_check = crate::testing::unusable();
    let decision_context = DecisionContext {
        catalog: Arc::new(crate::testing::catalog_of(vec![tool])),
        rules: Arc::new(crate::testing::rules(&["allow *"])),
        disclosed: crate::session::DisclosedTools::All,
        no_extractor: None,
    };
    let decision = decide(call(1, "fs.read", "{}"), &decision_context, &mut grants());
    assert_eq!(describe(&decision), "tool-unusable: the schema is invalid");
}

#[test]
fn argument_text_in_findings_is_bounded() {
    let mut long = crate::testing::tool("fs.read");
    long.args_check = crate::catalog::ValueCheck::new(|_| vec!["x".repeat(100_000); 20]);
    let decision_context = DecisionContext {
        catalog: Arc::new(crate::testing::catalog_of(vec![long])),
        rules: Arc::new(crate::testing::rules(&["allow *"])),
        disclosed: crate::session::DisclosedTools::All,
        no_extractor: None,
    };
    let decision = decide(call(1, "fs.read", "{}"), &decision_context, &mut grants());
    let Decision::Deny(refusal) = decision else {
        panic!()
    };
    assert!(refusal.message.len() < 10_000, "{}", refusal.message.len());
}
