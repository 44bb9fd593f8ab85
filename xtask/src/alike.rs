//! `cargo xtask alike`: made-up programs in the guest and in the bare engine, for as long as
//! there is time.

use anyhow::{Context, Result, bail, ensure};

use crate::engine::{guest_target, nested_cargo};

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if !matches!(
        words,
        ["--minutes", _] | ["--minutes", _, "--seed", _] | ["--seed", _]
    ) {
        bail!("usage: cargo xtask alike --minutes N [--seed S] | --seed S");
    }
    let mut cargo = nested_cargo("sandbox-guest", &guest_target());
    cargo.args(["run", "--locked", "--profile", "compare"]);
    cargo.args(["--package", "guest-alike", "--"]).args(words);
    let status = cargo.status().context("cargo could not be started")?;
    ensure!(
        status.success(),
        "some programs do not show the same in both; a file of each goes to \
         sandbox-guest/alike/tests/found"
    );
    Ok(())
}
