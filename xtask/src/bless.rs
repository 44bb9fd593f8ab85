//! Rewrites the golden files, by running the tests with `AIRLOCK_BLESS=1`.

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
        "some tests failed; the goldens of the other tests were rewritten"
    );
    println!("goldens were rewritten; check them with `git diff` before committing");
    Ok(())
}
