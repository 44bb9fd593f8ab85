//! Tests that the Rust output compiles: for the fixtures, and for the corpus if `AIRLOCK_CORPUS`
//! names one. The output is compiled with the `serde` that this build has compiled, so nothing is
//! fetched and nothing else is built.
#![expect(clippy::disallowed_methods, reason = "a compiler reads files")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its input has failed"
)]

#[path = "shared/tools.rs"]
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::SystemTime;

use codegen::rust;
use tools::Tools;

/// The compiled library of each crate, by name.
type Crates = Vec<(&'static str, PathBuf)>;

/// The crates that the output needs.
const CRATES: [&str; 2] = ["serde", "serde_json"];

/// Returns the folder with the compiled dependencies of this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// Returns all existing builds of a crate, newest first.
fn builds_of(name: &str) -> Vec<PathBuf> {
    let begin = format!("lib{name}-");
    let entries = fs::read_dir(built()).unwrap().map(|it| it.unwrap().path());
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .filter(|it| it.extension().is_some_and(|it| it == "rlib"))
        .filter(|it| {
            it.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(&begin)
        })
        .map(|it| (fs::metadata(&it).unwrap().modified().unwrap(), it))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Returns one build of each crate, such that the builds fit together, or `None` after printing the
/// reason. The result is cached, because the tests share a folder.
fn fitting() -> Option<&'static Crates> {
    static FITTING: OnceLock<Option<Crates>> = OnceLock::new();
    FITTING.get_or_init(find_fitting).as_ref()
}

fn find_fitting() -> Option<Crates> {
    let [serde, serde_json] = CRATES.map(builds_of);
    let probe = "pub fn probe(v: serde_json::Value) -> impl serde::Serialize { v }\n\
                 #[derive(serde::Serialize, serde::Deserialize)] pub struct Probe;\n";
    let mut why = "no build of serde exists".to_owned();
    for first in &serde {
        for second in &serde_json {
            let pair = vec![(CRATES[0], first.clone()), (CRATES[1], second.clone())];
            match compile("probe", probe, &pair) {
                Ok(output) if output.status.success() => return Some(pair),
                Ok(output) => why = String::from_utf8_lossy(&output.stderr).into_owned(),
                Err(error) => why = format!("rustc cannot be started: {error}"),
            }
        }
    }
    let why = why.lines().next().unwrap_or_default().to_owned();
    println!("SKIP: the Rust output is not compiled: {why}");
    None
}

fn compile(name: &str, text: &str, crates: &[(&str, PathBuf)]) -> std::io::Result<Output> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-output");
    fs::create_dir_all(&folder)?;
    let source = folder.join(format!("{name}.rs"));
    fs::write(&source, text)?;
    let mut rustc = Command::new("rustc");
    rustc
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
        ])
        // Warnings are errors: a project that embeds the output may deny them.
        .args(["--deny", "warnings", "--crate-name", name])
        .arg("--out-dir")
        .arg(&folder)
        .arg("-L")
        .arg(format!("dependency={}", built().display()))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, path) in crates {
        rustc
            .arg("--extern")
            .arg(format!("{name}={}", path.display()));
    }
    rustc.arg(&source).output()
}

fn check(prefix: &str, sets: &[Tools]) {
    let Some(crates) = fitting() else { return };
    let mut tools = 0;
    for set in sets {
        let types = rust::of_tools(&set.descriptions);
        let name = format!("{prefix}_{}", set.name.replace('-', "_"));
        let output = compile(&name, &types.text, crates).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let first: String = said.lines().take(40).collect::<Vec<_>>().join("\n");
        assert!(output.status.success(), "{name}:\n{first}");
        tools += set.descriptions.len();
        for tool in &types.degraded {
            for found in &tool.found {
                assert!(!found.reason.is_empty(), "{tool:?}");
            }
        }
    }
    println!(
        "the Rust output of {tools} tools in {} crates compiles",
        sets.len()
    );
}

#[test]
fn rust_output_of_fixtures_compiles() {
    check("fixtures", &tools::fixtures());
}

#[test]
fn rust_output_of_corpus_compiles() {
    if let Some(sets) = tools::corpus() {
        check("corpus", &sets);
    }
}
