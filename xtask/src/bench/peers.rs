//! The peers: two npm packages and the Node that runs them. They are installed once into
//! `<target>/peers`, at the versions that `xtask/bench/peers/package.json` pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::engine::Engine;
use crate::paths;

/// The file that marks a complete installation. It contains the `package.json` that was installed.
const MARK: &str = "installed.json";

/// Version of the Node package, because the system's Node may be older.
const NODE: &str = "22.23.3";

pub(super) fn install(target: &Path) -> Result<Vec<Engine>> {
    let (folder, node_package) = installed(target)?;
    engines(&folder, &node_package)
}

/// Returns the command that runs a workload of `bench engine` in quickjs-emscripten.
pub(super) fn quickjs(target: &Path) -> Result<Vec<PathBuf>> {
    let (folder, node_package) = installed(target)?;
    Ok(vec![
        node(&folder, &node_package),
        folder.join("engine.mjs"),
    ])
}

fn installed(target: &Path) -> Result<(PathBuf, String)> {
    let source = paths::root().join("xtask/bench/peers");
    let folder = target.join("peers");
    fs::create_dir_all(&folder)?;
    let files = [
        "package.json",
        "harness.mjs",
        "quickjs.mjs",
        "isolated.mjs",
        "engine.mjs",
    ];
    for file in files {
        fs::copy(source.join(file), folder.join(file))
            .with_context(|| format!("copying {file}"))?;
    }
    let node_package = node_package()?;
    let wanted = format!(
        "{node_package}\n{}",
        fs::read_to_string(folder.join("package.json"))?
    );
    let installed = fs::read_to_string(folder.join(MARK)).unwrap_or_default();
    if installed != wanted {
        npm_install(&folder, &node_package)?;
        fs::write(folder.join(MARK), wanted)?;
    }
    Ok((folder, node_package))
}

fn node(folder: &Path, node_package: &str) -> PathBuf {
    let package = node_package.split('@').next().unwrap_or_default();
    folder.join("node_modules").join(package).join("bin/node")
}

fn node_package() -> Result<String> {
    let machine = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        (system, machine) => {
            bail!("the peers are measured on Linux only, not on {system} {machine}")
        }
    };
    Ok(format!("node-{machine}@{NODE}"))
}

/// Installs the packages without install scripts: isolated-vm brings its own prebuilt modules.
fn npm_install(folder: &Path, node_package: &str) -> Result<()> {
    eprintln!("installing the peers into {}", folder.display());
    let quiet = [
        "--no-audit",
        "--no-fund",
        "--no-save",
        "--no-package-lock",
        "--ignore-scripts",
    ];
    let output = Command::new("npm")
        .arg("install")
        .args(quiet)
        .arg(node_package)
        .current_dir(folder)
        .output()
        .context("npm could not be started; install Node with npm, or run `cargo xtask bench` without peers")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the peers could not be installed:\n{said}"
    );
    Ok(())
}

fn engines(folder: &Path, node_package: &str) -> Result<Vec<Engine>> {
    let node = node(folder, node_package);
    let work = folder.with_file_name("bench").join("work");
    let engine = |name, flags: &[&str], script: &str, note| {
        let mut meter = vec![node.clone()];
        meter.extend(flags.iter().map(PathBuf::from));
        meter.push(folder.join(script));
        let mut cold = meter.clone();
        cold.extend([PathBuf::from("cold"), work.clone(), PathBuf::from("1")]);
        Engine {
            name,
            is_ours: false,
            meter,
            cold,
            variable: None,
            note,
        }
    };
    let pump = "with a hand-written loop on the main thread that calls the tools directly";
    Ok(vec![
        engine("quickjs-emscripten", &[], "quickjs.mjs", None),
        engine(
            "isolated-vm",
            &["--no-node-snapshot"],
            "isolated.mjs",
            Some(pump),
        ),
    ])
}
