//! Tests the Inspector's command line. Each use is a separate host. Only in the newer era, where it
//! gets a handle, are disclosed tools still known at the next use.
//!
//! The Inspector 2.12.0 creates its client with `elicit`, `sample` and `progress` off, and has no
//! flag to turn them on. So airlock cannot send it questions, and the configured approver answers
//! instead. The Inspector shows no progress, even if `--metadata progressToken=…` makes airlock
//! send progress. It cancels a call by ending.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::binary::airlock;
use tests::command::{Home, PATIENT, start};
use tests::patience::wait_until;
use tests::real_hosts::{RealHosts, installed};
use tests::serving::ServeProcess;

use super::{args, endings};

const LIST: &str = "return (await demo.tickets_list({})).tickets.length > 0";
const ASK: &str = "return await demo.tickets_create({title: 'nobody can be asked'})";

const WAIT: &str = "return await test.wait({})";

/// Runs the Inspector once on a server, and returns its output as JSON.
fn inspect(hosts: &RealHosts, home: &Home, era: &str, server: &[String], more: &[&str]) -> Value {
    let mut command = inspector(hosts, home, era, server, more);
    start(&mut command, "").wait().json()
}

fn inspector(
    hosts: &RealHosts,
    home: &Home,
    era: &str,
    server: &[String],
    more: &[&str],
) -> Command {
    let mut command = hosts.npm_program("mcp-inspector");
    home.dress(&mut command);
    command.args(["--cli", "--format", "json", "--quiet"]);
    command.args(["--protocol-era", era]).args(more);
    command.arg("--").args(server);
    command
}

fn call(
    hosts: &RealHosts,
    home: &Home,
    era: &str,
    server: &[String],
    call: (&str, Value),
) -> Value {
    let (tool, args) = (call.0, call.1.to_string());
    let more = ["--method", "tools/call", "--tool-name", tool];
    let more: Vec<_> = more
        .into_iter()
        .chain(["--tool-args-json", &args])
        .collect();
    inspect(hosts, home, era, server, &more)["result"].clone()
}

/// Makes the checks for both transports: search, describe, run, and a question that cannot be
/// answered.
fn check(hosts: &RealHosts, home: &Home, server: &[String], lasts: bool) {
    for era in ["legacy", "modern"] {
        let listed = inspect(hosts, home, era, server, &["--method", "tools/list"]);
        assert!(listed.to_string().contains("run_script"), "{era}: {listed}");
        let call = |it| call(hosts, home, era, server, it);
        let found = call(("search_tools", json!({"query": "list tickets"})));
        assert!(found.to_string().contains("demo.tickets_list"), "{found}");
        if era == "legacy" {
            let early = call(("run_script", json!({"code": LIST})));
            assert!(
                early.to_string().contains("TOOL_DESCRIPTION_REQUIRED"),
                "{early}"
            );
        }
        let tools = json!({"tools": ["demo.tickets_list", "demo.tickets_create"]});
        let read = call(("get_tool_details", tools));
        assert!(read.to_string().contains("tickets_list(a?"), "{read}");
        // Each command has its own session, and all commands are the same client.
        let ran = call(("run_script", json!({"code": LIST})));
        assert_eq!(ran["structuredContent"]["value"], true, "{ran}");
        let handle = read["_meta"].get("dev.airlock/session");
        assert_eq!(handle.is_some(), lasts && era == "modern", "{read}");
        let Some(handle) = handle else { continue };
        let ran = call(("run_script", json!({"code": LIST, "session": handle})));
        assert_eq!(ran["structuredContent"]["value"], true, "{ran}");
        let asked = call(("run_script", json!({"code": ASK, "session": handle})));
        assert_eq!(asked["structuredContent"]["code"], "unanswered", "{asked}");
    }
}

/// Returns the arguments with which the Inspector starts airlock.
fn child() -> Vec<String> {
    let mut server = vec![airlock().display().to_string()];
    server.extend(["serve", "--quiet"].map(str::to_owned));
    server.extend(PATIENT.map(str::to_owned));
    server.extend(args());
    server
}

/// Returns the same arguments, but with full disclosure of descriptions.
fn told_at_once(args: Vec<String>) -> Vec<String> {
    let full = |it: String| match it.as_str() {
        "progressive" => "full".to_owned(),
        _ => it,
    };
    let whole = ["--description-chars".to_owned(), "1000000".to_owned()];
    args.into_iter().map(full).chain(whole).collect()
}

#[test]
fn inspector_searches_reads_and_runs_over_http() {
    let Some(hosts) = installed() else { return };
    let serving = ServeProcess::start(args());
    check(hosts, &serving.home, &[serving.url()], true);
}

#[test]
fn inspector_searches_and_reads_over_stdio() {
    let Some(hosts) = installed() else { return };
    let home = Home::new();
    let server = child();
    check(hosts, &home, &server, false);
    // With full disclosure, one process is enough.
    let whole = told_at_once(server);
    let ran = call(
        hosts,
        &home,
        "modern",
        &whole,
        ("run_script", json!({"code": LIST})),
    );
    assert_eq!(ran["structuredContent"]["value"], true, "{ran}");
}

/// Returns a configuration file with an approver that approves each call individually.
fn agreeing(home: &Home) -> PathBuf {
    let yes = r#"sed -n 's/.*"nonce":"\([^"]*\)".*/{"nonce":"\1","answer":"allow-once"}/p'"#;
    let program = home.write("yes.sh", format!("{yes}\n"));
    let line = format!(
        "approver = {}\n",
        json!(format!("command:sh {}", program.display()))
    );
    home.write("airlock.toml", line)
}

#[test]
fn inspector_call_is_approved_by_approver() {
    let Some(hosts) = installed() else { return };
    for era in ["legacy", "modern"] {
        let home = Home::new();
        let config = agreeing(&home).display().to_string();
        let mut server = told_at_once(child());
        server.extend(["--config".to_owned(), config]);
        let script = ("run_script", json!({"code": ASK}));
        let approved = call(hosts, &home, era, &server, script);
        let report = &approved["structuredContent"];
        assert_eq!(report["status"], "done", "{era}: {approved}");
        let made = &report["calls"][0];
        assert_eq!(made["tool"], "demo.tickets_create", "{approved}");
        assert_eq!(made["outcome"], "returned", "{approved}");
    }
}

/// Ends the Inspector while a call of its run waits. The journal must record that the run was
/// cancelled.
fn cancels(hosts: &RealHosts, home: &Home, era: &str, server: &[String]) {
    let script = json!({"code": WAIT}).to_string();
    let more = ["--method", "tools/call", "--tool-name", "run_script"];
    let more: Vec<_> = more
        .into_iter()
        .chain(["--tool-args-json", &script])
        .collect();
    let mut command = inspector(hosts, home, era, server, &more);
    let running = start(&mut command, "");
    let text = |journal: &PathBuf| std::fs::read_to_string(journal).unwrap_or_default();
    let decided = |journal: &PathBuf| text(journal).contains("\"decided\"");
    wait_until(|| home.journals().iter().any(decided));
    running.signal(Signal::INT);
    wait_until(|| endings(home).iter().all(|it| !it.is_empty()));
    assert_eq!(endings(home), ["cancelled"], "{era}");
    home.verify_all();
    // The Inspector's own exit code does not matter.
    let _ = running.wait();
}

#[test]
fn inspector_exit_cancels_run() {
    let Some(hosts) = installed() else { return };
    for era in ["legacy", "modern"] {
        cancels(hosts, &Home::new(), era, &told_at_once(child()));
    }
    // Over HTTP, closing the connection cancels in the newer era, but not in the older one.
    let serving = ServeProcess::start(told_at_once(args()));
    cancels(hosts, &serving.home, "modern", &[serving.url()]);
}
