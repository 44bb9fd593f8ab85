//! Tests `airlock policy explain`. For each kind of decision, compares the output with a golden
//! file in `explain/` and with the journal. With `AIRLOCK_BLESS=1` the goldens are rewritten
//! instead.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};
use tests::serving::ServeProcess;

use super::lock::SERVER;

/// Rules for one tool each: allowed, asked, forbidden, and in error. No rule names the other tools.
const RULES: &str = r#"
@id("lists") @owner("desk") @reason("a list has no secrets")
permit(principal, action == Action::"demo.tickets_list", resource);
@id("creates") @owner("desk") @reason("a person confirms each ticket")
@prompt("Create this ticket?")
permit(principal, action == Action::"demo.tickets_create", resource)
when { context.approval >= 1 };
@id("no-clock") @owner("desk") @reason("scripts do not need the time")
forbid(principal, action == Action::"demo.get-time", resource);
@id("too-much") @owner("desk") @reason("the sum overflows")
forbid(principal, action == Action::"demo.logs_services", resource)
when { context.counts.calls_run + 9223372036854775807 + 1 > 0 };
@id("services") @owner("desk") @reason("scripts list services")
permit(principal, action == Action::"demo.logs_services", resource);
"#;

fn home() -> Home {
    let home = Home::new();
    home.write("rules/a.cedar", RULES);
    home
}

/// Returns the output of `explain` for a call in the latest journal, with run-specific values
/// replaced.
fn explained(home: &Home, call: u32) -> String {
    let journal = home.journals().pop().unwrap();
    let run = journal.file_stem().unwrap().to_string_lossy().into_owned();
    let ended = home
        .run(["policy", "explain", &format!("{run}:{call}")])
        .expect_code(0);
    let shown = home
        .run(["runs", "show", &run, "--json"])
        .expect_code(0)
        .json();
    let decided = shown["calls"].as_array().unwrap();
    let decided = decided.iter().find(|it| it["id"] == call).unwrap();
    for reason in decided["reasons"].as_array().unwrap() {
        let line = format!("     why: {}\n", reason.as_str().unwrap());
        assert!(ended.stdout.contains(&line), "{line}{ended}");
    }
    let text = ended.stdout.replace(&run, "RUN");
    let is_time = |line: &&str| line.contains("fact: time ");
    text.split_inclusive('\n')
        .filter(|line| !is_time(line))
        .collect()
}

fn check(name: &str, found: &str) {
    let golden: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/explain")
        .join(format!("{name}.txt"));
    if std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1") {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, found).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(
        found, expected,
        "{name} differs; AIRLOCK_BLESS=1 rewrites the file"
    );
}

fn run(home: &Home, code: &str, more: &[&str]) -> CommandOutput {
    let args = ["run", "--demo", "--policy", "rules", "-e", code];
    home.run([&args, more].concat())
}

/// Returns an approver that gives this answer, as JSON without its nonce.
fn answering(home: &Home, answer: &str) -> String {
    let script =
        format!("sed 's/.*\"nonce\":\"\\([^\"]*\\)\".*/{{\"nonce\":\"\\1\",{answer}}}/'\n");
    home.write("answer.sh", script);
    "command:sh answer.sh".to_owned()
}

#[test]
fn explain_shows_rule_decisions() {
    for (name, code) in [
        ("allowed", "return (await demo.tickets_list({})).length"),
        ("denied-by-rule", "await demo.get_time({})"),
        ("denied-by-default", "await demo.logs_count({})"),
        ("denied-by-error", "await demo.logs_services({})"),
        ("invalid-arguments", "await demo['tickets_' + 'create']({})"),
    ] {
        let home = home();
        run(&home, code, &["--no-ask"]);
        check(name, &explained(&home, 1));
    }
}

#[test]
fn explain_shows_question_and_answer() {
    let create = "await demo.tickets_create({title: 'a'})";
    for (name, answer) in [
        ("asked-and-allowed", "\"answer\":\"allow-once\""),
        ("asked-and-refused", "\"answer\":\"refuse\""),
    ] {
        let home = home();
        let approver = answering(&home, answer);
        run(&home, create, &["--approver", &approver]);
        check(name, &explained(&home, 1));
    }
    let home = home();
    run(&home, create, &["--approver", "never"]);
    check("asked-and-nobody-there", &explained(&home, 1));
}

#[test]
fn explain_shows_grant_use() {
    let home = home();
    let approver = answering(&home, "\"answer\":\"allow\",\"uses_max\":3");
    let code = "for (const n of [1, 2]) await demo.tickets_create({title: 'a'})";
    run(&home, code, &["--approver", &approver]).expect_code(0);
    check("granted", &explained(&home, 2));
}

#[test]
fn explain_shows_undisclosed_tool() {
    let serve = ["--demo", "--disclosure", "progressive", "--policy", "rules"];
    let serving = ServeProcess::start_in(home(), serve);
    let session = serving.session(&json!({}));
    let _ = session.run(2, "await demo['tickets_' + 'list']({})");
    check("not-disclosed", &explained(&serving.home, 1));
}

#[test]
fn explain_shows_changed_description() {
    let home = Home::new();
    home.write("server.sh", SERVER);
    let tool = |text: &str| {
        json!([{"name": "find", "description": text, "inputSchema": {"type": "object"}}])
            .to_string()
    };
    home.write("tools.json", tool("Finds."));
    let server = ["--server", "shop=sh server.sh"];
    home.run([&["lock"], &server[..]].concat()).expect_code(0);
    home.write("tools.json", tool("Finds everything."));
    let code = "await shop['fi' + 'nd']({})";
    let args = ["run", "--lock", "airlock.lock", "--allow", "*", "-e", code];
    home.run([&args, &server[..]].concat());
    check("description-changed", &explained(&home, 1));
}

#[test]
fn explain_decides_hypothetical_call_like_a_run() {
    let home = home();
    home.run(["lock", "--demo"]).expect_code(0);
    let explain = |call: &Value| {
        let call = call.to_string();
        let args = [
            "policy",
            "explain",
            &call,
            "--policy",
            "rules",
            "--lock",
            "airlock.lock",
        ];
        home.run(args).expect_code(0).stdout
    };
    let call =
        json!({"tool": "demo.tickets_create", "args": {"title": "a"}, "facts": {"labels": []}});
    check("imagined-and-asked", &explain(&call));
    let short = json!({"tool": "demo.tickets_create"});
    check("imagined-and-wrong", &explain(&short));
    run(&home, "await demo.get_time({})", &["--no-ask"]);
    let recorded = explained(&home, 1);
    let imagined = explain(&json!({"tool": "demo.get-time"}));
    let said = |text: &str| -> Vec<String> {
        let is_said = |line: &&str| line.contains("why: ") || line.contains("decision: ");
        text.lines().filter(is_said).map(str::to_owned).collect()
    };
    assert_eq!(said(&recorded), said(&imagined));
}

/// The arguments do not matter: the tool answers `denied` to every call.
#[test]
fn explain_names_rule_that_always_denies_tool() {
    let home = home();
    home.write("airlock.toml", "[rules]\ndeny = [\"demo.tickets_*\"]\n");
    let call = json!({"tool": "demo.tickets_create"}).to_string();
    let args = ["policy", "explain", &call, "--policy", "rules", "--demo"];
    let args = [&args[..], &["--config", "airlock.toml"]].concat();
    let explained = home.run(args).expect_code(0);
    for part in ["decision: denied\n", "why: rule deny 'demo.tickets_*' ("] {
        assert!(explained.stdout.contains(part), "{part}\n{explained}");
    }
}

#[test]
fn explain_error_suggests_next_step() {
    let home = home();
    run(&home, "return 1", &["--no-ask"]).expect_code(0);
    let journal = home.journals().pop().unwrap();
    let run = journal.file_stem().unwrap().to_string_lossy().into_owned();
    for (call, expected) in [
        (format!("{run}:7"), "has no call 7"),
        (format!("{run}:x"), "`x` is not the number of a call"),
        (run, "neither RUN:CALL nor a call in JSON"),
        ("zzz:1".into(), "there is no such run"),
        (
            "{\"tool\": \"demo.tickets_lst\"}".into(),
            "did you mean `demo.tickets_list`?",
        ),
        ("{\"tol\": \"x\"}".into(), "unknown field `tol`"),
        (
            "{\"tool\": \"demo.tickets_list\", \"facts\": {\"lables\": []}}".into(),
            "did you mean `labels`?",
        ),
        (
            "{\"tool\": \"demo.tickets_list\", \"facts\": {\"time\": {\"hour\": 24}}}".into(),
            "`time.hour` is from 0 to 23",
        ),
        (
            "{\"tool\": \"demo.tickets_list\", \"facts\": {\"dest_hosts\": []}}".into(),
            "`dest_hosts` is never empty",
        ),
    ] {
        let args = ["policy", "explain", &call, "--demo", "--policy", "rules"];
        let ended = home.run(args).expect_code(2);
        assert!(ended.stderr.contains(expected), "{expected}\n{ended}");
    }
}

#[test]
fn explain_covers_own_tools() {
    let home = home();
    home.write("airlock.toml", "[extract]\ncommand = \"reader\"\n");
    let explain = |call: Value| {
        let call = call.to_string();
        let args = ["policy", "explain", &call, "--demo", "--policy", "rules"];
        home.run([&args[..], &["--config", "airlock.toml"]].concat())
            .expect_code(0)
            .stdout
    };
    let found = explain(json!({"tool": "airlock.search", "args": {"query": "ticket"}}));
    assert!(found.contains("allowed"), "{found}");
    let value = json!({"value": "Ada, 36", "schema": {"type": "object"}});
    let found = explain(json!({"tool": "airlock.extract", "args": value}));
    assert!(found.contains("decision: denied\n"), "{found}");
}
