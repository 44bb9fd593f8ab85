//! Tests Ctrl-C: the guest is stopped, the servers are notified, and the report is printed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tests::command::{Home, program, start};
use tests::patience::{wait_until, wait_until_gone};

#[test]
fn interrupted_call_is_cancelled_and_unknown() {
    let home = Home::new();
    let log = home.path().join("rogue.log");
    let config = json!({"mcpServers": {"rogue": {"command": program("rogue-server"), "env": {"ROGUE_LOG": log}}}});
    let config = home.write("rogue.json", config.to_string());
    let code = "console.log('before'); try { await rogue.silent({}); } catch { await rogue.fine({}); } return 1";
    let args = [
        "run",
        "--json",
        "--mcp-config",
        config.to_str().unwrap(),
        "--allow",
        "rogue.*",
        "-e",
        code,
    ];
    let started = start(&mut home.airlock(args), "");
    let heard = || fs::read_to_string(&log).unwrap_or_default();
    wait_until(|| heard().contains("tools/call silent"));
    started.signal(Signal::INT);
    let report = started.wait().expect_code(130).json();
    assert_eq!(
        (&report["status"], &report["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    assert_eq!(
        (
            &report["calls"][0]["outcome"],
            report["calls"].as_array().unwrap().len()
        ),
        (&json!("unknown"), 1)
    );
    assert_eq!(report["console"][0]["text"], "before");
    wait_until(|| heard().contains("notifications/cancelled"));
    assert!(!heard().contains("fine"), "{}", heard());
    home.verify_all();
}

#[test]
fn computing_script_is_interrupted() {
    let home = Home::new();
    let started = start(
        &mut home.airlock(["run", "--json", "-e", "console.log('on'); for (;;);"]),
        "",
    );
    wait_until(|| home.journals().len() == 1);
    let since = Instant::now();
    started.signal(Signal::INT);
    let report = started.wait().expect_code(130).json();
    assert_eq!(report["status"], "cancelled");
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
}

#[test]
fn sigterm_cancels_run() {
    let home = Home::new();
    let started = start(&mut home.airlock(["run", "-e", "for (;;);"]), "");
    wait_until(|| home.journals().len() == 1);
    started.signal(Signal::TERM);
    let ended = started.wait();
    assert!(matches!(ended.code, Some(130 | 143)), "{ended}");
    home.verify_all();
}

#[test]
fn no_server_outlives_its_broker() {
    let home = Home::new();
    let log = home.path().join("rogue.log");
    // Starts the server through a shell, as npx and uvx do.
    let config = json!({"mcpServers": {"rogue": {"command": "sh", "args": ["-c", format!("{}; true", program("rogue-server").display())], "env": {"ROGUE_LOG": log}}}});
    let config = home.write("rogue.json", config.to_string());
    home.run([
        "run",
        "--mcp-config",
        config.to_str().unwrap(),
        "--allow",
        "rogue.*",
        "-e",
        "await rogue.fine({})",
    ])
    .expect_code(0);
    let heard = fs::read_to_string(&log).unwrap();
    let pid = heard
        .lines()
        .find_map(|line| line.strip_prefix("pid "))
        .unwrap();
    wait_until_gone(pid.parse().unwrap());
}
