//! Installs the native TypeScript compiler once into `<target>/typescript`, at an exact version,
//! from npm.
//!
//! If it cannot be installed, the tests that need it print one `SKIP:` line and pass. With
//! `AIRLOCK_REQUIRE_TYPESCRIPT=1` they fail instead.

use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::Result;

use crate::binary::target_dir;
use crate::install::{npm_install, once};

const VERSION: &str = "7.0.2";

/// Returns the compiler's path, or `None` after printing a `SKIP:` line with the reason.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    static COMPILER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match COMPILER.get_or_init(|| install().map_err(|e| format!("{e:#}"))) {
        Ok(compiler) => Some(compiler.clone()),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_TYPESCRIPT").is_some() => {
            panic!("TypeScript: {why}")
        }
        Err(why) => {
            // Not through `eprintln!`: the test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: TypeScript: {why}");
            None
        }
    }
}

fn install() -> Result<PathBuf> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let package = format!("@typescript/typescript-{system}-{machine}");
    let wanted = format!("{package}@{VERSION}");
    let folder = once(&target_dir()?, "typescript", &[&wanted], |dir| {
        npm_install(dir, &["--ignore-scripts", &wanted])
    })?;
    Ok(folder.join("node_modules").join(package).join("lib/tsc"))
}
