//! Starts every child process of airlock in its own process group. The group is killed as a whole,
//! even if airlock itself is killed.
//!
//! The leader of the group is a watchdog: a shell that waits on a pipe whose other end only this
//! process has. When the pipe closes, the shell kills its group. The shell is reaped last, so the
//! group's number is not reused while this process may signal it. A program joins the group before
//! its first instruction, so it cannot miss the end of the pipe.
//! `docs/design/0028-children-end-with-airlock.md` explains the reasons.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::process::CommandExt as _;
use std::process::{Child as Process, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
use tokio::process::{Child, Command};

const SHELL: &str = "/bin/sh";
const WATCHDOG: &str = "trap '' HUP INT QUIT TERM; read -r line; kill -KILL 0";

/// The leader of a process group. The group is killed when this value is dropped or this process
/// ends.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Process,
    group: Pid,
}

impl Watchdog {
    /// Starts a watchdog. Returns `None` if there is no shell; the children then survive if this
    /// process is killed.
    pub(crate) fn start() -> Result<Option<Self>> {
        Self::by(SHELL)
    }

    fn by(shell: &str) -> Result<Option<Self>> {
        let started = std::process::Command::new(shell)
            .args(["-c", WATCHDOG])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match started {
            Ok(shell) => {
                let group = Pid::from_child(&shell);
                Ok(Some(Self { shell, group }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the group in the form that [`std::process::Command`] expects.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        // The shell has just been killed, so this returns at once.
        let _ = self.shell.wait();
    }
}

/// A program with all processes that it starts. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    pub(crate) child: Child,
    watchdog: Option<Watchdog>,
    id: Pid,
}

impl ProcessGroup {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        Self::behind(Watchdog::start()?, command)
    }

    fn behind(watchdog: Option<Watchdog>, command: &mut Command) -> Result<Self> {
        let child = command
            .process_group(watchdog.as_ref().map_or(0, Watchdog::group))
            .kill_on_drop(true)
            .spawn()?;
        let own = || child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = watchdog.as_ref().map(|it| it.group).or_else(own);
        let id = id.ok_or_else(|| Error::other("the program has already ended"))?;
        Ok(Self {
            child,
            watchdog,
            id,
        })
    }

    /// Ends the group. The program gets `grace` after its stdin was closed, and `grace` again after
    /// SIGTERM. Remaining processes are killed.
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

    /// Ends the processes that the program left behind: SIGTERM, and SIGKILL after `grace`.
    pub(crate) async fn sweep(&mut self, grace: Duration) {
        const LOOK_AGAIN: Duration = Duration::from_millis(10);
        if self.has_others() {
            self.signal(Signal::TERM);
            let empty = async {
                while self.has_others() {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            };
            let _ = tokio::time::timeout(grace, empty).await;
        }
        self.kill();
    }

    /// Signals the group, unless its number may have been reused.
    fn signal(&self, signal: Signal) {
        let child = self.child.id();
        let child = child.and_then(|id| Pid::from_raw(id.cast_signed()));
        if self.watchdog.is_some() || child.is_some() || self.has_others() {
            // This fails if the group is empty already, which is fine.
            let _ = kill_process_group(self.id, signal);
        }
        // A program that created its own group or session is not in this group.
        let Some(child) = child else { return };
        let _ = match getpgid(Some(child)) {
            Ok(group) if group == self.id => Ok(()),
            Ok(group) if group == child => kill_process_group(child, signal),
            _ => kill_process(child, signal),
        };
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        // From here on, the number of the group may be reused.
        self.watchdog = None;
    }

    fn has_others(&self) -> bool {
        others::are_in(self.id, self.watchdog.is_some())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(target_os = "linux")]
mod others {
    use rustix::process::Pid;

    /// Returns whether a process of this group is running, apart from the leader.
    pub(super) fn are_in(group: Pid, _: bool) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return false;
        };
        let numbers = processes.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
        let group = group.as_raw_nonzero().get();
        numbers
            .filter(|number| *number != group)
            .any(|number| group_of(number) == Some(group))
    }

    /// Returns the group of a process that has not ended.
    fn group_of(number: i32) -> Option<i32> {
        let stat = std::fs::read(format!("/proc/{number}/stat")).ok()?;
        // The fields after the name are state, parent and group. The name may contain any
        // character.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(group)
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use rustix::process::{Pid, test_kill_process_group};

    /// Returns whether the group contains a process. The result is always `false` while the
    /// watchdog is in the group, because this system cannot tell other processes from the watchdog.
    /// The caller then kills the group without SIGTERM.
    pub(super) fn are_in(group: Pid, has_watchdog: bool) -> bool {
        !has_watchdog && test_kill_process_group(group).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    const GRACE: Duration = Duration::from_millis(100);

    /// Starts a program in the group, and returns the group and the first line that the program
    /// prints.
    async fn started(
        watchdog: Option<Watchdog>,
        program: &str,
        script: &str,
    ) -> (ProcessGroup, String) {
        let mut command = Command::new(program);
        let args = (program != "sh").then_some("sh");
        command.args(args).args(["-c", script]);
        let mut group = ProcessGroup::behind(watchdog, command.stdout(Stdio::piped()))
            .expect("the program starts");
        let stdout = group.child.stdout.take().expect("stdout is a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let line = lines.next_line().await.expect("stdout is readable");
        let line = line.expect("the program prints a line");
        (group, line)
    }

    fn is_alive(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[track_caller]
    fn wait_until_gone(pid: &str) {
        let since = std::time::Instant::now();
        while is_alive(pid) {
            assert!(since.elapsed() < Duration::from_secs(600), "{pid}");
            std::thread::yield_now();
        }
    }

    fn shell() -> Option<Watchdog> {
        Watchdog::start().expect("the shell starts")
    }

    #[tokio::test]
    async fn a_group_ends_when_it_is_dropped_with_and_without_a_watchdog() {
        let no_shell = Watchdog::by("/nowhere/sh").expect("a missing shell is no error");
        assert!(no_shell.is_none());
        for watchdog in [shell(), None] {
            let deaf = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait";
            let (group, pid) = started(watchdog, "sh", deaf).await;
            assert!(is_alive(&pid));
            drop(group);
            wait_until_gone(&pid);
        }
    }

    /// The leader of a group cannot create a session, but a member can. A member with its own
    /// session must still be stopped.
    #[tokio::test]
    async fn a_program_with_a_session_of_its_own_is_stopped_too() {
        let script = "trap '' TERM; echo $$; while :; do sleep 1; done";
        let (mut group, pid) = started(shell(), "setsid", script).await;
        assert!(is_alive(&pid));
        group.stop(GRACE).await;
        wait_until_gone(&pid);
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_may_end_by_itself_and_is_killed_if_it_does_not() {
        for (trap, is_polite) in [("echo bye > $0; exit", true), ("", false)] {
            let scratch = crate::tempdir::TempDir::new();
            let said = scratch.path().join("said");
            let child = format!(
                "sh -c 'trap \"{trap}\" TERM; echo $$; while :; do sleep 0.01; done' {} & sleep 0.1",
                said.display()
            );
            let (mut group, pid) = started(shell(), "sh", &child).await;
            group.child.wait().await.expect("the program ends");
            assert!(is_alive(&pid));
            group
                .sweep(if is_polite {
                    Duration::from_secs(600)
                } else {
                    GRACE
                })
                .await;
            wait_until_gone(&pid);
            assert_eq!(said.exists(), is_polite);
        }
    }
}
