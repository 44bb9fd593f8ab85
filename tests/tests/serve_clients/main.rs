//! Tests `airlock serve` with third-party hosts, in both eras and over both transports, and with
//! the protocol's conformance suite.

mod conformance;
mod inspector;
mod resuming;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tests::binary::{airlock, workspace};
use tests::command::{Home, PATIENT, program, start};
use tests::patience::wait_until;
use tests::real_hosts::{RealHosts, installed};
use tests::serving::ServeProcess;

/// All arguments except those for the fixture server and the transport.
const RULES: [&str; 9] = [
    "--demo",
    "--disclosure",
    "progressive",
    "--allow",
    "demo.*_list",
    "--allow",
    "test.*",
    "--ask",
    "demo.tickets_create",
];

/// The era that the host uses, which determines the version of its SDK.
#[derive(Clone, Copy)]
enum HostEra {
    Older,
    Newer,
}

type Language = fn(&RealHosts) -> Command;

fn script(name: &str) -> PathBuf {
    workspace().join("tests/tests/serve_clients").join(name)
}

fn python(hosts: &RealHosts) -> Command {
    hosts.python(&script("host.py"))
}

fn typescript(hosts: &RealHosts) -> Command {
    hosts.node(&script("host.mjs"))
}

fn args() -> Vec<String> {
    let fixture = format!("test={}", program("fixture-server").display());
    let rules = RULES.map(str::to_owned).into_iter();
    rules.chain(["--server".to_owned(), fixture]).collect()
}

fn arguments_of(speaks: HostEra) -> &'static str {
    match speaks {
        HostEra::Older => "legacy",
        HostEra::Newer => "auto",
    }
}

/// Runs airlock as a child of the host.
fn over_stdio(language: Language, speaks: HostEra) {
    let Some(hosts) = installed() else { return };
    let home = Home::new();
    let mut command = language(hosts);
    home.dress(&mut command);
    command.arg(arguments_of(speaks)).arg(airlock());
    command
        .args(["serve", "--quiet"])
        .args(PATIENT)
        .args(args());
    let seen = start(&mut command, "").wait().expect_code(0).json();
    check(&home, &seen, speaks);
}

fn over_http(language: Language, speaks: HostEra) {
    let Some(hosts) = installed() else { return };
    let serving = ServeProcess::start(args());
    let mut command = language(hosts);
    serving.home.dress(&mut command);
    command.args([arguments_of(speaks), &serving.url()]);
    let seen = start(&mut command, "").wait().expect_code(0).json();
    check(&serving.home, &seen, speaks);
}

/// Checks the observations of a host, from its first tool list to the run after the cancelled run.
fn check(home: &Home, seen: &Value, speaks: HostEra) {
    let is_newer = seen["version"] == "2026-07-28";
    assert_eq!(is_newer, matches!(speaks, HostEra::Newer), "{seen}");
    let own = [
        "search_tools",
        "get_tool_details",
        "run_script",
        "read_result",
        "resume_run",
    ];
    assert_eq!(seen["listed"], json!(own), "{seen}");
    let found = seen["found"].as_array().unwrap();
    assert!(found.contains(&json!("demo.tickets_list")), "{seen}");
    for (what, text) in [
        ("early", "TOOL_DESCRIPTION_REQUIRED"),
        // Progress is compared up to the cancelled call, because one SDK loses messages right
        // before a response.
        ("progress", "has started"),
        ("progress", "test.wait: allow"),
        ("asked", "demo.tickets_create"),
        ("unselected", "MISSING_TOOL_SELECTION"),
    ] {
        assert!(seen[what].to_string().contains(text), "{what}: {seen}");
    }
    for (what, value) in [
        ("value", json!(true)),
        ("approved", json!("done")),
        ("cancelled", json!(true)),
        ("after", json!(2)),
    ] {
        assert_eq!(seen[what], value, "{what}: {seen}");
    }
    // Over HTTP the host may have ended before the cancelled run has written its end.
    wait_until(|| endings(home).iter().filter(|it| !it.is_empty()).count() == 4);
    home.verify_all();
    let ends = endings(home);
    assert_eq!(
        ends.iter().filter(|it| *it == "done").count(),
        3,
        "{ends:?}"
    );
    assert_eq!(
        ends.iter().filter(|it| *it == "cancelled").count(),
        1,
        "{ends:?}"
    );
}

/// Returns how the runs of this home ended, from their journals. The text is empty for a run that
/// has not ended.
fn endings(home: &Home) -> Vec<String> {
    let last = |journal: &PathBuf| {
        let text = std::fs::read_to_string(journal).unwrap();
        let entry = serde_json::from_str(text.lines().last().unwrap_or_default());
        let entry: Value = entry.unwrap_or_default();
        entry["status"].as_str().unwrap_or_default().to_owned()
    };
    home.journals().iter().map(last).collect()
}

#[test]
fn python_sdk_over_stdio_in_older_era() {
    over_stdio(python, HostEra::Older);
}

#[test]
fn python_sdk_over_stdio_in_newer_era() {
    over_stdio(python, HostEra::Newer);
}

#[test]
fn python_sdk_over_http_in_older_era() {
    over_http(python, HostEra::Older);
}

#[test]
fn python_sdk_over_http_in_newer_era() {
    over_http(python, HostEra::Newer);
}

#[test]
fn typescript_sdk_over_stdio_in_older_era() {
    over_stdio(typescript, HostEra::Older);
}

#[test]
fn typescript_sdk_over_stdio_in_newer_era() {
    over_stdio(typescript, HostEra::Newer);
}

#[test]
fn typescript_sdk_over_http_in_older_era() {
    over_http(typescript, HostEra::Older);
}

#[test]
fn typescript_sdk_over_http_in_newer_era() {
    over_http(typescript, HostEra::Newer);
}
