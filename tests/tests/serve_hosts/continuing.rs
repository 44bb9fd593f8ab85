//! Labels outlive restarts, kills and sessions: a call that was denied because of what a session
//! has read stays denied.

use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::command::{Home, program, start};
use tests::patience::wait_until;
use tests::serving::{CONFIGURED, ServeProcess, Session, message};
use tests::stdio_host::StdioHost;

const READ: &str = "return await web.fine({})";
/// A call that the server never answers.
const SILENT: &str = "return await web.silent({})";
const WRITE: &str = "return await out.fine({})";

/// Sets up a server that reads untrusted and private data, and one that writes outside. Writing
/// outside is forbidden after untrusted data.
fn scene() -> Home {
    let home = Home::new();
    let rogue = |log: &str| {
        let log = home.path().join(log);
        json!({"command": program("rogue-server"), "env": {"ROGUE_LOG": log}})
    };
    let config = json!({
        "servers": {"web": rogue("web.log"), "out": rogue("out.log")},
        "policies": ["rules"],
        "labels": {
            "web": {"reads": ["untrusted", "private:mail"], "writes": []},
            "out": {"reads": [], "writes": ["external"]},
        },
    });
    home.write("airlock.toml", toml::to_string(&config).unwrap());
    std::fs::create_dir(home.path().join("rules")).unwrap();
    let rules = "@id(\"all\")\n\
                 @owner(\"security\")\n\
                 @reason(\"everything else is allowed\")\n\
                 permit(principal, action, resource);\n\
                 @id(\"no-leak\")\n\
                 @owner(\"security\")\n\
                 @reason(\"untrusted data was read\")\n\
                 forbid(principal, action, resource)\n\
                 when { context.writes.external && context.labels.contains(\"untrusted\") };\n";
    home.write("rules/rules.cedar", rules);
    home
}

fn log(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join(name)).unwrap_or_default()
}

fn is_denied(ran: &Value) -> bool {
    ran["structuredContent"]["code"] == "denied" || ran.to_string().contains("no-leak")
}

fn expect_denied(ran: &Value, home: &Home) {
    assert!(is_denied(ran), "{ran}");
    assert!(!log(home, "out.log").contains("tools/call"), "{ran}");
}

/// Sends a tool call of the newer era without a handle, or with one.
fn run_newer(serving: &ServeProcess, name: &str, code: &str, handle: Option<&Value>) -> Value {
    let mut params = json!({
        "name": "run_script",
        "arguments": {"code": code},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
        },
    });
    if let Some(handle) = handle {
        params["_meta"]["dev.airlock/session"] = handle.clone();
    }
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "run_script"),
    ];
    let body = message(Some(1), "tools/call", &params);
    serving.request("POST", &headers, &body).answer(1)
}

#[test]
fn denied_write_stays_denied_after_restart_in_older_era() {
    let mut serving = ServeProcess::start_in(scene(), CONFIGURED);
    let mut session = serving.session(&json!({}));
    let wrote = session.run(1, WRITE);
    assert_eq!(wrote["structuredContent"]["status"], "done", "{wrote}");
    std::fs::remove_file(serving.home.path().join("out.log")).unwrap();
    let read = session.run(2, READ);
    assert_eq!(read["structuredContent"]["status"], "done", "{read}");
    for signal in [Signal::TERM, Signal::KILL] {
        serving = serving.restart(signal, CONFIGURED);
        session = session.moved_to(&serving);
        expect_denied(&session.run(3, WRITE), &serving.home);
    }
    session.end();
    let anew = serving.session_of("test another", &json!({}));
    let wrote = anew.run(4, WRITE);
    assert_eq!(wrote["structuredContent"]["status"], "done", "{wrote}");
}

#[test]
fn denied_write_stays_denied_after_delete() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("a", &json!({}));
    assert!(!is_denied(&session.run(1, READ)));
    session.end();
    let anew = serving.session_of("a", &json!({}));
    expect_denied(&anew.run(2, WRITE), &serving.home);
    expect_denied(&run_newer(&serving, "a", WRITE, None), &serving.home);
}

#[test]
fn denied_write_stays_denied_after_restart_in_newer_era() {
    let mut serving = ServeProcess::start_in(scene(), CONFIGURED);
    let read = run_newer(&serving, "a", READ, None);
    let handle = read["_meta"]["dev.airlock/session"].clone();
    assert!(handle.is_string(), "{read}");
    for signal in [Signal::TERM, Signal::KILL] {
        serving = serving.restart(signal, CONFIGURED);
        expect_denied(&run_newer(&serving, "a", WRITE, None), &serving.home);
        let with_handle = run_newer(&serving, "a", WRITE, Some(&handle));
        expect_denied(&with_handle, &serving.home);
    }
}

#[test]
fn next_stdio_process_starts_with_labels_of_its_host() {
    let home = scene();
    let mut host = StdioHost::start(&mut home.serve(CONFIGURED), &json!({}));
    assert!(!is_denied(&host.call("run_script", &json!({"code": READ}))));
    drop(host);
    let mut host = StdioHost::start(&mut home.serve(CONFIGURED), &json!({}));
    let wrote = host.call("run_script", &json!({"code": WRITE}));
    expect_denied(&wrote, &home);
}

/// Starts a run whose call is not answered, and kills the process when the call has arrived.
fn kill_during_run(serving: ServeProcess, session: &Session) -> ServeProcess {
    let calls = |home: &Home| log(home, "web.log").matches("tools/call silent").count();
    let before = calls(&serving.home);
    let params = json!({"name": "run_script", "arguments": {"code": SILENT}});
    let _request = session.begin_without_waiting(9, "tools/call", &params);
    wait_until(|| calls(&serving.home) > before);
    serving.restart(Signal::KILL, CONFIGURED)
}

#[test]
fn run_that_was_killed_counts_as_worst_at_once() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("a", &json!({}));
    let serving = kill_during_run(serving, &session);
    let session = session.moved_to(&serving);
    let next = session.run(1, "return 1");
    let expected = json!(["private", "private:mail", "untrusted"]);
    assert_eq!(next["structuredContent"]["flow"]["labels"], expected);
    expect_denied(&session.run(2, WRITE), &serving.home);
    expect_denied(&run_newer(&serving, "a", WRITE, None), &serving.home);
}

#[test]
fn killed_run_and_lost_caller_file_leave_worst_labels() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("a", &json!({}));
    let serving = kill_during_run(serving, &session);
    for file in records(&serving.home) {
        if file.ends_with("caller.state") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let session = session.moved_to(&serving);
    expect_denied(&session.run(1, WRITE), &serving.home);
}

/// A person declassifies what a caller has read while the server runs, also what a killed run may
/// have read. It is listed, recorded and explained, and it survives a restart.
#[test]
fn declassified_caller_stays_declassified() {
    let serving = ServeProcess::start_in(scene(), CONFIGURED);
    let session = serving.session_of("a", &json!({}));
    let serving = kill_during_run(serving, &session);
    let session = session.moved_to(&serving);
    expect_denied(&session.run(1, WRITE), &serving.home);
    let home = &serving.home;
    let listed = home.run(["sessions", "list", "--json"]).expect_code(0);
    let listed = listed.json();
    let caller = &listed["callers"][0];
    assert_eq!(caller["who"], "client a", "{listed}");
    assert_eq!(caller["read_unknown"], true, "{listed}");
    let id = caller["id"].as_str().unwrap();
    let of_session = caller["sessions"][0]["id"].as_str().unwrap();
    let text = home.run(["sessions", "list"]).expect_code(0).stdout;
    assert!(text.contains(id) && text.contains(of_session), "{text}");
    let declassify = |target: &str, more: &[&str]| {
        let args = ["sessions", "declassify", target, "--by", "Ann Example"];
        home.run([&args[..], more].concat())
    };
    declassify("c0123456789abcdef01234567", &["private"]).expect_code(2);
    declassify(of_session, &["private", "--counts"]).expect_code(2);
    // One session: a new one has the labels of the caller.
    declassify(of_session, &["private", "untrusted"]).expect_code(0);
    let run = session.run(2, "return 1");
    let flow = &run["structuredContent"]["flow"];
    assert_eq!(flow["labels"], json!([]), "{run}");
    let anew = serving.session_of("a", &json!({}));
    expect_denied(&anew.run(3, WRITE), home);
    // The caller with all its sessions.
    declassify(id, &["untrusted", "private", "--counts"]).expect_code(0);
    let wrote = anew.run(4, WRITE);
    assert_eq!(wrote["structuredContent"]["status"], "done", "{wrote}");
    let call = format!("{}:1", wrote["structuredContent"]["run"].as_str().unwrap());
    let explained = home.run(["policy", "explain", &call]).expect_code(0).stdout;
    let expected = "Ann Example declassified untrusted, private and reset the counts at ";
    assert!(explained.contains(expected), "{explained}");
    let serving = serving.restart(Signal::KILL, CONFIGURED);
    for session in [
        session.moved_to(&serving),
        serving.session_of("a", &json!({})),
    ] {
        let wrote = session.run(5, WRITE);
        assert_eq!(wrote["structuredContent"]["status"], "done", "{wrote}");
        assert!(!is_denied(&session.run(6, READ)));
        assert!(is_denied(&session.run(7, WRITE)));
    }
}

fn records(home: &Home) -> Vec<PathBuf> {
    let callers = home.path().join(".local/state/airlock/serve/callers");
    let folders = std::fs::read_dir(callers).into_iter().flatten().flatten();
    let files = folders.flat_map(|it| std::fs::read_dir(it.path()).unwrap().flatten());
    files.map(|it| it.path()).collect()
}

#[test]
fn killed_run_of_named_session_counts_as_worst_at_once() {
    let home = scene();
    let args = |code| {
        let words = "run --json --config airlock.toml --session work --call-timeout 600s -e";
        let args: Vec<_> = words.split(' ').chain([code]).collect();
        args
    };
    for _ in 0..4 {
        let calls = || log(&home, "web.log").matches("tools/call silent").count();
        let before = calls();
        let run = start(&mut home.airlock(args(SILENT)), "");
        wait_until(|| calls() > before);
        run.signal(Signal::KILL);
        assert_eq!(run.wait().code, None);
        // The next run starts a moment after the first one.
        let next = home.run(args("return 1")).expect_code(0).json();
        let expected = json!(["private", "private:mail", "untrusted"]);
        assert_eq!(next["flow"]["labels"], expected, "{next}");
        let wrote = home.run(args(WRITE));
        assert!(wrote.to_string().contains("denied"), "{wrote}");
        assert!(!log(&home, "out.log").contains("tools/call"), "{wrote}");
        std::fs::remove_file(home.path().join(".local/state/airlock/sessions/work.state")).unwrap();
    }
}

/// Plays a few random sequences through the binary, each with kills, restarts, ends of sessions and
/// lost files.
#[test]
fn no_sequence_of_the_binary_ends_with_fewer_labels_than_were_read() {
    let count = std::env::var("AIRLOCK_SEQUENCES").ok();
    let count = count.map_or(2, |it| it.parse::<u64>().unwrap().div_ceil(100));
    for seed in 0..count {
        sequence(seed);
    }
}

fn sequence(seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = move |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % end as u64) as usize
    };
    let mut serving = ServeProcess::start_in(scene(), CONFIGURED);
    let mut session = serving.session_of("a", &json!({}));
    let mut has_read = false;
    let mut log = vec![format!("seed {seed}")];
    for step in 0..6 {
        let event = below(6);
        log.push(event.to_string());
        match event {
            0 => has_read |= !is_denied(&session.run(step, READ)),
            1 => {
                serving = kill_during_run(serving, &session);
                has_read = true;
            }
            2 => serving = serving.restart(Signal::TERM, CONFIGURED),
            3 => serving = serving.restart(Signal::KILL, CONFIGURED),
            4 => {
                session.end();
                session = serving.session_of("a", &json!({}));
            }
            _ => {
                let files = records(&serving.home);
                std::fs::remove_file(&files[below(files.len())]).unwrap();
                // After the loss of a file, the session counts as having read untrusted and private
                // data.
                has_read = true;
            }
        }
        session = session.moved_to(&serving);
        let older = session.run(100 + step, "return 1");
        let labels = older["structuredContent"]["flow"]["labels"].to_string();
        assert!(
            !has_read || labels.contains("untrusted"),
            "{labels} {log:?}"
        );
    }
}
