//! Tests `airlock policy init`: what it writes passes `policy check` and `policy test`.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};

const FLAGS: [&str; 4] = [
    "--config",
    "policies/airlock.toml",
    "--lock",
    "airlock.lock",
];

fn check_and_test(home: &Home) -> (CommandOutput, CommandOutput) {
    let run = |command: &str| home.run([&["policy", command, "policies"][..], &FLAGS].concat());
    (run("check"), run("test"))
}

/// Writes a first policy for these tools, which must pass.
fn passes(tools: &Value) -> Home {
    let home = Home::new();
    home.write("server.sh", crate::lock::SERVER);
    home.write("tools.json", tools.to_string());
    home.run(["lock", "--server", "shop=sh server.sh"])
        .expect_code(0);
    home.run(["policy", "init", "--lock", "airlock.lock"])
        .expect_code(0);
    let (checked, tested) = check_and_test(&home);
    checked.expect_code(0).expect_stdout("nothing found");
    tested.expect_code(0).expect_stdout("0 failed");
    home
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join("policies").join(name)).unwrap()
}

#[test]
fn first_policy_permits_reads_and_asks_about_everything_else() {
    let text = json!({"type": "string"});
    let schema =
        |name: &str| json!({"type": "object", "properties": {name: text}, "required": [name]});
    let reads = json!({"readOnlyHint": true, "openWorldHint": false});
    let home = passes(&json!([
        {"name": "find", "annotations": reads, "inputSchema": schema("words")},
        {"name": "fetch", "annotations": {"readOnlyHint": true}, "inputSchema": schema("url")},
        {"name": "send", "inputSchema": schema("to")},
        {"name": "wipe", "annotations": {"destructiveHint": true}, "inputSchema": schema("path")},
    ]));
    let explain = |tool: &str, args: Value| {
        let facts = json!({"labels": [], "dest_explained": true});
        let call = json!({"tool": format!("shop.{tool}"), "args": args, "facts": facts});
        let call = call.to_string();
        let args = ["policy", "explain", &call, "--policy", "policies"];
        home.run([&args[..], &FLAGS].concat()).expect_code(0).stdout
    };
    let reads = json!({"tool": "shop.find", "args": {"words": "x"}, "facts":
        {"labels": ["private"], "writes": {"external": false, "state": false}}});
    let reads = reads.to_string();
    let found = [
        &["policy", "explain", &reads, "--policy", "policies"][..],
        &FLAGS,
    ]
    .concat();
    home.run(found)
        .expect_code(0)
        .expect_stdout("decision: allowed");
    for tool in [("fetch", "url"), ("send", "to")] {
        let shown = explain(tool.0, json!({tool.1: "https://example.com/"}));
        assert!(
            shown.contains("a grant for the run is enough"),
            "{tool:?}: {shown}"
        );
    }
    let shown = explain("wipe", json!({"path": "a"}));
    let is_asked = shown.contains("decision: a person is asked");
    assert!(
        is_asked && !shown.contains("a grant for the run is enough"),
        "{shown}"
    );
    let config = read(&home, "airlock.toml");
    for part in [
        "\"shop.find\"",
        "destinations = [\"/to\"]   # GUESS",
        "paths = [\"/path\"]",
    ] {
        assert!(config.contains(part), "{part}\n{config}");
    }
    assert!(!config.contains("\"shop.fetch\""), "{config}");
}

#[test]
fn first_policy_passes_for_tools_of_one_kind() {
    let plain = json!({"type": "object"});
    let reads = json!({"readOnlyHint": true});
    let destroys = json!({"destructiveHint": true});
    passes(&json!([{"name": "a", "annotations": reads, "inputSchema": plain}]));
    passes(&json!([{"name": "a", "annotations": destroys, "inputSchema": plain}]));
    passes(&json!([{"name": "a", "inputSchema": plain}]));
    passes(&json!([
        {"name": "a", "annotations": reads, "inputSchema": plain},
        {"name": "b", "annotations": destroys, "inputSchema": plain},
    ]));
}

#[test]
fn first_policy_passes_for_the_demo_server() {
    let home = Home::new();
    home.run(["lock", "--demo"]).expect_code(0);
    home.run(["policy", "init", "--lock", "airlock.lock"])
        .expect_code(0);
    let (checked, tested) = check_and_test(&home);
    checked.expect_code(0).expect_stdout("marks `# GUESS`");
    tested.expect_code(0);
    let again = home.run(["policy", "init", "--lock", "airlock.lock"]);
    again.expect_code(2).expect_stderr("name another folder");
}

#[test]
fn tool_is_not_described_in_a_case_file_and_a_lock_file() {
    let home = Home::new();
    home.run(["lock", "--demo"]).expect_code(0);
    home.run(["policy", "init", "--lock", "airlock.lock"])
        .expect_code(0);
    let cases = read(&home, "rules.cases.toml");
    let table = format!("[tools.\"demo.logs_query\"]\nread_only = true\n\n{cases}");
    home.write("policies/rules.cases.toml", table);
    let (_, tested) = check_and_test(&home);
    tested
        .expect_code(32)
        .expect_stderr("describe this tool already; remove the table");
}

#[test]
fn unlabelled_tool_and_unmatched_labels_are_findings() {
    let home = Home::new();
    home.run(["lock", "--demo"]).expect_code(0);
    home.run(["policy", "init", "--lock", "airlock.lock"])
        .expect_code(0);
    let labels = "policies = [\".\"]\n[groups]\nreads = [\"demo.logs_*\"]\ndestroys = [\"demo.tickets_delete\"]\n\
                  [labels.demo.tools.\"logs_*\"]\nwrites = []\n\
                  [labels.demo.tools.\"tickets_*\"]\nreads = [\"private\"]\n\
                  [labels.demo.tools.shrug]\nwrites = []\n";
    home.write("policies/airlock.toml", labels);
    let args = [&["policy", "check", "policies", "--json"][..], &FLAGS].concat();
    let checked = home.run(args).expect_code(32).json();
    let findings = checked["findings"].as_array().unwrap();
    let of = |code: &str| -> Vec<&str> {
        let own = findings.iter().filter(|it| it["code"] == code);
        own.map(|it| it["what"].as_str().unwrap()).collect()
    };
    let missing = of("label-missing");
    assert!(
        missing.contains(&"no label describes `demo.slow_echo`"),
        "{checked:#}"
    );
    assert!(
        !missing.iter().any(|it| it.contains("logs_")),
        "{checked:#}"
    );
    assert_eq!(of("label-unmatched").len(), 1, "{checked:#}");
}
