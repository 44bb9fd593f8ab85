//! What servers have besides tools, for hosts: prompts, resources, completions. Only
//! of servers that somebody has named (`--offer`), under names that say whose it is,
//! with known credentials struck.

mod completion;
mod offer;
mod prompts;
mod resources;

use std::time::Duration;

use airlock_core::id::ServerName;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::request::Request;
use super::rpc::{Refusal, shown};
use super::shelf::Shelf;
use crate::upstream::fetch::{Fetch, Unfetched};
use crate::upstream::wall::Wall;

pub(super) use completion::complete;
pub(super) use offer::What;
pub use offer::{BadOffer, Offer, Offers};
pub(super) use prompts::{get as get_prompt, list as list_prompts};
pub(super) use resources::{
    list as list_resources, read as read_resource, templates as list_templates,
};

/// A server that takes longer for a list is left out of it.
const LIST_WALL: Duration = Duration::from_secs(5);
const ITEMS_MAX: usize = 1_000;
const PAGES_MAX: usize = 50;
const TEXT_CHARS_MAX: usize = 2_000;

/// Everything of one kind that the offered servers list, by server.
async fn listed(
    desk: &Desk,
    shelf: &Shelf,
    what: What,
    (method, key): (&'static str, &'static str),
) -> Vec<(ServerName, Vec<Value>)> {
    let servers = desk.settings().offers.of(shelf, what);
    let listing = servers.into_iter().map(|server| async move {
        let wall = Wall::new(LIST_WALL);
        let items = all_pages(shelf, &server, (method, key), &wall).await;
        (server, items)
    });
    join_all(listing).await
}

/// What has come until something goes wrong.
async fn all_pages(
    shelf: &Shelf,
    server: &ServerName,
    (method, key): (&'static str, &'static str),
    wall: &Wall,
) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..PAGES_MAX {
        let mut params = Map::new();
        if !cursor.is_null() {
            params.insert("cursor".into(), cursor);
        }
        let fetch = Fetch {
            method,
            params,
            name: None,
        };
        let Ok(mut page) = shelf.broker.fetch(server, fetch, wall).await else {
            break;
        };
        if let Some(Value::Array(more)) = page.get_mut(key).map(Value::take) {
            items.extend(more);
        }
        items.truncate(ITEMS_MAX);
        cursor = page
            .get_mut("nextCursor")
            .map(Value::take)
            .unwrap_or_default();
        if items.len() == ITEMS_MAX || cursor.as_str().is_none_or(str::is_empty) {
            break;
        }
    }
    items
}

/// Asks a server for one thing, until the host does not want it any more.
async fn fetched(
    shelf: &Shelf,
    request: &Request,
    server: &ServerName,
    fetch: Fetch,
) -> Result<Value, Unfetched> {
    let wall = Wall::new(Duration::from_millis(
        shelf.broker.limits().call_wall_ms_max,
    ));
    let method = fetch.method;
    let fetched = tokio::select! {
        fetched = shelf.broker.fetch(server, fetch, &wall) => fetched,
        why = request.cancel.cancelled() => Err(Unfetched::Failed(why)),
    };
    let value = fetched?;
    if value.get("resultType").is_some_and(|it| it != "complete") {
        let why = "it wants input, which only calls of tools can be given";
        return Err(Unfetched::Failed(why.to_owned()));
    }
    if method != "completion/complete"
        && let Some(carried) = shelf.broker.carried_from(server)
    {
        request.session.carry(&carried);
    }
    Ok(value)
}

fn refusal(server: &ServerName, unfetched: Unfetched) -> Refusal {
    const INVALID_PARAMS: i64 = -32_602;
    match unfetched {
        Unfetched::Refused { code, message } => {
            let message = refused(server, &message);
            match code {
                INVALID_PARAMS => Refusal::invalid(message),
                _ => Refusal::new(super::rpc::INTERNAL, message),
            }
        }
        Unfetched::Failed(why) => {
            let server = &server.0;
            let message = format!("the server `{server}` did not answer: {}", shown(&why));
            Refusal::new(super::rpc::INTERNAL, message)
        }
    }
}

fn refused(server: &ServerName, message: &str) -> String {
    format!("the server `{}` refused it: {}", server.0, shown(message))
}

/// The members of an object that are texts, made fit to be shown.
fn texts(of: &Value, keys: &[&str]) -> Map<String, Value> {
    let text = |key: &&str| {
        let text = of.get(*key)?.as_str()?;
        let text = codegen::text::clip(&codegen::text::neutralise(text), TEXT_CHARS_MAX);
        Some(((*key).to_owned(), text.into()))
    };
    keys.iter().filter_map(text).collect()
}

/// Resources inside of messages get the addresses under which they can be read here.
fn readdressed(desk: &Desk, server: &ServerName, content: &mut Value) {
    if !desk.settings().offers.has(&server.0, What::Resources) {
        return;
    }
    let is_link = content.get("type") == Some(&json!("resource_link"));
    let at = if is_link { "/uri" } else { "/resource/uri" };
    if let Some(Value::String(uri)) = content.pointer_mut(at) {
        *uri = resources::address(server, uri);
    }
}
