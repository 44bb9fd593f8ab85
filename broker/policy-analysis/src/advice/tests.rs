//! Tests of advice about rules without effect. A rule that denies numbers beyond 64 bits by an
//! error does have an effect, and must not be reported as redundant.

use std::collections::BTreeSet;

use codegen::description::Description;
use serde_json::json;

use airlock_core::catalog::Effects;
use airlock_core::id::ToolId;
use airlock_core::policy::{Policies, PolicyFile, Vocabulary};

/// Returns rules for a tool with a required integer and a required text.
fn policies(rules: &[&str]) -> (String, Policies) {
    let schema = json!({"type": "object", "required": ["count", "k"], "properties": {
        "count": {"type": "integer"}, "k": {"type": "string"},
        "size": {"type": "integer"}, "on": {"type": "boolean"},
    }});
    let listed = json!({"name": "t", "inputSchema": schema});
    let description = Description::parse("x", &listed).unwrap();
    let mut vocabulary = Vocabulary::new();
    let tool = ToolId::parse("x.t").unwrap();
    let shape = codegen::shape::tool_shape(&description);
    vocabulary.add(&tool, Effects::default(), &BTreeSet::new(), &shape);
    let text = rules.iter().enumerate().map(|(at, rule)| {
        let scope = "(principal, action == Action::\"x.t\", resource)";
        let rule = rule.replace('@', scope);
        format!("@id(\"r{at}\") @owner(\"o\") @reason(\"r\") {rule};\n")
    });
    let text: String = text.collect();
    let file = PolicyFile {
        name: "a.cedar".into(),
        text: text.clone(),
        tightens: false,
    };
    let policies = Policies::load(&[file], vocabulary, true).unwrap();
    (text, policies)
}

/// Returns the kinds of findings about such rules, with a `?` after those without a fix.
fn found(rules: &[&str]) -> Vec<String> {
    let (_, policies) = policies(rules);
    let name = |it: &airlock_core::policy::Finding| {
        let mark = if it.fix.is_some() { "" } else { "?" };
        format!("{}{mark}", it.kind.as_str())
    };
    super::advice(&policies).iter().map(name).collect()
}

fn fixed(rules: &[&str]) -> String {
    let (text, policies) = policies(rules);
    let fix = super::advice(&policies).into_iter().find_map(|it| it.fix);
    fix.unwrap().apply(&text).unwrap()
}

fn check(rules: &[&str], expected: &[&str]) {
    assert_eq!(found(rules), expected, "{rules:?}");
}

const ALL: &str = "permit@";

#[test]
fn erring_deny_rule_is_not_shadowed() {
    check(
        &[
            ALL,
            "forbid@ when { context.args.k == \"x\" }",
            "forbid@ when { context.args.count > 10 && context.args.k == \"x\" }",
        ],
        &[],
    );
    // The first test is true for fewer calls, so the number is read on fewer calls, but still on
    // some.
    check(
        &[
            ALL,
            "forbid@ when { context.args.k == \"x\" }",
            "forbid@ when { context.args.k == \"x\" && context.args.count > 10 }",
        ],
        &[],
    );
    // Both rules cause errors on the same calls.
    check(
        &[
            "permit@ when { context.args.count < 20 }",
            "permit@ when { context.args.count < 10 }",
        ],
        &["rule-shadowed"],
    );
    // Only a rule that also reads the optional number denies calls in which it is too large.
    for (other, expected) in [
        ("context.args.k == \"x\"", &[][..]),
        (
            "context.args has size && context.args.k == \"x\"",
            &["rule-shadowed"],
        ),
    ] {
        check(
            &[
                ALL,
                &format!("forbid@ when {{ {other} }}"),
                "forbid@ when { context.args has size && context.args.size > 10 && \
                 context.args.k == \"x\" }",
            ],
            expected,
        );
    }
}

#[test]
fn erring_deny_rule_is_not_overruled() {
    let dead = "forbid@ when { context.args.count > 10 && context.args.count < 5 }";
    check(&[ALL, dead], &["rule-dead?"]);
    let given = "permit@ when { context.args.count > 10 && context.args.count < 5 }";
    check(&[ALL, given], &["rule-dead?"]);
    // A rule that is too large to be analysed may also permit calls.
    let sum = "permit@ when { context.counts.calls_run + 1 > 3 }";
    check(&[given, sum], &["rule-dead?"]);
    // No other rule permits anything, or another rule causes the same error.
    check(&[given], &["rule-dead"]);
    check(
        &[given, &given.replace("> 10", "> 11")],
        &["rule-dead", "rule-dead"],
    );
    let other = "permit@ when { context.args.count == 5 && context.args.k == \"x\" }";
    let dead = "permit@ when { context.args.k == \"a\" && context.args.k == \"b\" && \
                context.args.count == 5 }";
    check(&[other, dead], &["rule-dead?"]);
    let dead = "forbid@ when { context.args.count == 5 && context.args.k == \"x\" && \
                context.args.k == \"y\" }";
    check(
        &[other, dead, "permit@ when { context.args.k == \"z\" }"],
        &["rule-dead"],
    );
    let dead = "forbid@ when { context.args.k == \"a\" && context.args.k == \"b\" }";
    check(&[ALL, dead], &["rule-dead"]);
    check(
        &[
            ALL,
            "permit@ when { context.args.count > 10 && context.args.k == \"x\" }",
            "forbid@ when { context.args.k == \"x\" }",
        ],
        &[],
    );
}

#[test]
fn optional_number_is_not_always_present() {
    check(
        &["permit@ when { context.args has count && context.args.count < 10 }"],
        &[],
    );
    check(
        &["permit@ when { context.args has k && context.args.k == \"x\" }"],
        &["always-true"],
    );
}

/// An escaped star is not a wildcard. The test `has` does not reveal the value.
#[test]
fn apparent_opposite_does_not_exclude() {
    let text = "context.args.k like \"a*\" && !(context.args.k like \"a\\**\")";
    check(&[&format!("permit@ when {{ {text} }}")], &[]);
    check(
        &[
            "forbid@ when { context.args.k like \"a*b\" }",
            "permit@ when { context.args.k like \"a\\*b*\" }",
            "permit@ when { context.args.k like \"a*b*\" }",
        ],
        &[],
    );
    let there = "context.args has on && (context.args has on) == true && !context.args.on";
    check(&[&format!("permit@ when {{ {there} }}")], &[]);
}

/// A part that is true for every call is only removed if this does not change the rule.
#[test]
fn redundant_condition_is_reported_if_removable() {
    let told = |condition: &str, expected: &str| {
        check(&[&format!("permit@ {condition}")], &[expected]);
        check(&[ALL, &format!("forbid@ {condition}")], &[expected]);
    };
    let other = "context.counts.calls_run < 3";
    for whole in [
        "when { context.args has k && OTHER }",
        "when { OTHER && context.args has k }",
        "when { OTHER || !(context.args has k) }",
        "when { OTHER } when { context.args has k }",
        "when { OTHER } unless { !(context.args has k) }",
        "unless { !(context.args has k && OTHER) }",
    ] {
        told(&whole.replace("OTHER", other), "always-true");
    }
    for decides in [
        "when { context.args has k || OTHER }",
        "when { OTHER && !(context.args has k) }",
        "when { OTHER } unless { context.args has k }",
        "when { OTHER } when { !(context.args has k) }",
        "unless { !(context.args has k || OTHER) }",
        "when { OTHER && (context.args has k || context.time.hour < 3) }",
    ] {
        told(&decides.replace("OTHER", other), "always-true?");
    }
    // If the number does not fit into 64 bits, reading it is an error.
    check(
        &["permit@ when { context.args.count == context.args.count }"],
        &[],
    );
}

#[test]
fn unreachable_number_gets_no_guess() {
    for (condition, expected) in [
        ("context.time.weekday == 0", "out-of-range"),
        ("context.time.weekday == 8", "out-of-range?"),
        ("context.time.hour == 24", "out-of-range"),
        ("context.time.hour == 25", "out-of-range?"),
        ("context.time.hour > 23", "out-of-range"),
    ] {
        check(&[&format!("permit@ when {{ {condition} }}")], &[expected]);
    }
}

/// The replacement of a part after a `!` is put in brackets.
#[test]
fn negated_suggestion_is_parenthesised() {
    let times = "context.args has size && !(context.args.size * 4000000000000000000 > 3)";
    let fixed = fixed(&[&format!("permit@ when {{ {times} }}")]);
    assert!(fixed.contains("&& !(context.args.size > 0)"), "{fixed}");
}

#[test]
fn empty_set_and_overflow_are_never_met() {
    for condition in [
        "1 < 0",
        "\"a\" == \"b\"",
        "1 != 1",
        "context.counts.calls_run > 9223372036854775807",
    ] {
        check(
            &[&format!("permit@ when {{ {condition} }}")],
            &["rule-dead"],
        );
    }
    for condition in [
        "1 > 0",
        "\"a\" != \"b\"",
        "context.counts.calls_run > 9223372036854775806",
    ] {
        let other = "context.script_trusted";
        check(
            &[&format!("permit@ when {{ {condition} && {other} }}")],
            &[],
        );
    }
}

/// As a pattern, a star before a host's name would match other hosts too.
#[test]
fn wildcard_host_suggests_fact_instead_of_pattern() {
    let fixed = fixed(&["permit@ when { context.args.k == \"*.corp.example\" }"]);
    let fact = "context has dest_hosts && [\"corp.example\"].containsAll(context.dest_hosts)";
    assert!(fixed.contains(fact), "{fixed}");
}

/// A forbid that matches no call protects nothing, so the advice is not to remove it.
#[test]
fn dead_forbid_names_the_tests_and_is_to_be_corrected() {
    let rule = "forbid@ when { context.args.k == \"x\" && context.args.k == \"y\" }";
    let (_, policies) = policies(&[rule]);
    let finding = &super::advice(&policies)[0];
    assert_eq!(
        finding.why,
        "the tests of `context.args.k` exclude each other"
    );
    assert!(
        finding.next.starts_with("correct the condition"),
        "{finding}"
    );
}
