//! `cargo xtask differential`: compares generated programs in the guest and in the bare engine.

use anyhow::{Context, Result, bail, ensure};

use crate::engine::{guest_target, nested_cargo};

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if !matches!(
        words,
        ["--minutes", _] | ["--minutes", _, "--seed", _] | ["--seed", _]
    ) {
        bail!("usage: cargo xtask differential --minutes N [--seed S] | --seed S");
    }
    let mut cargo = nested_cargo("sandbox-guest", &guest_target());
    cargo.args(["run", "--locked", "--profile", "compare"]);
    cargo
        .args(["--package", "guest-differential", "--"])
        .args(words);
    let status = cargo.status().context("cargo could not be started")?;
    ensure!(
        status.success(),
        "some programs print different output; add a file of each to \
         sandbox-guest/differential/tests/found"
    );
    Ok(())
}
