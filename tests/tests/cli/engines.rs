//! Tests the engines that a program contains, and the choice between them.

use airlock::sandbox::JsEngine;
use serde_json::Value;
use tests::command::Home;
use tests::engine::carries_both;

fn carried() -> impl Iterator<Item = JsEngine> {
    let engines = JsEngine::ALL.into_iter();
    engines.filter(|engine| *engine != JsEngine::QuickJs || carries_both())
}

#[test]
fn engines_lists_engines_with_imports() {
    let home = Home::new();
    let listed = home.run(["engines", "--json"]).expect_code(0).json();
    for (engine, listed) in JsEngine::ALL
        .into_iter()
        .zip(listed["engines"].as_array().unwrap())
    {
        assert_eq!(listed["name"], engine.name());
        assert_eq!(listed["carried"], engine.image().is_some());
        if engine.image().is_some() {
            assert_eq!(listed["imports"], serde_json::json!([]), "{listed}");
        }
    }
    let text = home.run(["engines"]).expect_code(0).stdout;
    assert!(text.contains("boa  sha256:"), "{text}");
}

#[test]
fn journal_names_the_engine() {
    for engine in carried() {
        let home = Home::new();
        let report = home
            .run([
                "run",
                "--json",
                "--engine",
                engine.name(),
                "-e",
                "return 6 * 7",
            ])
            .expect_code(0)
            .json();
        assert_eq!(report["value"], 42);
        let run = report["run"].as_str().unwrap();
        let shown = home.run(["runs", "show", run, "--json"]);
        let shown = shown.expect_code(0).json();
        let listed = home.run(["engines", "--json"]).expect_code(0).json();
        let mut listed = listed["engines"].as_array().unwrap().iter();
        let this = listed.find(|it| it["name"] == engine.name()).unwrap();
        assert_eq!(shown["engine"]["name"], engine.name());
        assert_eq!(shown["engine"]["digest"], this["digest"]);
    }
}

#[test]
fn unknown_engine_is_a_usage_error() {
    let home = Home::new();
    let ended = home
        .run(["run", "--engine", "v8", "-e", "return 1"])
        .expect_code(2);
    assert!(
        ended.stderr.contains("expected boa or quickjs"),
        "{}",
        ended.stderr
    );
}

#[test]
fn missing_engine_says_how_to_build_it() {
    let home = Home::new();
    for engine in JsEngine::ALL {
        if engine.image().is_some() {
            continue;
        }
        let ended = home
            .run(["run", "--engine", engine.name(), "-e", "return 1"])
            .expect_code(30);
        let how = format!("cargo xtask engine {engine}");
        assert!(ended.stderr.contains(&how), "{}", ended.stderr);
    }
}

#[test]
fn named_time_zone_is_warned_about_per_engine() {
    let script = "return new Date(0).toLocaleString('de', {timeZone: 'Europe/Berlin'}).length > 5";
    for engine in carried() {
        let home = Home::new();
        let ended = home.run(["run", "--json", "--engine", engine.name(), "-e", script]);
        let report = ended.json();
        let is_there = report["value"] == true;
        assert_eq!(is_there, engine.name() == "boa", "{report}");
        let warned = report["findings"]
            .to_string()
            .contains("no time zone `Europe/Berlin`");
        assert_eq!(warned, !is_there, "{report}");
    }
}

/// The features that `airlock engines` lists as missing are missing, and the check warns about
/// them.
#[test]
fn features_missing_in_engine_are_warned_about() {
    for engine in carried() {
        for lacking in engine.lacks() {
            let home = Home::new();
            let script = format!("return [typeof {lacking}, '{lacking}' in globalThis]");
            let with = ["run", "--json", "--engine", engine.name(), "-e"];
            let report = home.run(with.into_iter().chain([&*script]));
            let report = report.expect_code(0).json();
            assert_eq!(report["value"], serde_json::json!(["undefined", false]));
            assert_eq!(
                report["findings"].as_array().map_or(0, Vec::len),
                0,
                "{report}"
            );
            let script = format!("try {{ return {lacking}.x }} catch {{ return 1 }}");
            let report = home.run(with.into_iter().chain([&*script]));
            let report: Value = report.expect_code(0).json();
            let said = report["findings"].to_string();
            assert!(
                said.contains(&format!("no `{lacking}`")),
                "{engine}: {report}"
            );
            // `airlock check --engine` gives the same warning without a run.
            for other in carried() {
                let with = ["check", "--json", "--engine", other.name(), "-e", &script];
                let checked = home.run(with).expect_code(0).json();
                let warns = checked["findings"].to_string().contains("no `");
                let expected = other.lacks().contains(lacking);
                assert_eq!(warns, expected, "{other} {lacking}: {checked}");
            }
        }
    }
    let wrong = Home::new().run(["check", "--engine", "v8", "-e", "return 1"]);
    let wrong = wrong.expect_code(2).stderr;
    assert!(wrong.contains("expected boa or quickjs"), "{wrong}");
}

/// What one call exceeds fails the call with one code, whether the guest or the broker finds it,
/// and whether or not the script catches it.
#[test]
fn arguments_beyond_a_limit_have_one_code_in_every_engine() {
    let calls = [
        "let a = {}; for (let i = 0; i < 300; i++) a = { a }; await demo.logs_query(a)",
        "await demo.logs_query({ service: 'x'.repeat(5e6) })",
        "await demo.logs_query({ service: Array.from({ length: 2000 }, () => 1) })",
    ];
    let limits = ["--limit", "json-nodes=1000"];
    for engine in carried() {
        for call in calls {
            let home = Home::new();
            let run = |script: &str| {
                let args = ["run", "--json", "--engine", engine.name(), "-e", script];
                let rules = ["--demo", "--allow", "demo.*"];
                home.run([&args[..], &rules, &limits].concat())
            };
            let report = run(call).expect_code(21).json();
            let found = (&report["status"], &report["error"]["code"]);
            let expected = (&Value::from("failed"), &Value::from("limit-payload"));
            assert_eq!(found, expected, "{engine} {call}: {report}");
            let caught = format!("try {{ {call} }} catch (e) {{ return [e.name, e.code] }}");
            let report = run(&caught).expect_code(0).json();
            let expected = serde_json::json!(["ToolError", "limit-payload"]);
            assert_eq!(report["value"], expected, "{engine} {call}: {report}");
        }
        // The code belongs to the failed call, not to a text that the script writes.
        let made_up = "throw Object.assign(new Error('x'), { code: 'limit-payload' })";
        let args = ["run", "--json", "--engine", engine.name(), "-e", made_up];
        let report = Home::new().run(args).expect_code(20).json();
        assert_eq!(report["error"]["code"], "script-error", "{engine}");
    }
}
