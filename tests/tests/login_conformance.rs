//! Runs the protocol's conformance suite against airlock as a client: all scenarios of logins that a
//! revision requires, and both of the extension for clients without a person.

use std::collections::BTreeSet;

use tests::binary::airlock;
use tests::command::{Home, program, start};
use tests::conformance::{Check, checks};
use tests::real_hosts::{RealHosts, installed};

/// The scenarios of logins that are not scored, and why airlock cannot pass them.
const EXCLUDED: [(&str, &str); 4] = [
    ("auth/enterprise-managed-authorization", NOT_OFFERED),
    ("auth/dpop", NOT_OFFERED),
    ("auth/dpop-nonce", NOT_OFFERED),
    ("auth/wif-jwt-bearer", NOT_OFFERED),
];
const NOT_OFFERED: &str = "an optional extension that airlock does not offer";

#[test]
fn older_era_logs_in() {
    check("2025-11-25", 14);
}

#[test]
fn newer_era_logs_in() {
    check("2026-07-28", 25);
}

/// Runs the scenarios of a revision, of which it requires `scored`.
fn check(revision: &str, scored: usize) {
    let Some(hosts) = installed() else { return };
    let mut list = hosts.npm_program("conformance");
    list.args(["list", "--requirements", revision]);
    let listed = start(&mut list, "").wait().expect_code(0).stdout;
    let (required, others) = listed.split_once("never scored").expect("both lists");
    let required = scenarios(required);
    assert_eq!(required.len(), scored, "{listed}");
    let others = scenarios(others);
    for (name, why) in EXCLUDED {
        assert!(
            others.contains(name),
            "{name} ({why}) is not in the suite\n{listed}"
        );
    }
    let others = others.iter().filter(|name| !is_excluded(name));
    for scenario in required.iter().chain(others) {
        pass(hosts, scenario, revision);
    }
}

fn is_excluded(scenario: &str) -> bool {
    EXCLUDED.iter().any(|(name, _)| *name == scenario)
}

/// Returns the scenarios of logins in a part of the suite's list.
fn scenarios(list: &str) -> BTreeSet<&str> {
    let words = list.split_whitespace();
    words.filter(|it| it.starts_with("auth/")).collect()
}

/// Runs one scenario, of which no check may fail or warn.
fn pass(hosts: &RealHosts, scenario: &str, revision: &str) {
    let home = Home::new();
    let results = home.path().join("results");
    let client = program("conformance-client").display().to_string();
    let mut command = hosts.npm_program("conformance");
    home.dress(&mut command);
    command.env("AIRLOCK_BIN", airlock());
    command.args(["client", "--command", &client, "--scenario", scenario]);
    command.args(["--spec-version", revision, "--force", "--output-dir"]);
    let said = start(command.arg(&results), "").wait();
    let checks = checks(&results);
    let is_bad = |it: &&Check| matches!(it.status.as_str(), "FAILURE" | "WARNING");
    let bad: Vec<_> = checks.iter().filter(is_bad).collect();
    assert!(bad.is_empty(), "{scenario}: {bad:#?}\n{said}");
    assert!(
        checks.iter().any(|it| it.status == "SUCCESS"),
        "{scenario}\n{said}"
    );
    assert_eq!(said.code, Some(0), "{scenario}\n{said}");
}
