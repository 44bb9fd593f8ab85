//! Checks the text of the project for faults that no compiler reports. A finding must be fixed, or
//! listed in [`allowed`] with a reason.

mod allowed;
mod circles;
mod markdown;
mod rust;
mod security;
mod words;

use std::fmt;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::paths;

/// The rule that a finding violates. Exceptions name a rule and a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Header,
    Unsafe,
    Unfinished,
    MachinePath,
    RegistryHost,
    Link,
    DesignList,
    SecurityTest,
    ImportCircle,
}

/// A text file of the project. Its path is relative to the project's root.
struct File {
    path: String,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    rule: Rule,
    path: String,
    /// Line number, from 1.
    line: usize,
    what: String,
}

pub(crate) fn run() -> Result<()> {
    let files = files()?;
    let mut findings: Vec<Finding> = files
        .iter()
        .flat_map(|file| check_file(file, &files))
        .collect();
    findings.extend(markdown::unlisted_designs(&files));
    findings.extend(security::check(&files));
    findings.extend(circles::check(&files));
    let unused = allowed::unused(&findings);
    findings.retain(|finding| !allowed::excepts(finding));
    for finding in &findings {
        eprintln!("{finding}");
    }
    for exception in &unused {
        eprintln!("xtask/src/tidy/allowed.rs: {exception} has no finding; remove it");
    }
    let count = findings.len() + unused.len();
    ensure!(
        count == 0,
        "{count} findings; fix them, or add exceptions with a reason to xtask/src/tidy/allowed.rs"
    );
    println!("tidy: {} files, nothing found", files.len());
    Ok(())
}

fn check_file(file: &File, all: &[File]) -> Vec<Finding> {
    let mut findings = words::check(file);
    if file.path.ends_with(".rs") {
        findings.extend(rust::check(file));
    }
    if file.path.ends_with(".md") {
        findings.extend(markdown::dead_links(file, all));
    }
    findings
}

/// Returns all text files of the project, including files that are not yet committed.
fn files() -> Result<Vec<File>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(paths::root())
        .output()
        .context("git could not be started")?;
    if !output.status.success() {
        bail!(
            "git cannot list the files: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in names.split('\0').filter(|name| !name.is_empty()) {
        // Skips deleted files and files that are not text.
        if let Ok(text) = fs::read_to_string(paths::root().join(path)) {
            files.push(File {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}

impl Finding {
    fn new(rule: Rule, file: &File, line: usize, what: impl Into<String>) -> Self {
        Self {
            rule,
            path: file.path.clone(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {} ({:?})",
            self.path, self.line, self.what, self.rule
        )
    }
}
