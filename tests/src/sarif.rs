//! The published schema of SARIF 2.1.0, from an npm package of an exact version, unpacked once into
//! `<target>/sarif`. No code of the package runs.
//!
//! If the schema is not available, the tests that need it print one `SKIP:` line and make only
//! their other checks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::binary::target_dir;
use crate::install::{once, run};

const PACKAGE: &str = "@microsoft/jest-sarif@1.0.0-beta.0";
const SCHEMA: &str = "package/lib/schemas/sarif-2.1.0-rtm.5.json";

/// Returns the path of the schema.
pub fn schema() -> Result<PathBuf> {
    let folder = once(&target_dir()?, "sarif", &[PACKAGE], |dir| {
        run(Command::new("npm")
            .args(["pack", "--silent", PACKAGE])
            .current_dir(dir))?;
        let mut archives = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path());
        let archive = archives.find(|path| path.extension().is_some_and(|it| it == "tgz"));
        ensure!(archive.is_some(), "npm downloaded no archive");
        run(Command::new("tar")
            .arg("-xzf")
            .args(archive)
            .arg(SCHEMA)
            .current_dir(dir))
    })?;
    Ok(folder.join(SCHEMA))
}
