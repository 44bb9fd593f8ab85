//! The TypeScript compiler, where there is one: the only room that starts it. It
//! gets files of its own, a time and a bound on what it may say, and no word of
//! it decides anything.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use codegen::check::Finding;
use codegen::check::typed::{Page, TypedFindings};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::config::TscChoice;
use crate::process_group::ProcessGroup;

/// The first one that is native: it answers before anybody notices that it was asked.
const MAJOR_MIN: u64 = 7;
const WALL: Duration = Duration::from_secs(5);
const SAID_BYTES_MAX: u64 = 256 * 1024;
/// Folders of the path that are looked into.
const FOLDERS_MAX: usize = 64;

/// The compiler that a broker or a command asks.
#[derive(Debug)]
pub(crate) struct Compiler {
    choice: TscChoice,
    env: Vec<(String, String)>,
    /// Below it, a folder for each question.
    scratch: PathBuf,
    /// Where scripts and servers are at work; no program from there is taken unasked.
    here: Option<PathBuf>,
    wall: Duration,
    found: OnceCell<Option<PathBuf>>,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// There is no compiler, and nobody named one.
    Nobody,
    Findings(TypedFindings),
    /// It gave no answer that can be used. No path of this machine stands in it.
    Nothing {
        why: String,
    },
}

impl Compiler {
    /// `env` is all that it finds in its environment.
    pub(crate) fn new(choice: TscChoice, env: Vec<(String, String)>, state_dir: &Path) -> Self {
        Self {
            choice,
            env,
            scratch: state_dir.join("scratch"),
            here: std::env::current_dir().ok(),
            wall: WALL,
            found: OnceCell::new(),
        }
    }

    pub(crate) fn is_nobody(&self) -> bool {
        self.choice == TscChoice::Never
    }

    /// Asks about a script; `own` findings are not repeated.
    pub(crate) async fn ask(&self, page: &Page<'_>, own: &[Finding]) -> Heard {
        let answer = async {
            let program = self.program().await?;
            Some(self.converse(program, page, own).await)
        };
        match tokio::time::timeout(self.wall, answer).await {
            Ok(None) => Heard::Nobody,
            Ok(Some(Ok(findings))) => Heard::Findings(findings),
            Ok(Some(Err(why))) => Heard::Nothing { why },
            Err(_) => Heard::Nothing {
                why: format!("it took longer than {} ms", self.wall.as_millis()),
            },
        }
    }

    async fn program(&self) -> Option<&PathBuf> {
        let found = self.found.get_or_init(|| async {
            match &self.choice {
                TscChoice::Never => None,
                TscChoice::At(program) => Some(program.clone()),
                TscChoice::OnPath => self.look_around().await,
            }
        });
        found.await.as_ref()
    }

    /// The first one on the path that is new enough and is nobody's project's.
    async fn look_around(&self) -> Option<PathBuf> {
        let path = self.env.iter().find(|(name, _)| name == "PATH");
        let folders = std::env::split_paths(path.map_or("", |(_, path)| path.as_str()));
        let found: Vec<_> = folders
            .filter(|folder| is_of_the_machine(folder))
            .take(FOLDERS_MAX)
            .map(|it| it.join("tsc"))
            .filter(|it| it.is_file() && !self.is_from_here(it))
            .collect();
        for program in found {
            let is_old = package_major(&program).is_some_and(|major| major < MAJOR_MIN);
            if !is_old && self.major(&program).await.is_some_and(|it| it >= MAJOR_MIN) {
                return Some(program);
            }
        }
        None
    }

    /// A tool that may write into the folder that airlock was started in could have put it
    /// there. What cannot be looked up is taken for such a one.
    fn is_from_here(&self, program: &Path) -> bool {
        let Some(here) = &self.here else { return true };
        let (Ok(here), Ok(behind_links)) = (here.canonicalize(), program.canonicalize()) else {
            return true;
        };
        program.starts_with(&here) || behind_links.starts_with(&here)
    }

    /// `Version 7.0.2`
    async fn major(&self, program: &Path) -> Option<u64> {
        let said = self
            .run(program, &["--version"], Path::new("/"))
            .await
            .ok()?;
        major(said.trim().strip_prefix("Version ")?)
    }

    async fn converse(
        &self,
        program: &Path,
        page: &Page<'_>,
        own: &[Finding],
    ) -> Result<TypedFindings, String> {
        let folder = Folder::new(&self.scratch)
            .and_then(|folder| folder.fill(page).map(|()| folder))
            .map_err(|error| format!("it has no place for its files: {error}"))?;
        let said = self.run(program, &page.args(), &folder.0).await?;
        page.findings(&said, own).map_err(|error| error.to_string())
    }

    /// What it says. How it ends says only whether it found something.
    async fn run(&self, program: &Path, args: &[&str], folder: &Path) -> Result<String, String> {
        let program = program.canonicalize().map_err(unstartable)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut group = ProcessGroup::spawn(&mut command).map_err(unstartable)?;
        let stdout = group.child.stdout.take().ok_or("it has no output")?;
        let mut said = Vec::new();
        let bounded = &mut stdout.take(SAID_BYTES_MAX + 1);
        let heard = bounded.read_to_end(&mut said).await;
        heard.map_err(|error| format!("it cannot be heard: {error}"))?;
        if said.len() as u64 > SAID_BYTES_MAX {
            return Err(format!("its output is longer than {SAID_BYTES_MAX} bytes"));
        }
        let status = group.child.wait().await.map_err(unstartable)?;
        let said = String::from_utf8(said).map_err(|_| "its output is not UTF-8 text")?;
        if !status.success() && said.trim().is_empty() {
            return Err(format!("it ended with {status} and printed nothing"));
        }
        Ok(said)
    }
}

/// A relative folder is whoever's folder airlock happens to be started in, and the programs of
/// a package's dependencies are the package's.
fn is_of_the_machine(folder: &Path) -> bool {
    folder.is_absolute() && !folder.ends_with("node_modules/.bin")
}

fn unstartable(error: impl std::fmt::Display) -> String {
    format!("it cannot be started: {error}")
}

/// Which version a program is by the package that it lies in: an old one, which takes long to
/// start, need not be asked.
fn package_major(program: &Path) -> Option<u64> {
    const PACKAGE_BYTES_MAX: u64 = 256 * 1024;
    let real = program.canonicalize().ok()?;
    let package = real.parent()?.parent()?.join("package.json");
    let file = OpenOptions::new().read(true).open(package).ok()?;
    let mut text = String::new();
    file.take(PACKAGE_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    let package: Value = serde_json::from_str(&text).ok()?;
    major(package.get("version")?.as_str()?)
}

fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

/// A folder for one question, its owner's alone, gone with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(scratch: &Path) -> io::Result<Self> {
        let name = getrandom::u64().map_err(io::Error::other)?;
        let path = scratch.join(format!("tsc-{name:016x}"));
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(scratch)?;
        builder.recursive(false).create(&path)?;
        Ok(Self(path))
    }

    fn fill(&self, page: &Page<'_>) -> io::Result<()> {
        for (name, text) in &page.files {
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600);
            file.open(self.0.join(name))?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests;
