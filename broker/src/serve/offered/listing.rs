//! What the offered servers list: read page by page, cut down to what is shown of it
//! while it comes, and read once for all who ask at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airlock_core::id::ServerName;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, timeout};

use super::{What, count_as_read};
use crate::serve::desk::Desk;
use crate::serve::request::Request;
use crate::serve::shelf::Shelf;
use crate::upstream::fetch::{Fetch, Unfetched};
use crate::upstream::jsonrpc::METHOD_NOT_FOUND;
use crate::upstream::wall::Wall;

/// A server that takes longer for a list is left out of it, and nobody waits longer for a list
/// that somebody else has begun.
const WALL: Duration = Duration::from_secs(5);
const ITEMS_MAX: usize = 1_000;
const PAGES_MAX: usize = 50;
/// All pages together, as for a list of tools.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// One of the lists that servers have.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub(super) what: What,
    pub(super) method: &'static str,
    pub(super) key: &'static str,
    /// What is kept of an item; none of one that cannot be shown.
    pub(super) shown: fn(&Value) -> Option<Value>,
}

/// What one server lists.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) server: ServerName,
    pub(super) pages: Arc<Pages>,
}

#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) items: Vec<Value>,
    /// Nothing is missing: the server has answered, and was not cut off.
    pub(super) is_whole: bool,
}

/// The lists that are being read, each at most once at a time.
#[derive(Debug, Default)]
pub(in crate::serve) struct Listings(Mutex<HashMap<Key, Arc<Turn<Latest>>>>);

/// A server and a method.
type Key = (ServerName, &'static str);

/// The reading that was begun last, and what came of it while somebody waits for that.
#[derive(Debug, Default)]
struct Latest {
    begun: Option<Instant>,
    pages: Option<Arc<Pages>>,
}

/// A list of all servers that are offered with it. What is in it counts as read.
pub(super) async fn listed(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    list: List,
) -> Vec<Listed> {
    let servers = desk.settings().offers.of(shelf, list.what);
    let listing = servers.into_iter().map(|server| async move {
        let pages = tokio::select! {
            pages = pages(desk, shelf, &server, list) => pages,
            _ = request.cancel.cancelled() => Arc::default(),
            _ = desk.ending().wanted() => Arc::default(),
        };
        if !pages.items.is_empty() {
            count_as_read(shelf, request, &server);
        }
        Listed { server, pages }
    });
    join_all(listing).await
}

/// A reading that was begun after this was asked for is as good as one of one's own.
async fn pages(desk: &Desk, shelf: &Shelf, server: &ServerName, list: List) -> Arc<Pages> {
    let asked = Instant::now();
    let turn = desk.listings().turn(server, list.method);
    let Ok(mut latest) = timeout(WALL, turn.lock()).await else {
        return Arc::default();
    };
    let is_later = latest.begun.is_some_and(|begun| begun > asked);
    let pages = match latest.pages.take().filter(|_| is_later) {
        Some(pages) => pages,
        None => {
            latest.begun = Some(Instant::now());
            Arc::new(read(shelf, server, list, &Wall::new(WALL)).await)
        }
    };
    // One is ours and one the map's.
    let is_awaited = Arc::strong_count(&turn) > 2;
    latest.pages = is_awaited.then(|| Arc::clone(&pages));
    pages
}

/// What has come until something goes wrong.
async fn read(shelf: &Shelf, server: &ServerName, list: List, wall: &Wall) -> Pages {
    let mut pages = Pages::default();
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
        let mut page = match shelf.broker.fetch(server, fetch, wall).await {
            Ok(page) => page,
            Err(why) => {
                // Whoever has no such list lists nothing.
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

fn is_unknown(why: &Unfetched) -> bool {
    matches!(why, Unfetched::Refused { code, .. } if *code == METHOD_NOT_FOUND)
}

impl Listings {
    fn turn(&self, server: &ServerName, method: &'static str) -> Arc<Turn<Latest>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry((server.clone(), method)).or_default();
        Arc::clone(turn)
    }
}
