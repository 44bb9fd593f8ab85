//! Servers: finding them, enabling one before its first call, and disabling one in a session.

use airlock_core::id::ServerName;
use airlock_core::search::{Document, Index};
use serde_json::{Map, Value, json};

use super::OwnToolAnswer;
use crate::broker::tool_index::args::{only, text_of};
use crate::broker::tool_index::{DISABLE, ENABLE, SERVERS, ToolIndex};
use crate::broker::{ServerState, ServerStatus};
use crate::serve::context::ServeContext;
use crate::serve::rpc::{sanitize, set_member};
use crate::serve::session::HostSession;

/// Maximum number of tool names shown per server.
const TOOLS_SHOWN_MAX: usize = 8;
const TOOLS_NAMED_MAX: usize = 200;

pub(super) fn descriptions() -> [Value; 3] {
    let server = json!({"server": {"type": "string", "description": "Its name, from search_available_servers"}});
    let one = |name: &str, title: &str, text: &str| {
        json!({
            "name": name,
            "title": title,
            "description": text,
            "inputSchema": {
                "type": "object",
                "properties": server,
                "required": ["server"],
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
        })
    };
    [
        json!({
            "name": SERVERS,
            "title": "Search servers",
            "description": "Lists all servers, including those that are not started yet, with their purpose.",
            "inputSchema": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "What the server should do"}},
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }),
        one(
            ENABLE,
            "Enable a server",
            "Makes a server's tools available again in this session, and starts the server.",
        ),
        one(
            DISABLE,
            "Disable a server",
            "Hides a server's tools in this session, until it is enabled. Stops it if it runs on demand.",
        ),
    ]
}

pub(super) fn search(
    tool_index: &ToolIndex,
    session: &HostSession,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    only(args, &["query", "session"])?;
    let query = text_of(args, "query")?.unwrap_or_default().trim();
    // Uses the broker's current state, because the index is updated a moment later.
    let known = tool_index.broker.known();
    let servers: Vec<&ServerStatus> = if query.is_empty() {
        known.servers.iter().collect()
    } else {
        let index = Index::new(known.servers.iter().map(|it| document(tool_index, it)));
        let places = index.ranked(query).into_iter();
        places
            .filter_map(|place| known.servers.get(place))
            .collect()
    };
    let disabled = session.disabled_servers();
    let word = |it: &ServerStatus| match disabled.contains(&it.name) {
        true => "disabled",
        false => it.state.word(),
    };
    let text: String = servers.iter().map(|it| line(it, word(it))).collect();
    let entries = servers.iter().map(|it| entry(tool_index, it, word(it)));
    let mut structured = json!({ "servers": entries.collect::<Vec<_>>() });
    const NONE: &str = "no server matches; remove `query` to see all";
    if servers.is_empty() {
        set_member(&mut structured, "next", NONE);
    }
    Ok(OwnToolAnswer::Done {
        text: match text.trim_end() {
            "" => NONE.to_owned(),
            text => text.to_owned(),
        },
        structured: Some(structured),
        is_error: false,
    })
}

pub(super) async fn enable(
    context: &ServeContext,
    tool_index: &ToolIndex,
    session: &HostSession,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    let server = server(tool_index, args)?;
    let name = &server.name;
    session.enable_server(name);
    if let Err(why) = tool_index
        .broker
        .join(&ServerName(name.as_str().into()))
        .await
    {
        let mut why = why;
        tool_index.broker.redact(&mut why);
        return Err(format!("`{name}` cannot be started: {why}").into());
    }
    // A later search finds the server's tools.
    let seen = context.seen(std::slice::from_ref(name)).await;
    seen.map_err(OwnToolAnswer::Refused)?;
    let known = tool_index.broker.known();
    let servers = known.decision_context.catalog.servers().iter();
    let tools = servers.filter(|it| *it.name.0 == **name);
    let tools = tools.flat_map(|it| it.tools.iter().map(|tool| tool.id.to_string()));
    let tools: Vec<_> = tools
        .filter(|it| {
            let id = airlock_core::id::ToolId::parse(it);
            id.is_ok_and(|id| tool_index.broker.may_ever_call(&id))
        })
        .take(TOOLS_NAMED_MAX)
        .collect();
    Ok(OwnToolAnswer::Done {
        text: format!(
            "`{name}` is connected. Read what you need with get_tool_details: {}",
            tools.join(", ")
        ),
        structured: Some(json!({"server": name, "state": "connected", "tools": tools})),
        is_error: false,
    })
}

pub(super) async fn disable(
    tool_index: &ToolIndex,
    session: &HostSession,
    args: &Map<String, Value>,
) -> Result<OwnToolAnswer, OwnToolAnswer> {
    let server = server(tool_index, args)?;
    let name = &server.name;
    session.disable_server(name);
    // A server that has calls in progress stops by itself after a while without calls.
    let is_stopped = server.is_on_demand
        && tool_index
            .broker
            .rest(&ServerName(name.as_str().into()))
            .await;
    let stopped = if is_stopped { " It is stopped." } else { "" };
    Ok(OwnToolAnswer::Done {
        text: format!(
            "`{name}` is disabled in this session: its tools cannot be found or called until you \
             call enable_server.{stopped}"
        ),
        structured: Some(json!({"server": name, "state": "disabled", "stopped": is_stopped})),
        is_error: false,
    })
}

fn server<'a>(
    tool_index: &'a ToolIndex,
    args: &Map<String, Value>,
) -> Result<&'a ServerStatus, String> {
    only(args, &["server", "session"])?;
    let name = text_of(args, "server")?.ok_or("`server` is missing; expected a server name")?;
    let servers = &tool_index.known.servers;
    servers.iter().find(|it| it.name == name).ok_or_else(|| {
        let names = servers.iter().map(|it| it.name.as_str());
        let closest = codegen::closest::closest(name, names);
        let hint = closest.map(|it| format!("did you mean `{it}`? "));
        format!(
            "there is no server `{}`; {}the servers are {}",
            sanitize(name),
            hint.unwrap_or_default(),
            tool_index.server_names()
        )
    })
}

fn document(tool_index: &ToolIndex, server: &ServerStatus) -> Document {
    let tools = tool_index
        .tools
        .iter()
        .filter(|it| *it.tool.id.server.0 == *server.name);
    let tools = tools.map(|it| format!("{} {}", it.tool.id.tool.0, it.summary()));
    Document {
        name: server.name.clone(),
        text: server.about.clone().unwrap_or_default(),
        about_parameters: tools.collect::<Vec<_>>().join("\n"),
        ..Document::default()
    }
}

fn line(server: &ServerStatus, state: &str) -> String {
    let mut line = format!("{}: {state}", server.name);
    if let Some(tools) = server.tools {
        line.push_str(&format!(", {tools} tools"));
    }
    if let Some(about) = &server.about {
        line.push_str(&format!(", {}", codegen::text::neutralise(about)));
    }
    line.push('\n');
    line
}

fn entry(tool_index: &ToolIndex, server: &ServerStatus, state: &str) -> Value {
    let mut entry = json!({
        "name": server.name,
        "state": state,
        "on_demand": server.is_on_demand,
    });
    if let Some(tools) = server.tools {
        set_member(&mut entry, "tool_count", tools);
    }
    if let Some(about) = &server.about {
        set_member(&mut entry, "about", codegen::text::neutralise(about));
    }
    if let ServerState::Unavailable(why) = &server.state {
        set_member(&mut entry, "why", why.clone());
    }
    let tools = tool_index
        .tools
        .iter()
        .filter(|it| *it.tool.id.server.0 == *server.name);
    let some: Vec<_> = tools
        .take(TOOLS_SHOWN_MAX)
        .map(|it| it.name.clone())
        .collect();
    if !some.is_empty() {
        set_member(&mut entry, "some_tools", some);
    }
    entry
}
