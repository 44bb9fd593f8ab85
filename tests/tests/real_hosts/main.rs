//! `airlock serve` under hosts that nobody here wrote, and under the protocol's
//! own conformance suite.

mod conformance;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tests::binary::{airlock, workspace};
use tests::command::{Home, start};
use tests::real_hosts::installed;

const SERVE: [&str; 8] = [
    "serve",
    "--demo",
    "--disclosure",
    "progressive",
    "--allow",
    "demo.*_list",
    "--ask",
    "demo.tickets_create",
];

fn script(name: &str) -> PathBuf {
    workspace().join("tests/tests/real_hosts").join(name)
}

/// Runs a host to its end; `airlock` is its child, in the same home.
fn host(home: &Home, mut command: Command) -> Value {
    home.dress(&mut command);
    command.arg(airlock()).args(SERVE);
    command.args(["--state-dir".into(), home.path().join("state")]);
    start(&mut command, "").wait().expect_code(0).json()
}

fn check(seen: &Value) {
    let own = json!([
        "search_tools",
        "get_tool_details",
        "run_script",
        "resume_run"
    ]);
    assert_eq!(seen["listed"], own, "{seen}");
    let found = seen["found"].as_array().unwrap();
    assert!(found.contains(&json!("demo.tickets_list")), "{seen}");
    assert!(
        seen["early"]
            .as_str()
            .unwrap()
            .contains("TOOL_DESCRIPTION_REQUIRED"),
        "{seen}"
    );
    assert_eq!(seen["status"], "done", "{seen}");
    assert!(
        seen["progress"]
            .to_string()
            .contains("demo.tickets_list: returned"),
        "{seen}"
    );
    assert!(
        seen["asked"]
            .as_str()
            .unwrap()
            .contains("demo.tickets_create"),
        "{seen}"
    );
    assert_eq!(seen["approved"], "done", "{seen}");
    assert!(
        seen["unselected"]
            .as_str()
            .unwrap()
            .contains("MISSING_TOOL_SELECTION"),
        "{seen}"
    );
    assert_eq!(
        (&seen["cancelled"], &seen["after"]),
        (&json!(true), &json!(2)),
        "{seen}"
    );
}

#[test]
fn the_python_sdk_searches_reads_runs_approves_and_cancels() {
    let Some(hosts) = installed() else { return };
    let home = Home::new();
    check(&host(&home, hosts.python(&script("host.py"))));
}

#[test]
fn the_typescript_sdk_searches_reads_runs_approves_and_cancels() {
    let Some(hosts) = installed() else { return };
    let home = Home::new();
    // A module finds its packages from where it stands.
    let copy = hosts.npm.join("host.mjs");
    std::fs::copy(script("host.mjs"), &copy).unwrap();
    check(&host(&home, hosts.node(&copy)));
}

#[test]
fn the_inspector_lists_and_calls_over_http() {
    let Some(hosts) = installed() else { return };
    let serving = Serving::start();
    let inspect = |more: &[&str]| {
        let mut command = hosts.npm_program("mcp-inspector");
        serving.home.dress(&mut command);
        command.args(["--cli", &serving.url, "--transport", "http"]);
        start(command.args(more), "").wait().expect_code(0).stdout
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert!(listed.contains("run_script"), "{listed}");
    let called = inspect(&[
        "--method",
        "tools/call",
        "--tool-name",
        "run_script",
        "--tool-arg",
        "code=return 6 * 7",
    ]);
    assert!(called.contains("42"), "{called}");
}

/// `airlock serve --http` on a port of its own, stopped at the end of the test.
struct Serving {
    child: Child,
    url: String,
    home: Home,
}

impl Serving {
    fn start() -> Self {
        let home = Home::new();
        let mut command = home.airlock(SERVE.iter().chain(&["--http", "127.0.0.1:0"]));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let place = stderr.lines().map_while(Result::ok);
        let line = place.into_iter().find(|line| line.contains("http://"));
        let line = line.expect("where it serves");
        let (_, url) = line.rsplit_once(' ').unwrap();
        Self {
            child,
            url: url.to_owned(),
            home,
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
