//! Decides which texts of a server's entry stay in the host's file. Such a text becomes a variable
//! of airlock's own entry, and the configuration of airlock names the variable.

use std::collections::BTreeMap;

use crate::config::names_a_secret;
use crate::secrets::Secrets;

/// The start of a placeholder, in hosts and in airlock.
const PLACEHOLDER: char = '$';
/// Length, and number of digits, from which a run of letters and digits counts as random.
const RANDOM_RUN: (usize, usize) = (12, 3);
/// The same for a run that may also contain hyphens, as names and dates do.
const RANDOM_HYPHENATED: (usize, usize) = (16, 7);
/// Length up to which a lower-case word is a setting and no credential.
const WORD_BYTES_MAX: usize = 16;

/// The variables that airlock's entry gets, with their values as the host's file has them.
#[derive(Debug, Default)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    pub(super) fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Keeps a value under this name, or a longer name if another value has this one. Returns the
    /// placeholder.
    pub(super) fn keep(&mut self, server: &str, name: &str, value: &str) -> String {
        let name = variable_name(name);
        let longer = variable_name(&format!("{server}_{name}"));
        let numbered = (2..).map(|number| format!("{longer}_{number}"));
        let names = [name, longer.clone()].into_iter().chain(numbered);
        for name in names {
            let known = self.values.entry(name.clone());
            if known.or_insert_with(|| value.to_owned()) == value {
                return format!("${{env:{name}}}");
            }
        }
        // There is always a next number.
        String::new()
    }

    /// Returns the text for airlock.toml of an environment variable.
    pub(super) fn of_variable(&mut self, server: &str, name: &str, value: &str) -> String {
        // An empty variable counts as unset, so a placeholder for it cannot be replaced.
        match !value.is_empty() && (names_secret(name) || !is_plain(value)) {
            true => self.keep(server, name, value),
            false => value.to_owned(),
        }
    }

    /// Returns the text for airlock.toml of a header.
    pub(super) fn of_header(&mut self, server: &str, name: &str, value: &str) -> String {
        if !names_secret(name) && is_plain(value) {
            return value.to_owned();
        }
        match value.split_once(' ') {
            Some((scheme, token))
                if scheme.eq_ignore_ascii_case("bearer") && !token.contains(' ') =>
            {
                let variable = self.keep(server, &format!("{server}_TOKEN"), token);
                format!("{scheme} {variable}")
            }
            _ => self.keep(server, &format!("{server}_{name}"), value),
        }
    }

    /// Returns the text for airlock.toml of an address.
    pub(super) fn of_address(&mut self, server: &str, address: &str) -> String {
        match has_credential(address) || address.contains(['?', '@']) {
            true => self.keep(server, &format!("{server}_URL"), address),
            false => address.to_owned(),
        }
    }

    /// Returns the text for airlock.toml of a program.
    pub(super) fn of_command(&mut self, server: &str, command: &str) -> String {
        match command.contains(PLACEHOLDER) {
            true => self.keep(server, &format!("{server}_COMMAND"), command),
            false => command.to_owned(),
        }
    }

    /// Returns the texts for airlock.toml of arguments.
    pub(super) fn of_arguments(&mut self, server: &str, args: &[String]) -> Vec<String> {
        let mut before = "";
        let mut kept = Vec::with_capacity(args.len());
        for arg in args {
            kept.push(self.of_argument(server, before, arg));
            before = arg;
        }
        kept
    }

    fn of_argument(&mut self, server: &str, before: &str, arg: &str) -> String {
        if let Some((name, rest)) = arg.split_once(['=', ':'])
            && let value = rest.trim_start()
            && let Some(begin) = arg.strip_suffix(value)
            && is_name(name)
            && names_secret(name)
            && !value.is_empty()
        {
            let name = name.trim_start_matches('-');
            let variable = self.keep(server, &format!("{server}_{name}"), value);
            return format!("{begin}{variable}");
        }
        let follows_flag = before.starts_with('-') && !before.contains('=');
        if follows_flag && !arg.starts_with('-') && names_secret(before) {
            return self.keep(
                server,
                &format!("{server}_{}", before.trim_start_matches('-')),
                arg,
            );
        }
        match has_credential(arg) {
            true => self.keep(server, &format!("{server}_ARGUMENT"), arg),
            false => arg.to_owned(),
        }
    }
}

/// Returns an upper-case name of letters, digits and `_`.
fn variable_name(text: &str) -> String {
    let fitting = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = text.trim_matches('-').chars().map(fitting).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(fits)
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let others = ["KEY", "AUTH", "PASS", "PWD", "COOKIE", "SESSION", "DSN"];
    names_a_secret(&name) || others.iter().any(|it| name.contains(it)) || name.ends_with("_PAT")
}

/// Whether a value is a setting such as `true`, `8080`, `info`, a path or an address.
fn is_plain(value: &str) -> bool {
    if has_credential(value) {
        return false;
    }
    let is_path = value.starts_with(['/', '~', '.']);
    let is_address = value.starts_with("http://") || value.starts_with("https://");
    if is_path || is_address {
        return !value.contains(['?', '@']);
    }
    let is_word = |c: char| c.is_ascii_lowercase() || "-_,".contains(c);
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    value.eq_ignore_ascii_case("true")
        || value.eq_ignore_ascii_case("false")
        || (value.len() <= WORD_BYTES_MAX && value.chars().all(is_word))
        || (value.len() < 6 && value.chars().all(is_number))
}

/// Whether a text contains a placeholder, a credential of a known shape, or letters and digits that
/// look random.
fn has_credential(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_+=".contains(c);
    let is_random = |run: &str, (bytes_min, digits_min): (usize, usize)| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        run.len() >= bytes_min && digits >= digits_min && digits < run.len()
    };
    let mut runs = text.split(|c: char| !is_part(c));
    let mut hyphenated = text.split(|c: char| !is_part(c) && c != '-');
    text.contains(PLACEHOLDER)
        || Secrets::default().redact(text).is_some()
        || runs.any(|run| is_random(run, RANDOM_RUN))
        || hyphenated.any(|run| is_random(run, RANDOM_HYPHENATED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_become_variables_and_settings_stay() {
        for (name, value, is_kept) in [
            ("GITHUB_TOKEN", "abc", true),
            ("DATABASE", "postgres://u:p@h/db", true),
            ("FOO", "kV7ahLpQz1Xr8TmWc2Yd", true),
            ("FOO", "correct horse battery staple", true),
            ("FOO", "${input:foo}", true),
            ("LOG_LEVEL", "info", false),
            ("PORT", "8080", false),
            ("DEBUG", "True", false),
            ("DATA_DIR", "/var/lib/data", false),
            ("ENDPOINT", "https://api.example/v1", false),
            (
                "ENDPOINT",
                "https://api.example/sk-ak-0123456789ab/sse",
                true,
            ),
            ("IMAGE", "/images/server-2025-01", false),
            ("ENDPOINT", "https://api.example/v1?k=1", true),
        ] {
            let mut variables = Variables::default();
            let text = variables.of_variable("s", name, value);
            assert_eq!(
                text.starts_with("${env:"),
                is_kept,
                "{name}={value}: {text}"
            );
            assert_eq!(!variables.values().is_empty(), is_kept);
        }
    }

    #[test]
    fn arguments_keep_everything_but_the_credential() {
        let mut variables = Variables::default();
        let args = [
            "-y",
            "@scope/server@2025.12.18",
            "--api-key",
            "abc",
            "--token=x1",
            "-e",
            "DB_PASSWORD=hush",
            "X-Api-Key: k",
            "/srv/data",
            "postgresql://u:hush@localhost:5432/db",
        ];
        let args = args.map(str::to_owned);
        assert_eq!(
            variables.of_arguments("db", &args),
            [
                "-y",
                "@scope/server@2025.12.18",
                "--api-key",
                "${env:DB_API_KEY}",
                "--token=${env:DB_TOKEN}",
                "-e",
                "DB_PASSWORD=${env:DB_DB_PASSWORD}",
                "X-Api-Key: ${env:DB_X_API_KEY}",
                "/srv/data",
                "${env:DB_ARGUMENT}",
            ]
        );
    }

    #[test]
    fn two_values_of_one_name_become_two_variables() {
        let mut variables = Variables::default();
        let kept = [("a", "1"), ("b", "2"), ("c", "1"), ("b", "3")]
            .map(|(server, value)| variables.keep(server, "TOKEN", value));
        let expected = ["TOKEN", "B_TOKEN", "TOKEN", "B_TOKEN_2"];
        assert_eq!(kept, expected.map(|it| format!("${{env:{it}}}")));
    }
}
