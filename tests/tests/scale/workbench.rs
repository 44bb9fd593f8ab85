//! Measures a policy reviewer's commands on the shipped rules and three hundred more, with three
//! hundred tools.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::patience::is_measured;
use tests::solver;

use crate::fixtures::twelve;

const TOOLS: usize = 300;

/// A folder of rules, and the tool lists against which the rules are checked.
struct Bench {
    home: Home,
    froms: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let home = Home::new();
        let (mut rules, mut froms, mut count) = (String::new(), Vec::new(), 0);
        for fixture in twelve() {
            let tools: Vec<Value> = fixture.tools.into_iter().take(TOOLS - count).collect();
            if tools.is_empty() {
                break;
            }
            let name = fixture.name.replace('_', "-");
            for tool in &tools {
                rules.push_str(&rule(count, &name, tool));
                count += 1;
            }
            home.write(&format!("{name}.json"), json!({"tools": tools}).to_string());
            froms.push(format!("{name}={name}.json"));
        }
        assert_eq!(count, TOOLS);
        home.write("none.toml", "");
        home.write("rules/three-hundred.cedar", rules);
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
        for name in ["baseline.cedar", "flow.cedar"] {
            home.write(
                &format!("rules/{name}"),
                std::fs::read(shipped.join(name)).unwrap(),
            );
        }
        Self { home, froms }
    }

    fn run(&self, words: &[&str], froms: &[&str]) -> CommandOutput {
        let froms = froms.iter().flat_map(|it| ["--from", it]);
        // A configuration without labels: the tools are known to be unlabelled.
        let froms = froms.chain(["--labels", "none.toml"]);
        let words: Vec<&str> = words.iter().copied().chain(froms).collect();
        self.home.run(words)
    }
}

/// Returns a rule: a third of the rules permit under a condition that can be true, a third forbid,
/// and a third permit under a condition that is always false.
fn rule(at: usize, server: &str, tool: &Value) -> String {
    let name = tool["name"].as_str().unwrap();
    let condition = condition(at, &tool["inputSchema"]);
    let (effect, more) = match at % 3 {
        0 => (
            "permit",
            format!("context.counts.calls_run < {}", at % 30 + 1),
        ),
        1 => ("forbid", format!("context.counts.calls_run >= {}", at % 30)),
        _ => (
            "permit",
            format!("context.time.hour > 20 && context.time.hour < {}", at % 20),
        ),
    };
    format!(
        "@id(\"bench-{at}\") @owner(\"bench\") @reason(\"to be measured\")\n\
         {effect}(principal, action == Action::\"{server}.{name}\", resource)\n\
         when {{ {condition}{more} }};\n"
    )
}

/// Returns a condition on the first argument that a rule can express.
fn condition(at: usize, schema: &Value) -> String {
    let required = |name: &String| {
        let all = schema["required"].as_array();
        all.is_some_and(|all| all.iter().any(|it| it == name))
    };
    let about = |(name, schema): (&String, &Value)| {
        let value = match schema["type"].as_str()? {
            "integer" => format!("context.args[\"{name}\"] < 10"),
            "boolean" => format!("!context.args[\"{name}\"]"),
            "string" if schema.get("enum").is_none() && schema.get("pattern").is_none() => {
                format!("context.args[\"{name}\"] == \"v{at}\"")
            }
            _ => return None,
        };
        let is_text = ["path", "url", "uri", "host", "file", "dir"];
        let is_raw = is_text.iter().any(|it| name.to_lowercase().contains(it));
        let guard = match required(name) {
            true => String::new(),
            false => format!("context.args has \"{name}\" && "),
        };
        (!is_raw).then(|| format!("{guard}{value} && "))
    };
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .find_map(about)
        .unwrap_or_default()
}

/// `cargo xtask bench workbench` runs this test on a release build and shows the times.
#[test]
fn can_over_three_hundred_tools_is_confirmed_by_explain() {
    let Some(_) = solver::path() else { return };
    let bench = Bench::new();
    let froms: Vec<&str> = bench.froms.iter().map(String::as_str).collect();
    let words = ["policy", "can", "--auto", "--json", "--policy", "rules"];
    let mut walls = Vec::new();
    let mut told = Value::Null;
    for _ in 0..if is_measured() { 5 } else { 1 } {
        let ended = bench.run(&words, &froms).expect_code(0);
        told = ended.json();
        walls.push(ended.wall);
    }
    walls.sort_unstable();
    let wall = walls[walls.len() / 2];
    let tools = told["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &told["trouble"]), (TOOLS, &Value::Null));
    let of = |how: &str| {
        tools
            .iter()
            .filter(|it| it["answers"][0]["how"] == how)
            .count()
    };
    let [can, proved, settled, open] = ["example", "proved", "settled", "open"].map(of);
    let never = proved + settled;
    let opened: Vec<&Value> = tools
        .iter()
        .filter(|it| it["answers"][0]["how"] == "open")
        .collect();
    println!(
        "can --auto: {wall:?} ({can} can, {proved} never by proof, {settled} by the rules' text, \
         {open} open)"
    );
    assert!(
        can >= 50 && never >= 150 && open <= TOOLS / 100,
        "{can} {never} {opened:?}"
    );
    // A debug build confirms a sample of the tools; a measured build confirms all.
    let step = if is_measured() { 1 } else { 10 };
    for tool in tools
        .iter()
        .filter(|it| it["answers"][0]["how"] == "example")
        .step_by(step)
    {
        let call = tool["answers"][0]["call"].to_string();
        let words = ["policy", "explain", &call, "--policy", "rules"];
        // `explain` needs the tool lists of all servers, because the rules name tools of each.
        let explained = bench.run(&words, &froms).expect_code(0).stdout;
        assert!(
            explained.contains("decision: allowed\n"),
            "{call}: {explained}"
        );
    }
    assert!(!is_measured() || wall < Duration::from_secs(5), "{wall:?}");
}
