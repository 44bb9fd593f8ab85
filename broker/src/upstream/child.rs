//! Starts a server as a child process. The child gets only the environment variables that are
//! passed in.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::error::ConnectError;
use crate::process_group::ProcessGroup;
use crate::secret::Secret;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildCommand<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) base_env: &'a [(String, String)],
    pub(crate) env: &'a [(String, Secret)],
    pub(crate) cwd: Option<&'a Path>,
}

#[derive(Debug)]
pub(crate) struct ChildIo {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
    pub(crate) group: ProcessGroup,
}

pub(crate) fn start(program: ChildCommand<'_>) -> Result<ChildIo, ConnectError> {
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
        return Err(failed("the process has no pipes".to_owned()));
    };
    Ok(ChildIo {
        stdin,
        stdout,
        stderr,
        group,
    })
}

/// Counts the process groups of one server that still exist. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LiveProcesses(watch::Sender<usize>);

impl Default for LiveProcesses {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl LiveProcesses {
    /// Counts one more process group until the returned value is dropped.
    pub(crate) fn one(&self) -> LiveProcess {
        self.0.send_modify(|groups| *groups += 1);
        LiveProcess(self.clone())
    }

    /// Waits until no process group exists, but not longer than `within`. By then, all processes
    /// have been killed.
    pub(crate) async fn none(&self, within: Duration) {
        let mut groups = self.0.subscribe();
        // Only the timeout can end the wait early, because the sender is a field of `self`.
        let _ = tokio::time::timeout(within, groups.wait_for(|groups| *groups == 0)).await;
    }
}

#[derive(Debug)]
pub(crate) struct LiveProcess(LiveProcesses);

impl Drop for LiveProcess {
    fn drop(&mut self) {
        self.0
            .0
            .send_modify(|groups| *groups = groups.saturating_sub(1));
    }
}

/// Describes how a process ended, for an error message.
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
