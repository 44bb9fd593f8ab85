//! Includes the image of the QuickJS guest if `cargo xtask engine quickjs` has built one from the
//! current sources. Without an image the build continues, and the program contains only Boa:
//! QuickJS needs a C compiler, which an ordinary build must not need.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// Overrides the folder in which guests are built, as for the Boa guest.
const TARGET_DIR_ENV: &str = "AIRLOCK_GUEST_TARGET_DIR";

/// The list of an image's sources, one line per file: its hash, and its path from the project's
/// root.
const MADE_FROM: &str = "made-from";

fn main() -> ExitCode {
    match find() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn find() -> Result<(), String> {
    println!("cargo::rustc-check-cfg=cfg(has_quickjs)");
    println!("cargo::rerun-if-env-changed={TARGET_DIR_ENV}");
    println!("cargo::rerun-if-changed=build.rs");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target_dir = match env::var_os(TARGET_DIR_ENV) {
        Some(given) => PathBuf::from(given),
        None => target_root(&out)?.join("guest"),
    };
    // Cargo can watch an existing folder; a missing one would run this script every time.
    let engines = target_dir.join("engines");
    fs::create_dir_all(&engines).map_err(|why| format!("{}: {why}", engines.display()))?;
    println!("cargo::rerun-if-changed={}", engines.display());

    let made = engines.join("quickjs").join(variable("TARGET")?);
    let Ok(sources) = fs::read_to_string(made.join(MADE_FROM)) else {
        return Ok(());
    };
    let root = here.join("../..");
    for path in sources.lines().filter_map(|line| line.split_once(' ')) {
        println!("cargo::rerun-if-changed={}", root.join(path.1).display());
    }
    if !sources.lines().all(|line| is_unchanged(&root, line)) {
        return Ok(());
    }
    for file in ["quickjs.cwasm", "quickjs.sha256"] {
        fs::copy(made.join(file), out.join(file)).map_err(|why| format!("{file}: {why}"))?;
    }
    let digest = fs::read_to_string(out.join("quickjs.sha256")).map_err(|why| why.to_string())?;
    println!("cargo::rustc-env=GUEST_QUICKJS_SHA256={}", digest.trim());
    println!("cargo::rustc-cfg=has_quickjs");
    Ok(())
}

/// Whether a source is unchanged; `cargo xtask engine` hashes in the same way.
fn is_unchanged(root: &Path, line: &str) -> bool {
    let Some((hash, path)) = line.split_once(' ') else {
        return false;
    };
    let Ok(bytes) = fs::read(root.join(path)) else {
        return false;
    };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish()) == hash
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|why| format!("{name}: {why}"))
}

/// Returns the target folder of the build: the closest parent folder that cargo marked as one.
fn target_root(out: &Path) -> Result<PathBuf, String> {
    out.ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").exists())
        .or_else(|| out.ancestors().nth(4))
        .map(Path::to_owned)
        .ok_or_else(|| format!("no target folder above {}", out.display()))
}
