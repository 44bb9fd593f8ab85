//! Failing scripts, each with the error report for the model: the error, its position, and the
//! value that was found. `tests/failing` contains the scripts and their reports. With
//! `AIRLOCK_BLESS=1` the reports are rewritten.
//!
//! Both engines give the same report, except for the scripts that `quickjs.toml` lists with the
//! reason. For those scripts, a separate file contains the report of QuickJS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock::sandbox::JsEngine;
use tests::command::{CommandOutput, Home};
use tests::engine::engine;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("failing")
}

/// Returns why QuickJS reports a script differently, by the script's file name.
fn exceptions() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("quickjs.toml")).expect("quickjs.toml");
    toml::from_str(&text).expect("a reason for each script")
}

fn scripts() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).expect("the scripts");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "js" || it == "ts"));
    paths.sort();
    paths
}

/// Returns the report for a person and a model, without run-specific values.
fn told_of(script: &Path) -> String {
    let home = Home::new();
    let name = script.file_name().expect("a name").to_string_lossy();
    let text = std::fs::read_to_string(script).expect("a script");
    home.write(&name, &text);
    let mut args: Vec<String> = [
        "run", "--json", "--demo", "--allow", "demo.*", "--check", "warn",
    ]
    .map(str::to_owned)
    .to_vec();
    // A script that needs other limits has their flags in its first line.
    let first = text.lines().next().unwrap_or_default();
    if let Some(options) = first.strip_prefix("// run with ") {
        args.extend(options.split_whitespace().map(str::to_owned));
    }
    args.push(name.into_owned());
    let ended = home.run(&args);
    describe(&ended)
}

fn describe(ended: &CommandOutput) -> String {
    let is_about_the_run = |line: &str| line == "calls:" || line.starts_with("run ");
    // The findings of the check before the run are not compared.
    let (_, ending) = ended.stderr.split_once("error: the ").expect("an error");
    let ending = format!("error: the {ending}");
    let mut text: String = ending
        .lines()
        .take_while(|line| !is_about_the_run(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    text = without_rounds(&text);
    let report = ended.json();
    let stack = report["error"]["stack"].as_str().unwrap_or_default();
    if !stack.is_empty() {
        text.push_str("stack:\n");
        text.push_str(stack);
        text.push('\n');
    }
    text
}

/// Replaces the number of rounds of a loop, which depends on the machine.
fn without_rounds(text: &str) -> String {
    let mut parts = text.split("round ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rounds: String = part.chars().take_while(char::is_ascii_digit).collect();
        out.push_str("round ");
        if !rounds.is_empty() {
            assert_ne!(rounds, "0", "{text}");
            out.push('N');
        }
        out.push_str(&part[rounds.len()..]);
    }
    out
}

#[test]
fn failing_scripts_match_error_goldens() {
    let exceptions = exceptions();
    let bless = std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1");
    let mut wrong = Vec::new();
    let scripts = scripts();
    assert!(scripts.len() >= 50, "{} scripts", scripts.len());
    for script in &scripts {
        let name = script.file_name().unwrap().to_string_lossy().into_owned();
        let is_exception = engine() == JsEngine::QuickJs && exceptions.contains_key(&name);
        let golden = script.with_extension(if is_exception { "quickjs.txt" } else { "txt" });
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        let mut told = told_of(script);
        // A second look at a script that reached a limit has little time, and finds nothing on a
        // busy machine.
        for _ in 0..3 {
            if told != expected && told.contains("limit-") {
                told = told_of(script);
            }
        }
        if bless && (engine() == JsEngine::Boa || is_exception) {
            std::fs::write(&golden, &told).unwrap();
        } else if told != expected {
            wrong.push(format!("== {name}\n-- expected\n{expected}-- told\n{told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn exceptions_and_expectations_belong_to_scripts() {
    let names: Vec<_> = scripts()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    for (name, why) in exceptions() {
        assert!(names.contains(&name), "{name}: no such script");
        assert!(!why.trim().is_empty(), "{name}: no reason");
        let own = folder().join(&name).with_extension("quickjs.txt");
        let both = folder().join(&name).with_extension("txt");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_ne!(read(&own), read(&both), "{name}: the reports are equal");
    }
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".txt") else {
            continue;
        };
        let is_of =
            |end: &str| names.contains(&format!("{}{end}", stem.trim_end_matches(".quickjs")));
        assert!(is_of(".js") || is_of(".ts"), "{name}: no such script");
    }
}
