//! Tests saved tool lists, tool files and observed types.

use serde_json::{Value, json};
use tests::binary::workspace;
use tests::command::Home;

fn ours() -> String {
    workspace().join("tool_descriptions").display().to_string()
}

fn saved(home: &Home, name: &str, list: &Value) -> String {
    home.write(name, list.to_string()).display().to_string()
}

fn list() -> Value {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string", "not": {"const": "x"}}}, "required": ["q"]});
    json!({"tools": [{"name": "find", "description": "Finds.", "inputSchema": schema}, {"name": 3}]})
}

#[test]
fn saved_list_renders_without_server() {
    let home = Home::new();
    let reply = json!({"jsonrpc": "2.0", "id": 1, "result": list()});
    for (name, list) in [("shop.json", list()), ("shop.reply.json", reply)] {
        let file = saved(&home, name, &list);
        let ended = home.run(["types", "--from", &file]).expect_code(0);
        assert!(ended.stdout.contains("declare const shop"), "{ended}");
        assert!(ended.stderr.contains("is not offered"), "{ended}");
        assert!(
            ended.stderr.contains("degraded: shop.find args.q"),
            "{ended}"
        );
        assert_eq!(home.run(["types", "--from", &file]).stdout, ended.stdout);
    }
    let file = format!("store={}", saved(&home, "2.json", &list()));
    let ended = home
        .run(["types", "--from", &file, "--format", "json"])
        .expect_code(0);
    assert_eq!(
        ended.json()["store.find"]["input"]["properties"][0]["name"],
        "q"
    );
    let ended = home
        .run(["types", "--from", &file, "--format", "rust"])
        .expect_code(0);
    assert!(
        ended.stdout.contains("pub q: ::std::string::String"),
        "{ended}"
    );
}

#[test]
fn invalid_saved_list_is_named_with_next_step() {
    let home = Home::new();
    home.write("no.json", "{\"tool\": []}");
    home.write("deep.json", "[".repeat(1_000));
    home.write("9.json", "{\"tools\": []}");
    for (args, part) in [
        (&["--from", "none.json"][..], "No such file"),
        (&["--from", "no.json"], "expected {\"tools\": […]}"),
        (&["--from", "deep.json"], "nested deeper"),
        (&["--from", "9.json"], "NAME=FILE"),
        (&["--from", "no.json", "--demo"], "connects to no server"),
        (
            &["--demo", "--format", "rust", "--detail", "names"],
            "--detail",
        ),
    ] {
        let args = [&["types"], args].concat();
        let ended = home.run(args).expect_code(2).expect_stderr(part);
        assert!(ended.stderr.contains("code: usage"), "{ended}");
    }
}

#[test]
fn demo_tool_files_fit_and_are_shown() {
    let home = Home::new();
    let ended = home
        .run(["descriptions", "check", &ours(), "--demo", "--json"])
        .expect_code(0);
    let found = ended.json();
    assert_eq!(
        (&found["files"], &found["errors"], &found["warnings"]),
        (&json!(10), &json!([]), &json!([]))
    );
    let shown = home
        .run(["types", "--demo", "--descriptions", &ours()])
        .expect_code(0);
    for part in [
        "Example (The latest errors)",
        "Fails with",
        "At most 60 calls per minute",
        "See also logs_query",
    ] {
        assert!(shown.stdout.contains(part), "no `{part}` in\n{shown}");
    }
    let plain = home.run(["types", "--demo"]).expect_code(0);
    assert!(!plain.stdout.contains("Example"), "{plain}");
}

#[test]
fn demo_tool_files_are_up_to_date() {
    let home = Home::new();
    let copies = home.path().join("ours/demo");
    std::fs::create_dir_all(&copies).unwrap();
    for file in std::fs::read_dir(workspace().join("tool_descriptions/demo")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copies.join(file.file_name())).unwrap();
    }
    let pulled = home
        .run(["descriptions", "pull", "--demo", "--to", "ours"])
        .expect_code(0);
    let is_as_before = |line: &str| line.starts_with("unchanged");
    assert!(pulled.stdout.lines().all(is_as_before), "{pulled}");
}

#[test]
fn pull_writes_valid_files_and_keeps_edits() {
    let home = Home::new();
    let pull = |more: &[&str], code| {
        let args = [
            &["descriptions", "pull", "--demo", "--to", "said", "--json"],
            more,
        ]
        .concat();
        let found = home.run(args).expect_code(code).json();
        let files = found["files"].as_array().unwrap().clone();
        files
            .iter()
            .map(|it| it["done"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(pull(&["demo"], 0), vec!["new"; 10]);
    let path = home.path().join("said/demo/tickets_list.json");
    let first = std::fs::read_to_string(&path).unwrap();
    assert_eq!(pull(&[], 0), vec!["unchanged"; 10]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    home.run(["descriptions", "check", "said", "--demo"])
        .expect_code(0);

    // The server's description has changed, and the tool file about it was edited.
    let mut file: Value = serde_json::from_str(&first).unwrap();
    file["upstream"] = format!("sha256:{}", "0".repeat(64)).into();
    file["description"] = "Our words.".into();
    std::fs::write(&path, file.to_string()).unwrap();
    assert!(pull(&[], 30).contains(&"edited".to_owned()));
    home.run(["descriptions", "check", "said", "--demo"])
        .expect_code(0)
        .expect_stderr("has changed since");
    assert!(pull(&["--accept"], 0).contains(&"accepted".to_owned()));
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("Our words.")
    );
    home.run(["descriptions", "pull", "demmo", "--demo"])
        .expect_code(2)
        .expect_stderr("did you mean `demo`?");
}

#[test]
fn invalid_tool_file_stops_command_with_line_and_suggestion() {
    let home = Home::new();
    home.write(
        "said/demo/logs_query.json",
        "{\n  \"name\": \"logs_query\",\n  \"exmaples\": []\n}",
    );
    let run = ["run", "-e", "return 1", "--demo", "--descriptions", "said"];
    for args in [
        &run[..],
        &["types", "--demo", "--descriptions", "said"],
        &["descriptions", "check", "said"],
    ] {
        let ended = home
            .run(args)
            .expect_code(30)
            .expect_stderr("logs_query.json:3");
        assert!(
            ended.stderr.contains("`examples`") && ended.stderr.contains("code: config-invalid"),
            "{ended}"
        );
    }
    home.write("said/demo/logs_query.json", json!({"name": "logs_query", "examples": [{"input": {"levle": "error"}}], "arguments": {"limti": {}}}).to_string());
    home.write(
        "said/demo/logs_qeury.json",
        json!({"name": "logs_qeury"}).to_string(),
    );
    let ended = home
        .run(["descriptions", "check", "said", "--demo"])
        .expect_code(30);
    for part in [
        "levle",
        "Did you mean `limit`?",
        "did you mean `logs_query`?",
    ] {
        assert!(ended.stderr.contains(part), "no `{part}` in\n{ended}");
    }
    home.run(["descriptions", "check", "nowhere"])
        .expect_code(30)
        .expect_stderr("cannot be read");
}

#[test]
fn tool_files_of_other_documents_load_as_they_are_written() {
    let home = Home::new();
    let schema = json!({
        "type": "object",
        "properties": {
            "level": {"type": "string", "description": "How bad it is."},
            "limit": {"type": "integer", "default": 50},
        },
        "required": [],
    });
    let extension = json!({
        "name": "logs_query",
        "description": "Retrieves log entries.",
        "inputSchema": schema,
        "examples": [{"description": "Errors", "input": {"level": "error"}, "explanation": "Two fields"}],
        "usage_guidance": {"common_patterns": ["Start with errors."], "important_notes": []},
        "error_guidance": {"common_errors": [{"error": "NO_LOGS", "cause": "none", "solution": "Wait"}]},
    });
    let metadata = json!({
        "name": "tickets_create",
        "description": "Files a ticket.",
        "parameters": [
            {"name": "title", "type": "string", "description": "One line.", "required": true,
             "default": null, "constraints": {}, "examples": ["checkout: timeouts"]},
        ],
        "category": "tickets", "version": "2.1.0", "rate_limit": "100/minute",
        "deprecated": true, "deprecation_message": null, "examples": [],
        "related_tools": ["tickets_list"], "tags": ["write"],
    });
    home.write("flat/logs_query.json", extension.to_string());
    home.write("flat/tickets_create.json", metadata.to_string());
    let checked = home
        .run(["descriptions", "check", "flat", "--demo"])
        .expect_code(0);
    assert_eq!(
        checked.stdout, "2 files, 0 errors, 0 warnings\n",
        "{checked}"
    );
    let shown = home
        .run(["types", "--demo", "--descriptions", "flat"])
        .expect_code(0);
    for part in [
        "Retrieves log entries.",
        "How bad it is.",
        "Example (Errors)",
        "Start with errors.",
        "Fails with NO_LOGS",
        "One line.",
        "At most 100 calls per minute",
        "See also tickets_list",
        "eprecated",
    ] {
        assert!(shown.stdout.contains(part), "no `{part}` in\n{shown}");
    }

    let two = [
        "descriptions",
        "check",
        "flat",
        "--demo",
        "--server",
        "b=none",
    ];
    home.run([&two[..], &["--skip-unreachable"]].concat())
        .expect_code(30)
        .expect_stderr("the file may be for any of the servers b, demo")
        .expect_stderr("move the file to SERVER/TOOL.json");
    home.write(
        "flat/logs_query.json",
        "{\"name\": \"logs_query\",\n\"inputSchema\": {\"properties\": {\n\"levle\": {}}}}",
    );
    home.run(["descriptions", "check", "flat", "--demo"])
        .expect_code(30)
        .expect_stderr("logs_query.json:3")
        .expect_stderr("Did you mean `level`?");
}

#[test]
fn observe_derives_result_types_without_values() {
    let home = Home::new();
    let code = "await demo.flaky_report({period: 'day'}); await demo.logs_query({limit: 3}); return (await demo.logs_chart({service: 'payments'})).length";
    crate::demo(&home, code, &[]).expect_code(0);
    let args = ["descriptions", "observe", "--all", "--demo", "--json"];
    let found = home.run(args).expect_code(0).json();
    assert_eq!(
        found["demo.logs_chart"]["outputSchema"]["type"], "array",
        "{found:#}"
    );
    assert_eq!(
        found["demo.logs_chart"]["observed"],
        json!({"results": 1, "runs": 1})
    );
    // This tool declares a result type.
    assert!(found.get("demo.logs_query").is_none(), "{found:#}");
    assert!(!found.to_string().contains("payments"), "{found:#}");

    home.run([&args[..4], &["--to", "said"]].concat())
        .expect_code(0);
    home.run(["descriptions", "check", "said", "--demo"])
        .expect_code(0);
    let shown = home
        .run([
            "types",
            "demo.logs_chart",
            "--demo",
            "--descriptions",
            "said",
        ])
        .expect_code(0);
    assert!(
        shown.stdout.contains("observed, not declared")
            && shown.stdout.contains("mimeType?: string"),
        "{shown}"
    );
    home.run(["descriptions", "observe"])
        .expect_code(2)
        .expect_stderr("--all");
    home.run(["descriptions", "observe", "zzz"])
        .expect_code(2)
        .expect_stderr("no such run");
}
