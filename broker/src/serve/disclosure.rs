//! Decides which tools a session may call, and builds the documented errors for other tools.

use std::collections::HashSet;
use std::sync::Arc;

use airlock_core::code::Code;
use airlock_core::session::{DESCRIPTIONS_URI, DisclosedTools};
use codegen::uses::Uses;
use serde_json::{Value, json};

use super::context::ServeContext;
use super::rpc::{self, sanitize};
use super::session::{HostSession, ListedTools};
use crate::broker::tool_index::{ListedTool, ToolIndex};

/// Returns the tools that a run of this session may call: those whose descriptions the session has
/// read, and those that the list showed in full.
///
/// Some hosts never request the list in this session, because they cache it or have no session. For
/// such a host, the list that was last shown to any host counts, or else the tools that exist at
/// the host's first call.
pub(super) fn disclosed_tools(
    context: &ServeContext,
    tool_index: &ToolIndex,
    session: &HostSession,
) -> DisclosedTools {
    if tool_index.at_once.is_some() {
        session.assume_list(|| context.latest_list().unwrap_or_else(|| listed(tool_index)));
    }
    session.disclosed()
}

/// Returns the tools whose descriptions the list shows in full. Tools that a rule always denies are
/// included although no list shows them: a call of such a tool is denied by the rule.
fn listed(tool_index: &ToolIndex) -> ListedTools {
    let tools = tool_index.known.decision_context.catalog.tools();
    let listed = tools.map(|tool| (tool.id.clone(), tool.description_digest));
    Arc::new(listed.collect())
}

/// Records in the session that the list of tools was shown.
pub(super) fn list(context: &ServeContext, tool_index: &ToolIndex, session: &HostSession) {
    let shown = match &tool_index.at_once {
        Some(_) => listed(tool_index),
        None => ListedTools::default(),
    };
    session.note_list(&shown);
    context.set_latest_list(shown);
}

/// Returns the tools that a script uses or declares without access to their descriptions: they are
/// not disclosed, and the script does not read their descriptions itself. Returns an error if a
/// declared name is not a tool, or if a rule always denies the tool.
pub(super) fn missing(
    context: &ServeContext,
    tool_index: &ToolIndex,
    session: &HostSession,
    uses: &Uses,
    declared: &[String],
) -> Result<Vec<String>, Value> {
    if let Some(why) = declared.iter().find_map(|name| tool_index.denial(name)) {
        return Err(denied(&why));
    }
    let unknown: Vec<_> = declared
        .iter()
        .filter(|name| tool_index.find(name).is_none())
        .map(|name| sanitize(name))
        .collect();
    if !unknown.is_empty() {
        let message = format!(
            "There is no tool '{}'; find tools with search_tools.",
            unknown.join("', '")
        );
        return Err(json!({"error": {"code": "TOOL_NOT_FOUND", "message": message}}));
    }
    let disclosed = disclosed_tools(context, tool_index, session);
    // The script computes which descriptions it reads, so this check cannot know them. The run
    // checks each call.
    if uses.described.others {
        return Ok(Vec::new());
    }
    let described = uses.described.names.iter();
    let described: HashSet<&str> = described
        .filter_map(|name| Some(tool_index.find(name)?.name.as_str()))
        .collect();
    let is_used = |tool: &ListedTool| {
        let Uses { members, names, .. } = uses;
        let member = (tool.global.clone(), tool.tool.member.clone());
        members.contains(&member)
            || (!tool.tool.flat.is_empty() && names.contains(&tool.tool.flat))
            || declared.iter().any(|name| {
                tool_index
                    .find(name)
                    .is_some_and(|found| found.name == tool.name)
            })
    };
    // Each call is checked against the tool's current description.
    let catalog = tool_index.broker.catalog();
    let is_allowed = |tool: &ListedTool| disclosed.allows(&tool.in_catalog(&catalog));
    let missing = tool_index
        .tools
        .iter()
        .filter(|tool| !is_allowed(tool) && !described.contains(tool.name.as_str()))
        .filter(|tool| is_used(tool));
    Ok(missing.map(|tool| tool.name.clone()).collect())
}

/// Builds the error for a tool that a rule always denies.
pub(super) fn denied(why: &str) -> Value {
    json!({"error": {"code": Code::Denied, "message": why}})
}

/// Builds the documented error for tools whose descriptions must be read first.
pub(super) fn required(names: &[String]) -> Value {
    let uri = format!("{DESCRIPTIONS_URI}?tools={}", names.join(","));
    let message = match names {
        [name] => format!("Tool '{name}' requires fetching its description before use."),
        _ => format!(
            "Tools '{}' require fetching their descriptions before use.",
            names.join("', '")
        ),
    };
    let mut error = json!({
        "code": "TOOL_DESCRIPTION_REQUIRED",
        "message": message,
        "resource_uri": uri,
    });
    if names.len() > 1 {
        rpc::set_member(&mut error, "tools", names);
    }
    json!({ "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disclosure_error_has_documented_shape_and_names_all_tools() {
        let one = required(&["fs.read".into()]);
        assert_eq!(
            one,
            json!({"error": {
                "code": "TOOL_DESCRIPTION_REQUIRED",
                "message": "Tool 'fs.read' requires fetching its description before use.",
                "resource_uri": "resource:///tool_descriptions?tools=fs.read",
            }})
        );
        let two = required(&["fs.read".into(), "git.log".into()]);
        assert_eq!(
            two["error"]["resource_uri"],
            "resource:///tool_descriptions?tools=fs.read,git.log"
        );
        assert_eq!(two["error"]["tools"], json!(["fs.read", "git.log"]));
    }
}
