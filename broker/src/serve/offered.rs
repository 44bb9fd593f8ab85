//! What servers have besides tools, for hosts: prompts, resources, completions. Only
//! of servers that somebody has named (`--offer`), under names that say whose it is,
//! with known credentials struck. Whatever a server says here, in lists and in errors
//! too, counts as read by the session that hears it.

mod completion;
mod listing;
mod offer;
mod prompts;
mod resources;

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::request::Request;
use super::rpc::{INTERNAL, INVALID_PARAMS, Refusal, shown};
use super::shelf::Shelf;
use crate::upstream::fetch::{Fetch, Unfetched};
use crate::upstream::wall::Wall;
use crate::upstream::watching::Watched;

pub(super) use completion::complete;
pub(super) use listing::Listings;
pub(super) use offer::What;
pub use offer::{BadOffer, Offer, Offers};
pub(super) use prompts::{get as get_prompt, list as list_prompts};
pub(super) use resources::{
    is_uri, list as list_resources, read as read_resource, templates as list_templates,
    whose as whose_resource,
};

const TEXT_CHARS_MAX: usize = 2_000;
/// For a server to start, and to say whether it tells of a resource.
const WATCHED_WITHIN: Duration = Duration::from_secs(30);

/// Asks a server for one thing, until the host does not want it any more. It takes the room
/// of a call of the session.
async fn fetched(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    (server, fetch): (&ServerName, Fetch),
) -> Result<Value, Unfetched> {
    let wall = Wall::new(Duration::from_millis(
        shelf.broker.limits().call_wall_ms_max,
    ));
    // What comes of it is heard, whatever it is.
    count_as_read(shelf, request, server);
    let asking = async {
        let room = wall.limit(request.session.room.acquire()).await;
        let late = |_| Unfetched::Failed("too much else of this session goes on".to_owned());
        let _room = room.map_err(late)?;
        shelf.broker.fetch(server, fetch, &wall).await
    };
    let fetched = tokio::select! {
        fetched = asking => fetched?,
        why = request.cancel.cancelled() => return Err(Unfetched::Failed(why)),
        why = desk.ending().wanted() => {
            return Err(Unfetched::Failed(format!("airlock ends: {why}")));
        }
    };
    let value = fetched.value;
    if value.get("resultType").is_some_and(|it| it != "complete") {
        return Err(unusable(
            "it wants input, which only calls of tools can be given",
        ));
    }
    Ok(value)
}

/// Has a server tell when a resource changes; what it says to that is heard.
pub(super) async fn watched(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    (server, uri): (&ServerName, &str),
) -> Result<Watched, Refusal> {
    let wall = Wall::new(WATCHED_WITHIN);
    let asking = async {
        let room = wall.limit(request.session.room.acquire()).await;
        let late = |_| Unfetched::Failed("too much else of this session goes on".to_owned());
        let _room = room.map_err(late)?;
        shelf.broker.watch(server, uri, &wall).await
    };
    let watched = tokio::select! {
        watched = asking => watched,
        why = request.cancel.cancelled() => Err(Unfetched::Failed(why)),
        why = desk.ending().wanted() => Err(Unfetched::Failed(format!("airlock ends: {why}"))),
    };
    watched.map_err(|unfetched| {
        count_as_read(shelf, request, server);
        refusal(server, unfetched)
    })
}

fn unusable(why: &str) -> Unfetched {
    Unfetched::Failed(why.to_owned())
}

/// The session is labelled with what the server reads.
fn count_as_read(shelf: &Shelf, request: &Request, server: &ServerName) {
    request.session.hear_from(&shelf.broker, server);
}

fn refusal(server: &ServerName, unfetched: Unfetched) -> Refusal {
    match unfetched {
        Unfetched::Refused { code, message } => {
            let message = refused(server, &message);
            match code {
                INVALID_PARAMS => Refusal::invalid(message),
                _ => Refusal::new(INTERNAL, message),
            }
        }
        Unfetched::Failed(why) | Unfetched::Ended(why) => {
            let server = &server.0;
            let message = format!("the server `{server}` did not answer: {}", shown(&why));
            Refusal::new(INTERNAL, message)
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

/// A text that a host sends back as it is, and so is shown as it is or not at all.
fn is_plain(text: &str, bytes_max: usize) -> bool {
    text.len() <= bytes_max && !text.chars().any(codegen::text::is_invisible)
}

/// Of the contents of a resource what the protocol has for it, each of its kind.
fn contents(theirs: &Value) -> Map<String, Value> {
    let mut contents = texts(theirs, &["mimeType"]);
    let uri = theirs.get("uri").and_then(Value::as_str);
    if let Some(uri) = uri.filter(|it| resources::is_uri(it)) {
        contents.insert("uri".into(), uri.into());
    }
    for key in ["text", "blob"] {
        if let Some(part @ Value::String(_)) = theirs.get(key) {
            contents.insert(key.into(), part.clone());
        }
    }
    contents
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
