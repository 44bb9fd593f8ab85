//! Rules that do nothing but deny numbers that 64 bits do not hold are not in the way of anybody.

use std::collections::BTreeSet;

use codegen::description::Description;
use serde_json::json;

use crate::catalog::Effects;
use crate::id::ToolId;
use crate::policy::{Policies, PolicyFile, Vocabulary};

/// Rules of a tool with a required whole number and a required text.
fn policies(rules: &[&str]) -> (String, Policies) {
    let schema = json!({"type": "object", "required": ["count", "k"], "properties": {
        "count": {"type": "integer"}, "k": {"type": "string"},
        "size": {"type": "integer"}, "on": {"type": "boolean"},
    }});
    let listed = json!({"name": "t", "inputSchema": schema});
    let description = Description::parse("x", &listed).unwrap();
    let mut vocabulary = Vocabulary::new();
    let tool = ToolId::parse("x.t").unwrap();
    let shape = codegen::shape::of(&description);
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

/// Kinds of findings about such rules; a `?` behind those without a fix.
fn found(rules: &[&str]) -> Vec<String> {
    let (_, policies) = policies(rules);
    let name = |it: &crate::policy::Finding| {
        let mark = if it.fix.is_some() { "" } else { "?" };
        format!("{}{mark}", it.kind.as_str())
    };
    policies.advice().iter().map(name).collect()
}

fn fixed(rules: &[&str]) -> String {
    let (text, policies) = policies(rules);
    let fix = policies.advice().into_iter().find_map(|it| it.fix);
    fix.unwrap().apply(&text).unwrap()
}

fn check(rules: &[&str], expected: &[&str]) {
    assert_eq!(found(rules), expected, "{rules:?}");
}

const ALL: &str = "permit@";

#[test]
fn a_rule_that_denies_what_it_cannot_read_is_not_called_shadowed() {
    check(
        &[
            ALL,
            "forbid@ when { context.args.k == \"x\" }",
            "forbid@ when { context.args.count > 10 && context.args.k == \"x\" }",
        ],
        &[],
    );
    // Behind something that is read first it says nothing of other calls, and yet of some.
    check(
        &[
            ALL,
            "forbid@ when { context.args.k == \"x\" }",
            "forbid@ when { context.args.k == \"x\" && context.args.count > 10 }",
        ],
        &[],
    );
    // Whatever the one cannot read the other cannot read.
    check(
        &[
            "permit@ when { context.args.count < 20 }",
            "permit@ when { context.args.count < 10 }",
        ],
        &["rule-shadowed"],
    );
    // Numbers that may be missing are asked for before they are read.
    check(
        &[
            ALL,
            "forbid@ when { context.args.k == \"x\" }",
            "forbid@ when { context.args has size && context.args.size > 10 && \
             context.args.k == \"x\" }",
        ],
        &["rule-shadowed"],
    );
}

#[test]
fn a_rule_that_denies_what_it_cannot_read_is_not_to_be_left_out_nor_called_overruled() {
    let dead = "forbid@ when { context.args.count > 10 && context.args.count < 5 }";
    check(&[ALL, dead], &["rule-dead?"]);
    let given = "permit@ when { context.args.count > 10 && context.args.count < 5 }";
    check(&[ALL, given], &["rule-dead?"]);
    // What is too much to be read may permit as well.
    let sum = "permit@ when { context.counts.calls_run + 1 > 3 }";
    check(&[given, sum], &["rule-dead?"]);
    // Nothing else permits anything, or something has the same error.
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
fn a_number_that_may_be_lost_is_not_always_there() {
    check(
        &["permit@ when { context.args has count && context.args.count < 10 }"],
        &[],
    );
    check(
        &["permit@ when { context.args has k && context.args.k == \"x\" }"],
        &["always-true"],
    );
}

/// A star that is escaped is no wildcard, and that something is there is not what it is.
#[test]
fn what_only_looks_like_the_opposite_does_not_exclude() {
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

/// A part that every call meets is left out only where the rule is the same without it.
#[test]
fn what_is_always_there_is_left_out_where_that_changes_nothing() {
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
    // Where 64 bits do not hold the number, it is an error.
    check(
        &["permit@ when { context.args.count == context.args.count }"],
        &[],
    );
}

#[test]
fn a_number_that_is_never_reached_is_not_guessed_at() {
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

/// The fix of a part stands in brackets where a `!` is in front.
#[test]
fn what_is_written_behind_a_not_is_in_brackets() {
    let times = "context.args has size && !(context.args.size * 4000000000000000000 > 3)";
    let fixed = fixed(&[&format!("permit@ when {{ {times} }}")]);
    assert!(fixed.contains("&& !(context.args.size > 0)"), "{fixed}");
}

#[test]
fn what_reads_nothing_and_what_is_beyond_64_bits_is_never_met() {
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

/// A star in a text that is meant for a host would be a pattern that other hosts fit.
#[test]
fn a_star_before_a_host_becomes_the_fact_and_no_pattern() {
    let fixed = fixed(&["permit@ when { context.args.k == \"*.corp.example\" }"]);
    let fact = "context has dest_hosts && [\"corp.example\"].containsAll(context.dest_hosts)";
    assert!(fixed.contains(fact), "{fixed}");
}
