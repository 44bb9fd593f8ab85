//! A server as a child process: in a group of its own, with nothing of our
//! environment but what it is given, and gone as a group when we are done.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::error::ConnectError;
use super::secret::Secret;

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
    pub(crate) group: Group,
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
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = program.cwd {
        command.current_dir(cwd);
    }
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed("it has no pipes".to_owned()));
    };
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok(Started {
        stdin,
        stdout,
        stderr,
        group: Group {
            child,
            id,
            gone: false,
        },
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

/// The process and whatever it started. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    id: Option<Pid>,
    gone: bool,
}

impl Group {
    /// Waits for the leader to end by itself.
    pub(crate) async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        status.map_or_else(|error| error.to_string(), how)
    }

    /// Ends the group: the leader gets `grace` after its stdin was closed, and
    /// again after SIGTERM; what is left is killed.
    pub(crate) async fn stop(&mut self, grace: Duration) {
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = signal {
                self.signal(signal);
            }
            if tokio::time::timeout(grace, self.child.wait()).await.is_ok() {
                break;
            }
        }
        self.sweep(grace).await;
    }

    /// Ends what the leader left behind. A group's id is not given to a new
    /// process while the group has members, and nothing is sent to an empty one.
    pub(crate) async fn sweep(&mut self, grace: Duration) {
        const LOOK_AGAIN: Duration = Duration::from_millis(10);
        if self.is_populated() {
            self.signal(Signal::TERM);
            let empty = async {
                while self.is_populated() {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            };
            if tokio::time::timeout(grace, empty).await.is_err() {
                self.signal(Signal::KILL);
            }
        }
        self.gone = true;
    }

    fn is_populated(&self) -> bool {
        self.id
            .is_some_and(|id| test_kill_process_group(id).is_ok())
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // It fails when the group is empty already, which is what we want.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.gone {
            self.signal(Signal::KILL);
        }
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
