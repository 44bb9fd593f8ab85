//! Rules, grants and one call in; what is decided, and why, out.

use super::*;
use crate::id::CallId;
use crate::testing::{call, grants, standing};
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
    let decision = decide(call(1, tool, args), &standing(rules), &mut grants());
    assert_eq!(describe(&decision), expected);
}

#[test]
fn a_call_is_allowed_asked_about_or_denied_with_its_reasons() {
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
fn arguments_that_do_not_fit_are_refused_before_any_rule_is_consulted() {
    check(
        &["deny *"],
        "fs.read",
        r#"{"bad":1}"#,
        "invalid-arguments: `bad` is not expected",
    );
}

#[test]
fn a_tool_of_which_its_server_says_something_else_is_not_called_whatever_the_rules_say() {
    let allowing = standing(&["allow *"]);
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
        let standing = Standing {
            catalog: Arc::new(catalog),
            ..allowing.clone()
        };
        let decision = decide(call(1, "fs.read", "{}"), &standing, &mut grants());
        assert_eq!(describe(&decision), expected);
    }
}

#[test]
fn a_denial_names_the_rule_and_the_tool_to_the_script() {
    let decision = decide(
        call(1, "fs.read", "{}"),
        &standing(&["deny fs.*"]),
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

fn ask(grants: &mut Grants, id: u32, tool: &str) -> Pending {
    match decide(call(id, tool, "{}"), &standing(&["ask *"]), grants) {
        Decision::Ask(pending) => pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_settles_the_call_that_was_asked_about() {
    let cases = [
        (
            Answer::AllowOnce,
            "allow: rule --ask '*'; answered: this call",
        ),
        (Answer::Refuse, "refused: rule --ask '*'; answered: refused"),
        (
            Answer::Unanswered,
            "unanswered: rule --ask '*'; no answer came",
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
fn a_grant_allows_its_number_of_calls_of_its_tool_and_no_denied_one() {
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
        &standing(&["ask *", "deny fs.read"]),
        &mut grants,
    );
    assert!(matches!(denied, Decision::Deny(_)));
    let second = decide(call(4, "fs.read", "{}"), &standing(&["ask *"]), &mut grants);
    assert_eq!(
        describe(&second),
        "allow: rule --ask '*'; grant 1, use 2 of 2"
    );
    assert_eq!(ask(&mut grants, 5, "fs.read").question().allowed_so_far, 2);
}

#[test]
fn what_asks_for_each_call_is_lifted_by_no_grant_and_makes_none() {
    let mut grants = grants();
    let uses_max = NonZeroU32::new(5).unwrap();
    let asked = ask(&mut grants, 1, "fs.read");
    let _ = settle(asked, Answer::up_to(uses_max), &mut grants);
    let each = standing(&["ask *", "ask-call fs.read", "ask-call fs.write"]);
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
                "allow: rule --ask-call '{tool}'; answered: this call and no other: a grant covers none of them"
            )
        );
    }
    ask(&mut grants, 4, "fs.write");
}

#[test]
fn what_was_shown_is_bound_to_the_call_its_tool_and_its_arguments() {
    let shown = |id: u32, tool: &str, args: &str| match decide(
        call(id, tool, args),
        &standing(&["ask *"]),
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
fn a_tool_whose_arguments_nobody_can_check_is_not_called_whatever_the_rules_say() {
    let mut tool = crate::testing::tool("fs.read");
    tool.input = crate::testing::unusable();
    let standing = Standing {
        catalog: Arc::new(crate::testing::catalog_of(vec![tool])),
        rules: Arc::new(crate::testing::rules(&["allow *"])),
        disclosed: crate::session::Disclosed::All,
    };
    let decision = decide(call(1, "fs.read", "{}"), &standing, &mut grants());
    assert_eq!(
        describe(&decision),
        "tool-unusable: its schema makes no sense"
    );
}

#[test]
fn what_a_finding_repeats_of_the_arguments_is_bounded() {
    let mut long = crate::testing::tool("fs.read");
    long.input = crate::catalog::Check::new(|_| vec!["x".repeat(100_000); 20]);
    let standing = Standing {
        catalog: Arc::new(crate::testing::catalog_of(vec![long])),
        rules: Arc::new(crate::testing::rules(&["allow *"])),
        disclosed: crate::session::Disclosed::All,
    };
    let decision = decide(call(1, "fs.read", "{}"), &standing, &mut grants());
    let Decision::Deny(refusal) = decision else {
        panic!()
    };
    assert!(refusal.message.len() < 10_000, "{}", refusal.message.len());
}
