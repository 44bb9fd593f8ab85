//! Builds airlock for the benchmarks: the binary and the meter, in release mode, or with the profile
//! that `AIRLOCK_BENCH_PROFILE` names.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::engine::Engine;
use super::engine_name::EngineName;
use crate::paths;

/// The bench target of crate `airlock` that measures the rows.
const METER: &str = "meter";

pub(super) fn build(target: &Path, which: EngineName) -> Result<Engine> {
    eprintln!("building airlock and its meter ({})", profile());
    let built = cargo_build()?;
    let binary = binary_of(&built)?;
    let meter = built
        .iter()
        .find(|(name, _)| name == METER)
        .context("no meter was built")?;
    let state = target.join("bench").join("state");
    let mut cold = vec![binary];
    cold.extend(["run", "-e", "return 1+1", "--state-dir"].map(PathBuf::from));
    cold.push(state);
    Ok(Engine {
        name: "airlock",
        is_ours: true,
        meter: vec![meter.1.clone()],
        cold,
        variable: Some(which.variable()),
        note: None,
    })
}

/// Returns the command that runs a script, without the script.
pub(super) fn binary(target: &Path) -> Result<Vec<PathBuf>> {
    eprintln!("building airlock ({})", profile());
    let mut words = vec![binary_of(&cargo_build()?)?];
    words.extend(["run", "--state-dir"].map(PathBuf::from));
    words.push(target.join("bench").join("state"));
    Ok(words)
}

/// Returns the binary of a plain build.
pub(super) fn shipped() -> Result<PathBuf> {
    eprintln!("building airlock (cargo build --profile {})", profile());
    binary_of(&executables(&["build", "--profile", &profile()])?)
}

fn binary_of(built: &[(String, PathBuf)]) -> Result<PathBuf> {
    let binary = built.iter().find(|(name, _)| name == "airlock");
    let (_, path) = binary.context("no binary was built")?;
    Ok(path.clone())
}

fn cargo_build() -> Result<Vec<(String, PathBuf)>> {
    executables(&[
        "build",
        "--profile",
        &profile(),
        "--package",
        "airlock",
        "--bin",
        "airlock",
        "--bench",
        METER,
    ])
}

fn profile() -> String {
    std::env::var("AIRLOCK_BENCH_PROFILE").unwrap_or_else(|_| "release".to_owned())
}

/// Returns the names and paths of the executables of a build.
fn executables(words: &[&str]) -> Result<Vec<(String, PathBuf)>> {
    let mut child = Command::new("cargo")
        .args(words)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(paths::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo could not be started")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let mut built = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let message: Value = serde_json::from_str(&line?).unwrap_or_default();
        let name = message.pointer("/target/name").and_then(Value::as_str);
        let path = message.get("executable").and_then(Value::as_str);
        built.extend(
            name.zip(path)
                .map(|(name, path)| (name.to_owned(), PathBuf::from(path))),
        );
    }
    ensure!(child.wait()?.success(), "the build failed");
    Ok(built)
}
