//! The flags with which `airlock login` finds a server that was configured with flags.

use std::borrow::Cow;
use std::path::Path;

use super::Flags;
use crate::shell_words;

/// The flags as the user wrote them, as text for a shell.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoginFlags {
    /// The flags that concern every server, each with a space before it.
    common: String,
    /// The values of `--server`.
    servers: Vec<String>,
}

impl LoginFlags {
    pub(super) fn new(flags: &Flags) -> Self {
        // The person may be in another folder.
        let path = |name: &str, path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            flag(name, &path.to_string_lossy())
        };
        let config = flags.config.iter().map(|it| path("--config", it));
        let others = flags.mcp_configs.iter().map(|it| path("--mcp-config", it));
        let state = flags
            .settings
            .state
            .state_dir
            .iter()
            .map(|it| path("--state-dir", it));
        Self {
            common: config.chain(others).chain(state).collect(),
            servers: flags.servers.clone(),
        }
    }

    /// Returns the flags for one server.
    pub(super) fn of(&self, server: &str) -> String {
        let is_of = |flag: &&String| {
            let name = flag.split_once('=').map(|(name, _)| name.trim());
            name == Some(server)
        };
        let own = self.servers.iter().filter(is_of);
        let own: String = own.map(|it| flag("--server", &without_query(it))).collect();
        own + &self.common
    }
}

/// Leaves out a query that may contain a credential. The person has to write it again.
fn without_query(server: &str) -> Cow<'_, str> {
    let Some((address, query)) = server.split_once(['?', '#']) else {
        return server.into();
    };
    let is_reference = |value: &str| {
        let inner = value.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
        inner.is_some_and(|it| !it.contains(['$', '}']) && !it.contains(":-"))
    };
    let mut pairs = query.split('&').map(|it| it.split_once('='));
    match pairs.all(|it| it.is_some_and(|(_, value)| is_reference(value))) {
        true => server.into(),
        false => format!("{address}?…").into(),
    }
}

fn flag(name: &str, value: &str) -> String {
    format!(" {name} {}", shell_words::quote(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_server_are_those_that_name_it_and_the_files() {
        let mut flags = Flags {
            servers: vec![
                "a=https://a.example/mcp".to_owned(),
                "b = https://b.example/?x=${env:X}".to_owned(),
            ],
            mcp_configs: vec!["mcp.json".into()],
            config: Some("/it's/airlock.toml".into()),
            ..Flags::default()
        };
        flags.settings.state.state_dir = Some("/state".into());
        let flags = LoginFlags::new(&flags);
        let here = std::env::current_dir().unwrap();
        let here = shell_words::quote(&here.join("mcp.json").to_string_lossy());
        let files =
            format!(r" --config '/it'\''s/airlock.toml' --mcp-config {here} --state-dir /state");
        let a = format!(" --server a=https://a.example/mcp{files}");
        let b = format!(" --server 'b = https://b.example/?x=${{env:X}}'{files}");
        for (server, expected) in [("a", &a), ("b", &b), ("c", &files)] {
            assert_eq!(flags.of(server), *expected);
        }
        let words = shell_words::split(&flags.of("b")).unwrap();
        assert_eq!(words.get(3).map(String::as_str), Some("/it's/airlock.toml"));
    }

    #[test]
    fn query_that_may_hold_a_credential_is_left_out() {
        for (server, expected) in [
            ("a=https://a/mcp?api_key=S3cr3tVal99", "a=https://a/mcp?…"),
            ("a=https://a/mcp#S3cr3tVal99", "a=https://a/mcp?…"),
            ("a=https://a/?x=${env:X}&y=S3", "a=https://a/?…"),
            ("a=https://a/?x=${env:X:-S3}", "a=https://a/?…"),
            ("a=https://a/?x=${env:X}", "a=https://a/?x=${env:X}"),
        ] {
            assert_eq!(without_query(server), expected);
        }
    }
}
