//! Rules that do nothing but deny numbers that 64 bits do not hold are not in the way of anybody.

use std::collections::BTreeSet;

use codegen::description::Description;
use codegen::shape::ToolShape;
use serde_json::json;

use crate::catalog::Effects;
use crate::id::ToolId;
use crate::policy::{Policies, PolicyFile, Vocabulary};

/// Kinds of findings about rules of a tool with a required whole number and a required text.
fn found(rules: &[&str]) -> Vec<String> {
    let schema = json!({"type": "object", "required": ["count", "k"], "properties": {
        "count": {"type": "integer"}, "k": {"type": "string"},
        "size": {"type": "integer"},
    }});
    let listed = json!({"name": "t", "inputSchema": schema});
    let description = Description::parse("x", &listed).unwrap();
    let mut vocabulary = Vocabulary::new();
    let tool = ToolId::parse("x.t").unwrap();
    let shape = ToolShape::of(&description);
    vocabulary.add(&tool, Effects::default(), &BTreeSet::new(), &shape);
    let text = rules.iter().enumerate().map(|(at, rule)| {
        let scope = "(principal, action == Action::\"x.t\", resource)";
        let rule = rule.replace('@', scope);
        format!("@id(\"r{at}\") @owner(\"o\") @reason(\"r\") {rule};\n")
    });
    let file = PolicyFile {
        name: "a.cedar".into(),
        text: text.collect(),
        tightens: false,
    };
    let policies = Policies::load(&[file], vocabulary, true).unwrap();
    let name = |kind: &crate::policy::Kind| kind.as_str().to_owned();
    policies.advice().iter().map(|it| name(&it.kind)).collect()
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
fn a_rule_that_denies_what_it_cannot_read_is_not_called_dead_or_overruled() {
    let dead = "forbid@ when { context.args.count > 10 && context.args.count < 5 }";
    check(&[ALL, dead], &[]);
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
