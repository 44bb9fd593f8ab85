//! What has to hold before a change is merged, in the order of cost.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{paths, tidy};

const STEPS: &[&[&str]] = &[
    &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ],
    &["test", "--workspace"],
];

pub(crate) fn run() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    STEPS.iter().try_for_each(|step| cargo(step))
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let line = format!("cargo {}", arguments.join(" "));
    println!("── {line}");
    let status = Command::new("cargo")
        .args(arguments)
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "`{line}` failed");
    Ok(())
}
