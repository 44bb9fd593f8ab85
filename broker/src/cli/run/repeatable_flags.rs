//! The flags of `airlock run` that are needed again to resume its run with the same servers and rules.

use airlock_core::journal::StartedCommand;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::RunOptions;
use crate::host_setup::may_have_credential;
use crate::secrets::Secrets;

/// Flags that a run which resumes another one does not need: their values are recorded, or they only
/// change the output. `--no-ask` and `--approver never` would refuse the same calls again.
const NOT_REPEATED: [&str; 9] = [
    "input",
    "no-ask",
    "seed",
    "resume",
    "reads-max-age",
    "dry-run",
    "watch",
    "json",
    "quiet",
];
const SERVER: &str = "server";
const APPROVER: &str = "approver";

/// The flags that the command line contains. It declares no flag of its own. In the options of a
/// command it comes first, because the other fields take their flags away.
#[derive(Debug, Clone, Default)]
pub(super) struct RepeatableFlags(Vec<(String, Option<String>)>);

impl Args for RepeatableFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for RepeatableFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = RunOptions::augment_args(Command::new("run"));
        let mut flags = Vec::new();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let Some(long) = argument.get_long().filter(|it| !NOT_REPEATED.contains(it)) else {
                continue;
            };
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            if !argument.get_action().takes_values() {
                flags.push((long.to_owned(), None));
                continue;
            }
            for value in matches.get_raw(id).into_iter().flatten() {
                flags.push((long.to_owned(), Some(value.to_string_lossy().into_owned())));
            }
        }
        Ok(Self(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl RepeatableFlags {
    /// Returns the flags in the form that the journal records. A value that may contain a credential
    /// is left out.
    pub(super) fn command(&self, secrets: &Secrets) -> StartedCommand {
        let folder = std::env::current_dir().unwrap_or_default();
        let mut command = StartedCommand {
            folder: folder.to_string_lossy().into_owned(),
            flags: Vec::new(),
            left_out: Vec::new(),
        };
        for (long, value) in &self.0 {
            match value {
                Some(value) if long == APPROVER && value == "never" => {}
                None => command.flags.push(format!("--{long}")),
                Some(value) if is_secret(long, value, secrets) => {
                    let name = value.split_once('=').map_or("", |(name, _)| name);
                    let shown = match long == SERVER {
                        true => format!("--{long} {name}=…"),
                        false => format!("--{long} …"),
                    };
                    command.left_out.push(shown);
                }
                Some(value) if value.starts_with('-') => {
                    command.flags.push(format!("--{long}={value}"));
                }
                Some(value) => command.flags.extend([format!("--{long}"), value.clone()]),
            }
        }
        command
    }
}

fn is_secret(long: &str, value: &str, secrets: &Secrets) -> bool {
    let command = match long {
        SERVER => value.split_once('=').map(|(_, target)| target),
        APPROVER => value.strip_prefix("command:"),
        _ => None,
    };
    secrets.redact(value).is_some() || command.is_some_and(may_have_credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> RepeatableFlags {
        let command = RunOptions::augment_args(Command::new("run"));
        let words = std::iter::once("run").chain(line.split('|'));
        let matches = command.try_get_matches_from(words).unwrap();
        RepeatableFlags::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn input_and_output_flags_are_not_repeated() {
        let check = |line: &str, expected: &[&str]| {
            let command = flags(line).command(&Secrets::default());
            assert_eq!(command.flags, expected, "{line}");
            assert_eq!(command.left_out, [""; 0], "{line}");
        };
        check("-e|return 1", &[]);
        check("-e|return 1|--approver|never", &[]);
        check("-e|return 1|--no-ask", &[]);
        check(
            "-e|return 1|--json|--seed|7|--input|1|--allow|fs.*|--allow|w.*|--demo|--timeout|5s",
            &[
                "--demo",
                "--allow",
                "fs.*",
                "--allow",
                "w.*",
                "--timeout",
                "5s",
            ],
        );
        check(
            "a.js|--server|fs=npx -y server .|--approver|later|--limit|cpu=5s",
            &[
                "--server",
                "fs=npx -y server .",
                "--approver",
                "later",
                "--limit",
                "cpu=5s",
            ],
        );
    }

    #[test]
    fn credentials_are_left_out() {
        let check = |line: &str, expected: &[&str]| {
            let command = flags(line).command(&Secrets::default());
            assert_eq!(command.left_out, expected, "{line}");
            assert_eq!(command.flags, [""; 0], "{line}");
        };
        let left_out = &["--server w=…"];
        check("a.js|--server|w=run --api-key hunter2", left_out);
        check(
            "a.js|--server|w=https://ada:hunter2@w.example/mcp",
            left_out,
        );
        check(
            "a.js|--server|w=https://w.example/mcp?token=hunter2",
            left_out,
        );
        let approver = "a.js|--approver|command:ask.sh --token hunter2secret99";
        check(approver, &["--approver …"]);
    }
}
