//! Runs the command line from outside: arguments, output, exit code.
//!
//! Every command runs in its own home folder. Its environment contains only `PATH` and `HOME`. A
//! command that takes too long is killed.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::binary::airlock;
use crate::clock_ahead;

/// Maximum duration of any command in the tests, including a whole conformance suite.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Options for `airlock serve` that give servers enough time to start on a slow machine.
pub const PATIENT: [&str; 2] = ["--start-wait", "600s"];

/// Options for `airlock serve` that assume a host which shows descriptions of any length.
pub const WHOLE_DESCRIPTIONS: [&str; 2] = ["--description-chars", "1000000"];

/// A home folder, with the state that commands leave behind.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    /// Whether commands see the date of tomorrow.
    is_tomorrow: bool,
}

/// The output and exit code of a command.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub wall: Duration,
}

/// A command that still runs.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    stdout: thread::JoinHandle<String>,
    stderr: thread::JoinHandle<String>,
    since: Instant,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    #[must_use]
    pub fn new() -> Self {
        Self {
            dir: TempDir::with_prefix("airlock-home-").expect("a temporary folder"),
            is_tomorrow: false,
        }
    }

    /// Lets all later commands see the date of tomorrow.
    pub fn go_to_tomorrow(&mut self) {
        self.is_tomorrow = true;
    }

    #[must_use]
    pub fn is_tomorrow(&self) -> bool {
        self.is_tomorrow
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into the home and returns its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder in the home");
        std::fs::write(&path, text).expect("a file in the home");
        path
    }

    /// Returns the default folder of journals.
    #[must_use]
    pub fn runs_dir(&self) -> PathBuf {
        self.path().join(".local/state/airlock/runs")
    }

    /// Returns the journals of this home, oldest first.
    #[must_use]
    pub fn journals(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = std::fs::read_dir(self.runs_dir())
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        paths.retain(|path: &PathBuf| path.extension().is_some_and(|ext| ext == "jsonl"));
        paths.sort();
        paths
    }

    /// Verifies every journal of this home: it is intact, and signed unless its run was killed.
    pub fn verify_all(&self) {
        for journal in self.journals() {
            let run = journal.file_stem().expect("a name").to_owned();
            let verified = self.run(["runs".into(), "verify".into(), run]);
            assert!(matches!(verified.code, Some(0 | 26)), "{verified}");
        }
    }

    /// Returns `airlock` in this home, not started yet.
    #[must_use]
    pub fn airlock<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(detached());
        command.arg(airlock()).args(args);
        self.dress(&mut command);
        command
    }

    /// Returns `airlock serve` with enough time for its servers to start, and with descriptions of
    /// any length, unless the arguments override that.
    #[must_use]
    pub fn serve<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let args: Vec<_> = args.into_iter().collect();
        let mut command = self.airlock(["serve"]);
        if !args.iter().any(|it| it.as_ref() == PATIENT[0]) {
            command.args(PATIENT);
        }
        if !args.iter().any(|it| it.as_ref() == WHOLE_DESCRIPTIONS[0]) {
            command.args(WHOLE_DESCRIPTIONS);
        }
        command.args(args);
        command
    }

    /// Sets the environment of a command: this home, and nothing else.
    pub fn dress(&self, command: &mut Command) {
        command
            .env_clear()
            .env("HOME", self.path())
            .current_dir(self.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if self.is_tomorrow {
            command.env("LD_PRELOAD", clock_ahead::a_day());
        }
        // Selects the engine that the tests use.
        if let Some(engine) = std::env::var_os("AIRLOCK_ENGINE") {
            command.env("AIRLOCK_ENGINE", engine);
        }
    }

    /// Runs `airlock` to its end with empty standard input.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> CommandOutput {
        start(&mut self.airlock(args), "").wait()
    }

    /// Runs `airlock` to its end with this text on its standard input.
    pub fn run_with_stdin<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        stdin: &str,
    ) -> CommandOutput {
        start(&mut self.airlock(args), stdin).wait()
    }
}

/// Returns the path of the launcher that detaches a command from the terminal.
#[must_use]
pub fn detached() -> PathBuf {
    program("detached")
}

/// Returns the path of a program of this crate.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let deps = test.parent().expect("a folder");
    let profile = if deps.ends_with("deps") {
        deps.parent().expect("a folder")
    } else {
        deps
    };
    profile.join(name)
}

/// Starts a command and collects its output.
pub fn start(command: &mut Command, stdin: &str) -> RunningCommand {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let mut input = child.stdin.take().expect("a pipe");
    let text = stdin.to_owned();
    // A command may close the pipe without reading its input.
    thread::spawn(move || input.write_all(text.as_bytes()));
    let stdout = read_all(child.stdout.take().expect("a pipe"));
    let stderr = read_all(child.stderr.take().expect("a pipe"));
    RunningCommand {
        child,
        stdout,
        stderr,
        since: Instant::now(),
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl RunningCommand {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
            .expect("a process id");
        kill_process(pid, signal).expect("sending a signal");
    }

    /// Whether the command has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the end. Kills a command that takes too long, which then has no exit code.
    #[must_use]
    pub fn wait(mut self) -> CommandOutput {
        let code = loop {
            match self.child.try_wait().expect("a child process") {
                Some(status) => break status.code(),
                None if self.since.elapsed() > PATIENCE => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    break None;
                }
                None => thread::park_timeout(Duration::from_millis(2)),
            }
        };
        let wall = self.since.elapsed();
        let stdout = self.stdout.join().expect("the reader of stdout");
        let stderr = self.stderr.join().expect("the reader of stderr");
        CommandOutput {
            code,
            stdout,
            stderr,
            wall,
        }
    }
}

impl CommandOutput {
    /// Parses the one object that `--json` prints.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("stdout is not JSON: {e}\n{self}"))
    }

    /// Fails with the whole output unless the exit code is this one.
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Fails unless stdout contains this text.
    pub fn expect_stdout(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text),
            "stdout does not contain `{text}`\n{self}"
        );
        self
    }

    /// Fails unless stderr contains this text.
    pub fn expect_stderr(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "stderr does not contain `{text}`\n{self}"
        );
        self
    }
}

impl std::fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit code {:?} after {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.code, self.wall, self.stdout, self.stderr
        )
    }
}
