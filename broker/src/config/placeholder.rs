//! Resolves the placeholders `${env:NAME}` (short form `${NAME}`), `${command:CMD}` and
//! `${keyring:SERVICE/ACCOUNT}` in the
//! configuration of a server. The resolved values count as secrets.

use crate::command_source::CommandSource;
use crate::environment::Environment;
use crate::login::keyring::Keyring;

#[derive(Debug, thiserror::Error)]
pub(super) enum BadPlaceholder {
    #[error(
        "invalid placeholder `${{{kind}}}`; expected `${{env:NAME}}`, `${{command:CMD}}` or `${{keyring:SERVICE/ACCOUNT}}`"
    )]
    Kind { kind: String },
    #[error("`{text}` has no closing brace")]
    Open { text: String },
    #[error("the variable {name} is not set, or is empty")]
    Unset { name: String },
    #[error("`${{keyring:{entry}}}`: {why}")]
    Keyring { entry: String, why: String },
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
            let output = CommandSource(environment.clone()).output(command);
            output.map_err(|why| BadPlaceholder::Command {
                command: command.to_owned(),
                why,
            })
        }
        Some(("keyring", entry)) => in_keyring(entry, environment),
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

fn in_keyring(entry: &str, environment: &Environment) -> Result<String, BadPlaceholder> {
    let failed = |why: String| BadPlaceholder::Keyring {
        entry: entry.to_owned(),
        why,
    };
    let parts = entry.split_once('/');
    let is_named = |(service, account): &(&str, &str)| !service.is_empty() && !account.is_empty();
    let (service, account) = parts
        .filter(is_named)
        .ok_or_else(|| failed("expected SERVICE/ACCOUNT".to_owned()))?;
    let value = Keyring::new(environment.clone()).read(service, account);
    value.map_err(|error| failed(error.to_string()))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
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
                "invalid placeholder `${vault:…}`; expected `${env:NAME}`, `${command:CMD}` or `${keyring:SERVICE/ACCOUNT}`",
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
