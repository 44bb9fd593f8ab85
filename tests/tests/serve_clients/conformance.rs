//! Runs the protocol's conformance suite against `airlock serve --http`, in both eras. The suite
//! calls the tools of a server behind airlock, listed in progressive mode with full descriptions. A
//! list contains exactly the checks that fail or warn, each with the reason.

use tests::command::{program, start};
use tests::conformance::{Check, checks};
use tests::patience::in_one_of_three;
use tests::real_hosts::installed;
use tests::serving::ServeProcess;

const NEWER: &str = "2026-07-28";

/// Checks of the newer era that do not apply, each as `scenario/check` with the reason. All other
/// checks pass, including other checks of the same scenario. All checks of the older era pass.
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
    "airlock forwards a server's requests for input only during a tool call of a run";
const NOTHING_ASKED: &str =
    "the answer belongs to no question: a run begins with a call, and each question is used once";
const NOTHING_NEEDED: &str =
    "airlock's tools need no host capability: without elicitation, another approver is asked";
/// Checks that do not apply because tasks are an extension that airlock does not declare.
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
fn older_era_conforms() {
    in_one_of_three(|| check("2025-11-25", 80, ""));
}

#[test]
fn newer_era_conforms() {
    in_one_of_three(|| check(NEWER, 159, " --newer"));
}

/// Runs the checks of a protocol revision. At least `passed_min` must pass, so that an empty run
/// fails. The suite has short time limits, so the callers repeat it on a slow machine.
fn check(revision: &str, passed_min: usize, era: &str) {
    let Some(hosts) = installed() else { return };
    let fixture = |name| format!("{name}={}{era}", program("fixture-server").display());
    let (test, json) = (fixture("test"), fixture("json"));
    let listed = ["--tools", "progressive", "--disclosure", "full"];
    let passed = "elicitation,sampling,roots,logging";
    let rules = ["--allow", "*.*", "--pass", passed, "--offer", "test"];
    let servers = ["--server", &test, "--server", &json];
    let args: [&[&str]; 3] = [&listed, &rules, &servers];
    let serving = ServeProcess::start(args.concat());
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
    // A check that passes must be removed from the list.
    for name in excluded {
        let times = failed.iter().filter(|it| it.name == name).count();
        assert_eq!(times, 1, "{name} is excluded but did not fail once\n{said}");
    }
}

fn excluded(revision: &str) -> Vec<&'static str> {
    let alone = EXCLUDED.iter().map(|(name, _)| *name);
    let all = alone.chain(OF_TASKS);
    all.filter(|_| revision == NEWER).collect()
}
