//! The conventional `{"mcpServers": {…}}` file that other hosts use. What we do
//! not know in it is a warning, since it was not written for us; and nothing in
//! it can allow a call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airlock_core::json::{self, Bounds};
use airlock_core::problem::Problem;
use serde_json::{Map, Value};

use super::invalid;
use super::server::{Declared, Target, Trust, Tuning};

const NEXT: &str = "see the server's own documentation for its `mcpServers` entry";

#[derive(Debug, Default)]
pub(crate) struct McpConfig {
    pub(crate) servers: Vec<Declared>,
    pub(crate) warnings: Vec<Problem>,
}

pub(crate) fn parse(file: &str, text: &str) -> Result<McpConfig, Problem> {
    // The reasons never quote the file, which may hold credentials.
    let document = json::read(text.as_bytes(), Bounds::WIDEST).map_err(|bad| {
        let what = format!("{file} cannot be read");
        invalid(what, bad.to_string(), "correct the file")
    })?;
    let servers = document
        .get("mcpServers")
        .or_else(|| document.get("servers"))
        .and_then(Value::as_object);
    let Some(servers) = servers else {
        let why = "it has no object `mcpServers`";
        return Err(invalid(
            format!("{file} cannot be used"),
            why,
            "write {\"mcpServers\": {\"name\": {\"command\": …}}}",
        ));
    };
    let mut config = McpConfig::default();
    for (name, entry) in servers {
        let mut reader = Entry {
            file,
            name,
            warnings: &mut config.warnings,
        };
        config.servers.extend(reader.declare(entry)?);
    }
    Ok(config)
}

struct Entry<'a> {
    file: &'a str,
    name: &'a str,
    warnings: &'a mut Vec<Problem>,
}

impl Entry<'_> {
    fn declare(&mut self, entry: &Value) -> Result<Option<Declared>, Problem> {
        let fields = entry
            .as_object()
            .ok_or_else(|| self.problem("its entry is not an object", NEXT))?;
        self.warn_of_unknown(fields);
        if fields.get("disabled").and_then(Value::as_bool) == Some(true) {
            return Ok(None);
        }
        if fields.get("type").and_then(Value::as_str) == Some("sse") {
            let next = "ask the server for its streamable HTTP address; SSE was given up by the protocol in 2025";
            return Err(self.problem(
                "it uses the old SSE transport, which is not spoken here",
                next,
            ));
        }
        let target = match (self.string(fields, "command")?, self.string(fields, "url")?) {
            (Some(command), None) => Target::Stdio {
                command,
                args: self.strings(fields, "args")?,
                env: self.texts(fields, "env")?,
                cwd: self.string(fields, "cwd")?.map(PathBuf::from),
            },
            (None, Some(url)) => Target::Http {
                url,
                headers: self.texts(fields, "headers")?,
            },
            (None, None) => return Err(self.problem("it has neither `command` nor `url`", NEXT)),
            (Some(_), Some(_)) => {
                return Err(self.problem("it has both `command` and `url`", "keep one of the two"));
            }
        };
        Ok(Some(Declared {
            name: self.name.to_owned(),
            origin: self.file.to_owned(),
            target,
            tuning: Tuning::default(),
            trust: Trust::default(),
        }))
    }

    fn warn_of_unknown(&mut self, fields: &Map<String, Value>) {
        const KNOWN: [&str; 8] = [
            "command", "args", "env", "cwd", "url", "headers", "type", "disabled",
        ];
        for key in fields.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            let why = match key.as_str() {
                "autoApprove" | "alwaysAllow" | "trust" => {
                    "approvals of another host allow nothing here; use --allow"
                }
                _ => "it is not known here and has no effect",
            };
            let what = format!(
                "`{key}` of the server `{}` in {} is left aside",
                self.name, self.file
            );
            self.warnings.push(invalid(what, why, ""));
        }
    }

    fn string(&self, fields: &Map<String, Value>, key: &str) -> Result<Option<String>, Problem> {
        match fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.problem(&format!("`{key}` is not a text"), NEXT)),
        }
    }

    fn strings(&self, fields: &Map<String, Value>, key: &str) -> Result<Vec<String>, Problem> {
        let wrong = || self.problem(&format!("`{key}` is not a list of texts"), NEXT);
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
        let wrong = || self.problem(&format!("`{key}` is not an object of texts"), NEXT);
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
            format!("the server `{}` in {} cannot be used", self.name, self.file),
            why,
            next,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conventional_file_is_read_and_what_is_unknown_is_a_warning() {
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
                .all(|server| server.trust == Trust::default())
        );
        let warnings: Vec<_> = config
            .warnings
            .iter()
            .map(|warning| warning.what.as_str())
            .collect();
        assert_eq!(
            warnings,
            [
                "`autoApprove` of the server `fs` in mcp.json is left aside",
                "`icon` of the server `docs` in mcp.json is left aside",
            ]
        );
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, why) in [
            (
                "{",
                "not JSON: EOF while parsing an object at line 1 column 1",
            ),
            ("[]", "it has no object `mcpServers`"),
            (r#"{"mcpServers":{"a":1}}"#, "its entry is not an object"),
            (
                r#"{"mcpServers":{"a":{}}}"#,
                "it has neither `command` nor `url`",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","url":"y"}}}"#,
                "it has both `command` and `url`",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#,
                "`args` is not a list of texts",
            ),
            (
                r#"{"mcpServers":{"a":{"command":"x","env":{"A":[]}}}}"#,
                "`env` is not an object of texts",
            ),
            (
                r#"{"mcpServers":{"a":{"type":"sse","url":"y"}}}"#,
                "it uses the old SSE transport, which is not spoken here",
            ),
        ] {
            assert_eq!(parse("mcp.json", text).unwrap_err().why, why);
        }
    }
}
