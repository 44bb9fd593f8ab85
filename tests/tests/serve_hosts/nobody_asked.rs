//! Tests hosts that cannot show a question: what their user and their model are told, and where an
//! answer is awaited. In both eras over both transports.

use serde_json::{Value, json};
use tests::any_host::{AnyHost, CELLS, Cell, text};
use tests::approval_page;
use tests::changing::ChangingServer;
use tests::command::{Home, PATIENT};
use tests::patience::in_one_of_three;
use tests::stdio_host::StdioHost;

const ASKED: &str = "return await notes.write({})";

fn notes() -> ChangingServer {
    let tool = json!({"name": "write", "inputSchema": {"type": "object"}});
    ChangingServer::new("notes", &[tool])
}

fn host(cell: Cell, server: &ChangingServer, can: Value) -> AnyHost {
    let flag = server.flag();
    let args = ["--server", &flag, "--ask", "notes.*"];
    AnyHost::start(cell, Home::new(), &args, "a test", can)
}

#[test]
fn host_that_cannot_ask_learns_what_to_change() {
    for cell in CELLS {
        let server = notes();
        let mut host = host(cell, &server, json!({}));
        let instructions = host.greeting["instructions"].as_str().unwrap().to_owned();
        for part in [
            "cannot show questions",
            "approver = \"web\"",
            "approver = \"later\"",
            "airlock runs answer RUN:CALL allow",
            "--grant",
            "--allow",
        ] {
            assert!(
                instructions.contains(part),
                "{cell}: {part} in {instructions}"
            );
        }
        for code in [ASKED, "return await notes.write({}).catch((e) => e.code)"] {
            let refused = host.run(code);
            let report = &refused["structuredContent"];
            let note = report["approval"].as_str().unwrap();
            for part in [
                "cannot show questions",
                "approver = \"web\"",
                "approver = \"later\"",
                "airlock runs answer RUN:CALL allow",
                "--grant",
                "--allow 'notes.write'",
            ] {
                assert!(note.contains(part), "{cell}: {part} in {note}");
            }
            assert!(text(&refused).contains(note), "{cell}: {refused}");
            assert!(report["grants_needed"].is_array(), "{cell}: {refused}");
        }
        assert_eq!(server.noted("call write"), 0);
    }
    for cell in CELLS {
        let can = json!({"elicitation": {}});
        let server = notes();
        let host = host(cell, &server, can);
        let instructions = host.greeting["instructions"].as_str().unwrap();
        assert!(
            !instructions.contains("cannot show"),
            "{cell}: {instructions}"
        );
    }
}

#[test]
fn paused_run_says_where_answer_is_awaited_and_comes_in_time() {
    for cell in CELLS {
        let home = Home::new();
        home.write("airlock.toml", "approver = \"web\"\n");
        let browser = approval_page::browser(&home).display().to_string();
        let server = notes();
        // This client is known to give up after five seconds.
        let flag = server.flag();
        let config = home.path().join("airlock.toml").display().to_string();
        let args = ["--server", &flag, "--ask", "notes.*", "--config", &config];
        let env = [("BROWSER", browser.as_str())];
        let mut host = AnyHost::start_with(cell, home, &args, &env, "mcp", json!({}));
        let begun = std::time::Instant::now();
        let paused = host.run(ASKED);
        assert!(
            begun.elapsed().as_secs() < 5,
            "{cell}: {:?}",
            begun.elapsed()
        );
        let report = &paused["structuredContent"];
        assert_eq!(report["status"], "paused", "{cell}: {paused}");
        let shown = text(&paused);
        for part in [
            report["why"].as_str().unwrap(),
            report["next"].as_str().unwrap(),
        ] {
            assert!(shown.contains(part), "{cell}: {part} in {shown}");
        }
        assert!(
            shown.contains("opened in the browser on this machine"),
            "{cell}: {shown}"
        );
        // The page's address gives access, so it is not for the model.
        assert!(
            !paused.to_string().contains("127.0.0.1"),
            "{cell}: {paused}"
        );
        let page = approval_page::opened(host.home().path());
        assert!(page.contains("url=http://127.0.0.1:"), "{cell}: {page}");
        assert!(page.contains("&amp;once="), "{cell}: {page}");
        let resumed = host.call("resume_run", json!({"run": report["run"]}));
        assert_eq!(
            resumed["structuredContent"]["status"], "paused",
            "{cell}: {resumed}"
        );
    }
}

#[test]
fn pause_follows_the_flag() {
    for cell in CELLS {
        let home = Home::new();
        home.write("airlock.toml", "approver = \"web\"\n");
        let config = home.path().join("airlock.toml").display().to_string();
        let server = notes();
        let flag = server.flag();
        let args = [
            "--server",
            &flag,
            "--ask",
            "notes.*",
            "--config",
            &config,
            "--pause-after",
            "50ms",
        ];
        let mut host = AnyHost::start(cell, home, &args, "a test", json!({}));
        let paused = host.run(ASKED);
        assert_eq!(
            paused["structuredContent"]["status"], "paused",
            "{cell}: {paused}"
        );
        assert!(
            text(&paused).contains("link is at the user's terminal"),
            "{cell}: {paused}"
        );
    }
}

/// Starts `airlock serve` for a host of the older era that says it can show questions, runs a script
/// that needs an answer, and declines the question at once. Returns the host and the result.
fn declined(
    home: &Home,
    server: &ChangingServer,
    config: &str,
    action: &str,
) -> (StdioHost, Value) {
    let mut host = asking(home, server, config);
    let report = answered(&mut host, json!({"action": action}));
    (host, report)
}

/// Starts `airlock serve` for a host of the older era that says it can show questions.
fn asking(home: &Home, server: &ChangingServer, config: &str) -> StdioHost {
    let config = home.write("airlock.toml", config);
    let flag = server.flag();
    let mut command = home.airlock(["serve", "--server", &flag, "--ask", "notes.*"]);
    command
        .args(["--pause-after", "100ms", "--config"])
        .arg(config)
        .args(PATIENT)
        .env("BROWSER", approval_page::browser(home));
    StdioHost::start(&mut command, &json!({"elicitation": {}}))
}

/// Runs a script that needs an answer, gives this answer at once, and returns the result.
fn answered(host: &mut StdioHost, answer: Value) -> Value {
    let params = json!({"name": "run_script", "arguments": {"code": ASKED}});
    let running = host.ask("tools/call", &params);
    let asked = host.wait_for(|it| it["method"] == "elicitation/create");
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    let answer = host.wait_for(|it| it["id"] == running && it["method"].is_null());
    answer["result"]["structuredContent"].clone()
}

#[test]
fn host_that_asked_its_user_gets_no_grants_to_fill_in() {
    let (home, server) = (Home::new(), notes());
    let mut host = asking(&home, &server, "");
    let unclear = json!({"action": "accept", "content": {"decision": "perhaps"}});
    let report = answered(&mut host, unclear);
    assert_eq!(report["code"], "unanswered", "{report}");
    assert!(report.get("grants_needed").is_none(), "{report}");
}

#[test]
fn quick_refusal_is_the_persons_after_a_person_answered() {
    let (home, server) = (Home::new(), notes());
    let mut host = asking(&home, &server, "approver = \"web\"\n");
    let allow = json!({"action": "accept", "content": {"decision": "allow"}});
    let report = answered(&mut host, allow);
    assert_eq!(report["status"], "done", "{report}");
    let report = answered(&mut host, json!({"action": "decline"}));
    assert_eq!(report["code"], "refused", "{report}");
    assert_eq!(server.noted("call write"), 1);
}

#[test]
fn host_that_declines_at_once_is_not_asked_if_answers_come_later() {
    in_one_of_three(|| {
        let (home, server) = (Home::new(), notes());
        let later = "approver = \"later\"\n";
        let (mut host, report) = declined(&home, &server, later, "decline");
        assert_eq!(report["status"], "paused", "{report}");
        let params = json!({"name": "run_script", "arguments": {"code": ASKED}});
        let running = host.ask("tools/call", &params);
        let next = host.wait_for(|it| it["method"] == "elicitation/create" || it["id"] == running);
        let report = &next["result"]["structuredContent"];
        assert_eq!(report["status"], "paused", "{next}");
    });
}

#[test]
fn question_that_host_declines_at_once_goes_to_the_approver() {
    for action in ["cancel", "decline"] {
        in_one_of_three(|| {
            let (home, server) = (Home::new(), notes());
            let web = "approver = \"web\"\n";
            let (mut host, report) = declined(&home, &server, web, action);
            assert_eq!(report["status"], "paused", "{action}: {report}");
            approval_page::allow_once(home.path());
            let resumed = host.call("resume_run", &json!({"run": report["run"]}));
            let report = &resumed["structuredContent"];
            assert_eq!(report["status"], "done", "{action}: {resumed}");
            assert_eq!(server.noted("call write"), 1, "{action}");
        });
    }
}

#[test]
fn host_that_declines_at_once_learns_what_to_change() {
    for action in ["cancel", "decline"] {
        in_one_of_three(|| {
            let (home, server) = (Home::new(), notes());
            let (_, report) = declined(&home, &server, "", action);
            assert_eq!(report["code"], "unanswered", "{action}: {report}");
            let note = report["approval"].as_str().unwrap_or_default();
            assert!(
                note.contains("declined within a second"),
                "{action}: {report}"
            );
            assert!(note.contains("restart airlock"), "{action}: {report}");
            assert_eq!(server.noted("call write"), 0, "{action}");
        });
    }
}

#[test]
fn unusable_answer_is_named_and_allows_nothing() {
    let (home, server) = (Home::new(), notes());
    let mut host = asking(&home, &server, "");
    let expected = "expected `allow`, `allow-tool`, `allow-session` or `refuse`";
    let accept = |content: Value| json!({"action": "accept", "content": content});
    for (answer, parts) in [
        (accept(json!({})), ["has nothing as `decision`", expected]),
        (
            accept(json!({"decision": "yes"})),
            ["has \"yes\" as `decision`", expected],
        ),
        (
            accept(json!({"decision": "allow-tool", "uses": 0})),
            ["has 0 as `uses`", "a whole number from 1 to 1000"],
        ),
        (
            json!({"action": "cancel"}),
            [
                "the user closed the question",
                "`notes.write` was not approved",
            ],
        ),
    ] {
        let report = answered(&mut host, answer.clone());
        assert_eq!(report["code"], "unanswered", "{answer}: {report}");
        let note = report["approval"].as_str().unwrap_or_default();
        for part in parts {
            assert!(note.contains(part), "{answer}: {part} in {report}");
        }
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains("the answer cannot be used"), "{report}");
    }
    assert_eq!(server.noted("call write"), 0);
}

#[test]
fn form_names_the_call_of_the_run_and_what_answers_cover() {
    let (home, server) = (Home::new(), notes());
    let mut host = asking(&home, &server, "");
    let params = json!({"name": "run_script", "arguments": {"code": ASKED}});
    let running = host.ask("tools/call", &params);
    let asked = host.wait_for(|it| it["method"] == "elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    let first = "Allow `notes.write`? (call 1 of this run, line 1 of the script)";
    assert_eq!(message.lines().next(), Some(first), "{message}");
    assert!(!message.contains("knows"), "{message}");
    let form = asked["params"]["requestedSchema"].to_string();
    for part in ["only from this exact script", "how many calls in all"] {
        assert!(form.contains(part), "{part}: {form}");
    }
    let answer = json!({"action": "decline"});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    host.wait_for(|it| it["id"] == running && it["method"].is_null());
}

#[test]
fn dropped_write_is_an_error_and_dropped_read_is_not() {
    let tool = |name: &str, read_only: bool| {
        json!({
            "name": name, "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": read_only},
        })
    };
    for cell in CELLS {
        let server = ChangingServer::new("notes", &[tool("write", false), tool("read", true)]);
        let flag = server.flag();
        let args = ["--server", &flag, "--allow", "notes.*"];
        let mut host = AnyHost::start(cell, Home::new(), &args, "a test", json!({}));
        for (code, is_error) in [
            ("notes.write({}); return 'done'", true),
            ("notes.read({}); return 'done'", false),
            ("await notes.write({}); return 'done'", false),
        ] {
            let result = host.run(code);
            assert_eq!(result["isError"], is_error, "{cell}: {code}: {result}");
            assert_eq!(result["structuredContent"]["status"], "done", "{result}");
        }
    }
}

#[test]
fn extraction_is_neither_offered_nor_asked_about_without_a_model() {
    let (home, server) = (Home::new(), notes());
    let mut host = asking(&home, &server, "");
    let listing = host.ask("tools/list", &json!({}));
    let listed = host.wait_for(|it| it["id"] == listing && it["method"].is_null());
    let tools = listed["result"]["tools"].as_array().unwrap();
    let run = tools.iter().find(|it| it["name"] == "run_script").unwrap();
    let about = run["description"].as_str().unwrap();
    assert!(!about.contains("turn text into JSON"), "{about}");
    let code = "return await airlock.extract({value: 'a', schema: {type: 'object'}})";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let running = host.ask("tools/call", &params);
    let next = host.wait_for(|it| it["method"] == "elicitation/create" || it["id"] == running);
    let report = &next["result"]["structuredContent"];
    assert_eq!(report["code"], "extract-failed", "{next}");
    assert_eq!(
        report["next"], "return the text instead, and read it yourself",
        "{next}"
    );
}
