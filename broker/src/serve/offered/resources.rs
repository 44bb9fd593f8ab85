//! Resources of servers beside our own ones. `airlock://SERVER/` and the address that
//! the server gave, as it is: no two can be the same, and whoever reads one knows
//! which server is meant. The server's own address is understood too, where only one
//! of those that are offered can mean it.

use airlock_core::id::ServerName;
use serde_json::{Map, Value};

use super::{What, fetched, listed, refusal, refused, texts};
use crate::serve::desk::Desk;
use crate::serve::request::Request;
use crate::serve::resources as own;
use crate::serve::rpc::{Refusal, put};
use crate::serve::shelf::Shelf;
use crate::upstream::fetch::{Fetch, Unfetched};

const SCHEME: &str = "airlock://";
const LIST: (&str, &str) = ("resources/list", "resources");
const TEMPLATES: (&str, &str) = ("resources/templates/list", "resourceTemplates");
const URI_BYTES_MAX: usize = 4_096;
const SHOWN: [&str; 4] = ["name", "title", "description", "mimeType"];

/// Where a resource of a server is read.
pub(super) fn address(server: &ServerName, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", server.0)
}

pub(in crate::serve) async fn list(desk: &Desk, shelf: &Shelf) -> Value {
    let listed = listed(desk, shelf, What::Resources, LIST).await;
    with(own::list(), "resources", entries(listed, "uri"))
}

pub(in crate::serve) async fn templates(desk: &Desk, shelf: &Shelf) -> Value {
    let listed = listed(desk, shelf, What::Resources, TEMPLATES).await;
    with(
        own::templates(),
        "resourceTemplates",
        entries(listed, "uriTemplate"),
    )
}

fn with(mut ours: Value, key: &str, theirs: Vec<Value>) -> Value {
    if let Some(Value::Array(entries)) = ours.get_mut(key) {
        entries.extend(theirs);
    }
    ours
}

fn entries(listed: Vec<(ServerName, Vec<Value>)>, key: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    for (server, items) in listed {
        for item in items {
            let Some(uri) = item
                .get(key)
                .and_then(Value::as_str)
                .filter(|it| is_uri(it))
            else {
                continue;
            };
            let mut entry = texts(&item, &SHOWN);
            entry.insert(key.to_owned(), address(&server, uri).into());
            entry.entry("name").or_insert_with(|| uri.into());
            if let Some(size) = item.get("size").filter(|it| it.is_u64()) {
                entry.insert("size".into(), size.clone());
            }
            entries.push(entry.into());
        }
    }
    entries
}

fn is_uri(text: &str) -> bool {
    let is_shown = |c: char| !c.is_whitespace() && !codegen::text::is_invisible(c);
    !text.is_empty() && text.len() <= URI_BYTES_MAX && text.chars().all(is_shown)
}

/// Whose resource an address means, and where it is there.
pub(super) async fn whose(desk: &Desk, shelf: &Shelf, uri: &str) -> Option<(ServerName, String)> {
    let offered = desk.settings().offers.of(shelf, What::Resources);
    if let Some(rest) = uri.strip_prefix(SCHEME) {
        let (server, theirs) = rest.split_once('/')?;
        let server = offered.into_iter().find(|it| &*it.0 == server)?;
        return is_uri(theirs).then(|| (server, theirs.to_owned()));
    }
    if !is_uri(uri) {
        return None;
    }
    if let [server] = offered.as_slice() {
        return Some((server.clone(), uri.to_owned()));
    }
    let listed = listed(desk, shelf, What::Resources, LIST).await;
    let has = |(_, items): &&(ServerName, Vec<Value>)| {
        items
            .iter()
            .any(|it| it.get("uri").and_then(Value::as_str) == Some(uri))
    };
    let mut having = listed.iter().filter(has);
    match (having.next(), having.next()) {
        (Some((server, _)), None) => Some((server.clone(), uri.to_owned())),
        _ => None,
    }
}

pub(in crate::serve) async fn read(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
) -> Result<Value, Refusal> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| Refusal::invalid("`uri` is missing, or is no string"))?;
    let Some((server, theirs)) = whose(desk, shelf, uri).await else {
        return Err(Refusal::no_resource(uri, request.era));
    };
    let is_readdressed = theirs != uri;
    let mut params = Map::new();
    params.insert("uri".into(), theirs.clone().into());
    let fetch = Fetch {
        method: "resources/read",
        params,
        name: Some(theirs),
    };
    let mut result = match fetched(shelf, request, &server, fetch).await {
        Ok(result) => result,
        Err(Unfetched::Refused { message, .. }) => {
            return Err(Refusal {
                message: refused(&server, &message),
                ..Refusal::no_resource(uri, request.era)
            });
        }
        Err(failed) => return Err(refusal(&server, failed)),
    };
    let mut contents = match result.get_mut("contents").map(Value::take) {
        Some(Value::Array(contents)) => contents,
        _ => Vec::new(),
    };
    for content in &mut contents {
        let Some(members) = content.as_object_mut() else {
            continue;
        };
        members.retain(|key, _| matches!(key.as_str(), "uri" | "mimeType" | "text" | "blob"));
        if let Some(Value::String(part)) = members.get_mut("uri")
            && is_readdressed
        {
            *part = address(&server, part);
        }
    }
    let mut read = Value::Object(Map::new());
    put(&mut read, "contents", contents);
    Ok(read)
}
