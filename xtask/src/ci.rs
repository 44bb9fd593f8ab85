//! Runs `.ci/run`, the checks that every change must pass.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::paths;

pub(crate) fn run() -> Result<()> {
    let status = Command::new("bash")
        .arg(".ci/run")
        .current_dir(paths::root())
        .status()
        .context("bash could not be started")?;
    ensure!(
        status.success(),
        "a check failed; see the last lines of its output"
    );
    Ok(())
}
