//! `cargo xtask engines`: made-up scripts in the cages of both engines, for as long as there is
//! time.

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
        "the engines were not compared, or some scripts do not show the same in both; what was \
         found lies in target/engines-found, and goes to tests/engines/found once it is mended"
    );
    Ok(())
}
