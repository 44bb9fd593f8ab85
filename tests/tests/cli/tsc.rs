//! Tests the TypeScript compiler in the check before a run: its findings, and that every command
//! works without the compiler.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use tests::binary::workspace;
use tests::command::{CommandOutput, Home, start};
use tests::patience::PATIENCE;

const SCRIPT: &str = "const all = [\"a\"];\nreturn all.lenght ?? 7;";

fn fake(name: &str) -> String {
    let path = workspace().join("tests/fakes/tsc").join(name).join("tsc");
    path.display().to_string()
}

/// Repeats the command until the compiler answers in time, because its time limit is too short for
/// a busy machine.
fn heard(ask: impl Fn() -> CommandOutput) -> CommandOutput {
    let since = Instant::now();
    loop {
        let ended = ask();
        if !ended.stdout.contains("longer than 5000 ms") || since.elapsed() > PATIENCE {
            return ended;
        }
    }
}

fn run(home: &Home, more: &[&str]) -> CommandOutput {
    let mut args = vec!["run", "--json", "--demo", "-e", SCRIPT];
    args.extend(more);
    home.run(args)
}

fn places(findings: &Value) -> Vec<String> {
    let place = |it: &Value| {
        let (severity, code) = (it["severity"].as_str(), it["code"].as_str());
        let (severity, code) = (severity.unwrap(), code.unwrap());
        format!("{}:{} {severity} {code}", it["line"], it["column"])
    };
    findings.as_array().unwrap().iter().map(place).collect()
}

#[test]
fn compiler_findings_are_reported_and_stop_nothing() {
    let home = Home::new();
    let ended = heard(|| run(&home, &["--tsc", &fake("right")])).expect_code(0);
    let report = ended.json();
    assert_eq!(report["value"], 7);
    assert_eq!(places(&report["findings"]), ["2:10 warning ts2551"]);
    assert_eq!(
        report["findings"][0]["suggestion"],
        "Did you mean `length`?"
    );
    for part in ["warning:", ":2:10:", "return all.lenght ?? 7;", "ts2551"] {
        assert!(ended.stderr.contains(part), "no {part} in\n{ended}");
    }
    // The findings were sent to the host, so the journal contains them.
    let run = report["run"].as_str().unwrap();
    let shown = home.run(["runs", "show", run, "--json"]).expect_code(0);
    assert_eq!(shown.json()["findings"], report["findings"]);
    home.verify_all();
    let left = std::fs::read_dir(home.path().join(".local/state/airlock/scratch"));
    assert_eq!(left.unwrap().count(), 0);
}

#[test]
fn unusable_compiler_is_a_note() {
    for (name, why) in [
        ("garbage", "panic: runtime error"),
        ("huge", "longer than 262144 bytes"),
        ("silent", "printed nothing"),
        ("hanging", "longer than 5000 ms"),
        ("nowhere", "cannot be started"),
    ] {
        let home = Home::new();
        let ask = || run(&home, &["--tsc", &fake(name)]);
        let ended = match name {
            "hanging" => ask(),
            _ => heard(ask),
        };
        let ended = ended.expect_code(0);
        let report = ended.json();
        assert_eq!(report["value"], 7, "{name}");
        assert_eq!(places(&report["findings"]), ["0:0 note tsc-unheard"]);
        let message = report["findings"][0]["message"].as_str().unwrap();
        assert!(message.contains(why), "{name}: {message}");
        assert!(!report.to_string().contains("fakes"), "{report}");
        assert!(
            ended.stderr.contains("did not use the TypeScript compiler"),
            "{ended}"
        );
        home.verify_all();
    }
}

#[test]
fn check_asks_compiler_and_fails_only_on_own_errors() {
    let home = Home::new();
    let script = home.write("a.js", SCRIPT);
    let tools = home.write("tools.json", json!({"tools": []}).to_string());
    let args = |more: &[&str]| {
        let mut args = vec!["check", script.to_str().unwrap(), "--json"];
        args.extend(["--from", tools.to_str().unwrap()]);
        args.extend(more);
        args.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let found = heard(|| home.run(args(&["--tsc", &fake("right")]))).expect_code(0);
    assert_eq!(found.json()["ok"], true);
    assert_eq!(places(&found.json()["findings"]), ["2:10 warning ts2551"]);
    let found = home.run(args(&["--no-tsc"])).expect_code(0);
    assert_eq!(found.json()["findings"], json!([]));
    home.run(args(&["--no-tsc", "--tsc", &fake("right")]))
        .expect_code(2);
}

#[test]
fn compiler_on_path_is_used_unless_disabled() {
    let home = Home::new();
    let folder = PathBuf::from(fake("right")).parent().unwrap().to_owned();
    let system = std::env::var("PATH").unwrap();
    let with_path = |more: &[&str]| {
        let mut args = vec!["check", "-e", SCRIPT, "--json", "--demo"];
        args.extend(more);
        let ended = heard(|| {
            let mut command: Command = home.airlock(&args);
            command.env("PATH", format!("{}:{system}", folder.display()));
            start(&mut command, "").wait()
        });
        ended.expect_code(0).json()["findings"].clone()
    };
    assert_eq!(places(&with_path(&[])), ["2:10 warning ts2551"]);
    assert_eq!(with_path(&["--no-tsc"]), json!([]));
    let no = home.write("no.toml", "tsc = false\n");
    assert_eq!(with_path(&["--config", no.to_str().unwrap()]), json!([]));
    // A relative path in a configuration file is relative to that file.
    std::os::unix::fs::symlink(fake("garbage"), home.path().join("mine")).unwrap();
    let mine = home.write("mine.toml", "tsc = \"mine\"\n");
    let found = with_path(&["--config", mine.to_str().unwrap()]);
    assert_eq!(places(&found), ["0:0 note tsc-unheard"]);
    let both = ["--config", mine.to_str().unwrap(), "--tsc", &fake("right")];
    assert_eq!(places(&with_path(&both)), ["2:10 warning ts2551"]);
}

#[test]
fn native_compiler_follows_results_beyond_check() {
    let Some(tsc) = tests::typescript::installed() else {
        return;
    };
    let tsc = tsc.display().to_string();
    for (name, script, expected) in [
        (
            "a.ts",
            "type Level = \"debug\" | \"error\";\n\
             async function count(level: Level): Promise<string> {\n\
             \u{20} return await demo.logs_count({ level });\n\
             }\n\
             return await count(\"error\");",
            "3:3 warning ts2322",
        ),
        (
            "b.js",
            "const all = await Promise.all([\"debug\", \"error\"].map((level) => demo.logs_query({ limit: 1 })));\n\
             \"\u{1f600}\"; return all.map((it) => it.truncatd);",
            "2:32 warning ts2551",
        ),
        (
            "c.js",
            "async (input) => {\n  const { entries } = await demo.logs_query({});\n  return entries.map((it) => it.trace.length);\n}",
            "3:30 warning ts18048",
        ),
    ] {
        let home = Home::new();
        let script = home.write(name, script);
        let args = ["check", script.to_str().unwrap(), "--demo", "--json"];
        let found = heard(|| home.run(args.into_iter().chain(["--tsc", &tsc])));
        let found = found.expect_code(0).json();
        assert_eq!(places(&found["findings"]), [expected], "{found:#}");
    }
}
