//! Decides which tools a session may call, and builds the documented errors for other tools.

use std::collections::HashSet;

use airlock_core::code::Code;
use airlock_core::session::{DESCRIPTIONS_URI, DisclosedTools};
use codegen::uses::Uses;
use serde_json::{Value, json};

use super::context::ServeContext;
use super::host_limits::encoded_bytes;
use super::request::Request;
use super::rpc::{self, sanitize};
use super::run_description;
use super::session::{HostSession, ListedTools};
use super::shown_list::{self, ShownList};
use crate::broker::tool_index::details::{ToolDetails, look_up, server_disabled_text};
use crate::broker::tool_index::{DETAILS, ListedTool, ToolIndex};

/// Returns the tools that a run of this session may call: those whose descriptions the session has
/// read, and those that the list showed in full.
///
/// Some hosts never request the list in this session, because they cache it or have no session. For
/// such a host, the list that was last shown to any host counts, or else the list that it would get
/// at its first call. Either counts only as far as this host shows it to its model.
pub(super) fn disclosed_tools(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> DisclosedTools {
    if !request.session.was_shown_list() {
        let shown = shown_to(context, tool_index, request);
        if let Some(listed) = listed(context, tool_index, &shown) {
            let session = &request.session;
            session.assume_list(context.latest_list().unwrap_or(listed));
        }
    }
    let mut disclosed = request.session.disclosed();
    let disabled = request.session.disabled_servers();
    disclosed.retain(|tool| !disabled.contains(&*tool.server.0));
    disclosed
}

fn shown_to(context: &ServeContext, tool_index: &ToolIndex, request: &Request) -> ShownList {
    ShownList {
        tools: context.shown_tools(tool_index),
        chars_max: request.limits(context.settings()).description_chars_max,
        can_extract: tool_index.broker.has_extractor()
            || tool_index.broker.has_extraction() && request.can_sample(),
    }
}

/// Returns the tools that this list describes in full, or `None` if it describes none.
fn listed(
    context: &ServeContext,
    tool_index: &ToolIndex,
    shown: &ShownList,
) -> Option<ListedTools> {
    if context.settings().lists_whole() {
        return Some(shown_list::digests_of_whole_entries(
            tool_index,
            shown.chars_max,
        ));
    }
    run_description::declares(shown).then(|| shown.digests().clone())
}

/// Records in the session that the list of tools was shown, and returns what it shows.
pub(super) fn list(context: &ServeContext, tool_index: &ToolIndex, request: &Request) -> ShownList {
    let shown = shown_to(context, tool_index, request);
    let listed = listed(context, tool_index, &shown);
    request.session.note_list(listed.as_ref());
    if let Some(listed) = listed {
        context.set_latest_list(listed);
    }
    shown
}

/// Returns full descriptions and records in the session that they were shown.
pub(super) fn disclose<'a>(
    context: &ServeContext,
    tool_index: &'a ToolIndex,
    session: &HostSession,
    wanted: &[String],
) -> Result<ToolDetails<'a>, String> {
    count_fetch(context, tool_index, session)?;
    let details = look_up(tool_index, wanted, &session.disabled_servers());
    session.disclose(&details.current());
    Ok(details)
}

fn count_fetch(
    context: &ServeContext,
    tool_index: &ToolIndex,
    session: &HostSession,
) -> Result<(), String> {
    let fetched = session.fetch(context.now_ms());
    tool_index.broker.note_fetch(fetched.is_err());
    fetched.map_err(|too_often| too_often.to_string())
}

/// Full descriptions as a text for a host's model.
pub(super) struct DetailsText {
    pub(super) text: String,
    /// Whether any of the names is the name of a tool.
    pub(super) is_found: bool,
}

/// Formats descriptions, and the names of tools whose descriptions are left out.
pub(super) type FormatDetails<'a> = &'a dyn Fn(ToolDetails<'_>, &[String]) -> String;

/// Returns full descriptions as a text of at most `encoded_bytes_max` bytes in JSON, because the
/// host cuts a longer one, and records in the session that they were shown. Tools whose description
/// does not fit are left out. If not even the first one fits, the text contains its beginning; the
/// tool is disclosed when the rest was read with `read_result`.
pub(super) fn disclose_within(
    context: &ServeContext,
    tool_index: &ToolIndex,
    session: &HostSession,
    wanted: &[String],
    (format, encoded_bytes_max): (FormatDetails<'_>, usize),
) -> Result<DetailsText, String> {
    count_fetch(context, tool_index, session)?;
    let hidden = session.disabled_servers();
    let shown = |count: usize| {
        let (first, others) = wanted.split_at(count.min(wanted.len()));
        let details = look_up(tool_index, first, &hidden);
        let tools = details.current();
        (format(details, others), tools)
    };
    let (mut text, mut tools) = shown(wanted.len());
    let is_found = !tools.is_empty();
    let (mut fitting, mut too_many) = (0, wanted.len());
    if encoded_bytes(&text) > encoded_bytes_max {
        while too_many - fitting > 1 {
            let count = fitting.midpoint(too_many);
            match encoded_bytes(&shown(count).0) <= encoded_bytes_max {
                true => fitting = count,
                false => too_many = count,
            }
        }
        (text, tools) = shown(fitting.max(1));
    }
    if let ([tool], true) = (&*tools, encoded_bytes(&text) > encoded_bytes_max) {
        let uri = format!("{DESCRIPTIONS_URI}?tools={}", tool.id);
        text = session.keep_description(uri, &text, tool, encoded_bytes_max);
    } else {
        session.disclose(&tools);
    }
    Ok(DetailsText { text, is_found })
}

/// Names tools whose descriptions were left out, and says how to read them.
pub(super) fn left_out(names: &[String]) -> String {
    const NAMED_MAX: usize = 20;
    let named: Vec<_> = names
        .iter()
        .take(NAMED_MAX)
        .map(|it| sanitize(it))
        .collect();
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "not shown, because this host cuts long results: {}{more}; read them with {DETAILS}",
        named.join(", ")
    )
}

/// Returns the tools that a script uses or declares without access to their descriptions: they are
/// not disclosed, and the script does not read their descriptions itself. Returns an error if a
/// declared name is not a tool, or if a rule always denies the tool.
pub(super) fn missing(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
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
    let disclosed = disclosed_tools(context, tool_index, request);
    let described = uses.described.names.iter();
    let described: HashSet<&str> = described
        .filter_map(|name| Some(tool_index.find(name)?.name.as_str()))
        .collect();
    let is_used = |tool: &ListedTool| {
        let Uses { members, names, .. } = uses;
        let is_named = |member: &str| members.contains(&(tool.global.clone(), member.to_owned()));
        is_named(&tool.tool.member)
            || is_named(&tool.tool.id.tool.0)
            || (!tool.tool.flat.is_empty() && names.contains(&tool.tool.flat))
            || declared.iter().any(|name| {
                tool_index
                    .find(name)
                    .is_some_and(|found| found.name == tool.name)
            })
    };
    let disabled = request.session.disabled_servers();
    let mut used = tool_index.tools.iter().filter(|tool| is_used(tool));
    if let Some(tool) = used.find(|tool| disabled.contains(&*tool.tool.id.server.0)) {
        return Err(server_disabled(&tool.tool.id.server.0));
    }
    // The script computes which descriptions it reads, so this check cannot know them. The run
    // checks each call.
    if uses.described.others {
        return Ok(Vec::new());
    }
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

/// Builds the error for a tool of a server that the model has disabled.
pub(super) fn server_disabled(server: &str) -> Value {
    let message = server_disabled_text(server);
    json!({"error": {"code": "SERVER_DISABLED", "message": message}})
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
        "next": format!("call {DETAILS} with {}, then call again", json!({"tools": names})),
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
                "next": "call get_tool_details with {\"tools\":[\"fs.read\"]}, then call again",
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
