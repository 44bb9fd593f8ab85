//! Measures the time of one decision, from raw arguments to the level. The cases are 10, 100 and
//! 1,000 rules for 7 tools, rules that only Cedar can evaluate, and rules that only name other
//! tools. Prints one JSON object of medians in microseconds; `cargo xtask bench policy` runs it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a bench reads the clock and prints, which the core must not do"
)]

use std::collections::BTreeSet;
use std::time::Instant;

use airlock_core::call::Args;
use airlock_core::catalog::Effects;
use airlock_core::facts::Facts;
use airlock_core::id::ToolId;
use airlock_core::limits::Limits;
use airlock_core::policy::{Policies, PolicyFile, Vocabulary};
use codegen::description::Description;
use serde_json::{Map, Value, json};

const TOOLS: usize = 7;
const DECISIONS: usize = 2_000;
/// Arguments of about 200 bytes; the rules read two of the fields.
const ARGS: &str = r#"{"project":"OPS","title":"connection reset by peer","labels":["bug","p1"],"count":3,"body":"The reply was cut off after 412 bytes, twice within a minute, on both replicas of billing."}"#;

fn main() {
    let mut medians = Map::new();
    for rules in [10, 100, 1_000] {
        medians.insert(rules.to_string(), median_us(&spread(rules)).into());
    }
    let by_cedar = spread(1_000).replace("context.args.project == ", "context.args.project like ");
    medians.insert("1000 by Cedar".to_owned(), median_us(&by_cedar).into());
    medians.insert("own".to_owned(), median_us(&own()).into());
    let others = own() + &about_others(1_000);
    medians.insert("own, 1000 for others".to_owned(), median_us(&others).into());
    println!("{}", Value::Object(medians));
}

fn median_us(rules: &str) -> f64 {
    let file = PolicyFile {
        name: "bench.cedar".into(),
        text: rules.to_owned(),
        tightens: false,
    };
    let Ok(policies) = Policies::load(&[file], vocabulary(), true) else {
        return f64::NAN;
    };
    let (limits, facts) = (Limits::default(), Facts::default());
    let Ok(tool) = ToolId::parse("desk.tool0") else {
        return f64::NAN;
    };
    let mut samples: Vec<f64> = (0..DECISIONS)
        .map(|_| {
            let start = Instant::now();
            let judged = Args::parse(ARGS.as_bytes(), &limits)
                .map(|args| policies.judge(&tool, &args, &facts));
            std::hint::black_box(&judged);
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

fn vocabulary() -> Vocabulary {
    let schema = json!({"type": "object", "properties": {
        "project": {"type": "string"}, "title": {"type": "string"}, "count": {"type": "integer"},
        "body": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}},
    }, "required": ["project"]});
    let mut vocabulary = Vocabulary::new();
    for number in 0..TOOLS {
        let name = format!("tool{number}");
        let listed = json!({"name": name, "inputSchema": schema});
        let description = Description::parse("desk", &listed).ok();
        let tool = ToolId::parse(&format!("desk.{name}")).ok();
        if let (Some(description), Some(tool)) = (description, tool) {
            let shape = codegen::shape::tool_shape(&description);
            vocabulary.add(&tool, Effects::default(), &BTreeSet::new(), &shape);
        }
    }
    vocabulary
}

fn rule(id: &str, body: &str) -> String {
    format!("@id(\"{id}\") @owner(\"o\") @reason(\"r\") {body}\n")
}

/// Returns `count` rules: some apply to all tools, most to single tools, and one rule asks for
/// approval because of labels.
fn spread(count: usize) -> String {
    let flow = "@prompt(\"?\") forbid(principal, action, resource) when { context.writes.external && \
                context.labels.contains(\"untrusted\") } unless { context.approval >= 1 };";
    let mut text = rule("flow", flow);
    for number in 1..count {
        text.push_str(&about(number, number % TOOLS));
    }
    text
}

fn own() -> String {
    (0..5)
        .map(|number| rule(&format!("own{number}"), &permit(0, number)))
        .collect()
}

fn about_others(count: usize) -> String {
    (0..count)
        .map(|number| about(number, 1 + number % (TOOLS - 1)))
        .collect()
}

fn about(number: usize, tool: usize) -> String {
    rule(&format!("rule{number}"), &permit(tool, number))
}

fn permit(tool: usize, number: usize) -> String {
    format!(
        "permit(principal, action == Action::\"desk.tool{tool}\", resource) when {{ \
         context.args.project == \"P{number}\" || context.counts.calls_run < {number} }};"
    )
}
