//! Kills airlock by SIGKILL, so that it cannot clean up. All processes that it started must end,
//! even if they are busy, ignore signals or have started others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;
use tests::command::{Home, start};
use tests::patience::wait_until;
use tests::serving::ServeProcess;

/// A server with one tool, in shell. `CALL` is replaced by the action for a call.
const SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) CALL ;;
  esac
done
"#;

/// Ignores every signal that can be ignored, and no longer reads stdin.
const DEAF: &str = "trap '' HUP INT TERM; : > deaf.busy; while :; do sleep 100000; done";
/// Starts two other processes. One of them ignores SIGHUP and SIGTERM.
const PARENT: &str =
    "sh -c 'trap \"\" HUP TERM; sleep 100001; :' & sleep 100002 & : > parent.busy; wait";
/// An approver that waits for another program.
const APPROVER: &str = "cat > asked; trap '' TERM; sleep 100003; :";

/// A home with two servers and an approver.
struct Stage {
    home: Home,
    args: Vec<String>,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new();
        let server = |call: &str| {
            let script = SERVER.replace("CALL", call);
            json!({"command": "sh", "args": ["-c", script], "cwd": home.path()})
        };
        let servers = json!({"deaf": server(DEAF), "parent": server(PARENT)});
        let config = home.write("servers.json", json!({"mcpServers": servers}).to_string());
        let approver = home.write("approver.sh", APPROVER);
        let approver = format!("approver = \"command:sh {}\"\n", approver.display());
        let settings = home.write("airlock.toml", approver);
        let args = [
            "--mcp-config",
            config.to_str().unwrap(),
            "--allow",
            "*.*",
            "--ask",
            "parent.t",
            "--config",
            settings.to_str().unwrap(),
        ];
        let args = args.map(str::to_owned).to_vec();
        Self { home, args }
    }

    fn without_approver(mut self) -> Self {
        self.args.truncate(4);
        self
    }

    fn wait_for(&self, file: &str) {
        let path = self.home.path().join(file);
        wait_until(|| path.exists());
    }
}

/// A process, with a value that distinguishes it from a later process with the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: u32,
    since: String,
    name: String,
    parent: u32,
}

/// Returns all running processes.
fn processes() -> Vec<Process> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    numbers
        .filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let is_over = matches!(*fields.first()?, "Z" | "X");
    (!is_over).then_some(Process {
        pid,
        since: (*fields.get(19)?).to_owned(),
        name: before.split_once('(')?.1.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
    })
}

/// Returns the descendants of a process.
fn started_by(root: u32) -> BTreeSet<Process> {
    let all = processes();
    let mut found: BTreeSet<Process> = BTreeSet::new();
    loop {
        let is_new = |it: &&Process| {
            let parents = found.iter().map(|it| it.pid).chain([root]);
            !found.contains(it) && parents.into_iter().any(|parent| parent == it.parent)
        };
        let more: Vec<Process> = all.iter().filter(is_new).cloned().collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[track_caller]
fn wait_until_gone(started: &BTreeSet<Process>) {
    let is_there = |it: &Process| process(it.pid).is_some_and(|now| now.since == it.since);
    wait_until(|| !started.iter().any(is_there));
}

fn sleeping(started: &BTreeSet<Process>) -> usize {
    started.iter().filter(|it| it.name == "sleep").count()
}

/// Waits until this many descendants of a process sleep, and returns all its descendants.
fn wait_for_sleepers(root: u32, count: usize) -> BTreeSet<Process> {
    wait_until(|| sleeping(&started_by(root)) >= count);
    started_by(root)
}

#[test]
fn a_killed_run_leaves_no_server_and_nothing_that_a_server_started() {
    let stage = Stage::new().without_approver();
    let script = "await Promise.all([deaf.t({}), parent.t({})])";
    let args = ["run", "-e", script].map(str::to_owned);
    let run = start(&mut stage.home.airlock(args.iter().chain(&stage.args)), "");
    stage.wait_for("deaf.busy");
    stage.wait_for("parent.busy");
    let started = wait_for_sleepers(run.pid(), 3);
    run.signal(Signal::KILL);
    wait_until_gone(&started);
    assert_eq!(run.wait().code, None);
}

#[test]
fn a_killed_run_leaves_no_approver() {
    let stage = Stage::new();
    let args = ["run", "-e", "await parent.t({})"].map(str::to_owned);
    let run = start(&mut stage.home.airlock(args.iter().chain(&stage.args)), "");
    stage.wait_for("asked");
    let started = wait_for_sleepers(run.pid(), 1);
    run.signal(Signal::KILL);
    wait_until_gone(&started);
    assert_eq!(run.wait().code, None);
}

#[test]
fn a_killed_serve_leaves_no_server_and_no_approver() {
    let stage = Stage::new();
    let mut serving = ServeProcess::start_in(stage.home, &stage.args);
    let session = serving.session(&json!({}));
    let script = json!({"code": "await Promise.all([deaf.t({}), parent.t({})])"});
    let params = json!({"name": "run_script", "arguments": script});
    // A thread waits for the response, because the response begins only after the end of the run.
    std::thread::spawn(move || session.begin(1, "tools/call", &params).status);
    let exists = |file: &str| serving.home.path().join(file).exists();
    wait_until(|| exists("deaf.busy") && exists("asked"));
    let started = wait_for_sleepers(serving.pid(), 2);
    serving.stop(Signal::KILL);
    wait_until_gone(&started);
}

/// Kills airlock while it starts the servers of a run.
#[test]
fn a_run_that_is_killed_at_any_moment_of_its_start_leaves_nobody() {
    let stage = Stage::new().without_approver();
    let args = ["run", "-e", "await parent.t({})"].map(str::to_owned);
    // Kills airlock when it has this many descendants. Each of the two servers has two processes.
    for moment in (0..=4).cycle().take(25) {
        let run = start(&mut stage.home.airlock(args.iter().chain(&stage.args)), "");
        wait_until(|| started_by(run.pid()).len() >= moment);
        run.signal(Signal::KILL);
        assert_eq!(run.wait().code, None);
        wait_until(|| of_home(stage.home.path()).is_empty());
    }
}

/// Returns the processes with this home in their environment.
fn of_home(home: &Path) -> Vec<Process> {
    let home = format!("HOME={}\0", home.display());
    let is_of_home = |it: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", it.pid)).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&home)
    };
    processes().into_iter().filter(is_of_home).collect()
}

#[test]
fn nobody_is_left_of_a_run_that_ends_by_itself() {
    let stage = Stage::new().without_approver();
    let args = [
        "run",
        "-e",
        "try { await deaf.t({}) } catch {}",
        "--limit",
        "call-timeout=1s",
    ];
    let args = args.map(str::to_owned);
    let run = start(&mut stage.home.airlock(args.iter().chain(&stage.args)), "");
    let started = wait_for_sleepers(run.pid(), 1);
    assert!(started.len() > 3, "{started:?}");
    run.wait().expect_code(0);
    wait_until_gone(&started);
}
