//! Scripts that fail, each with what a model is told of it: what was wrong, where,
//! and what was there instead. `tests/failing` holds the scripts, and beside each
//! what airlock says of it. With `AIRLOCK_BLESS=1` that is written anew.
//!
//! Both engines say the same, but for the scripts that `quickjs.toml` lists with
//! the reason; for those, what QuickJS says stands in a file of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock::sandbox::JsEngine;
use tests::command::{Ended, Home};
use tests::engine::engine;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("failing")
}

/// Why QuickJS says something else of a script, by the script's file name.
fn exceptions() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("quickjs.toml")).expect("the exceptions");
    toml::from_str(&text).expect("a reason for each script")
}

fn scripts() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).expect("the scripts");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "js" || it == "ts"));
    paths.sort();
    paths
}

/// What a person and a model are told, without what differs from run to run.
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
    // A script that needs other limits says so in its first line.
    let first = text.lines().next().unwrap_or_default();
    if let Some(options) = first.strip_prefix("// run with ") {
        args.extend(options.split_whitespace().map(str::to_owned));
    }
    args.push(name.into_owned());
    let ended = home.run(&args);
    describe(&ended)
}

fn describe(ended: &Ended) -> String {
    let is_about_the_run = |line: &str| line == "calls:" || line.starts_with("run ");
    // What the check said of it beforehand is another matter.
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

/// How often a loop had gone round depends on the machine.
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
fn what_is_said_of_a_script_that_failed() {
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
        // A second look behind a limit is short, and on a busy machine at times too short.
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
fn every_exception_is_about_a_script_and_every_expectation_has_one() {
    let names: Vec<_> = scripts()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    for (name, why) in exceptions() {
        assert!(names.contains(&name), "{name} is no script");
        assert!(!why.trim().is_empty(), "{name}: no reason");
        let own = folder().join(&name).with_extension("quickjs.txt");
        let both = folder().join(&name).with_extension("txt");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_ne!(read(&own), read(&both), "{name} is no exception");
    }
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".txt") else {
            continue;
        };
        let is_of =
            |end: &str| names.contains(&format!("{}{end}", stem.trim_end_matches(".quickjs")));
        assert!(is_of(".js") || is_of(".ts"), "{name} belongs to no script");
    }
}
