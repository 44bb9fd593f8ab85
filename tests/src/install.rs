//! Fills a folder from npm or PyPI, once for all tests and all programs that share it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

/// Maximum number of attempts when a registry does not answer or a download breaks off.
const TRIES: u32 = 3;
/// Pause after the first failed attempt; each further pause is twice as long.
const PAUSE: Duration = Duration::from_secs(2);

/// Fills a folder once. A stamp file names the content and is written last. Other callers, also in
/// other processes, wait until the folder is filled.
pub(crate) fn once(
    root: &Path,
    name: &str,
    versions: &[&str],
    fill: impl Fn(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let dir = root.join(name);
    let stamp = dir.join("installed.txt");
    let wanted = versions.join("\n");
    let is_there = || std::fs::read_to_string(&stamp).is_ok_and(|there| there == wanted);
    if is_there() {
        return Ok(dir);
    }
    std::fs::create_dir_all(root)?;
    // Held until this function or the process ends.
    let lock = File::create(root.join(format!("{name}.lock")))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    if is_there() {
        return Ok(dir);
    }
    let fresh = || -> Result<()> {
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        fill(&dir)
    };
    let mut filled = fresh();
    for tried in 1..TRIES {
        if filled.is_err() {
            std::thread::sleep(PAUSE * tried);
            filled = fresh();
        }
    }
    filled.with_context(|| format!("installing {}", versions.join(" ")))?;
    std::fs::write(stamp, wanted)?;
    Ok(dir)
}

/// Runs npm with additional options or packages.
pub(crate) fn npm_install(dir: &Path, packages: &[&str]) -> Result<()> {
    std::fs::write(dir.join("package.json"), r#"{"private":true}"#)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--save-exact", "--no-audit", "--no-fund"])
        .args(["--fetch-timeout=60000", "--fetch-retries=1"])
        .args([
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=5000",
        ])
        .args(packages)
        .current_dir(dir);
    run(&mut npm)
}

pub(crate) fn venv(dir: &Path, packages: &[&str]) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    run(Command::new(dir.join("bin/pip"))
        .args(["install", "--quiet", "--timeout=30", "--retries=2"])
        .args(packages))
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("{:?}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no message on stderr");
    bail!("{:?} failed: {last}", command.get_program())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn shared_folder_is_installed_once_per_version() {
        let root = TempDir::new().unwrap();
        let filled = AtomicU32::new(0);
        let fill = |dir: &Path| {
            filled.fetch_add(1, Ordering::SeqCst);
            Ok(std::fs::write(dir.join("it"), "whole")?)
        };
        let want = |version| {
            let dir = once(root.path(), "some", &[version], fill).unwrap();
            assert_eq!(std::fs::read_to_string(dir.join("it")).unwrap(), "whole");
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| want("one@1"));
            }
        });
        assert_eq!(filled.load(Ordering::SeqCst), 1);
        want("one@2");
        assert_eq!(filled.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn interrupted_installation_is_restarted() {
        let root = TempDir::new().unwrap();
        let tried = AtomicU32::new(0);
        let fill = |dir: &Path| {
            assert_eq!(std::fs::read_dir(dir)?.count(), 0, "folder not empty");
            std::fs::write(dir.join("half"), "")?;
            match tried.fetch_add(1, Ordering::SeqCst) {
                0 => bail!("the registry closed the connection"),
                _ => Ok(()),
            }
        };
        assert!(once(root.path(), "some", &["one@1"], fill).is_ok());
        assert_eq!(tried.load(Ordering::SeqCst), 2);
    }
}
