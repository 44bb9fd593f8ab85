//! Ctrl-C: the guest stopped, the servers told, the report printed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tests::command::{Home, program, start};
use tests::patience::{wait_until, wait_until_gone};

#[test]
fn an_interrupted_call_is_cancelled_at_the_server_and_reported_as_unknown() {
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
fn a_script_that_computes_is_interrupted_too() {
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
fn termination_is_a_cancellation_too() {
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
    // A shell in between, as npx and uvx put one there.
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
