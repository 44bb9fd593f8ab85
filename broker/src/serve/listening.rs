//! `subscriptions/listen` of the newer era: a request that stays open. It is
//! acknowledged first, told when the list of tools, of groups or of tags is another one, or what
//! offered servers have besides, and answered when serving ends or its host
//! says nothing more.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};

use super::desk::Desk;
use super::news::{self, Subscriptions};
use super::offered::What;
use super::request::Request;
use super::rpc::{self, Refusal};
use super::shelf::Shelf;

/// Hosts that may listen at the same time; others ask for the list again.
const LISTENERS_MAX: usize = 1_000;
/// The resources that a host wants to be told of.
const URIS: &str = "resourceSubscriptions";
const ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Room for those who listen.
#[derive(Debug)]
pub(super) struct Listeners(Arc<Semaphore>);

impl Default for Listeners {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LISTENERS_MAX)))
    }
}

/// The lists of tools, groups and tags: how a host says that it wants to hear of each, and
/// what it is told then.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("groupsListChanged", "notifications/groups/list_changed"),
    ("tagsListChanged", "notifications/tags/list_changed"),
];

/// These lists as they change.
#[derive(Debug)]
pub(super) struct Lists {
    shelves: watch::Receiver<Option<Arc<Shelf>>>,
    /// Held against the next one when there is one: the first answers do not wait for its digests.
    told: Option<Arc<Shelf>>,
}

impl Lists {
    pub(super) fn of(mut shelves: watch::Receiver<Option<Arc<Shelf>>>) -> Self {
        let told = shelves.borrow_and_update().clone();
        Self { shelves, told }
    }

    /// Waits until one of them is another one than it was, and gives what is told of that; the
    /// first ones are no change. Never when they will not change any more.
    pub(super) async fn changed(&mut self) -> Vec<&'static str> {
        while self.shelves.changed().await.is_ok() {
            let now = self.shelves.borrow_and_update().clone();
            let (Some(before), Some(now)) = (std::mem::replace(&mut self.told, now.clone()), now)
            else {
                continue;
            };
            let (before, now) = (before.list_digests(), now.list_digests());
            let lists = before.into_iter().zip(now).zip(LISTS);
            let changed = lists.filter(|((before, now), _)| before != now);
            let methods: Vec<_> = changed.map(|(_, (_, method))| method).collect();
            if !methods.is_empty() {
                return methods;
            }
        }
        std::future::pending().await
    }
}

/// Tells a host what it wants to be told, until it goes or serving ends.
pub(super) async fn listen(desk: &Desk, request: &Request) -> Result<Value, Refusal> {
    let Some(Value::Object(wanted)) = request.params.get("notifications") else {
        let why = "`notifications` is missing or not an object";
        return Err(Refusal::invalid(why));
    };
    let room = Arc::clone(&desk.listeners().0);
    let Ok(_room) = room.try_acquire_owned() else {
        return Err(Refusal::new(rpc::INTERNAL, "too many hosts listen already"));
    };
    let is_wanted = |(key, _): &(&str, &str)| wanted.get(*key) == Some(&Value::Bool(true));
    let lists = LISTS.into_iter().chain(offered(desk)).filter(is_wanted);
    let lists: Vec<_> = lists.collect();
    let honoured = lists
        .iter()
        .map(|(key, _)| ((*key).to_owned(), true.into()));
    let mut honoured: Map<String, Value> = honoured.collect();
    let id = json!({ ID_KEY: request.id });
    // Whatever changes from here on is told, also what changes before it is acknowledged.
    let (mut changes, mut news) = (desk.lists(), desk.bulletin().read());
    let subscriptions = subscriptions(desk, request, wanted.get(URIS)).await?;
    if !subscriptions.is_empty() {
        let mut uris: Vec<_> = subscriptions.keys().cloned().collect();
        uris.sort_unstable();
        honoured.insert(URIS.into(), uris.into());
    }
    let params = json!({"_meta": id, "notifications": honoured});
    let method = "notifications/subscriptions/acknowledged";
    request.peer.notify(method, &params).await;
    let telling = async {
        loop {
            let (methods, updates) = tokio::select! {
                changed = changes.changed() => (changed, Default::default()),
                batch = news.next() => (batch.lists().collect(), batch.of(&subscriptions)),
            };
            let is_wanted = |it: &&str| lists.iter().any(|(_, method)| method == it);
            for method in methods.into_iter().filter(is_wanted) {
                let params = json!({ "_meta": id });
                request.peer.notify(method, &params).await;
            }
            for mut params in news::heard(&request.session, desk, updates) {
                rpc::put(&mut params, "_meta", id.clone());
                request.peer.notify(news::UPDATED, &params).await;
            }
        }
    };
    tokio::select! {
        () = telling => {}
        _ = desk.ending().wanted() => {}
        _ = request.cancel.cancelled() => {}
        () = request.session.silent() => {}
    }
    Ok(json!({ "_meta": id }))
}

/// The lists that change where they are offered.
fn offered(desk: &Desk) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lists = [
        (What::Prompts, ("promptsListChanged", news::PROMPTS)),
        (What::Resources, ("resourcesListChanged", news::RESOURCES)),
    ];
    let offers = &desk.settings().offers;
    let offered = lists.map(|(what, list)| offers.any(what).then_some(list));
    offered.into_iter().flatten()
}

/// The resources of which the host wants to be told, those that nobody tells of left out.
async fn subscriptions(
    desk: &Desk,
    request: &Request,
    wanted: Option<&Value>,
) -> Result<Subscriptions, Refusal> {
    let uris = wanted.and_then(Value::as_array).into_iter().flatten();
    let uris: BTreeSet<_> = uris.filter_map(Value::as_str).collect();
    if uris.len() > news::SUBSCRIPTIONS_MAX {
        let max = news::SUBSCRIPTIONS_MAX;
        let why = format!("`{URIS}` names more than {max} resources");
        return Err(Refusal::invalid(why));
    }
    if uris.is_empty() || !desk.settings().offers.any(What::Resources) {
        return Ok(Subscriptions::new());
    }
    let shelf = desk.shelf().await?;
    let asking = uris.into_iter().map(|uri| {
        let shelf = &shelf;
        async move {
            let subscription = news::subscription(desk, shelf, request, uri).await;
            Some((uri.to_owned(), subscription.ok()?))
        }
    });
    Ok(join_all(asking).await.into_iter().flatten().collect())
}
