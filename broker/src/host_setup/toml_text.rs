//! Writes servers as tables of `airlock.toml`.

use std::collections::BTreeMap;

use crate::config::server::ServerTarget;

/// Returns the table of a server.
pub(super) fn server(name: &str, target: &ServerTarget) -> String {
    let mut text = format!("\n[servers.{name}]\n");
    match target {
        ServerTarget::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let args: Vec<String> = args.iter().map(|it| quoted(it)).collect();
            text.push_str(&format!("command = {}\n", quoted(command)));
            text.push_str(&format!("args = [{}]\n", args.join(", ")));
            text.push_str(&named("env", env));
            if let Some(cwd) = cwd {
                text.push_str(&format!("cwd = {}\n", quoted(&cwd.to_string_lossy())));
            }
        }
        ServerTarget::Http { url, headers } => {
            text.push_str(&format!("url = {}\n", quoted(url)));
            text.push_str(&named("headers", headers));
        }
    }
    text
}

/// Returns the rules that deny these tools.
pub(super) fn denied(tools: &[String]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let lines: String = tools
        .iter()
        .map(|it| format!("  {},\n", quoted(it)))
        .collect();
    format!("\n# The host never called these tools.\n[rules]\ndeny = [\n{lines}]\n")
}

fn named(key: &str, values: &BTreeMap<String, String>) -> String {
    if values.is_empty() {
        return String::new();
    }
    let pairs = values.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{} = {}", bare(name), quoted(value)))
        .collect();
    format!("{key} = {{ {} }}\n", pairs.join(", "))
}

fn bare(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(fits) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
