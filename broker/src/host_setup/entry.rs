//! Reads one server from a host's file. Hosts write the same things with different keys.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::known::{HostFile, HostKind, Scope};
use crate::config::mcp_json;
use crate::config::server::{DeclaredServer, ServerTarget};

/// Keys that airlock cannot take over. Without them, the server would get more, or other, than the
/// user configured.
const UNSUPPORTED: [&str; 9] = [
    "envFile",
    "oauth",
    "auth",
    "authProviderType",
    "headersHelper",
    "includeTools",
    "enabled_tools",
    "sandbox",
    "sandboxEnabled",
];

/// A server that can be moved.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) server: DeclaredServer,
    /// Tools that the host never calls.
    pub(super) denied: Vec<String>,
    /// Variables that the host passes on from its own environment.
    pub(super) passed: Vec<String>,
    /// What the host's file says and airlock ignores.
    pub(super) ignored: Vec<String>,
}

/// Reads an entry. The error says why the server stays where it is.
pub(super) fn read(file: &HostFile, name: &str, entry: &Value) -> Result<Entry, String> {
    let mut fields = match entry {
        Value::Object(fields) => fields.clone(),
        _ => return Err("the entry is not a table".into()),
    };
    let is_off = |key: &str, off: bool| fields.get(key).and_then(Value::as_bool) == Some(off);
    if is_off("disabled", true) || is_off("enabled", false) {
        return Err("it is disabled".into());
    }
    fields.shift_remove("enabled");
    if let Some(key) = UNSUPPORTED.iter().find(|it| fields.contains_key(**it)) {
        return Err(format!("airlock has no setting for `{key}`"));
    }
    rename_keys(file.kind, &mut fields);
    let denied = ["excludeTools", "disabledTools", "disabled_tools"];
    let denied = denied.iter().filter_map(|it| fields.shift_remove(*it));
    let denied = denied.map(|it| words(&it)).collect::<Option<Vec<_>>>();
    let denied = denied.ok_or("a list of tools is not a list of strings")?;
    let passed = pass_on(&mut fields)?;
    let mut warnings = Vec::new();
    let title = file.kind.title();
    let declared = mcp_json::declare(title, name, &Value::Object(fields), &mut warnings);
    let server = declared.map_err(|problem| problem.why)?;
    let mut server = server.ok_or("it is disabled")?;
    place(file, &mut server.target)?;
    Ok(Entry {
        server,
        denied: denied.concat(),
        passed,
        ignored: warnings.into_iter().map(|it| it.what).collect(),
    })
}

/// Gives the keys of a host the names that most hosts use.
fn rename_keys(kind: HostKind, fields: &mut Map<String, Value>) {
    let mut rename = |from: &str, to: &str| {
        if let Some(value) = fields.shift_remove(from) {
            fields.insert(to.to_owned(), value);
        }
    };
    rename("serverUrl", "url");
    rename("http_headers", "headers");
    if kind == HostKind::GeminiCli {
        // Gemini CLI reads `url` as an address of the old SSE transport.
        if !fields.contains_key("httpUrl")
            && fields.contains_key("url")
            && !fields.contains_key("type")
        {
            fields.insert("type".into(), "sse".into());
        }
        if let Some(address) = fields.shift_remove("httpUrl") {
            fields.shift_remove("type");
            fields.insert("url".into(), address);
        }
    }
}

/// Replaces Codex's references to variables with placeholders of airlock, and returns their names.
fn pass_on(fields: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let mut passed = Vec::new();
    if let Some(names) = fields.shift_remove("env_vars") {
        let names = words(&names).ok_or("`env_vars` is not a list of names")?;
        let env = table(fields, "env")?;
        for name in names {
            env.insert(name.clone(), format!("${{env:{name}}}").into());
            passed.push(name);
        }
    }
    if let Some(name) = fields.shift_remove("bearer_token_env_var") {
        let name = name
            .as_str()
            .ok_or("`bearer_token_env_var` is not a name")?;
        let value = format!("Bearer ${{env:{name}}}");
        table(fields, "headers")?.insert("Authorization".into(), value.into());
        passed.push(name.to_owned());
    }
    if let Some(headers) = fields.shift_remove("env_http_headers") {
        let headers = headers.as_object().cloned();
        for (header, name) in headers.ok_or("`env_http_headers` is not a table")? {
            let name = name
                .as_str()
                .ok_or("`env_http_headers` is not a table of names")?;
            table(fields, "headers")?.insert(header, format!("${{env:{name}}}").into());
            passed.push(name.to_owned());
        }
    }
    Ok(passed)
}

fn table<'a>(
    fields: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, String> {
    let table = fields.entry(key).or_insert_with(|| Map::new().into());
    let table = table.as_object_mut();
    table.ok_or_else(|| format!("`{key}` is not a table"))
}

fn words(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter();
    words.map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Makes the working folder absolute. Only the folder of a project is known.
fn place(file: &HostFile, target: &mut ServerTarget) -> Result<(), String> {
    let ServerTarget::Stdio { cwd: Some(cwd), .. } = target else {
        return Ok(());
    };
    if cwd.to_string_lossy().contains('$') {
        return Err("airlock replaces no placeholders in `cwd`".into());
    }
    if cwd.is_absolute() {
        return Ok(());
    }
    match file.scope {
        Scope::Project => {
            *cwd = PathBuf::from(file.shown_root()).join(&cwd);
            Ok(())
        }
        Scope::User | Scope::Local => Err("its `cwd` is not an absolute path".into()),
    }
}
