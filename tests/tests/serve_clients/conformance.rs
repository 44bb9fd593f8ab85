//! The conformance suite of the protocol against `airlock serve --http`, in both
//! eras. The tools that it calls are those of a server behind airlock, listed in
//! progressive mode. Whatever fails or warns stands in one list with its reason,
//! and nothing stands there that passes.

use std::path::Path;

use serde_json::Value;
use tests::command::{program, start};
use tests::patience::in_one_of_three;
use tests::real_hosts::installed;
use tests::serving::Serving;

/// A pattern of `scenario/check`, with one star at its end at most, and why it does not apply.
const EXCLUDED: [(&str, &str); 8] = [
    ("tasks-*", EXTENSION),
    ("input-required-result-non-tool-request/*", NOT_FOR_PROMPTS),
    ("json-schema-2020-12/*", NO_PARAMETERS),
    ("http-custom-header-server-validation/*", NO_PARAMETERS),
    (
        "input-required-result-basic-elicitation/sep-2322-elicitation-incomplete",
        OWN_KEY,
    ),
    ("input-required-result-ignore-extra-params/*", NOTHING_ASKED),
    (
        "server-stateless/sep-2575-server-rejects-undeclared-capability",
        NOTHING_NEEDED,
    ),
    (
        "server-stateless/sep-2575-missing-capability-http-400",
        NOTHING_NEEDED,
    ),
];
const EXTENSION: &str = "an extension that is not declared";
const NOT_FOR_PROMPTS: &str =
    "a server gets input for calls of its tools, which a run stands behind, and for nothing else";
const NO_PARAMETERS: &str = "tools/list has no parameters of servers' tools, by design";
const OWN_KEY: &str =
    "the suite wants a key of its own; two servers that one run calls could want the same";
const NOTHING_ASKED: &str =
    "an answer to what was never asked: a run begins with a call, and its questions have one use";
const NOTHING_NEEDED: &str =
    "no tool of ours fails for what a host cannot do: without elicitation somebody else is asked";

#[test]
fn the_older_era_conforms() {
    in_one_of_three(|| check("2025-11-25", 69, ""));
}

#[test]
fn the_newer_era_conforms() {
    in_one_of_three(|| check("2026-07-28", 140, " --newer"));
}

#[test]
fn nothing_is_excluded_without_a_reason_or_twice() {
    for (at, (pattern, reason)) in EXCLUDED.iter().enumerate() {
        assert!(!reason.is_empty(), "{pattern}");
        let others = EXCLUDED.iter().enumerate();
        let twice = others
            .filter(|(other, (it, _))| *other != at && fits(it, pattern.trim_end_matches('*')));
        assert_eq!(twice.count(), 0, "{pattern}");
    }
}

/// What a revision requires, frozen at its release; so many checks have to pass at least,
/// so that an empty run is no success. The suite waits for some things only for a moment of its
/// own, so that it is asked again on a machine that does not run it in that moment.
fn check(revision: &str, passed_min: usize, era: &str) {
    let Some(hosts) = installed() else { return };
    let fixture = format!("test={}{era}", program("fixture-server").display());
    let listed = ["--tools", "progressive", "--disclosure", "full"];
    let passed = "elicitation,sampling,roots,logging";
    let rules = ["--allow", "test.*", "--pass", passed, "--offer", "test"];
    let servers = ["--server", &fixture];
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
    let passed = of_kind(&["SUCCESS"]);
    let is_excluded = |name: &str| EXCLUDED.iter().any(|(pattern, _)| fits(pattern, name));
    let unknown: Vec<_> = failed.iter().filter(|it| !is_excluded(&it.name)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}\n{said}");
    assert!(
        passed.len() >= passed_min,
        "only {} checks passed\n{said}",
        passed.len()
    );
    // Whoever mends one of them takes it off the list.
    let scenarios = checks.iter().filter(|it| is_excluded(&it.name));
    for one in scenarios {
        let pattern = EXCLUDED
            .iter()
            .find(|(pattern, _)| fits(pattern, &one.name));
        let (pattern, _) = pattern.expect("it is excluded");
        assert!(
            failed.iter().any(|it| fits(pattern, &it.name)),
            "{pattern} is excluded, and nothing of it fails any more\n{said}"
        );
    }
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

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
