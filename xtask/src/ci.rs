//! The check that a change has to pass, which is one script.

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
        "the check failed; its last lines say where"
    );
    Ok(())
}
