//! `search_tools`: finds tools by words and returns them in the requested detail.

use codegen::declare::Level;
use serde_json::{Map, Value, json};

use super::OwnToolAnswer;
use super::details::typescript;
use crate::broker::tool_index::search::{
    LIMIT_DEFAULT, LIMIT_MAX, SearchResult, deprecation, search,
};
use crate::broker::tool_index::{ListedTool, SEARCH, ToolIndex};
use crate::broker::{ServerState, ServerStatus, ToolSnapshot};
use crate::serve::context::ServeContext;
use crate::serve::disclosure::{self, FormatDetails};
use crate::serve::request::Request;
use crate::serve::rpc::set_member;

pub(super) fn description() -> Value {
    json!({
        "name": SEARCH,
        "title": "Search tools",
        "description": "Finds tools by what they do. Best first, grouped by server. An empty query lists tools.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in plain words"},
                "mode": {"type": "string", "enum": ["words", "regex"], "default": "words"},
                "servers": {"type": "array", "items": {"type": "string"}, "description": "Only tools of these servers"},
                "groups": {"type": "array", "items": {"type": "string"}, "description": "In any of these groups"},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "With all of these tags"},
                "category": {"type": "string", "description": "In this category"},
                "detail": {"type": "string", "enum": ["names", "lines", "signatures", "full"], "default": "lines", "description": "After `full`, the tools can be called"},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
            },
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

pub(super) async fn call(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    let hidden = request.session.disabled_servers();
    let found = search(tool_index, args, &hidden).await?;
    let declarations = match found.level {
        Level::Signatures => tool_index.declarations(&found.best, Level::Signatures),
        Level::Full if !found.best.is_empty() => {
            let names: Vec<_> = found.best.iter().map(|it| it.name.clone()).collect();
            let besides = found.structured().to_string().len();
            let encoded_bytes_max = request.limits(context.settings()).encoded_bytes_max;
            let encoded_bytes_max = encoded_bytes_max.saturating_sub(besides);
            let within = (&typescript as FormatDetails<'_>, encoded_bytes_max);
            disclosure::disclose_within(context, tool_index, &request.session, &names, within)?.text
        }
        _ => String::new(),
    };
    Ok(answer(tool_index, &found, &declarations))
}

/// Formats the result. The structured form has the same content as the text.
fn answer(tool_index: &ToolIndex, found: &SearchResult<'_>, declarations: &str) -> OwnToolAnswer {
    let SearchResult {
        best, total, level, ..
    } = found;
    let absent = absent_in_words(tool_index);
    let mut structured = found.structured();
    let text = if best.is_empty() {
        let servers = tool_index.servers();
        let next = format!("no tool matches; try other words. Servers: {servers}");
        set_member(&mut structured, "next", next.clone());
        format!("{absent}{next}")
    } else {
        let known = tool_index.broker.known();
        let mut text = match *level {
            Level::Signatures | Level::Full => {
                set_member(&mut structured, "declarations", declarations);
                declarations.to_owned()
            }
            level => grouped(&known, best, level == Level::Lines),
        };
        if *total > best.len() {
            let more = total - best.len();
            let hint = if best.len() < LIMIT_MAX {
                "; raise `limit`, or search for words"
            } else {
                "; search for words"
            };
            text.push_str(&format!("… and {more} more{hint}\n"));
        }
        text.push_str(&absent);
        text.trim_end().to_owned()
    };
    OwnToolAnswer::Done {
        text,
        structured: Some(structured),
        is_error: false,
    }
}

/// Describes servers whose tools are missing from the results, for the model.
fn absent_in_words(tool_index: &ToolIndex) -> String {
    let names = |chosen: fn(&ServerStatus) -> bool| -> String {
        let servers = tool_index.known.servers.iter().filter(|it| chosen(it));
        servers
            .map(|it| it.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let lines = [
        (
            names(ServerStatus::is_awaited),
            "still starting, search again soon: ",
        ),
        (
            names(|it| it.tools.is_none() && it.state == ServerState::OnDemand),
            "not started, see search_available_servers: ",
        ),
        (
            names(|it| matches!(it.state, ServerState::Unavailable(_))),
            "cannot be reached now: ",
        ),
    ];
    let said = lines.iter().filter(|(names, _)| !names.is_empty());
    said.map(|(names, what)| format!("{what}{names}\n"))
        .collect()
}

/// Groups tools by server. Servers and tools are ordered by their best match.
fn grouped(known: &ToolSnapshot, best: &[&ListedTool], with_text: bool) -> String {
    let mut servers: Vec<&str> = Vec::new();
    for shown in best {
        let server = &*shown.tool.id.server.0;
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let mut text = String::new();
    for server in servers {
        text.push_str(&format!("{server}:\n"));
        for shown in best.iter().filter(|it| *it.tool.id.server.0 == *server) {
            text.push_str(&format!("  {}", shown.name));
            let summary = if with_text {
                shown.summary()
            } else {
                String::new()
            };
            if !summary.is_empty() {
                text.push_str(&format!(": {summary}"));
            }
            let description = known.description(&shown.tool.id);
            if let Some(why) = description.and_then(deprecation) {
                let why = codegen::text::neutralise(&why);
                let between = if why.is_empty() { "" } else { ": " };
                text.push_str(&format!(" [deprecated{between}{why}]"));
            }
            text.push('\n');
        }
    }
    text
}
