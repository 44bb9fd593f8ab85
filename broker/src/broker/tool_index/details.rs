//! Full descriptions of tools by name, as TypeScript declarations or JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use airlock_core::catalog::Tool;
use airlock_core::code::Code;
use codegen::declare::Level;
use serde_json::{Map, Value, json};

use super::args::{names, only, sanitize};
use super::{ListedTool, ToolIndex};
use crate::broker::{DescribedTools, ToolSnapshot};

/// Maximum number of available names in a reply, over all names that were not found.
const AVAILABLE_SHOWN_MAX: usize = 100;
/// Minimum number of available names for each name that was not found.
const AVAILABLE_SHOWN_MIN: usize = 2;

/// Maximum number of available names in the text for a script.
const NAMES_IN_TEXT_MAX: usize = 20;

/// Descriptions that were shown, and errors for unknown names.
pub(crate) struct ToolDetails<'a> {
    /// The snapshot from which the descriptions were taken. Exactly the shown descriptions are
    /// disclosed, even if the tools change meanwhile.
    known: Arc<ToolSnapshot>,
    pub(crate) found: Vec<&'a ListedTool>,
    /// The descriptions and errors by requested name, in the order of the request.
    pub(crate) entries: Map<String, Value>,
    /// Why names were not found, for scripts: with the names that scripts use.
    problems: Vec<String>,
}

impl ToolDetails<'_> {
    /// Returns the descriptions as TypeScript declarations.
    pub(crate) fn declarations(&self) -> String {
        let mut text = ToolIndex::declared(&self.known, &self.found, Level::Full);
        for problem in &self.problems {
            text.push_str(&format!("// {problem}\n"));
        }
        for shown in &self.found {
            if let Some(why) = shown.tool.args_check.unusable() {
                text.push_str(&format!("// `{}` cannot be called: {why}\n", shown.name));
            }
        }
        text
    }

    /// Returns the tools with the digests of what was shown.
    pub(crate) fn current(&self) -> Vec<Arc<Tool>> {
        let catalog = &self.known.decision_context.catalog;
        let found = self.found.iter();
        found.map(|shown| shown.in_catalog(catalog)).collect()
    }
}

/// Answers `airlock.describe`: declarations as text, or full descriptions by name.
pub(crate) fn describe<'a>(
    args: &Map<String, Value>,
    disclose: impl FnOnce(&[String]) -> Result<ToolDetails<'a>, String>,
) -> Result<DescribedTools, String> {
    let (wanted, as_json) = wanted(args)?;
    let details = disclose(&wanted)?;
    if details.found.is_empty() {
        return Err(details.problems.join("; "));
    }
    let current = details.current().into_iter();
    let disclosed = current
        .map(|tool| (tool.id.clone(), tool.description_digest))
        .collect();
    let value = if as_json {
        Value::Object(details.entries)
    } else {
        details.declarations().into()
    };
    Ok(DescribedTools { value, disclosed })
}

/// Returns the requested names, and whether the format is JSON.
pub(crate) fn wanted(args: &Map<String, Value>) -> Result<(Vec<String>, bool), String> {
    only(args, &["tools", "name", "format", "session"])?;
    let mut wanted = names(args, "tools")?;
    wanted.extend(names(args, "name")?);
    if wanted.is_empty() {
        return Err("name the tools, such as \"server.tool\"".into());
    }
    match args.get("format").map(Value::as_str) {
        None | Some(Some("typescript")) => Ok((wanted, false)),
        Some(Some("json")) => Ok((wanted, true)),
        Some(_) => Err("`format` is neither `typescript` nor `json`".into()),
    }
}

/// Explains why tools of a server that the model has disabled cannot be used.
pub(crate) fn server_disabled_text(server: &str) -> String {
    format!("Server '{server}' is disabled in this session; enable it with enable_server")
}

/// Looks up full descriptions by name, and discloses nothing. Those of the `hidden` servers are not
/// returned.
pub(crate) fn look_up<'a>(
    tool_index: &'a ToolIndex,
    wanted: &[String],
    hidden: &BTreeSet<String>,
) -> ToolDetails<'a> {
    let known = tool_index.broker.known();
    let mut found: Vec<&ListedTool> = Vec::new();
    let (mut entries, mut problems) = (Map::new(), Vec::new());
    let unknown = wanted.iter().filter(|name| tool_index.find(name).is_none());
    let each = AVAILABLE_SHOWN_MAX / unknown.count().max(1);
    for name in wanted {
        let entry = match tool_index.find(name) {
            Some(shown) if hidden.contains(&*shown.tool.id.server.0) => {
                let why = server_disabled_text(&shown.tool.id.server.0);
                problems.push(why.clone());
                json!({"code": "server-disabled", "error": why})
            }
            Some(shown) => {
                if !found.iter().any(|it| it.name == shown.name) {
                    found.push(shown);
                }
                ToolIndex::full(&known, shown, name)
            }
            None => match tool_index.denial(name) {
                Some(why) => {
                    problems.push(why.clone());
                    json!({"code": Code::Denied, "error": why})
                }
                None => {
                    let available = available(tool_index, name, each.max(AVAILABLE_SHOWN_MIN));
                    problems.push(not_found_text(name, &available));
                    let flat: Vec<_> = available.iter().map(|it| &it.flat).collect();
                    let error = format!("Tool '{}' not found", sanitize(name));
                    match meant(name, &available) {
                        Some(meant) => json!({
                            "error": error,
                            "did_you_mean": meant,
                            "available_tools": flat,
                        }),
                        None => json!({"error": error, "available_tools": flat}),
                    }
                }
            },
        };
        entries.insert(sanitize(name), entry);
    }
    ToolDetails {
        known,
        found,
        entries,
        problems,
    }
}

/// Returns the name that was probably meant.
fn meant<'a>(name: &str, available: &[&'a ListedTool]) -> Option<&'a str> {
    let names = available.iter().map(|it| it.name.as_str());
    codegen::closest::closest(&sanitize(name), names)
}

/// Explains to a script that there is no tool of this name.
fn not_found_text(name: &str, available: &[&ListedTool]) -> String {
    let names = || available.iter().map(|it| it.name.as_str());
    let closest = meant(name, available);
    let name = sanitize(name);
    if let Some(closest) = closest {
        return format!("there is no tool `{name}`; did you mean `{closest}`?");
    }
    let shown: Vec<_> = names().take(NAMES_IN_TEXT_MAX).collect();
    let more = match available.len() > shown.len() {
        true => " and others",
        false => "",
    };
    let shown = shown.join(", ");
    if shown.is_empty() {
        return format!("there is no tool `{name}`; no tools are available");
    }
    format!("there is no tool `{name}`; available tools: {shown}{more}")
}

/// Returns all tools, or the closest ones if there are more than `shown_max`.
fn available<'a>(tool_index: &'a ToolIndex, name: &str, shown_max: usize) -> Vec<&'a ListedTool> {
    let all = || tool_index.tools.iter();
    if tool_index.tools.len() <= shown_max {
        return all().collect();
    }
    let closest =
        codegen::closest::closest(name, tool_index.tools.iter().map(|it| it.name.as_str()));
    let closest = closest.and_then(|it| tool_index.find(it));
    let ranked = tool_index.ranked(name);
    let ranked = ranked
        .iter()
        .filter_map(|place| tool_index.tools.get(*place));
    let mut tools: Vec<&ListedTool> = closest.into_iter().collect();
    for shown in ranked {
        if tools.len() >= shown_max {
            break;
        }
        if !tools.iter().any(|it| it.flat == shown.flat) {
            tools.push(shown);
        }
    }
    if tools.is_empty() {
        tools.extend(all().take(shown_max));
    }
    tools
}
