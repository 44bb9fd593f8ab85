//! Passes prompts, resources and completions of servers on to hosts, for the servers named by
//! `--offer`. The name of an item shows its server, and known credentials are redacted. Everything
//! that a server sends here, including lists and errors, counts as read by the session that
//! receives it.

mod completion;
mod listing;
mod prompts;
mod resources;

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};

use super::context::ServeContext;
use super::request::Request;
use super::rpc::{INTERNAL, INVALID_PARAMS, RpcErrorResponse, sanitize};
use crate::broker::tool_index::ToolIndex;
use crate::config::OfferKind;
use crate::deadline::Deadline;
use crate::render::escape;
use crate::upstream::fetch::{Fetch, FetchError};
use crate::upstream::subscriptions::ResourceSubscription;

pub(super) use completion::complete;
pub(super) use prompts::{get as get_prompt, list as list_prompts};
pub(super) use resources::{
    is_uri, list as list_resources, read as read_resource, templates as list_templates,
    whose as whose_resource,
};

const TEXT_CHARS_MAX: usize = 2_000;
/// Maximum time for a server to start and to answer a subscription.
const WATCHED_WITHIN: Duration = Duration::from_secs(30);

/// Sends one request to a server and waits until the server answers or the host cancels. The
/// request takes one of the session's call slots.
async fn fetched(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    server: &ServerName,
    fetch: Fetch,
) -> Result<Value, FetchError> {
    let deadline = Deadline::new(Duration::from_millis(
        tool_index.broker.limits().call_wall_ms_max,
    ));
    // The session gets the server's labels whatever the outcome is.
    count_as_read(tool_index, request, server);
    let asking = async {
        let room = deadline.limit(request.session.call_slots.acquire()).await;
        let late =
            |_| FetchError::Failed("this session has too many requests in progress".to_owned());
        let _room = room.map_err(late)?;
        tool_index.broker.fetch(server, fetch, &deadline).await
    };
    let fetched = tokio::select! {
        fetched = asking => fetched?,
        why = request.cancel.cancelled() => return Err(FetchError::Failed(why)),
        why = context.ending().wanted() => {
            return Err(FetchError::Failed(format!("airlock shuts down: {why}")));
        }
    };
    let value = fetched.value;
    if value.get("resultType").is_some_and(|it| it != "complete") {
        return Err(unusable(
            "the server asked for input, which is supported only during tool calls",
        ));
    }
    Ok(value)
}

/// Subscribes to changes of a resource at its server. An error message of the server counts as
/// read.
pub(super) async fn watched(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    server: &ServerName,
    uri: &str,
) -> Result<ResourceSubscription, RpcErrorResponse> {
    let deadline = Deadline::new(WATCHED_WITHIN);
    let asking = async {
        let room = deadline.limit(request.session.call_slots.acquire()).await;
        let late =
            |_| FetchError::Failed("this session has too many requests in progress".to_owned());
        let _room = room.map_err(late)?;
        tool_index.broker.watch(server, uri, &deadline).await
    };
    let watched = tokio::select! {
        watched = asking => watched,
        why = request.cancel.cancelled() => Err(FetchError::Failed(why)),
        why = context.ending().wanted() => {
            Err(FetchError::Failed(format!("airlock shuts down: {why}")))
        }
    };
    watched.map_err(|unfetched| {
        count_as_read(tool_index, request, server);
        refusal(server, unfetched)
    })
}

fn unusable(why: &str) -> FetchError {
    FetchError::Failed(why.to_owned())
}

/// Adds the labels of the server's data to the session.
fn count_as_read(tool_index: &ToolIndex, request: &Request, server: &ServerName) {
    request.session.hear_from(&tool_index.broker, server);
}

fn refusal(server: &ServerName, unfetched: FetchError) -> RpcErrorResponse {
    match unfetched {
        FetchError::Refused { code, message } => {
            let message = refused(server, &message);
            match code {
                INVALID_PARAMS => RpcErrorResponse::invalid(message),
                _ => RpcErrorResponse::new(INTERNAL, message),
            }
        }
        FetchError::Failed(why) | FetchError::Ended(why) => {
            let server = &server.0;
            let message = format!(
                "the request to the server `{server}` failed: {}",
                sanitize(&why)
            );
            RpcErrorResponse::new(INTERNAL, message)
        }
    }
}

fn refused(server: &ServerName, message: &str) -> String {
    format!(
        "the server `{}` refused the request: {}",
        server.0,
        sanitize(message)
    )
}

/// Returns the text members of an object, escaped and shortened for display.
fn texts(of: &Value, keys: &[&str]) -> Map<String, Value> {
    let text = |key: &&str| {
        let text = of.get(*key)?.as_str()?;
        let text = codegen::text::clip(&codegen::text::neutralise(text), TEXT_CHARS_MAX);
        Some(((*key).to_owned(), text.into()))
    };
    keys.iter().filter_map(text).collect()
}

/// Whether a text can be shown unchanged. Otherwise the text is not shown at all, because a host
/// sends such a text back and must send it unchanged.
fn is_plain(text: &str, bytes_max: usize) -> bool {
    text.len() <= bytes_max && !text.chars().any(codegen::text::is_invisible)
}

/// Returns the members of a resource's contents that the protocol defines, if they have the right
/// type.
fn contents(theirs: &Value) -> Map<String, Value> {
    let mut contents = texts(theirs, &["mimeType"]);
    let uri = theirs.get("uri").and_then(Value::as_str);
    if let Some(uri) = uri.filter(|it| resources::is_uri(it)) {
        contents.insert("uri".into(), uri.into());
    }
    for key in ["text", "blob"] {
        if let Some(Value::String(part)) = theirs.get(key) {
            contents.insert(key.into(), escape::message(part).into());
        }
    }
    contents
}

/// Rewrites the address of a resource inside a message to the address under which airlock serves
/// it.
fn readdressed(context: &ServeContext, server: &ServerName, content: &mut Value) {
    if !context
        .settings()
        .offers
        .has(&server.0, OfferKind::Resources)
    {
        return;
    }
    let is_link = content.get("type") == Some(&json!("resource_link"));
    let at = if is_link { "/uri" } else { "/resource/uri" };
    if let Some(Value::String(uri)) = content.pointer_mut(at) {
        *uri = resources::address(server, uri);
    }
}
