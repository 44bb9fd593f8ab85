//! Installs system programs that a test needs, if they are missing and this process is root.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Installs packages after waiting for any other installation. If that fails, refreshes the package
/// index and tries again.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    ensure!(
        rustix::process::getuid().is_root(),
        "only root can install {}",
        packages.join(" ")
    );
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    apt_get(&install)
        .or_else(|_| apt_get(&["update"]).and_then(|()| apt_get(&install)))
        .or_else(|_| apt_get(&install))
}

fn apt_get(words: &[&str]) -> Result<()> {
    let output = Command::new("apt-get")
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args([
            "-o",
            "Acquire::Retries=2",
            "-o",
            "Acquire::http::Timeout=60",
        ])
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .context("apt-get")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("no message on stderr");
    ensure!(output.status.success(), "apt-get: {last}");
    Ok(())
}
