//! A running cvc5 process: one question at a time over its stdin and stdout, with bounded answers.
//! This module does not interpret the questions.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cedar_policy_symcc::solver::{Decision, DecisionWithModel, Solver, SolverError};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::process::{ChildStdin, ChildStdout, Command};

use crate::process_group::ProcessGroup;

/// Maximum time per question, in milliseconds, measured by cvc5 itself.
const QUESTION_MS_MAX: u32 = 10_000;
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum length of unexpected output in an error, in characters.
const SAID_CHARS_MAX: usize = 200;
const ENDED: &str = "ended without an answer";
/// Maximum number of folders of the path that are searched.
const FOLDERS_MAX: usize = 64;

pub(super) struct Cvc5 {
    _group: ProcessGroup,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The commands of the next question that were added so far.
    script: Vec<u8>,
}

/// Returns the first cvc5 on the path that cannot belong to a project. Relative folders are
/// skipped, because they depend on the current folder. Folders below `here` are skipped, because a
/// tool may have put a program there.
pub(super) fn on_path(path: &str, here: Option<&Path>) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|it| it.is_absolute());
    let mut all = folders.take(FOLDERS_MAX).map(|it| it.join("cvc5"));
    all.find(|it| it.is_file() && !is_from(here, it))
}

/// Whether the program is below `here`. Returns `true` if a path cannot be resolved.
fn is_from(here: Option<&Path>, program: &Path) -> bool {
    let here = here.and_then(|it| it.canonicalize().ok());
    match (here, program.canonicalize()) {
        (Some(here), Ok(real)) => program.starts_with(&here) || real.starts_with(&here),
        _ => true,
    }
}

/// Formats an error for a person.
pub(super) fn describe(error: &SolverError) -> String {
    match error {
        SolverError::Io(error) if error.kind() == ErrorKind::BrokenPipe => ENDED.to_owned(),
        SolverError::Io(error) => format!("reading or writing failed: {error}"),
        error => error.to_string(),
    }
}

impl Cvc5 {
    pub(super) async fn start(program: &Path) -> Result<Self, String> {
        let unstartable = |error: std::io::Error| format!("cannot be started: {error}");
        let mut command = Command::new(program);
        command
            .args(["--lang", "smt", "--incremental", "--strings-exp"])
            .arg(format!("--tlimit-per={QUESTION_MS_MAX}"))
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut group = ProcessGroup::spawn(&mut command).map_err(unstartable)?;
        let (input, output) = (group.child.stdin.take(), group.child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("has no stdin or no stdout".into());
        };
        let mut solver = Self {
            _group: group,
            input,
            output: BufReader::new(output),
            script: Vec::new(),
        };
        solver.is_sane().await.map_err(|error| describe(&error))?;
        Ok(solver)
    }

    /// Checks the solver with two questions whose answers are known.
    async fn is_sane(&mut self) -> Result<(), SolverError> {
        for (question, expected) in [
            ("(assert (str.prefixof \"a\" \"ab\"))", Decision::Sat),
            ("(assert (= 1 2))", Decision::Unsat),
        ] {
            let text = format!("(reset)\n(set-logic ALL)\n{question}\n");
            self.script.extend_from_slice(text.as_bytes());
            let found = self.check_sat().await?;
            if found != expected {
                let why = format!("printed {found:?}; expected {expected:?}");
                return Err(SolverError::Solver(why));
            }
        }
        Ok(())
    }

    async fn send(&mut self, last: &str) -> Result<(), SolverError> {
        self.script.extend_from_slice(last.as_bytes());
        self.input.write_all(&self.script).await?;
        self.input.flush().await?;
        self.script.clear();
        Ok(())
    }

    async fn line(&mut self) -> Result<String, SolverError> {
        let mut line = Vec::new();
        let bounded = &mut (&mut self.output).take(ANSWER_BYTES_MAX);
        bounded.read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(SolverError::Solver(ENDED.into()));
        }
        if line.last() != Some(&b'\n') {
            return Err(SolverError::Solver(
                "output is too long or incomplete".into(),
            ));
        }
        String::from_utf8(line).map_err(|_| odd("output that is not UTF-8"))
    }
}

fn odd(said: &str) -> SolverError {
    let said: String = said.trim().chars().filter(|c| !c.is_control()).collect();
    SolverError::UnrecognizedSolverOutput(said.chars().take(SAID_CHARS_MAX).collect())
}

impl Solver for Cvc5 {
    fn smtlib_input(&mut self) -> &mut (dyn AsyncWrite + Unpin + Send) {
        &mut self.script
    }

    async fn enable_models(&mut self) -> Result<(), SolverError> {
        self.script
            .extend_from_slice(b"(set-option :produce-models true)\n");
        Ok(())
    }

    async fn check_sat(&mut self) -> Result<Decision, SolverError> {
        self.send("(check-sat)\n").await?;
        match self.line().await?.trim() {
            "sat" => Ok(Decision::Sat),
            "unsat" => Ok(Decision::Unsat),
            "unknown" => Ok(Decision::Unknown),
            said => Err(odd(said)),
        }
    }

    async fn check_sat_with_model(&mut self) -> Result<DecisionWithModel, SolverError> {
        match self.check_sat().await? {
            Decision::Unsat => return Ok(DecisionWithModel::Unsat),
            Decision::Unknown => return Ok(DecisionWithModel::Unknown),
            Decision::Sat => {}
        }
        self.send("(get-model)\n").await?;
        let mut model = self.line().await?;
        if model.trim() != "(" {
            return Err(odd(&model));
        }
        loop {
            let line = self.line().await?;
            model.push_str(&line);
            if model.len() as u64 > ANSWER_BYTES_MAX {
                return Err(SolverError::Solver("output is too long".into()));
            }
            if line.trim_end() == ")" {
                return Ok(DecisionWithModel::Sat { model });
            }
        }
    }
}
