//! A server as a child process, with nothing of our environment but what it is given.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::error::ConnectError;
use super::secret::Secret;
use crate::process_group::ProcessGroup;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Program<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) base_env: &'a [(String, String)],
    pub(crate) env: &'a [(String, Secret)],
    pub(crate) cwd: Option<&'a Path>,
}

#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
    pub(crate) group: ProcessGroup,
}

pub(crate) fn start(program: Program<'_>) -> Result<Started, ConnectError> {
    let failed = |why: String| ConnectError::Start {
        command: program.command.to_owned(),
        why,
    };
    let mut command = Command::new(program.command);
    command
        .args(program.args)
        .env_clear()
        .envs(program.base_env.iter().map(|(name, value)| (name, value)))
        .envs(
            program
                .env
                .iter()
                .map(|(name, value)| (name, value.expose())),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = program.cwd {
        command.current_dir(cwd);
    }
    let mut group = ProcessGroup::spawn(&mut command).map_err(|error| failed(error.to_string()))?;
    let child = &mut group.child;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed("it has no pipes".to_owned()));
    };
    Ok(Started {
        stdin,
        stdout,
        stderr,
        group,
    })
}

/// How many process groups of one server there still are. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Alive(watch::Sender<usize>);

impl Default for Alive {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Alive {
    /// Counts one more until the value is dropped.
    pub(crate) fn one(&self) -> One {
        self.0.send_modify(|groups| *groups += 1);
        One(self.clone())
    }

    /// Waits until there is none; `within` that time they have been killed.
    pub(crate) async fn none(&self, within: Duration) {
        let mut groups = self.0.subscribe();
        // The sender lives in `self`: only the time can run out.
        let _ = tokio::time::timeout(within, groups.wait_for(|groups| *groups == 0)).await;
    }
}

#[derive(Debug)]
pub(crate) struct One(Alive);

impl Drop for One {
    fn drop(&mut self) {
        self.0
            .0
            .send_modify(|groups| *groups = groups.saturating_sub(1));
    }
}

/// How a process ended, in the words of an error.
pub(crate) fn how(status: io::Result<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let status = match status {
        Ok(status) => status,
        Err(error) => return error.to_string(),
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
