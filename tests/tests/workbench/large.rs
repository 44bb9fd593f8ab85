//! Tests the shipped rules and 300 more, each for a different tool of real servers: `policy check`
//! finds nothing, each rule decides a case, and both commands are fast.
//!
//! The lists of tools are in the folder that `AIRLOCK_CORPUS` names; without it the test prints one
//! `SKIP:` line. `cargo xtask bench workbench` runs the test on a release build and checks the
//! times against their limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::patience::is_measured;

const TOOLS: usize = 300;

struct Tool {
    server: String,
    name: String,
    /// The name of a required string argument.
    text: Option<String>,
    /// The other required arguments.
    required: Value,
}

/// Returns `TOOLS` tools, in the order of the files, and the files that were written into the home.
fn tools(home: &Home) -> Option<(Vec<Tool>, Vec<String>)> {
    let corpus = std::env::var_os("AIRLOCK_CORPUS")?;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(Path::new(&corpus).join("tools"))
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    let (mut tools, mut sources) = (Vec::new(), Vec::new());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        let listed = list.get("result").unwrap_or(&list)["tools"]
            .as_array()
            .unwrap()
            .clone();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let server = file.split('.').next().unwrap().to_owned();
        let mut kept = listed;
        kept.truncate(TOOLS - tools.len());
        tools.extend(kept.iter().map(|tool| Tool::new(&server, tool)));
        home.write(&file, json!({ "tools": kept }).to_string());
        sources.extend(["--from".to_owned(), file]);
        if tools.len() == TOOLS {
            return Some((tools, sources));
        }
    }
    None
}

impl Tool {
    fn new(server: &str, listed: &Value) -> Self {
        let schema = &listed["inputSchema"];
        let names = schema["required"].as_array().cloned().unwrap_or_default();
        let is_text = |name: &&Value| {
            let property = &schema["properties"][name.as_str().unwrap_or_default()];
            let plain = property.as_object().is_some_and(|it| {
                it.keys()
                    .all(|key| matches!(key.as_str(), "type" | "description" | "title"))
            });
            plain && property["type"] == "string"
        };
        let text = names
            .iter()
            .find(is_text)
            .and_then(Value::as_str)
            .map(str::to_owned);
        Self {
            server: server.to_owned(),
            name: listed["name"].as_str().unwrap().to_owned(),
            text,
            required: json!(names),
        }
    }

    fn id(&self) -> String {
        format!("{}.{}", self.server, self.name)
    }

    /// Returns a rule of one of six kinds, and a case that it decides.
    fn rule(&self, at: usize) -> (String, String) {
        let tool = self.id();
        let only = format!("(principal, action == Action::\"{tool}\", resource)");
        let read = self
            .text
            .as_ref()
            .map(|name| format!("context.args[\"{name}\"]"));
        let is_ours = read
            .as_ref()
            .map(|read| format!(" && {read} == \"ours-{at}\""));
        let is_ours = is_ours.unwrap_or_default();
        let quiet = "writes = { external = false, state = true }, labels = []";
        let (prompt, rule, facts, level) = match at % 6 {
            0 => (
                false,
                format!(
                    "permit{only}\nwhen {{ !context.writes.external && context.counts.calls_run < {} }};",
                    at + 2
                ),
                quiet,
                "allow",
            ),
            1 => (
                false,
                format!(
                    "permit{only}\nwhen {{ !context.writes.external && context.time.hour < 20{is_ours} }};"
                ),
                quiet,
                "allow",
            ),
            2 => (
                true,
                format!(
                    "forbid{only}\nwhen {{ context.labels.contains(\"untrusted\") && !context.disclosed }}\nunless {{ context.approval >= 2 }};"
                ),
                "labels = [\"untrusted\"], dest_explained = true",
                "ask-call",
            ),
            3 => (
                true,
                format!("permit{only}\nwhen {{ context.approval >= 1{is_ours} }};"),
                "labels = [], dest_explained = false",
                "ask",
            ),
            4 => (
                false,
                format!(
                    "forbid{only}\nwhen {{ context.counts.bytes_run > {} }};",
                    1_000 + at
                ),
                "counts = { bytes_run = 5000 }",
                "deny",
            ),
            _ => (
                false,
                format!(
                    "forbid{only}\nwhen {{ context has dest_hosts && context.dest_hosts.contains(\"h{at}.example\") }};"
                ),
                "DESTINATION",
                "deny",
            ),
        };
        let facts = facts.replace("DESTINATION", &format!("dest_hosts = [\"h{at}.example\"]"));
        let prompt = if prompt {
            format!("@prompt(\"May the tool of rule {at} be used?\")\n")
        } else {
            String::new()
        };
        let rule = format!(
            "@id(\"rule-{at}\")\n@owner(\"bench\")\n@reason(\"rule {at} of many\")\n{prompt}{rule}\n\n"
        );
        let args = self
            .text
            .as_ref()
            .map(|name| format!("args = {{ \"{name}\" = \"ours-{at}\" }}\n"));
        let args = args.unwrap_or_default();
        let schema = self.text.as_ref().map(|name| {
            format!("input = {{ type = \"object\", required = [\"{name}\"], properties = {{ \"{name}\" = {{ type = \"string\" }} }} }}\n")
        });
        let schema = schema.unwrap_or_default();
        let case = format!(
            "[tools.\"{tool}\"]\n{schema}\n[[cases]]\nname = \"case {at}\"\ntool = \"{tool}\"\n{args}facts = {{ {facts} }}\nlevel = \"{level}\"\nrules = [\"rule-{at}\"]\n\n"
        );
        (rule, case)
    }
}

/// Fills a home with the shipped folder, and with the rules and the cases of all tools.
fn folder(home: &Home, tools: &[Tool]) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("policies");
    for entry in std::fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        // `policies/tutorial` holds tool lists for the tutorial, and no rules.
        if path.is_dir() {
            continue;
        }
        let name = format!("policies/{}", path.file_name().unwrap().to_string_lossy());
        home.write(&name, std::fs::read(&path).unwrap());
    }
    let both: Vec<_> = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| tool.rule(at))
        .collect();
    let text = |pick: fn(&(String, String)) -> &str| both.iter().map(pick).collect::<String>();
    home.write("policies/many.cedar", text(|both| &both.0));
    home.write("policies/many.cases.toml", text(|both| &both.1));
}

/// Returns the fastest of three runs, because the machine may be busy.
fn timed(home: &Home, args: &[&str], code: i32) -> (CommandOutput, Duration) {
    let runs = (0..3).map(|_| home.run(args).expect_code(code));
    let best = runs.min_by_key(|ended| ended.wall).unwrap();
    let wall = best.wall;
    (best, wall)
}

#[test]
fn three_hundred_rules_are_checked_and_tested_quickly() {
    let home = Home::new();
    let Some((tools, sources)) = tools(&home) else {
        eprintln!("SKIP: AIRLOCK_CORPUS does not name a folder with 300 tools");
        return;
    };
    assert!(tools.iter().all(|tool| tool.required.is_array()));
    folder(&home, &tools);
    let from: Vec<&str> = sources.iter().map(String::as_str).collect();
    let (checked, check) = timed(
        &home,
        &[&["policy", "check", "policies"], from.as_slice()].concat(),
        0,
    );
    assert!(
        checked.stdout.contains("312 rules, nothing found"),
        "{checked}"
    );
    let (tested, test) = timed(&home, &["policy", "test", "policies"], 0);
    assert!(
        tested
            .stdout
            .contains("317 cases, 0 failed; 312 of 312 rules covered"),
        "{tested}"
    );
    let rows = [
        ("check", check, Duration::from_secs(1)),
        ("test", test, Duration::from_secs(2)),
    ];
    println!("| 312 rules, {TOOLS} tools | ms | at most | met |\n| --- | --- | --- | --- |");
    for (name, wall, most) in &rows {
        let met = if wall <= most { "yes" } else { "NO" };
        println!(
            "| {name} | {} | {} | {met} |",
            wall.as_millis(),
            most.as_millis()
        );
    }
    let is_soon = rows.iter().all(|(_, wall, most)| wall <= most);
    assert!(!is_measured() || is_soon, "slower than the limit: {rows:?}");
}
