//! Servers whose tools nobody knows yet: who waits for them, and what is said of
//! them to everybody else.

use codegen::names;
use serde_json::{Map, Value, json};

use super::meta;
use super::request::Request;
use super::rpc::put;
use super::shelf::Shelf;
use crate::broker::{ServerState, ServerStatus};

/// Servers of which a request says that it needs them, and whose tools are not known.
pub(super) async fn needed(shelf: &Shelf, method: &str, request: &Request) -> Vec<String> {
    let unknown = |it: &&ServerStatus| it.tools.is_none();
    let unknown: Vec<_> = shelf.known.servers.iter().filter(unknown).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let said = said(shelf, method, request).await;
    let is_said = |server: &str| {
        let global = names::globals(&[server]).concat();
        said.iter().any(|name| {
            let rest = name.strip_prefix(server);
            let rest = rest.or_else(|| name.strip_prefix(&global));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']))
        })
    };
    let unknown = unknown.iter().filter(|it| is_said(&it.name));
    unknown.map(|it| it.name.clone()).collect()
}

/// Names of tools and servers in a request.
async fn said(shelf: &Shelf, method: &str, request: &Request) -> Vec<String> {
    let params = &request.params;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    if method == "resources/read" {
        let uri = text(params.get("uri")).unwrap_or_default();
        let (_, query) = uri.split_once("tools=").unwrap_or_default();
        return query.split(['&', ',']).map(str::to_owned).collect();
    }
    if method != "tools/call" {
        return Vec::new();
    }
    let nothing = Map::new();
    let args = params.get("arguments").and_then(Value::as_object);
    let args = args.unwrap_or(&nothing);
    let mut said: Vec<String> = text(params.get("name")).into_iter().collect();
    for key in ["tools", "servers", "name"] {
        match args.get(key) {
            Some(Value::String(list)) => {
                said.extend(list.split(',').map(|it| it.trim().to_owned()));
            }
            Some(Value::Array(items)) => {
                said.extend(items.iter().filter_map(|it| text(Some(it))));
            }
            _ => {}
        }
    }
    if said.first().is_some_and(|name| name == meta::RUN)
        && let Some(code) = args.get("code").and_then(Value::as_str)
    {
        // Of a script that there is no room for, whoever runs it is told so.
        let used = shelf.broker.uses(&request.caller, code, &request.cancel);
        let used = used.await.unwrap_or_default();
        said.extend(used.members.into_iter().map(|(global, _)| global));
        said.extend(used.names);
    }
    said
}

/// What a model should know of servers whose tools are not among those that it sees.
pub(super) fn absent_in_words(shelf: &Shelf) -> String {
    let names = |chosen: fn(&ServerStatus) -> bool| -> String {
        let servers = shelf.known.servers.iter().filter(|it| chosen(it));
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

/// The same for programs; nothing when all servers are there.
pub(super) fn put_absent(shelf: &Shelf, structured: &mut Value) {
    let absent =
        |it: &&ServerStatus| it.tools.is_none() || matches!(it.state, ServerState::Unavailable(_));
    let servers = shelf.known.servers.iter().filter(absent);
    let entry = |it: &ServerStatus| json!({"name": it.name, "state": word(&it.state)});
    let servers: Vec<_> = servers.map(entry).collect();
    if !servers.is_empty() {
        put(structured, "absent_servers", servers);
    }
}

pub(super) fn word(state: &ServerState) -> &'static str {
    match state {
        ServerState::Starting => "starting",
        ServerState::Connected => "connected",
        ServerState::OnDemand => "on-demand",
        ServerState::Unavailable(_) => "unavailable",
    }
}
