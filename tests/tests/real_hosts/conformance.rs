//! The conformance suite of the protocol against `airlock serve --http`. What is
//! left out stands here with its reason; anything else that fails is a failure.

use std::collections::BTreeSet;

use tests::command::start;
use tests::real_hosts::installed;

use super::Serving;

/// The suite calls tools, prompts and resources of a server that is made for it. airlock
/// offers its own four tools and those of its servers in scripts, so these find nothing
/// to test: their subject is the fixture and not the protocol.
const WANTS_A_FIXTURE: [&str; 33] = [
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "json-schema-2020-12",
    "http-custom-header-server-validation",
    "tools-call-structured-content",
    "server-stateless",
];
/// Capabilities that airlock does not declare: logging, completion, subscriptions.
const NOT_DECLARED: [&str; 4] = [
    "logging-set-level",
    "completion-complete",
    "resources-subscribe",
    "resources-unsubscribe",
];
/// An extension that airlock does not declare.
const TASKS: &str = "tasks-";

#[test]
fn the_older_era_conforms() {
    check(
        &["--suite", "active"],
        &["server-initialize", "ping", "tools-list"],
    );
}

#[test]
fn the_newer_era_conforms() {
    let known = [
        "tools-list",
        "http-header-validation",
        "caching",
        "prompts-list",
    ];
    check(&["--requirements", "2026-07-28"], &known);
}

/// `wanted` are scenarios that must have been there, so that an empty run is no success.
fn check(which: &[&str], wanted: &[&str]) {
    let Some(hosts) = installed() else { return };
    let serving = Serving::start();
    let mut command = hosts.npm_program("conformance");
    serving.home.dress(&mut command);
    command.args(["server", "--url", &serving.url]).args(which);
    let said = start(&mut command, "").wait().stdout;
    let passed: BTreeSet<_> = names(&said, '✓').collect();
    let excluded = |name: &&str| {
        WANTS_A_FIXTURE.contains(name) || NOT_DECLARED.contains(name) || name.starts_with(TASKS)
    };
    let failed: Vec<_> = names(&said, '✗').filter(|name| !excluded(name)).collect();
    assert_eq!(failed, Vec::<&str>::new(), "{said}");
    for name in wanted {
        assert!(passed.contains(name), "`{name}` did not run\n{said}");
    }
}

/// The lines of the summary with this mark.
fn names(said: &str, mark: char) -> impl Iterator<Item = &str> {
    said.lines().filter_map(move |line| {
        line.trim()
            .strip_prefix(mark)?
            .trim()
            .split([':', ' '])
            .next()
    })
}
