//! Runs the programs that print a secret: `${command:CMD}` in the configuration of a server, and the
//! key of stored logins.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use crate::bounded_command::{self, BoundedError, BoundedRun};
use crate::environment::Environment;
use crate::process_group::Watchdog;
use crate::shell_words;

const COMMAND_WALL: Duration = Duration::from_secs(15);

/// Runs the programs of `command:` sources.
#[derive(Debug, Clone)]
pub(crate) struct CommandSource(pub(crate) Environment);

impl CommandSource {
    /// Returns the first line that a command prints. Errors never contain its output.
    pub(crate) fn output(&self, command: &str) -> Result<String, String> {
        let words = shell_words::split(command).map_err(|bad| format!("is invalid: {bad}"))?;
        let (program, arguments) = words.split_first().ok_or("is empty")?;
        let unstartable = |error: std::io::Error| format!("cannot be started: {error}");
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.0.variables());
        // The program may ask for a password on the terminal, so it must stay in the terminal's
        // foreground.
        let watchdog = match File::open("/dev/tty") {
            Ok(_) => None,
            Err(_) => Watchdog::start().map_err(unstartable)?,
        };
        if let Some(watchdog) = &watchdog {
            command.process_group(watchdog.group());
        }
        let run = BoundedRun {
            input: &[],
            reads_stderr: false,
            wall: COMMAND_WALL,
        };
        let output = bounded_command::output(command, run);
        drop(watchdog);
        let output = output.map_err(|error| match error {
            BoundedError::TimedOut => format!("took longer than {} s", COMMAND_WALL.as_secs()),
            error => error.to_string(),
        })?;
        if !output.is_success {
            return Err(format!("ended with {}", output.status));
        }
        match output.text.trim_end_matches(['\n', '\r']) {
            "" => Err("printed nothing".to_owned()),
            secret => Ok(secret.to_owned()),
        }
    }
}
