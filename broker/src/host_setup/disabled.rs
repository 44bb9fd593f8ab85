//! Finds the servers that a host does not start because of lists in its files, which are not
//! always the files that list the servers. Such a server stays where it is.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::host_file::{self, AIRLOCK};
use super::known::{HostFile, ListKind, ServerList};

/// The servers that a host does not start, with the reasons.
#[derive(Debug, Default)]
pub(super) struct Disabled {
    reasons: BTreeMap<String, String>,
    /// Why airlock itself would not be started.
    all: Option<String>,
}

impl Disabled {
    /// Returns why a server stays in the host's file.
    pub(super) fn why(&self, server: &str) -> Option<String> {
        let own = self.reasons.get(&normal(server));
        own.or(self.all.as_ref()).cloned()
    }

    fn add(&mut self, list: &ServerList, value: &Value) {
        let shown = format!("`{}` in {}", list.keys.join("."), list.path.display());
        let names = || {
            let names = value.as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(normal)
        };
        match list.kind {
            ListKind::Off => {
                let why = format!("it is disabled by {shown}");
                self.reasons.extend(names().map(|name| (name, why.clone())));
            }
            ListKind::Only if value.is_array() && !names().any(|it| it == AIRLOCK) => {
                let why = format!(
                    "the host starts only the servers of the list {shown}; add `{AIRLOCK}` to it first"
                );
                self.all = Some(why);
            }
            ListKind::Only => {}
            ListKind::States => {
                let why = format!("it is disabled in {}", list.path.display());
                let states = value.as_object().into_iter().flatten();
                let off = states.filter(|(_, it)| it.get("enabled") == Some(&Value::Bool(false)));
                let off = off.map(|(name, _)| (normal(name), why.clone()));
                self.reasons.extend(off);
            }
        }
    }
}

/// Reads the lists of a host. The error says which file cannot be read.
pub(super) fn find(file: &HostFile) -> Result<Disabled, String> {
    let mut disabled = Disabled::default();
    for list in &file.lists {
        let document = read(&list.path).map_err(|why| {
            let path = list.path.display();
            format!("the servers that the host does not start are not known: {path}: {why}")
        })?;
        for value in document.iter().flat_map(|it| values_at(it, &list.keys)) {
            disabled.add(list, value);
        }
    }
    Ok(disabled)
}

/// Returns `None` for a missing file.
fn read(path: &Path) -> Result<Option<Value>, String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(text) => host_file::json_document(&text)
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

/// Returns the values that the keys lead to. The key `*` stands for every key.
fn values_at<'a>(document: &'a Value, keys: &[String]) -> Vec<&'a Value> {
    keys.iter().fold(vec![document], |at, key| {
        let next = at.into_iter().filter_map(Value::as_object);
        next.flat_map(|members| {
            let named = move |name: &&String| key == "*" || *name == key;
            members.iter().filter(move |(name, _)| named(name))
        })
        .map(|(_, value)| value)
        .collect()
    })
}

/// Hosts ignore case and spaces in some of these names. A server that is disabled by mistake stays
/// where it is.
fn normal(name: &str) -> String {
    name.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;
    use crate::host_setup::known;
    use crate::tempdir::TempDir;

    /// Writes files, and returns why the server `a` of a host's file is disabled.
    fn why(host: &str, files: &[(&str, &str)]) -> Result<Option<String>, String> {
        let home = TempDir::new();
        let project = home.path().join("shop");
        for (name, text) in files {
            let text = text.replace("@PROJECT@", &project.display().to_string());
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let path = home.path().display().to_string();
        let environment = Environment::from([("HOME", &*path)]);
        let mut found = known::find(&environment, &project).into_iter();
        let file = found.find(|it| it.path.ends_with(host)).unwrap();
        let why = find(&file)?.why("a");
        Ok(why.map(|it| it.replace(&path, "~")))
    }

    #[test]
    fn lists_of_hosts_disable_servers() {
        const GEMINI: &str = ".gemini/settings.json";
        const MCP: &str = "shop/.mcp.json";
        const CLAUDE: &str = ".claude.json";
        for (host, files, expected) in [
            (GEMINI, vec![(GEMINI, "{}")], None),
            (
                GEMINI,
                vec![(GEMINI, r#"{"mcp": {"excluded": ["A"]}}"#)],
                Some("it is disabled by `mcp.excluded` in ~/.gemini/settings.json"),
            ),
            (
                GEMINI,
                vec![(GEMINI, r#"{"excludeMCPServers": ["a"]}"#)],
                Some("it is disabled by `excludeMCPServers` in ~/.gemini/settings.json"),
            ),
            (
                GEMINI,
                vec![(GEMINI, r#"{"mcp": {"allowed": ["a"]}}"#)],
                Some(
                    "the host starts only the servers of the list `mcp.allowed` in ~/.gemini/settings.json; add `airlock` to it first",
                ),
            ),
            (
                GEMINI,
                vec![(GEMINI, r#"{"mcp": {"allowed": ["a", "airlock"]}}"#)],
                None,
            ),
            (
                GEMINI,
                vec![
                    (GEMINI, "{}"),
                    (
                        ".gemini/mcp-server-enablement.json",
                        r#"{"a": {"enabled": false}, "b": {"enabled": true}}"#,
                    ),
                ],
                Some("it is disabled in ~/.gemini/mcp-server-enablement.json"),
            ),
            (
                MCP,
                vec![
                    (MCP, "{}"),
                    (
                        "shop/.claude/settings.local.json",
                        r#"{"disabledMcpjsonServers": ["a"]}"#,
                    ),
                ],
                Some(
                    "it is disabled by `disabledMcpjsonServers` in ~/shop/.claude/settings.local.json",
                ),
            ),
            (
                MCP,
                vec![
                    (MCP, "{}"),
                    (
                        CLAUDE,
                        r#"{"projects": {"@PROJECT@": {"disabledMcpjsonServers": ["a"]}}}"#,
                    ),
                ],
                Some(
                    "it is disabled by `projects.~/shop.disabledMcpjsonServers` in ~/.claude.json",
                ),
            ),
            (
                CLAUDE,
                vec![(
                    CLAUDE,
                    r#"{"projects": {"/other": {"disabledMcpServers": ["a"]}}}"#,
                )],
                Some("it is disabled by `projects.*.disabledMcpServers` in ~/.claude.json"),
            ),
        ] {
            assert_eq!(why(host, &files).unwrap().as_deref(), expected, "{files:?}");
        }
        let broken = [(GEMINI, "{}"), (".gemini/mcp-server-enablement.json", "{")];
        let error = why(GEMINI, &broken).unwrap_err();
        assert!(error.contains("are not known"), "{error}");
    }
}
