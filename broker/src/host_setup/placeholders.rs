//! Replaces placeholders in a host's entry, as the host does before it starts airlock.

use std::path::Path;

use crate::config::Environment;

/// Replaces `${NAME}`, `${env:NAME}`, `${NAME:-DEFAULT}`, `${workspaceFolder}` and `${userHome}`.
/// The error says which placeholder only the host can replace.
pub(super) fn expand(
    text: &str,
    project: &Path,
    environment: &Environment,
) -> Result<String, String> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, after)) = after.split_once('}') else {
            break;
        };
        expanded.push_str(before);
        expanded.push_str(&value(inner, project, environment)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value(inner: &str, project: &Path, environment: &Environment) -> Result<String, String> {
    let name = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    match name {
        "workspaceFolder" => return Ok(project.display().to_string()),
        "userHome" => return Ok(environment.text("HOME").unwrap_or_default().to_owned()),
        _ if name.contains(':') => {
            return Err(format!("only the host can replace `${{{inner}}}`"));
        }
        _ => {}
    }
    let known = environment.text(name).or(default);
    let known = known.ok_or_else(|| format!("the variable {name} is not set here"));
    known.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_hosts_are_replaced() {
        let environment = Environment::from([("A", "1"), ("HOME", "/h")]);
        for (text, expected) in [
            ("plain $A", Ok("plain $A")),
            ("${A}-${env:A}", Ok("1-1")),
            ("${B:-2}${A:-2}", Ok("21")),
            ("${workspaceFolder}/x ${userHome}", Ok("/p/x /h")),
            ("${B}", Err("the variable B is not set here")),
            ("${input:b}", Err("only the host can replace `${input:b}`")),
            ("${A", Ok("${A")),
        ] {
            let expanded = expand(text, Path::new("/p"), &environment);
            assert_eq!(
                expanded.as_deref().map_err(String::as_str),
                expected,
                "{text}"
            );
        }
    }
}
