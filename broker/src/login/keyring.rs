//! Entries of the operating system's keyring, through the system's own program: `secret-tool` on
//! Linux, `security` on macOS. A program that does not answer is ended, which a library call in
//! this process could not be.

use std::process::Command;
use std::time::Duration;

use crate::bounded_command::{self, BoundedError, BoundedRun};
use crate::environment::Environment;

/// Maximum time for one answer. A keyring that waits for a person without a screen never answers.
const ANSWER_WALL: Duration = Duration::from_secs(3);

/// A way to the keyring, with the environment of its program.
#[derive(Debug, Clone)]
pub(crate) struct Keyring(Environment);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyringError {
    #[error("this machine has no keyring: {0}")]
    Absent(String),
    #[error("the keyring did not answer within {} s", ANSWER_WALL.as_secs())]
    Silent,
    #[error("the keyring has no entry `{0}`")]
    NoEntry(String),
    #[error("the keyring refused: {0}")]
    Refused(String),
}

impl Keyring {
    pub(crate) fn new(environment: Environment) -> Self {
        Self(environment)
    }

    pub(crate) fn read(&self, service: &str, account: &str) -> Result<String, KeyringError> {
        let arguments: &[&str] = match cfg!(target_os = "macos") {
            true => &["find-generic-password", "-s", service, "-a", account, "-w"],
            false => &["lookup", "service", service, "username", account],
        };
        let no_entry = || KeyringError::NoEntry(format!("{service}/{account}"));
        let output = self.run(arguments, "")?;
        let text = output.trim_end_matches(['\n', '\r']);
        match text {
            "" => Err(no_entry()),
            text => Ok(text.to_owned()),
        }
    }

    /// Writes an entry. The value reaches the program through its stdin, because other users can
    /// read arguments.
    pub(crate) fn write(
        &self,
        service: &str,
        account: &str,
        value: &str,
    ) -> Result<(), KeyringError> {
        if cfg!(target_os = "macos") {
            let line =
                format!("add-generic-password -U -s \"{service}\" -a \"{account}\" -w {value}\n");
            self.run(&["-i"], &line)?;
        } else {
            let label = format!("--label={service}");
            let arguments = ["store", &label, "service", service, "username", account];
            self.run(&arguments, value)?;
        }
        // Some keyrings accept an entry and lose it.
        match self.read(service, account)? == value {
            true => Ok(()),
            false => Err(KeyringError::Refused(
                "the entry that was written reads differently".to_owned(),
            )),
        }
    }

    fn run(&self, arguments: &[&str], input: &str) -> Result<String, KeyringError> {
        let program = match cfg!(target_os = "macos") {
            true => "security",
            false => "secret-tool",
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.0.variables());
        // Its messages are read, so they must not be translated.
        command.env("LC_ALL", "C").env_remove("LANGUAGE");
        let output = bounded_command::output(
            command,
            BoundedRun {
                input: input.as_bytes(),
                reads_stderr: true,
                wall: ANSWER_WALL,
            },
        );
        match output {
            Ok(output) if output.is_success => Ok(output.text),
            // Without an entry, the programs end with an error and without a message.
            Ok(output) if output.text.is_empty() && arguments.first() != Some(&"store") => {
                match output.stderr.trim() {
                    "" => Ok(String::new()),
                    said if said.contains("could not be found") => Ok(String::new()),
                    said => Err(KeyringError::Refused(one_line(said))),
                }
            }
            Ok(output) => Err(KeyringError::Refused(one_line(&output.stderr))),
            Err(BoundedError::NotStarted(error)) => {
                Err(KeyringError::Absent(format!("`{program}`: {error}")))
            }
            Err(BoundedError::TimedOut) => Err(KeyringError::Silent),
            Err(error) => Err(KeyringError::Refused(error.to_string())),
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(200)
        .collect()
}
