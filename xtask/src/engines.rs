//! `cargo xtask engines`: runs generated scripts in the sandboxes of both engines until the time is
//! up.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::paths;

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if !matches!(
        words,
        ["--minutes", _]
            | ["--minutes", _, "--seed", _]
            | ["--seed", _]
            | ["--show", _]
            | ["--file", _]
    ) {
        bail!("usage: cargo xtask engines --minutes N [--seed S] | --seed S | --show S | --file F");
    }
    let status = Command::new("cargo")
        .args([
            "run",
            "--quiet",
            "--package",
            "tests",
            "--bin",
            "engines",
            "--",
        ])
        .args(words)
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    ensure!(
        status.success(),
        "the engines could not be compared, or they differ on some scripts; the scripts are in \
         target/engines-found; move them to tests/engines/found once the engines agree"
    );
    Ok(())
}
