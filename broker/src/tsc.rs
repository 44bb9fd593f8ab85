//! Runs the TypeScript compiler, if there is one. No other module starts it. The compiler gets its
//! own files, a time limit and a limit on its output. Its output never stops a run.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
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
use crate::private_file::{make_private, open_to_write};
use crate::process_group::ProcessGroup;

/// The first major version with a native compiler, which is fast enough that the check takes no
/// noticeable time.
const MAJOR_MIN: u64 = 7;
const WALL: Duration = Duration::from_secs(5);
const SAID_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of folders on the path that are searched.
const FOLDERS_MAX: usize = 64;

/// The compiler that a broker or a command uses.
#[derive(Debug)]
pub(crate) struct Compiler {
    choice: TscChoice,
    env: Vec<(String, String)>,
    /// The folder for the temporary folders of requests.
    scratch: PathBuf,
    /// The folder in which scripts and servers work. A program in this folder is used only if it is
    /// configured.
    here: Option<PathBuf>,
    wall: Duration,
    found: OnceCell<Option<PathBuf>>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TscOutcome {
    /// There is no compiler, and none is configured.
    NotAsked,
    Findings(TypedFindings),
    /// The compiler gave no usable answer. The reason contains no path of this machine.
    Nothing {
        why: String,
    },
}

impl Compiler {
    /// Creates a compiler. `env` is its whole environment.
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

    pub(crate) fn is_disabled(&self) -> bool {
        self.choice == TscChoice::Never
    }

    /// Checks a script. Findings in `own` are not repeated.
    pub(crate) async fn ask(&self, page: &Page<'_>, own: &[Finding]) -> TscOutcome {
        let answer = async {
            let program = self.program().await?;
            Some(self.converse(program, page, own).await)
        };
        match tokio::time::timeout(self.wall, answer).await {
            Ok(None) => TscOutcome::NotAsked,
            Ok(Some(Ok(findings))) => TscOutcome::Findings(findings),
            Ok(Some(Err(why))) => TscOutcome::Nothing { why },
            Err(_) => TscOutcome::Nothing {
                why: format!("the compiler took longer than {} ms", self.wall.as_millis()),
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

    /// Returns the first compiler on the path that is new enough and does not belong to a project.
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

    /// Returns whether a program is in the folder in which airlock was started. A tool with write
    /// access to that folder could have created the program. If a path cannot be resolved, the
    /// result is `true`.
    fn is_from_here(&self, program: &Path) -> bool {
        let Some(here) = &self.here else { return true };
        let (Ok(here), Ok(behind_links)) = (here.canonicalize(), program.canonicalize()) else {
            return true;
        };
        program.starts_with(&here) || behind_links.starts_with(&here)
    }

    /// Returns the major version from the output `Version 7.0.2`.
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
            .map_err(|error| format!("the files for the compiler cannot be written: {error}"))?;
        let said = self.run(program, &page.args(), &folder.0).await?;
        page.findings(&said, own).map_err(|error| error.to_string())
    }

    /// Runs the program and returns its output. A failure status with output only means that there
    /// are findings.
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
        let stdout = group
            .child
            .stdout
            .take()
            .ok_or("the compiler has no output")?;
        let mut said = Vec::new();
        let bounded = &mut stdout.take(SAID_BYTES_MAX + 1);
        let heard = bounded.read_to_end(&mut said).await;
        heard.map_err(|error| format!("the compiler's output cannot be read: {error}"))?;
        if said.len() as u64 > SAID_BYTES_MAX {
            return Err(format!(
                "the compiler's output is longer than {SAID_BYTES_MAX} bytes"
            ));
        }
        let status = group.child.wait().await.map_err(unstartable)?;
        let said =
            String::from_utf8(said).map_err(|_| "the compiler's output is not UTF-8 text")?;
        if !status.success() && said.trim().is_empty() {
            return Err(format!(
                "the compiler ended with {status} and printed nothing"
            ));
        }
        Ok(said)
    }
}

/// Returns whether a folder of `PATH` belongs to the machine and not to a project. A relative
/// folder depends on where airlock was started, and `node_modules/.bin` belongs to a package.
fn is_of_the_machine(folder: &Path) -> bool {
    folder.is_absolute() && !folder.ends_with("node_modules/.bin")
}

fn unstartable(error: impl std::fmt::Display) -> String {
    format!("the compiler cannot be started: {error}")
}

/// Returns the major version from the package that contains the program, so that an old compiler,
/// which starts slowly, need not be run.
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

/// A folder for one request, which only its owner can read. Dropping it removes the folder.
struct Folder(PathBuf);

impl Folder {
    fn new(scratch: &Path) -> io::Result<Self> {
        let name = getrandom::u64().map_err(io::Error::other)?;
        let path = scratch.join(format!("tsc-{name:016x}"));
        make_private(&path)?;
        Ok(Self(path))
    }

    fn fill(&self, page: &Page<'_>) -> io::Result<()> {
        for (name, text) in &page.files {
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true);
            open_to_write(&self.0.join(name), options)?.write_all(text.as_bytes())?;
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
