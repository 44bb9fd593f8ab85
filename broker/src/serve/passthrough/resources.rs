//! Passes on resources of servers, in addition to airlock's own resources. The address of a
//! server's resource is `airlock://SERVER/` followed by the server's unchanged address. This
//! address is unique and shows the server. The server's own address is accepted too, if only one
//! offered server can have the resource.

use airlock_core::id::ServerName;
use serde_json::{Map, Value};

use super::listing::{PassthroughList, ServerItems, listed};
use super::{contents, fetched, refusal, refused, texts};
use crate::broker::tool_index::ToolIndex;
use crate::config::OfferKind;
use crate::serve::context::ServeContext;
use crate::serve::request::Request;
use crate::serve::resources as own;
use crate::serve::rpc::{
    INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcErrorResponse, sanitize, set_member,
};
use crate::upstream::fetch::{Fetch, FetchError};

const SCHEME: &str = "airlock://";
const LIST: PassthroughList = PassthroughList {
    what: OfferKind::Resources,
    method: "resources/list",
    key: "resources",
    shown: |theirs| entry(theirs, "uri"),
};
const TEMPLATES: PassthroughList = PassthroughList {
    what: OfferKind::Resources,
    method: "resources/templates/list",
    key: "resourceTemplates",
    shown: |theirs| entry(theirs, "uriTemplate"),
};
const URI_BYTES_MAX: usize = 4_096;
const SHOWN: [&str; 4] = ["name", "title", "description", "mimeType"];

/// Returns the address under which hosts read a server's resource.
pub(super) fn address(server: &ServerName, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", server.0)
}

pub(in crate::serve) async fn list(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Value {
    let listed = listed(context, tool_index, request, LIST).await;
    with(own::list(), "resources", entries(&listed, "uri"))
}

pub(in crate::serve) async fn templates(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Value {
    let listed = listed(context, tool_index, request, TEMPLATES).await;
    with(
        own::templates(),
        "resourceTemplates",
        entries(&listed, "uriTemplate"),
    )
}

fn with(mut ours: Value, key: &str, theirs: Vec<Value>) -> Value {
    if let Some(Value::Array(entries)) = ours.get_mut(key) {
        entries.extend(theirs);
    }
    ours
}

/// Returns the fields of a resource that are shown, with the address that it has at its server.
fn entry(theirs: &Value, key: &str) -> Option<Value> {
    let uri = theirs.get(key).and_then(Value::as_str);
    let uri = uri.filter(|it| is_uri(it))?;
    let mut entry = texts(theirs, &SHOWN);
    entry.insert(key.to_owned(), uri.into());
    entry.entry("name").or_insert_with(|| uri.into());
    if let Some(size) = theirs.get("size").filter(|it| it.is_u64()) {
        entry.insert("size".into(), size.clone());
    }
    Some(entry.into())
}

fn entries(listed: &[ServerItems], key: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    for ServerItems { server, pages } in listed {
        for entry in &pages.items {
            let mut entry = entry.clone();
            if let Some(Value::String(uri)) = entry.get_mut(key) {
                *uri = address(server, uri);
            }
            entries.push(entry);
        }
    }
    entries
}

pub(in crate::serve) fn is_uri(text: &str) -> bool {
    let is_shown = |c: char| !c.is_whitespace() && !codegen::text::is_invisible(c);
    !text.is_empty() && text.len() <= URI_BYTES_MAX && text.chars().all(is_shown)
}

/// Returns the server to which a resource belongs, and the resource's address at that server.
pub(in crate::serve) async fn whose(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    uri: &str,
) -> Result<(ServerName, String), RpcErrorResponse> {
    let nobodys = || RpcErrorResponse::no_resource(uri, request.era);
    let offered = context
        .settings()
        .offers
        .of(tool_index, OfferKind::Resources);
    if let Some(rest) = uri.strip_prefix(SCHEME) {
        let (server, theirs) = rest.split_once('/').ok_or_else(nobodys)?;
        let server = offered.into_iter().find(|it| &*it.0 == server);
        let server = server.filter(|_| is_uri(theirs)).ok_or_else(nobodys)?;
        return Ok((server, theirs.to_owned()));
    }
    if !is_uri(uri) {
        return Err(nobodys());
    }
    if let [server] = offered.as_slice() {
        return Ok((server.clone(), uri.to_owned()));
    }
    let listed = listed(context, tool_index, request, LIST).await;
    let is_it = |it: &Value| it.get("uri").and_then(Value::as_str) == Some(uri);
    let (having, others): (Vec<_>, Vec<_>) = listed
        .iter()
        .partition(|it| it.pages.items.iter().any(is_it));
    let unsure = others.iter().find(|it| !it.pages.is_whole);
    match (having.as_slice(), unsure) {
        ([only], None) => Ok((only.server.clone(), uri.to_owned())),
        ([] | [_], Some(unsure)) => {
            let server = &unsure.server.0;
            let (uri, address) = (sanitize(uri), sanitize(&address(&unsure.server, uri)));
            Err(RpcErrorResponse {
                message: format!(
                    "`{uri}` may belong to the server `{server}`, whose list could not be read \
                     completely; use an address that names the server, such as `{address}`"
                ),
                ..nobodys()
            })
        }
        _ => Err(nobodys()),
    }
}

pub(in crate::serve) async fn read(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcErrorResponse::invalid("`uri` is missing or not a string"))?;
    let (server, theirs) = whose(context, tool_index, request, uri).await?;
    let is_readdressed = theirs != uri;
    let mut params = Map::new();
    params.insert("uri".into(), theirs.clone().into());
    let fetch = Fetch {
        method: "resources/read",
        params,
        name: Some(theirs.clone()),
        bytes_max: usize::MAX,
    };
    let result = match fetched(context, tool_index, request, &server, fetch).await {
        Ok(result) => result,
        // Either code can mean that the resource is missing, because the eras use different codes.
        Err(FetchError::Refused {
            code: RESOURCE_NOT_FOUND | INVALID_PARAMS,
            message,
        }) => {
            return Err(RpcErrorResponse {
                message: refused(&server, &message),
                ..RpcErrorResponse::no_resource(uri, request.era)
            });
        }
        Err(failed) => return Err(refusal(&server, failed)),
    };
    let parts = result.get("contents").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().filter(|it| it.is_object());
    let parts = parts.map(|part| {
        let mut part = contents(part);
        let uri = part.get("uri").and_then(Value::as_str).unwrap_or(&theirs);
        let uri = if is_readdressed {
            address(&server, uri)
        } else {
            uri.to_owned()
        };
        part.insert("uri".into(), uri.into());
        Value::from(part)
    });
    let mut read = Value::Object(Map::new());
    set_member(&mut read, "contents", parts.collect::<Vec<_>>());
    Ok(read)
}
