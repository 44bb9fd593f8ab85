//! Tests the end of `airlock serve`: runs are cancelled and journaled, hosts are notified, and all
//! started servers end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::patience::{in_one_of_three, wait_until, wait_until_gone};
use tests::serving::{HttpResponse, ServeProcess, message};

use super::{fixture, noted, running};

/// Maximum time from a signal to the end of the process. On an idle machine it ends within 2 s. The
/// runs of these tests would take much longer.
const SOON: Duration = Duration::from_secs(120);

const ASKS: &str = "return await demo.tickets_create({title: 'never'})";

fn args(home: &Home) -> Vec<String> {
    let args = [
        "--demo",
        "--disclosure",
        "full",
        "--allow",
        "test.*",
        "--ask",
        "demo.tickets_create",
        "--server",
        &fixture(home),
    ];
    args.map(str::to_owned).into()
}

fn serving() -> ServeProcess {
    let home = Home::new();
    let args = args(&home);
    ServeProcess::start_in(home, args)
}

/// Waits until the process of the fixture server has ended.
fn until_gone(home: &Home) {
    let log = noted(home);
    let pid = log.lines().find_map(|line| line.strip_prefix("pid "));
    wait_until_gone(pid.expect("the fixture started").parse().unwrap());
}

/// Waits until the call of a run was allowed.
fn until_allowed(page: &mut HttpResponse) {
    while !page
        .told("notifications/progress")
        .to_string()
        .contains("test.wait: allow")
    {}
}

/// Checks that the journals are complete, and how their runs ended, in the order in which they began.
fn expect_ends(home: &Home, expected: &[&str]) {
    home.verify_all();
    let end = |journal: &PathBuf| {
        let text = std::fs::read_to_string(journal).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let word = last["status"].as_str().or(last["kind"].as_str());
        word.unwrap().to_owned()
    };
    let ends: Vec<String> = home.journals().iter().map(end).collect();
    assert_eq!(ends, expected);
}

#[test]
fn signal_ends_runs_notifies_hosts_and_stops_servers() {
    let ends_at = |signal| {
        let mut serving = serving();
        let host = serving.session(&json!({"elicitation": {}}));
        let mut waits = host.begin(1, "tools/call", &running("return await test.wait({})"));
        until_allowed(&mut waits);
        let mut computes = host.begin(2, "tools/call", &running("while (true) {}"));
        let _ = computes.told("notifications/progress");
        let mut asks = host.begin(3, "tools/call", &running(ASKS));
        let _ = asks.told("elicitation/create");
        let (code, took, said) = serving.stop(signal);
        assert_eq!(code, Some(0), "{said}");
        assert!(took < SOON, "{signal:?} took {took:?}");
        // A run that only waits for a person can go on later.
        for (id, page, status) in [
            (1, waits, "cancelled"),
            (2, computes, "cancelled"),
            (3, asks, "paused"),
        ] {
            let report = page.answer(id)["structuredContent"].clone();
            assert_eq!(report["status"], status, "{report}");
        }
        expect_ends(&serving.home, &["cancelled", "cancelled", "suspended"]);
        until_gone(&serving.home);
    };
    for signal in [Signal::TERM, Signal::INT] {
        in_one_of_three(|| ends_at(signal));
    }
}

/// Sends a request of the newer era, from a host that supports elicitation.
fn newer(
    serving: &ServeProcess,
    method: &str,
    name: Option<&str>,
    mut params: Value,
) -> HttpResponse {
    let version = "2026-07-28";
    let mut headers = vec![("MCP-Protocol-Version", version), ("Mcp-Method", method)];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    serving.request("POST", &headers, &message(Some(1), method, &params))
}

#[test]
fn newer_era_suspended_runs_are_journaled_and_subscriptions_answered() {
    in_one_of_three(those_of_the_newer_era_are_answered);
}

fn those_of_the_newer_era_are_answered() {
    let mut serving = serving();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listens = newer(&serving, "subscriptions/listen", None, listen);
    let _ = listens.told("notifications/subscriptions/acknowledged");
    let asks = newer(&serving, "tools/call", Some("run_script"), running(ASKS));
    assert_eq!(asks.answer(1)["resultType"], "input_required");
    let (code, took, said) = serving.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{said}");
    assert!(took < SOON, "{took:?}");
    assert_eq!(listens.answer(1)["resultType"], "complete");
    expect_ends(&serving.home, &["suspended"]);
}

#[test]
fn server_refusing_to_exit_is_killed() {
    let home = Home::new();
    let pid = home.path().join("pid");
    let deaf = format!(
        "trap '' TERM; echo $$ > {}; {}; while :; do sleep 1000; done",
        pid.display(),
        program("fixture-server").display()
    );
    let script = home.write("deaf.sh", deaf);
    let server = format!("deaf=sh {}", script.display());
    let mut serving = ServeProcess::start_in(home, ["--demo", "--server", &server]);
    let said = || std::fs::read_to_string(&pid).unwrap_or_default();
    wait_until(|| said().ends_with('\n'));
    let pid = said().trim().parse().unwrap();
    let (code, took, said) = serving.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{said}");
    assert!(took < SOON, "{took:?}");
    wait_until_gone(pid);
}

/// A host that started airlock as its child.
struct ParentHost {
    child: Child,
    home: Home,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl ParentHost {
    fn start() -> Self {
        let home = Home::new();
        let mut child = home
            .serve(args(&home))
            .arg("--quiet")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, home, lines }
    }

    fn say(&mut self, message: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    /// Begins a run that waits for a tool that never answers.
    fn wait_for_ever(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        self.say(&message(Some(0), "initialize", &params));
        let call = running("return await test.wait({})");
        self.say(&message(Some(1), "tools/call", &call));
        let is_allowed =
            |line: &std::io::Result<String>| line.as_ref().unwrap().contains("test.wait: allow");
        assert!(self.lines.any(|line| is_allowed(&line)), "airlock ended");
    }

    fn ends_soon(&mut self) {
        let since = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if since.elapsed() > SOON => {
                    self.child.kill().unwrap();
                    panic!("airlock did not end in {SOON:?}");
                }
                None => std::thread::park_timeout(Duration::from_millis(2)),
            }
        };
        assert_eq!(status.code(), Some(0));
        expect_ends(&self.home, &["cancelled"]);
        until_gone(&self.home);
    }
}

#[test]
fn stdio_serve_ends_with_its_input() {
    in_one_of_three(|| {
        let mut parent = ParentHost::start();
        parent.wait_for_ever();
        drop(parent.child.stdin.take());
        parent.ends_soon();
    });
}

#[test]
fn stdio_serve_reports_run_end_on_signal() {
    in_one_of_three(a_signal_ends_what_serves_over_stdio);
}

fn a_signal_ends_what_serves_over_stdio() {
    let mut parent = ParentHost::start();
    parent.wait_for_ever();
    let pid = Pid::from_raw(parent.child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let is_answer = |line: &String| line.contains("\"id\":1,") && line.contains("cancelled");
    let mut lines = parent.lines.by_ref().map_while(Result::ok);
    assert!(lines.any(|line| is_answer(&line)), "no answer");
    parent.ends_soon();
}
