//! The conformance suite of the protocol against `airlock serve --http`, in both
//! eras. The tools that it calls are those of a server behind airlock, listed in
//! progressive mode, with all that is said of them. Whatever fails or warns stands
//! in a list with its reason, check by check, and nothing stands there that passes.

use std::path::Path;

use serde_json::Value;
use tests::command::{program, start};
use tests::patience::in_one_of_three;
use tests::real_hosts::installed;
use tests::serving::Serving;

const NEWER: &str = "2026-07-28";

/// Checks of the newer era, each as `scenario/check`, and why they do not apply. Every other one
/// passes, also of the same scenario; of the older era all do.
const EXCLUDED: [(&str, &str); 4] = [
    (
        "input-required-result-ignore-extra-params/sep-2322-ignore-unexpected-params",
        NOTHING_ASKED,
    ),
    (
        "input-required-result-non-tool-request/sep-2322-non-tool-incomplete",
        NOT_FOR_PROMPTS,
    ),
    (
        "server-stateless/sep-2575-missing-capability-http-400",
        NOTHING_NEEDED,
    ),
    (
        "server-stateless/sep-2575-server-rejects-undeclared-capability",
        NOTHING_NEEDED,
    ),
];
const NOT_FOR_PROMPTS: &str =
    "a server gets input for calls of its tools, which a run stands behind, and for nothing else";
const NOTHING_ASKED: &str =
    "an answer to what was never asked: a run begins with a call, and its questions have one use";
const NOTHING_NEEDED: &str =
    "no tool of ours fails for what a host cannot do: without elicitation somebody else is asked";
/// Likewise, because tasks are an extension that is not declared.
const OF_TASKS: [&str; 30] = [
    "tasks-capability-negotiation/sep-2663-server-rejects-undeclared-client",
    "tasks-capability-negotiation/sep-2663-tasks-methods-non-declaring",
    "tasks-capability-negotiation/tasks-extension-advertised",
    "tasks-capability-negotiation/tasks-per-request-meta-opt-in",
    "tasks-dispatch-and-envelope/sep-2663-durable-create-strong-consistency",
    "tasks-dispatch-and-envelope/sep-2663-legacy-task-param-ignored",
    "tasks-dispatch-and-envelope/sep-2663-tasks-get-invalid-task-id-32602",
    "tasks-dispatch-and-envelope/tasks-immediate-result-shortcut",
    "tasks-dispatch-and-envelope/tasks-result-type-complete-on-non-task-responses",
    "tasks-dispatch-and-envelope/tasks-server-directed-creation-no-hint",
    "tasks-lifecycle/sep-2663-cancel-ack-empty-result",
    "tasks-lifecycle/sep-2663-result-type-task-on-create",
    "tasks-lifecycle/sep-2663-tasks-get-status-completed",
    "tasks-lifecycle/sep-2663-tasks-get-status-failed",
    "tasks-lifecycle/sep-2663-tasks-get-status-working",
    "tasks-lifecycle/sep-2663-tool-error-uses-completed-status",
    "tasks-lifecycle/tasks-cancel-terminal-idempotent-ack",
    "tasks-lifecycle/tasks-sync-tool-call",
    "tasks-mrtr-composition/sep-2663-mrtr-synchronous-before-task-creation",
    "tasks-mrtr-input/sep-2663-tasks-get-status-input-required",
    "tasks-mrtr-input/tasks-mrtr-partial-fulfillment",
    "tasks-mrtr-input/tasks-mrtr-tasks-update-resumes",
    "tasks-request-headers/sep-2663-routing-headers-accepted-on-tasks-get",
    "tasks-request-headers/sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
    "tasks-request-headers/tasks-headers-tolerate-mcp-method-on-tools-call",
    "tasks-request-state-removal/tasks-request-state-removal-setup",
    "tasks-required-task-error/sep-2663-server-returns-missing-capability-when-required",
    "tasks-wire-fields/tasks-no-early-ttl-expiry",
    "tasks-wire-fields/tasks-no-related-task-meta-on-inlined-result",
    "tasks-wire-fields/tasks-wire-field-renames",
];

#[test]
fn the_older_era_conforms() {
    in_one_of_three(|| check("2025-11-25", 80, ""));
}

#[test]
fn the_newer_era_conforms() {
    in_one_of_three(|| check(NEWER, 159, " --newer"));
}

/// What a revision requires, frozen at its release; so many checks have to pass at least,
/// so that an empty run is no success. The suite waits for some things only for a moment of its
/// own, so that it is asked again on a machine that does not run it in that moment.
fn check(revision: &str, passed_min: usize, era: &str) {
    let Some(hosts) = installed() else { return };
    let fixture = |name| format!("{name}={}{era}", program("fixture-server").display());
    let (test, json) = (fixture("test"), fixture("json"));
    let listed = ["--tools", "progressive", "--disclosure", "full"];
    let passed = "elicitation,sampling,roots,logging";
    let rules = ["--allow", "*.*", "--pass", passed, "--offer", "test"];
    let servers = ["--server", &test, "--server", &json];
    let args: [&[&str]; 3] = [&listed, &rules, &servers];
    let serving = Serving::start(args.concat());
    let results = serving.home.path().join("results");
    let mut command = hosts.npm_program("conformance");
    serving.home.dress(&mut command);
    let url = serving.url();
    command.args(["server", "--url", &url, "--requirements", revision]);
    command.arg("--output-dir").arg(&results);
    let said = start(&mut command, "").wait();
    let checks = checks(&results);
    let of_kind = |kinds: &[&str]| -> Vec<&Check> {
        let fits = |it: &&Check| kinds.contains(&it.status.as_str());
        checks.iter().filter(fits).collect()
    };
    let failed = of_kind(&["FAILURE", "WARNING"]);
    let passed = of_kind(&["SUCCESS"]).len();
    let excluded = excluded(revision);
    let unknown = failed
        .iter()
        .filter(|it| !excluded.contains(&it.name.as_str()));
    let unknown: Vec<_> = unknown.collect();
    assert!(unknown.is_empty(), "{unknown:#?}\n{said}");
    assert!(passed >= passed_min, "only {passed} checks passed\n{said}");
    // Whoever mends one of them takes it off the list.
    for name in excluded {
        let times = failed.iter().filter(|it| it.name == name).count();
        assert_eq!(times, 1, "{name} is excluded, and does not fail\n{said}");
    }
}

fn excluded(revision: &str) -> Vec<&'static str> {
    let alone = EXCLUDED.iter().map(|(name, _)| *name);
    let all = alone.chain(OF_TASKS);
    all.filter(|_| revision == NEWER).collect()
}

#[derive(Debug)]
struct Check {
    /// `scenario/check`.
    name: String,
    status: String,
    /// What the suite says of a failure; shown where one is not excluded.
    #[expect(dead_code, reason = "read through Debug")]
    why: String,
}

/// One folder for each scenario, named after it and the time.
fn checks(results: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    for folder in std::fs::read_dir(results).expect("results").flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(folder.path().join("checks.json")).expect("checks");
        let list: Vec<Value> = serde_json::from_str(&text).expect("a list of checks");
        let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
        checks.extend(list.iter().map(|check| Check {
            name: format!("{}/{}", scenario(&name), text(check, "id")),
            status: text(check, "status"),
            why: text(check, "errorMessage"),
        }));
    }
    checks
}

/// `server-ping-2026-11-22T07-35-56-047Z` is about `ping`.
fn scenario(folder: &str) -> &str {
    const TIME: usize = "-2026-11-22T07-35-56-047Z".len();
    let name = folder.get(..folder.len().saturating_sub(TIME));
    let name = name.unwrap_or(folder);
    name.strip_prefix("server-").unwrap_or(name)
}
