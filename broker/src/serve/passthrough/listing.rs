//! Reads the lists of offered servers, page by page. Each page is reduced to the shown fields as it
//! arrives. Concurrent requests share one read.

use std::sync::Arc;
use std::time::Duration;

use airlock_core::id::ServerName;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::count_as_read;
use crate::broker::tool_index::ToolIndex;
use crate::config::OfferKind;
use crate::deadline::Deadline;
use crate::serve::context::ServeContext;
use crate::serve::list_reads::ItemPages;
use crate::serve::request::Request;
use crate::upstream::fetch::{Fetch, FetchError};
use crate::upstream::jsonrpc::METHOD_NOT_FOUND;

/// Maximum time to read a server's list, and to wait for another request's read of it. Items of a
/// slower server are missing from the list.
const WALL: Duration = Duration::from_secs(5);
const ITEMS_MAX: usize = 1_000;
const PAGES_MAX: usize = 50;
/// Maximum size of all pages together, the same as for a list of tools.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// One kind of list that servers have.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassthroughList {
    pub(super) what: OfferKind,
    pub(super) method: &'static str,
    pub(super) key: &'static str,
    /// Reduces an item to the fields that are shown. Returns `None` for an item that cannot be
    /// shown.
    pub(super) shown: fn(&Value) -> Option<Value>,
}

/// The items that one server lists.
#[derive(Debug)]
pub(super) struct ServerItems {
    pub(super) server: ServerName,
    pub(super) pages: Arc<ItemPages>,
}

/// Returns the lists of all servers that offer this kind. Their items count as read.
pub(super) async fn listed(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    list: PassthroughList,
) -> Vec<ServerItems> {
    let servers = context.settings().offers.of(tool_index, list.what);
    let listing = servers.into_iter().map(|server| async move {
        let pages = tokio::select! {
            pages = pages(context, tool_index, &server, list) => pages,
            _ = request.cancel.cancelled() => Arc::default(),
            _ = context.ending().wanted() => Arc::default(),
        };
        if !pages.items.is_empty() {
            count_as_read(tool_index, request, &server);
        }
        ServerItems { server, pages }
    });
    join_all(listing).await
}

/// Reads a server's list, or uses the result of another read that began after this request.
async fn pages(
    context: &ServeContext,
    tool_index: &ToolIndex,
    server: &ServerName,
    list: PassthroughList,
) -> Arc<ItemPages> {
    let asked = Instant::now();
    let turn = context.list_reads().turn(server, list.method);
    let Ok(mut latest) = timeout(WALL, turn.lock()).await else {
        return Arc::default();
    };
    let is_later = latest.begun.is_some_and(|begun| begun > asked);
    let pages = match latest.pages.take().filter(|_| is_later) {
        Some(pages) => pages,
        None => {
            latest.begun = Some(Instant::now());
            Arc::new(read(tool_index, server, list, &Deadline::new(WALL)).await)
        }
    };
    // One reference belongs to this function and one to the map. Any further reference belongs to a
    // waiting request.
    let is_awaited = Arc::strong_count(&turn) > 2;
    latest.pages = is_awaited.then(|| Arc::clone(&pages));
    pages
}

/// Reads pages until the list ends or an error occurs, and returns the items so far.
async fn read(
    tool_index: &ToolIndex,
    server: &ServerName,
    list: PassthroughList,
    deadline: &Deadline,
) -> ItemPages {
    let mut pages = ItemPages::default();
    let (mut cursor, mut bytes) = (Value::Null, 0_usize);
    for _ in 0..PAGES_MAX {
        let mut params = Map::new();
        if !cursor.is_null() {
            params.insert("cursor".into(), cursor);
        }
        let fetch = Fetch {
            method: list.method,
            params,
            name: None,
            bytes_max: BYTES_MAX.saturating_sub(bytes),
        };
        let mut page = match tool_index.broker.fetch(server, fetch, deadline).await {
            Ok(page) => page,
            Err(why) => {
                // A server that does not know the method has an empty list.
                pages.is_whole = bytes == 0 && is_unknown(&why);
                break;
            }
        };
        bytes += page.bytes;
        let items = page.value.get(list.key).and_then(Value::as_array);
        let shown = items.into_iter().flatten().filter_map(list.shown);
        let room = ITEMS_MAX - pages.items.len();
        pages.items.extend(shown.take(room));
        let next = page.value.get_mut("nextCursor").map(Value::take);
        cursor = next.unwrap_or_default();
        if cursor.as_str().is_none_or(str::is_empty) {
            pages.is_whole = pages.items.len() < ITEMS_MAX;
            break;
        }
        if pages.items.len() == ITEMS_MAX {
            break;
        }
    }
    pages
}

fn is_unknown(why: &FetchError) -> bool {
    matches!(why, FetchError::Refused { code, .. } if *code == METHOD_NOT_FOUND)
}
