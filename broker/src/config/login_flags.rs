//! The flags with which `airlock login` finds a server that was configured with flags.

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
        let path = |name: &str, path: &Path| flag(name, &path.to_string_lossy());
        let config = flags.config.iter().map(|it| path("--config", it));
        let others = flags.mcp_configs.iter().map(|it| path("--mcp-config", it));
        let state = flags.state_dir.iter().map(|it| path("--state-dir", it));
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
        let own: String = own.map(|it| flag("--server", it)).collect();
        own + &self.common
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
        let flags = Flags {
            servers: vec![
                "a=https://a.example/mcp".to_owned(),
                "b = https://b.example/?x=${env:X}".to_owned(),
            ],
            mcp_configs: vec!["mcp.json".into()],
            config: Some("it's/airlock.toml".into()),
            state_dir: Some("/state".into()),
            ..Flags::default()
        };
        let flags = LoginFlags::new(&flags);
        let files = r" --config 'it'\''s/airlock.toml' --mcp-config mcp.json --state-dir /state";
        let a = format!(" --server a=https://a.example/mcp{files}");
        let b = format!(" --server 'b = https://b.example/?x=${{env:X}}'{files}");
        for (server, expected) in [("a", &a), ("b", &b), ("c", &files.to_owned())] {
            assert_eq!(flags.of(server), *expected);
        }
        let words = shell_words::split(&flags.of("b")).unwrap();
        assert_eq!(words.get(3).map(String::as_str), Some("it's/airlock.toml"));
    }
}
