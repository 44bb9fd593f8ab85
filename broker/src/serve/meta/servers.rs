//! Servers that are connected to when they are needed: finding them, connecting
//! to one before its first call, and letting it go.

use airlock_core::id::ServerName;
use airlock_core::search::{Document, Index};
use serde_json::{Map, Value, json};

use super::{Answered, only};
use crate::broker::{ServerState, ServerStatus};
use crate::serve::awaiting::word;
use crate::serve::desk::Desk;
use crate::serve::rpc::{put, shown, text_of};
use crate::serve::shelf::Shelf;

/// Names of tools that stand beside a server.
const TOOLS_SHOWN_MAX: usize = 8;
const TOOLS_NAMED_MAX: usize = 200;

pub(super) fn descriptions() -> [Value; 3] {
    let server = json!({"server": {"type": "string", "description": "Its name, such as search_available_servers has it"}});
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
            "name": super::SERVERS,
            "title": "Search servers",
            "description": "Lists servers, also those that are not started yet, with what they are good for.",
            "inputSchema": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "What the server should be good for"}},
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        }),
        one(
            super::ENABLE,
            "Start a server",
            "Starts a server that is there on demand, so that its tools can be searched.",
        ),
        one(
            super::DISABLE,
            "Stop a server",
            "Stops a server that is there on demand and not needed now. It starts again when it is called.",
        ),
    ]
}

pub(super) fn search(shelf: &Shelf, args: &Map<String, Value>) -> Answered {
    let query = match only(args, &["query", "session"]).and_then(|()| text_of(args, "query")) {
        Ok(query) => query.unwrap_or_default().trim(),
        Err(why) => return Answered::wrong(why),
    };
    // As they stand now: the shelf follows a moment later.
    let known = shelf.broker.known();
    let servers: Vec<&ServerStatus> = if query.is_empty() {
        known.servers.iter().collect()
    } else {
        let index = Index::new(known.servers.iter().map(|it| document(shelf, it)));
        let places = index.ranked(query).into_iter();
        places
            .filter_map(|place| known.servers.get(place))
            .collect()
    };
    let text: String = servers.iter().map(|it| line(it)).collect();
    let entries: Vec<_> = servers.iter().map(|it| entry(shelf, it)).collect();
    Answered::Done {
        text: match text.trim_end() {
            "" => "no server fits; leave the query away to see all".to_owned(),
            text => text.to_owned(),
        },
        structured: Some(json!({ "servers": entries })),
        is_error: false,
    }
}

pub(super) async fn enable(desk: &Desk, shelf: &Shelf, args: &Map<String, Value>) -> Answered {
    let server = match server(shelf, args) {
        Ok(server) => server,
        Err(why) => return Answered::wrong(why),
    };
    let name = &server.name;
    if let Err(why) = shelf.broker.join(&ServerName(name.as_str().into())).await {
        let mut why = why;
        shelf.broker.strike(&mut why);
        return Answered::wrong(format!("`{name}` cannot be started: {why}"));
    }
    // Whoever searches next finds its tools.
    if let Err(refusal) = desk.seen(std::slice::from_ref(name)).await {
        return Answered::Refused(refusal);
    }
    let known = shelf.broker.known();
    let servers = known.standing.catalog.servers().iter();
    let tools = servers.filter(|it| *it.name.0 == **name);
    let tools = tools.flat_map(|it| it.tools.iter().map(|tool| tool.id.to_string()));
    let tools: Vec<_> = tools
        .filter(|it| {
            let id = airlock_core::id::ToolId::parse(it);
            id.is_ok_and(|id| shelf.broker.may_ever_call(&id))
        })
        .take(TOOLS_NAMED_MAX)
        .collect();
    Answered::Done {
        text: format!(
            "`{name}` is there. Read what you need with get_tool_details: {}",
            tools.join(", ")
        ),
        structured: Some(json!({"server": name, "state": "connected", "tools": tools})),
        is_error: false,
    }
}

pub(super) async fn disable(shelf: &Shelf, args: &Map<String, Value>) -> Answered {
    let server = match server(shelf, args) {
        Ok(server) => server,
        Err(why) => return Answered::wrong(why),
    };
    let name = &server.name;
    if !server.is_on_demand {
        return Answered::wrong(format!(
            "`{name}` is configured to run always; there is nothing to do"
        ));
    }
    if !shelf.broker.rest(&ServerName(name.as_str().into())).await {
        return Answered::wrong(format!(
            "`{name}` is being called right now; it stops by itself after a while without calls"
        ));
    }
    Answered::Done {
        text: format!("`{name}` is stopped. Calling one of its tools starts it again."),
        structured: Some(json!({"server": name, "state": "on-demand"})),
        is_error: false,
    }
}

fn server<'a>(shelf: &'a Shelf, args: &Map<String, Value>) -> Result<&'a ServerStatus, String> {
    only(args, &["server", "session"])?;
    let name = text_of(args, "server")?.ok_or("`server` is missing: the name of a server")?;
    let servers = &shelf.known.servers;
    servers.iter().find(|it| it.name == name).ok_or_else(|| {
        let names = servers.iter().map(|it| it.name.as_str());
        let closest = codegen::closest::closest(name, names.clone());
        let hint = closest.map_or_else(
            || format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            |it| format!("did you mean `{it}`?"),
        );
        format!("there is no server `{}`; {hint}", shown(name))
    })
}

fn document(shelf: &Shelf, server: &ServerStatus) -> Document {
    let tools = shelf
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

fn line(server: &ServerStatus) -> String {
    let mut line = format!("{}: {}", server.name, word(&server.state));
    if let Some(tools) = server.tools {
        line.push_str(&format!(", {tools} tools"));
    }
    if let Some(about) = &server.about {
        line.push_str(&format!(", {}", codegen::text::neutralise(about)));
    }
    line.push('\n');
    line
}

fn entry(shelf: &Shelf, server: &ServerStatus) -> Value {
    let mut entry = json!({
        "name": server.name,
        "state": word(&server.state),
        "on_demand": server.is_on_demand,
    });
    if let Some(tools) = server.tools {
        put(&mut entry, "tool_count", tools);
    }
    if let Some(about) = &server.about {
        put(&mut entry, "about", codegen::text::neutralise(about));
    }
    if let ServerState::Unavailable(why) = &server.state {
        put(&mut entry, "why", why.clone());
    }
    let tools = shelf
        .tools
        .iter()
        .filter(|it| *it.tool.id.server.0 == *server.name);
    let some: Vec<_> = tools
        .take(TOOLS_SHOWN_MAX)
        .map(|it| it.name.clone())
        .collect();
    if !some.is_empty() {
        put(&mut entry, "some_tools", some);
    }
    entry
}
