//! Checks on the text of the project that no compiler makes. A finding is
//! fixed, or excepted by name and with a reason in [`allowed`].

mod allowed;
mod markdown;
mod rust;
mod words;

use std::fmt;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::paths;

/// What a finding is about; exceptions are made per rule and file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Header,
    Unsafe,
    Unfinished,
    MachinePath,
    RegistryHost,
    Link,
    DesignList,
}

/// A text file of the project, its path relative to the root.
struct File {
    path: String,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    rule: Rule,
    path: String,
    /// 1-based.
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
    let unused = allowed::unused(&findings);
    findings.retain(|finding| !allowed::excepts(finding));
    for finding in &findings {
        eprintln!("{finding}");
    }
    for exception in &unused {
        eprintln!("xtask/src/tidy/allowed.rs: nothing needs {exception} any more; remove it");
    }
    let count = findings.len() + unused.len();
    ensure!(
        count == 0,
        "{count} findings; fix them, or except them with a reason in xtask/src/tidy/allowed.rs"
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

/// Every text file that is, or is about to be, part of the project.
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
        // What is deleted and not yet committed has no text; neither has a picture.
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
