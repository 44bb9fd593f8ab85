//! Parses the `{"mcpServers": {…}}` file of other hosts. Unknown keys are warnings, because the
//! file was not written for airlock. The file cannot allow calls.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use serde_json::{Map, Value};

use super::invalid;
use super::oauth::OauthTable;
use super::server::{DeclaredServer, ServerTarget, ServerTuning, ToolTrust};

const NEXT: &str = "see the server's own documentation for its `mcpServers` entry";

#[derive(Debug, Default)]
pub(crate) struct McpConfig {
    pub(crate) servers: Vec<DeclaredServer>,
    pub(crate) warnings: Vec<Problem>,
}

pub(crate) fn parse(file: &str, text: &str) -> Result<McpConfig, Problem> {
    // Error messages never quote the file, because it may contain credentials.
    let document = json::read(text.as_bytes(), Bounds::WIDEST).map_err(|bad| {
        let what = format!("{file} is invalid");
        invalid(what, bad.to_string(), "correct the file")
    })?;
    let servers = document
        .get("mcpServers")
        .or_else(|| document.get("servers"))
        .and_then(Value::as_object);
    let Some(servers) = servers else {
        let why = "the file has no object `mcpServers`";
        return Err(invalid(
            format!("{file} is invalid"),
            why,
            "write {\"mcpServers\": {\"name\": {\"command\": …}}}",
        ));
    };
    let mut config = McpConfig::default();
    for (name, entry) in servers {
        let declared = declare(file, name, entry, &mut config.warnings)?;
        config.servers.extend(declared);
    }
    Ok(config)
}

/// Reads one entry. Returns `None` if it is disabled.
pub(crate) fn declare(
    file: &str,
    name: &str,
    entry: &Value,
    warnings: &mut Vec<Problem>,
) -> Result<Option<DeclaredServer>, Problem> {
    let mut reader = Entry {
        file,
        name,
        warnings,
    };
    reader.declare(entry)
}

struct Entry<'a> {
    file: &'a str,
    name: &'a str,
    warnings: &'a mut Vec<Problem>,
}

impl Entry<'_> {
    fn declare(&mut self, entry: &Value) -> Result<Option<DeclaredServer>, Problem> {
        let fields = entry
            .as_object()
            .ok_or_else(|| self.problem("the entry is not an object", NEXT))?;
        self.warn_of_unknown(fields);
        if fields.get("disabled").and_then(Value::as_bool) == Some(true) {
            return Ok(None);
        }
        if fields.get("type").and_then(Value::as_str) == Some("sse") {
            let next = "use the server's address for streamable HTTP, which replaced SSE in 2025";
            return Err(self.problem("airlock does not support the old SSE transport", next));
        }
        let target = match (self.string(fields, "command")?, self.string(fields, "url")?) {
            (Some(command), None) => ServerTarget::Stdio {
                command,
                args: self.strings(fields, "args")?,
                env: self.texts(fields, "env")?,
                cwd: self.string(fields, "cwd")?.map(PathBuf::from),
            },
            (None, Some(url)) => ServerTarget::Http {
                url,
                headers: self.texts(fields, "headers")?,
            },
            (None, None) => return Err(self.problem("neither `command` nor `url` is set", NEXT)),
            (Some(_), Some(_)) => {
                return Err(self.problem("both `command` and `url` are set", "remove one of them"));
            }
        };
        let has_client = ["oauth", "auth"]
            .iter()
            .any(|key| fields.get(*key).is_some_and(Value::is_object));
        let oauth = match has_client && self.can_log_in(&target) {
            true => self.oauth(fields)?,
            false => None,
        };
        Ok(Some(DeclaredServer {
            name: self.name.to_owned(),
            origin: self.file.to_owned(),
            target,
            tuning: ServerTuning {
                oauth,
                ..ServerTuning::default()
            },
            trust: ToolTrust::default(),
        }))
    }

    fn warn_of_unknown(&mut self, fields: &Map<String, Value>) {
        const KNOWN: [&str; 10] = [
            "command", "args", "env", "cwd", "url", "headers", "type", "disabled", "oauth", "auth",
        ];
        for key in fields.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            let why = match key.as_str() {
                "autoApprove" | "alwaysAllow" | "trust" => {
                    "approvals of another host have no effect in airlock; use --allow"
                }
                _ => "airlock does not know this key",
            };
            let what = format!(
                "ignored key `{key}` of the server `{}` in {}",
                self.name, self.file
            );
            self.warnings.push(invalid(what, why, ""));
        }
    }

    /// Whether the server can be logged in to. Other hosts ignore a client that a server does not
    /// need, so it is no error.
    fn can_log_in(&mut self, target: &ServerTarget) -> bool {
        let why = match target {
            ServerTarget::Stdio { .. } => "a server that is started as a command has no login",
            ServerTarget::Http { headers, .. } => {
                let mut names = headers.keys();
                if !names.any(|name| name.eq_ignore_ascii_case("authorization")) {
                    return true;
                }
                "the header `Authorization` is used instead"
            }
        };
        let what = format!(
            "ignored the client of the server `{}` in {}",
            self.name, self.file
        );
        self.warnings.push(invalid(what, why, ""));
        false
    }

    /// Reads the client of other hosts: `oauth.clientId` and `callbackPort`, or `auth.CLIENT_ID`.
    fn oauth(&mut self, fields: &Map<String, Value>) -> Result<Option<OauthTable>, Problem> {
        let table = fields.get("oauth").or_else(|| fields.get("auth"));
        let Some(table) = table.and_then(Value::as_object) else {
            return Ok(None);
        };
        if ["clientSecret", "CLIENT_SECRET"]
            .iter()
            .any(|key| table.contains_key(*key))
        {
            let what = format!(
                "ignored the client of the server `{}` in {}",
                self.name, self.file
            );
            let why =
                "a client secret needs an `issuer`, the only authorization server that gets it";
            let next = "configure the server in airlock.toml, with `issuer` in its table `oauth`";
            self.warnings.push(invalid(what, why, next));
            return Ok(None);
        }
        let either = |one: &str, other: &str| match self.string(table, one)? {
            Some(text) => Ok(Some(text)),
            None => self.string(table, other),
        };
        let port = table.get("callbackPort").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok());
        let scopes = match table.get("scopes") {
            Some(_) => Some(self.strings(table, "scopes")?),
            None => None,
        };
        Ok(Some(OauthTable {
            client_id: either("clientId", "CLIENT_ID")?,
            client_secret: None,
            private_key: None,
            issuer: None,
            scopes,
            callback: port.map(|port| format!("http://localhost:{port}/callback")),
            grant: None,
        }))
    }

    fn string(&self, fields: &Map<String, Value>, key: &str) -> Result<Option<String>, Problem> {
        match fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.problem(&format!("`{key}` is not a string"), NEXT)),
        }
    }

    fn strings(&self, fields: &Map<String, Value>, key: &str) -> Result<Vec<String>, Problem> {
        let wrong = || self.problem(&format!("`{key}` is not a list of strings"), NEXT);
        match fields.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn texts(
        &self,
        fields: &Map<String, Value>,
        key: &str,
    ) -> Result<BTreeMap<String, String>, Problem> {
        let wrong = || self.problem(&format!("`{key}` is not an object of strings"), NEXT);
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(wrong()),
        };
        match fields.get(key) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(members)) => members
                .iter()
                .map(|(name, value)| Ok((name.clone(), text(value)?)))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn problem(&self, why: &str, next: &str) -> Problem {
        invalid(
            format!("invalid server `{}` in {}", self.name, self.file),
            why,
            next,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_json_parses_and_unknown_keys_warn() {
        let text = r#"{"mcpServers": {
            "fs": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b", "PORT": 1}, "autoApprove": ["*"]},
            "docs": {"type": "http", "url": "https://h/mcp", "headers": {"K": "v"}, "icon": "x"},
            "off": {"command": "never", "disabled": true}}}"#;
        let config = parse("mcp.json", text).unwrap();
        let names: Vec<_> = config
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        assert_eq!(names, ["fs", "docs"]);
        assert!(
            config
                .servers
                .iter()
                .all(|server| server.trust == ToolTrust::default())
        );
        let warnings: Vec<_> = config
            .warnings
            .iter()
            .map(|warning| warning.what.as_str())
            .collect();
        assert_eq!(
            warnings,
            [
                "ignored key `autoApprove` of the server `fs` in mcp.json",
                "ignored key `icon` of the server `docs` in mcp.json",
            ]
        );
    }

    #[test]
    fn client_beside_a_command_or_a_header_is_ignored_and_other_servers_stay() {
        let text = r#"{"mcpServers": {
            "a": {"command": "npx", "oauth": {"clientId": 3}},
            "b": {"url": "https://b/mcp", "headers": {"authorization": "x"}, "auth": {"CLIENT_ID": "c"}},
            "c": {"url": "https://c/mcp", "oauth": {"clientId": "c", "callbackPort": 99999}}}}"#;
        let config = parse("mcp.json", text).unwrap();
        let clients: Vec<_> = config
            .servers
            .iter()
            .map(|it| {
                let client = it.tuning.oauth.as_ref();
                client.map(|it| (it.client_id.as_deref(), it.callback.as_deref()))
            })
            .collect();
        assert_eq!(clients, [None, None, Some((Some("c"), None))]);
        let warnings: Vec<_> = config.warnings.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(
            warnings,
            ["a", "b"].map(|it| format!("ignored the client of the server `{it}` in mcp.json"))
        );
        let environment = crate::environment::Environment::default();
        let logins = crate::config::LoginContext::new(
            std::path::Path::new("/state"),
            crate::login::OauthConfig::default(),
            &environment,
        );
        for server in config.servers {
            assert!(server.resolve(&environment, &logins).is_ok());
        }
    }

    #[test]
    fn unusable_mcp_json_entry_is_named() {
        for (text, why) in [
            (
                "{",
                "not JSON: EOF while parsing an object at line 1 column 1",
            ),
            ("[]", "the file has no object `mcpServers`"),
            (r#"{"mcpServers":{"a":1}}"#, "the entry is not an object"),
            (
                r#"{"mcpServers":{"a":{}}}"#,
                "neither `command` nor `url` is set",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","url":"y"}}}"#,
                "both `command` and `url` are set",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#,
                "`args` is not a list of strings",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","env":{"A":[]}}}}"#,
                "`env` is not an object of strings",
            ),
            (
                r#"{"mcpServers":{"a":{"type":"sse","url":"y"}}}"#,
                "airlock does not support the old SSE transport",
            ),
        ] {
            assert_eq!(parse("mcp.json", text).unwrap_err().why, why);
        }
    }
}
