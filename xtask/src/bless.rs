//! Rewriting the golden files. The tests do it themselves when asked to.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::paths;

pub(crate) fn run(test_arguments: &[&str]) -> Result<()> {
    let everything: &[&str] = &["--workspace"];
    let arguments = if test_arguments.is_empty() {
        everything
    } else {
        test_arguments
    };
    let status = Command::new("cargo")
        .arg("test")
        .args(arguments)
        .env("AIRLOCK_BLESS", "1")
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    ensure!(
        status.success(),
        "some tests failed; goldens of the others are rewritten"
    );
    println!("goldens are rewritten; look at them with `git diff` before committing");
    Ok(())
}
