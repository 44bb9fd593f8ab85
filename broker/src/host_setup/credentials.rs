//! Decides which texts of a server's entry stay in the host's file. Such a text becomes a variable
//! of airlock's own entry, and the configuration of airlock names the variable.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::names_a_secret;
use crate::secrets::Secrets;
use crate::shell_words;

/// The start of a placeholder, in hosts and in airlock.
const PLACEHOLDER: char = '$';
/// Length, and number of digits, from which a run of letters and digits counts as random.
const RANDOM_RUN: (usize, usize) = (12, 3);
/// The same for a run that may also contain hyphens, as names and dates do.
const RANDOM_HYPHENATED: (usize, usize) = (16, 7);
/// Length up to which a lower-case word is a setting and no credential.
const WORD_BYTES_MAX: usize = 16;
/// Length of the longest word of letters only, and of the longest number.
const LETTERS_MAX: usize = 24;
const NUMBER_BYTES_MAX: usize = 8;
/// Length from which the mixture of a word's characters is looked at.
const MIXED_BYTES_MIN: usize = 8;
/// Digits that a name may end with, such as a year.
const LAST_DIGITS_MAX: usize = 4;
/// How the credentials of well-known services begin, also those that are too short for [`Secrets`].
const BEGINNINGS: [&str; 22] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "eyJ",
    "AKIA",
    "ASIA",
    "AIza",
    "hf_",
    "npm_",
    "pypi-",
    "shpat_",
    "figd_",
    "ntn_",
    "secret_",
];
/// Flags of one letter that many programs use for a password or a key, among other things.
const SHORT_FLAGS: [&str; 2] = ["-p", "-k"];
/// Flags whose value is a user, with a password after `:` if there is one.
const USER_FLAGS: [&str; 3] = ["-u", "--user", "--proxy-user"];
/// Flags whose value is a header.
const HEADER_FLAGS: [&str; 2] = ["-H", "--header"];
/// Headers that never hold a credential.
const PUBLIC_HEADERS: [&str; 3] = ["accept", "content-type", "user-agent"];
/// Variables that programs read without being told to, airlock included.
const WELL_KNOWN: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const WELL_KNOWN_BEGINNINGS: [&str; 4] = ["AIRLOCK_", "XDG_", "LD_", "DYLD_"];

/// The variables that airlock's entry gets, with their values as the host's file has them. Each
/// belongs to one server.
#[derive(Debug, Default)]
pub(super) struct Variables {
    kept: BTreeMap<String, KeptValue>,
    /// The variables that servers get from the host's own environment.
    passed: BTreeSet<String>,
    /// What was taken for a credential because of its shape alone.
    pub(super) found: Vec<String>,
}

#[derive(Debug)]
struct KeptValue {
    server: String,
    value: String,
}

impl Variables {
    pub(super) fn new(passed: BTreeSet<String>) -> Self {
        Self {
            passed,
            ..Self::default()
        }
    }

    pub(super) fn values(&self) -> BTreeMap<String, String> {
        let kept = self.kept.iter();
        kept.map(|(name, it)| (name.clone(), it.value.clone()))
            .collect()
    }

    /// Keeps a value under a name that begins with the server's name. Returns the placeholder.
    fn keep(&mut self, server: &str, name: &str, value: &str) -> String {
        format!("${{env:{}}}", self.name_of(server, name, value))
    }

    fn name_of(&mut self, server: &str, name: &str, value: &str) -> String {
        let (prefix, mut name) = (variable_name(&format!("{server}_")), variable_name(name));
        if !name.starts_with(&prefix) {
            name = prefix + &name;
        }
        if is_well_known(&name) {
            name = format!("SERVER_{name}");
        }
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| {
            let is_same = |it: &KeptValue| it.server == server && it.value == value;
            !self.passed.contains(name) && self.kept.get(name).is_none_or(is_same)
        });
        // There is always a next number.
        let free = free.unwrap_or(name);
        let (server, value) = (server.to_owned(), value.to_owned());
        self.kept.insert(free.clone(), KeptValue { server, value });
        free
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
        if is_public_header(name) && !has_credential(value) {
            return value.to_owned();
        }
        match value.split_once(' ') {
            Some((scheme, token))
                if scheme.eq_ignore_ascii_case("bearer") && !token.contains(' ') =>
            {
                let variable = self.keep(server, "TOKEN", token);
                format!("{scheme} {variable}")
            }
            _ => self.keep(server, name, value),
        }
    }

    /// Returns the text for airlock.toml of an address.
    pub(super) fn of_address(&mut self, server: &str, address: &str) -> String {
        match has_credential(address) || address.contains(['?', '@']) {
            true => self.keep(server, "URL", address),
            false => address.to_owned(),
        }
    }

    /// Returns the text for airlock.toml of a program.
    pub(super) fn of_command(&mut self, server: &str, command: &str) -> String {
        match command.contains(PLACEHOLDER) {
            true => self.keep(server, "COMMAND", command),
            false => command.to_owned(),
        }
    }

    /// Returns the texts for airlock.toml of arguments.
    pub(super) fn of_arguments(&mut self, server: &str, args: &[String]) -> Vec<String> {
        let before = std::iter::once("").chain(args.iter().map(String::as_str));
        let numbered = before.zip(args).enumerate();
        numbered
            .map(|(at, (before, arg))| self.of_argument(server, at + 1, before, arg))
            .collect()
    }

    fn of_argument(&mut self, server: &str, number: usize, before: &str, arg: &str) -> String {
        if let Some((name, rest)) = arg.split_once(['=', ':'])
            && let value = rest.trim_start()
            && let Some(begin) = arg.strip_suffix(value)
            && is_name(name)
            && (names_secret(name) || (HEADER_FLAGS.contains(&before) && !is_public_header(name)))
            && !value.is_empty()
        {
            return format!("{begin}{}", self.keep(server, name, value));
        }
        let follows_flag = before.starts_with('-') && !before.contains('=');
        if follows_flag && !arg.starts_with('-') && names_secret(before) {
            return self.keep(server, before, arg);
        }
        if is_plain_argument(before, arg) {
            return arg.to_owned();
        }
        let name = self.name_of(server, "ARGUMENT", arg);
        if !arg.contains(PLACEHOLDER) {
            self.found.push(format!(
                "argument {number} of `{server}` may be a credential, so it stays in the host's file as the variable {name}"
            ));
        }
        format!("${{env:{name}}}")
    }
}

/// Whether the command line or the address of a server may contain a credential.
pub(crate) fn may_have_credential(target: &str) -> bool {
    let mut variables = Variables::default();
    if target.contains("://") && !target.contains(char::is_whitespace) {
        return variables.of_address("", target) != target;
    }
    shell_words::split(target).is_ok_and(|words| variables.of_arguments("", &words) != words)
}

fn is_well_known(name: &str) -> bool {
    let mut beginnings = WELL_KNOWN_BEGINNINGS.iter();
    WELL_KNOWN.contains(&name) || beginnings.any(|it| name.starts_with(it))
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

fn is_public_header(name: &str) -> bool {
    let mut names = PUBLIC_HEADERS.iter();
    names.any(|it| name.eq_ignore_ascii_case(it))
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(fits)
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let others = [
        "KEY", "AUTH", "PASS", "PW", "CRED", "COOKIE", "SESSION", "DSN",
    ];
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

/// Whether an argument is a flag, a setting, a name, a path or an address without a credential.
fn is_plain_argument(before: &str, arg: &str) -> bool {
    let is_password =
        |text: &str| text.contains(|c: char| c.is_alphabetic()) && !text.contains('/');
    // The value can be a part of the argument, as in `-phunter`.
    let mut attached = SHORT_FLAGS.iter().filter_map(|it| arg.strip_prefix(it));
    let may_be_password =
        (SHORT_FLAGS.contains(&before) && is_password(arg)) || attached.any(is_password);
    let (flag, value) = arg.split_once('=').unwrap_or((before, arg));
    let has_password = USER_FLAGS.contains(&flag) && value.contains(':');
    let is_header = HEADER_FLAGS.contains(&flag)
        && value
            .split_once(':')
            .is_some_and(|(name, _)| !is_public_header(name.trim()));
    let has_user = arg
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .is_some_and(|authority| authority.contains('@'));
    let is_query = arg.contains("://") && arg.contains('?');
    let is_phrase = arg.contains(char::is_whitespace);
    !(may_be_password
        || has_password
        || is_header
        || has_user
        || is_query
        || is_phrase
        || has_credential(arg))
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
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let mut values = text.split(['=', ':', ' ', '/', ',']);
    text.contains(PLACEHOLDER)
        || Secrets::default().redact(text).is_some()
        || runs.any(|run| is_random(run, RANDOM_RUN))
        || hyphenated.any(|run| is_random(run, RANDOM_HYPHENATED))
        || words.any(is_random_word)
        || names_a_value_secret(text)
        || values.any(begins_like_a_credential)
}

/// Whether a part of a text, such as `Server=db;Password=x` or `{"token":"x"}`, gives a secret name to
/// a value.
fn names_a_value_secret(text: &str) -> bool {
    let text = text.replace(['"', '\''], "");
    let mut parts = text.split([';', '&', ',', '?', '{', '}']);
    parts.any(|part| {
        let mut before: Vec<&str> = part.split(['=', ':']).map(str::trim).collect();
        let value = before.pop().unwrap_or_default();
        let mut names = before.into_iter();
        !value.is_empty() && names.any(|it| is_name(it) && names_secret(it))
    })
}

fn begins_like_a_credential(value: &str) -> bool {
    BEGINNINGS.iter().any(|begin| {
        let rest = value.strip_prefix(begin).unwrap_or_default();
        rest.len() >= MIXED_BYTES_MIN
    })
}

/// Whether letters and digits are mixed as in a random text, and not as in a name or a version.
fn is_random_word(word: &str) -> bool {
    let class = |c: char| (c.is_numeric(), c.is_uppercase());
    let classes: Vec<(bool, bool)> = word.chars().map(class).collect();
    let changes = classes.windows(2).filter(|it| it.first() != it.last());
    let changes = changes.count();
    let digits = classes.iter().filter(|(is_digit, _)| *is_digit).count();
    let len = classes.len();
    if digits == len {
        return len > NUMBER_BYTES_MAX;
    }
    if len < MIXED_BYTES_MIN {
        return false;
    }
    if digits == 0 {
        return len > LETTERS_MAX || 3 * changes > len + 2;
    }
    let ends_with_digits = word.trim_end_matches(char::is_numeric).chars().count() + digits == len;
    match ends_with_digits && digits <= LAST_DIGITS_MAX {
        true => 3 * changes > len + 2,
        false => changes > 2 || digits > 2,
    }
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
            ("DB_CRED", "foo", true),
            ("USERPW", "foo", true),
            ("FOO", "/db;password=hunter", true),
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
                "DB_PASSWORD=${env:DB_PASSWORD}",
                "X-Api-Key: ${env:DB_X_API_KEY}",
                "/srv/data",
                "${env:DB_ARGUMENT}",
            ]
        );
    }

    #[test]
    fn argument_without_a_telling_name_is_judged_by_its_shape() {
        for (before, arg, is_kept) in [
            ("", "kVahLpQzXrTmWcYdBn", true),
            ("", "x7Kp2mQ9", true),
            ("", "9f8a7b6c5d4e3f2a", true),
            ("", "sk-abcdefgh", true),
            ("", "--mode=glpat-abcdefgh", true),
            ("", "abcd efgh ijkl mnop", true),
            ("", "123456789:AAFhush", true),
            ("", "qwertyuiopasdfghjklzxcvbnm", true),
            ("", "https://u@host.example/", true),
            ("", "https://host.example/mcp?k=abc", true),
            ("-p", "hunter", true),
            ("", "-phunter2", true),
            ("", "Server=db;Uid=sa;Password=hunter", true),
            (
                "--connection-string",
                "Server=db;Uid=sa;Password=hunter",
                true,
            ),
            ("", r#"{"password":"hunter"}"#, true),
            ("", r#"--config={"token":"abc"}"#, true),
            ("-u", "root:toor", true),
            ("", "--user=admin:pw", true),
            ("", "--header=X-Api:opensesame", true),
            ("--header", "Accept:text/plain", false),
            ("-u", "root", false),
            ("", "-p8080:80", false),
            ("", "--options={\"mode\":\"fast\"}", false),
            ("-p", "8080:80", false),
            ("", "--headless", false),
            ("", "--project-ref=abc", false),
            ("", "@modelcontextprotocol/server-filesystem", false),
            ("", "mcp-server-postgres16@2025.12.18", false),
            ("", "git+https://github.com/o/r@v1.2.3", false),
            ("", "ghcr.io/github/github-mcp-server:latest", false),
            ("-e", "GITHUB_PERSONAL_ACCESS_TOKEN", false),
            ("", "mongodb://localhost:27017/shop", false),
            ("", "/Users/someone/Projects/MyShop", false),
            ("", "PostgreSQL", false),
            ("", "modelContextProtocol", false),
            ("", "20250101", false),
        ] {
            let mut variables = Variables::default();
            let text = variables.of_argument("s", 3, before, arg);
            assert_eq!(text == "${env:S_ARGUMENT}", is_kept, "{arg}: {text}");
            assert_eq!(variables.found.len(), usize::from(is_kept), "{arg}");
            assert!(variables.found.iter().all(|it| !it.contains(arg)));
        }
    }

    #[test]
    fn values_of_telling_names_become_variables() {
        let mut variables = Variables::default();
        let args = ["--pw", "foo", "--header", "X-Api:opensesame"].map(str::to_owned);
        assert_eq!(
            variables.of_arguments("db", &args),
            ["--pw", "${env:DB_PW}", "--header", "X-Api:${env:DB_X_API}"]
        );
        for (name, value, expected) in [
            ("X-Access", "opensesame", "${env:DB_X_ACCESS}"),
            ("Content-Type", "text/plain", "text/plain"),
            ("User-Agent", "airlock", "airlock"),
        ] {
            assert_eq!(variables.of_header("db", name, value), expected);
        }
    }

    #[test]
    fn each_variable_belongs_to_one_server() {
        let passed = ["B_PASSED".to_owned()].into_iter().collect();
        let mut variables = Variables::new(passed);
        for (server, name, value, expected) in [
            ("a", "TOKEN", "1", "A_TOKEN"),
            ("b", "TOKEN", "2", "B_TOKEN"),
            ("c", "TOKEN", "1", "C_TOKEN"),
            ("b", "TOKEN", "3", "B_TOKEN_2"),
            ("b", "TOKEN", "2", "B_TOKEN"),
            ("git", "GIT_TOKEN", "1", "GIT_TOKEN"),
            // Another server gets this variable from the host's environment.
            ("b", "PASSED", "1", "B_PASSED_2"),
            ("x", "B_C", "1", "X_B_C"),
            ("x_b", "C", "1", "X_B_C_2"),
            // airlock itself would read these.
            ("x", "PATH", "/opt:$PATH", "X_PATH"),
            ("https", "PROXY", "1", "SERVER_HTTPS_PROXY"),
            ("airlock-http", "TOKEN", "1", "SERVER_AIRLOCK_HTTP_TOKEN"),
        ] {
            assert_eq!(variables.name_of(server, name, value), expected);
        }
    }
}
