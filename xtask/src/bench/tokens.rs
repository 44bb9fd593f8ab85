//! Counts the model tokens of declarations at each level, and of the JSON that the servers sent.
//! The counter is an npm package, installed once into `<target>/tokens` at the version that
//! `xtask/bench/tokens/package.json` pins.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::paths;

/// The file that marks a complete installation. It contains the `package.json` that was installed.
const MARK: &str = "installed.json";

/// Counts the tokens of the files in `words`, which contain `tools/list` results. Without files,
/// counts the tokens of the corpus.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let files = if words.is_empty() {
        corpus()?
    } else {
        words.iter().map(PathBuf::from).collect()
    };
    let counter = install(&paths::target().join("tokens"))?;
    let texts = render(&files)?;
    count(&counter, &texts)
}

fn corpus() -> Result<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("AIRLOCK_CORPUS") else {
        bail!(
            "nothing to measure: pass files with `tools/list` results, \
             or set AIRLOCK_CORPUS to the folder that contains `tools/*.json`"
        );
    };
    let folder = PathBuf::from(folder).join("tools");
    let listed = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    ensure!(!files.is_empty(), "no *.json in {}", folder.display());
    files.sort();
    Ok(files)
}

fn install(folder: &Path) -> Result<PathBuf> {
    let source = paths::root().join("xtask/bench/tokens");
    fs::create_dir_all(folder)?;
    for file in ["package.json", "count.mjs"] {
        fs::copy(source.join(file), folder.join(file))
            .with_context(|| format!("copying {file}"))?;
    }
    let wanted = fs::read_to_string(folder.join("package.json"))?;
    let mark = folder.join(MARK);
    if fs::read_to_string(&mark).unwrap_or_default() != wanted {
        eprintln!("installing the tokenizer into {}", folder.display());
        let output = Command::new("npm")
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--no-package-lock",
                "--ignore-scripts",
            ])
            .current_dir(folder)
            .output()
            .context("npm could not be started; tokens are counted by an npm package")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "the tokenizer could not be installed:\n{said}"
        );
        fs::write(mark, wanted)?;
    }
    Ok(folder.join("count.mjs"))
}

/// Returns one line of JSON per file, printed by an example that renders the declarations at every
/// level.
fn render(files: &[PathBuf]) -> Result<Vec<u8>> {
    let mut files_from_here = Vec::new();
    for file in files {
        let whole =
            fs::canonicalize(file).with_context(|| format!("reading {}", file.display()))?;
        files_from_here.push(whole);
    }
    let output = Command::new("cargo")
        .args([
            "run",
            "--quiet",
            "-p",
            "codegen",
            "--example",
            "levels",
            "--",
        ])
        .args(files_from_here)
        .current_dir(paths::root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be started")?;
    ensure!(
        output.status.success(),
        "the declarations could not be rendered"
    );
    Ok(output.stdout)
}

fn count(counter: &Path, texts: &[u8]) -> Result<()> {
    let mut node = Command::new("node")
        .arg(counter)
        .stdin(Stdio::piped())
        .spawn()
        .context("node could not be started; tokens are counted by an npm package")?;
    let mut stdin = node.stdin.take().context("node has no stdin")?;
    stdin.write_all(texts)?;
    drop(stdin);
    ensure!(node.wait()?.success(), "a level exceeds its limit");
    Ok(())
}
