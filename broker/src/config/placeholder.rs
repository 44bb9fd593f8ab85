//! Resolves the placeholders `${env:NAME}` (short form `${NAME}`) and `${command:CMD}` in the
//! configuration of a server. The resolved values count as secrets.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::environment::Environment;
use super::shell_words;
use crate::process_group::Watchdog;

const COMMAND_WALL: Duration = Duration::from_secs(15);
const COMMAND_OUTPUT_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub(super) enum BadPlaceholder {
    #[error("invalid placeholder `${{{kind}}}`; expected `${{env:NAME}}` or `${{command:CMD}}`")]
    Kind { kind: String },
    #[error("`{text}` has no closing brace")]
    Open { text: String },
    #[error("the variable {name} is not set, or is empty")]
    Unset { name: String },
    #[error("the command `{command}` {why}")]
    Command { command: String, why: String },
}

/// A value with its placeholders replaced, and the parts of it that must never be shown.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct ResolvedValue {
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
}

pub(crate) fn resolve(
    template: &str,
    environment: &Environment,
) -> Result<ResolvedValue, BadPlaceholder> {
    let mut resolved = ResolvedValue::default();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        resolved.text.push_str(before);
        let open = || BadPlaceholder::Open {
            text: format!("${{{}", after.chars().take(24).collect::<String>()),
        };
        let (inside, tail) = after.split_once('}').ok_or_else(open)?;
        let secret = one(inside, environment)?;
        resolved.text.push_str(&secret);
        resolved.secrets.push(secret);
        rest = tail;
    }
    resolved.text.push_str(rest);
    Ok(resolved)
}

fn one(inside: &str, environment: &Environment) -> Result<String, BadPlaceholder> {
    match inside.split_once(':') {
        Some(("env", name)) => variable(name, environment),
        Some(("command", command)) => {
            output(command, environment).map_err(|why| BadPlaceholder::Command {
                command: command.to_owned(),
                why,
            })
        }
        Some((kind, _)) => Err(BadPlaceholder::Kind {
            kind: format!("{kind}:…"),
        }),
        // The form `${NAME}` is common in files of other hosts.
        None if is_variable(inside) => variable(inside, environment),
        None => Err(BadPlaceholder::Kind {
            kind: inside.to_owned(),
        }),
    }
}

fn variable(name: &str, environment: &Environment) -> Result<String, BadPlaceholder> {
    environment
        .text(name)
        .map(str::to_owned)
        .ok_or_else(|| BadPlaceholder::Unset {
            name: name.to_owned(),
        })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns the first line that a command prints. Errors never contain its output.
fn output(command: &str, environment: &Environment) -> Result<String, String> {
    let words = shell_words::split(command).map_err(|bad| format!("is invalid: {bad}"))?;
    let (program, arguments) = words.split_first().ok_or("is empty")?;
    let unstartable = |error: std::io::Error| format!("cannot be started: {error}");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // A program that asks for a password on a terminal must stay in the terminal's foreground.
    let watchdog = match File::open("/dev/tty") {
        Ok(_) => None,
        Err(_) => Watchdog::start().map_err(unstartable)?,
    };
    if let Some(watchdog) = &watchdog {
        command.process_group(watchdog.group());
    }
    let mut child = command.spawn().map_err(unstartable)?;
    let pipe = child.stdout.take().ok_or("has no output")?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe
            .take(COMMAND_OUTPUT_BYTES_MAX + 1)
            .read_to_end(&mut bytes);
        // The receiver is gone after a timeout.
        let _ = sender.send(read.map(|_| bytes));
    });
    let answer = receiver.recv_timeout(COMMAND_WALL);
    if answer.is_err() {
        let _ = child.kill();
    }
    let status = child.wait();
    let status = status.map_err(|error| format!("cannot be waited for: {error}"))?;
    drop((reader, watchdog));
    let bytes = answer
        .map_err(|_| format!("took longer than {} s", COMMAND_WALL.as_secs()))?
        .map_err(|error| format!("printed output that cannot be read: {error}"))?;
    if !status.success() {
        return Err(format!("ended with {status}"));
    }
    if bytes.len() as u64 > COMMAND_OUTPUT_BYTES_MAX {
        return Err("printed more than 64 KiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "printed something that is not UTF-8")?;
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err("printed nothing".to_owned()),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, expected: &str, secrets: &[&str]) {
        let environment =
            Environment::from([("TOKEN", "t0ken"), ("EMPTY", ""), ("PATH", "/usr/bin:/bin")]);
        let resolved =
            resolve(template, &environment).unwrap_or_else(|error| panic!("{template}: {error}"));
        assert_eq!(
            (resolved.text.as_str(), resolved.secrets),
            (expected, secrets.iter().map(|s| (*s).to_owned()).collect())
        );
    }

    #[test]
    fn placeholders_are_resolved_and_recorded_as_secrets() {
        check("plain $HOME {x}", "plain $HOME {x}", &[]);
        check("Bearer ${env:TOKEN}", "Bearer t0ken", &["t0ken"]);
        check("${TOKEN}", "t0ken", &["t0ken"]);
        check(
            "${env:TOKEN}-${command:printf 'a b'}!",
            "t0ken-a b!",
            &["t0ken", "a b"],
        );
    }

    #[test]
    fn unresolved_placeholder_is_named_without_command_output() {
        let environment = Environment::from([("EMPTY", ""), ("PATH", "/usr/bin:/bin")]);
        for (template, expected) in [
            ("${env:NOPE}", "the variable NOPE is not set, or is empty"),
            ("${env:EMPTY}", "the variable EMPTY is not set, or is empty"),
            (
                "${vault:x}",
                "invalid placeholder `${vault:…}`; expected `${env:NAME}` or `${command:CMD}`",
            ),
            ("${env:TOK", "`${env:TOK` has no closing brace"),
            (
                "${command:sh -c 'echo hush; exit 3'}",
                "the command `sh -c 'echo hush; exit 3'` ended with exit status: 3",
            ),
            ("${command:}", "the command `` is empty"),
            ("${command:true}", "the command `true` printed nothing"),
        ] {
            let error = resolve(template, &environment).err().unwrap();
            assert_eq!(error.to_string(), expected);
        }
    }
}
