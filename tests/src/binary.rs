//! The `airlock` binary as shipped: built once for all tests, in the same profile as the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Returns the path of the binary. `AIRLOCK_BIN` selects another one to test.
#[must_use]
pub fn airlock() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("AIRLOCK_BIN") {
        Some(path) => path.into(),
        None => build(&["--workspace", "--bin", "airlock"]).expect("the binary builds"),
    })
}

/// Builds one target and returns the path of its executable.
pub fn build(selection: &[&str]) -> Result<PathBuf> {
    let output = cargo()
        .args(["build", "--message-format=json-render-diagnostics"])
        .args(profile()?)
        .args(selection)
        .output()?;
    if !output.status.success() {
        bail!(
            "cargo build {selection:?}:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
        .with_context(|| format!("cargo build {selection:?} built no executable"))
}

/// Returns a command for the cargo that runs these tests. It runs in the workspace, without the
/// environment variables that cargo set for this crate.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace());
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
            "CARGO_PRIMARY_",
        ]
        .iter()
        .any(|p| name.starts_with(p))
        {
            cargo.env_remove(&key);
        }
    }
    cargo
}

/// Returns the root of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this crate's folder has a parent")
}

/// Returns the target folder of this build.
pub fn target_dir() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let profile = test
        .ancestors()
        .find(|dir| dir.file_name().is_some_and(|name| name == "deps"));
    let target = profile.and_then(Path::parent).and_then(Path::parent);
    Ok(target
        .with_context(|| test.display().to_string())?
        .to_owned())
}

fn profile() -> Result<Vec<String>> {
    let test = std::env::current_exe()?;
    let dir = test
        .ancestors()
        .find(|dir| dir.file_name().is_some_and(|name| name == "deps"))
        .and_then(Path::parent);
    let name = dir
        .and_then(Path::file_name)
        .context("the test is not in a profile folder")?
        .to_string_lossy()
        .into_owned();
    let profile = if name == "debug" {
        "dev".to_owned()
    } else {
        name
    };
    Ok(vec![
        "--target-dir".into(),
        target_dir()?.display().to_string(),
        "--profile".into(),
        profile,
    ])
}
