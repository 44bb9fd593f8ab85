//! Handles `subscriptions/listen` of the newer era, a request that stays open. airlock first
//! acknowledges it. Then airlock reports changes of the lists of tools, groups and tags, and of
//! offered servers' prompts and resources. airlock answers the request when serving ends or the
//! host closes its side.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::context::{ServeContext, ServedTools};
use super::notifications::{self, HostSubscriptions};
use super::request::Request;
use super::rpc::{self, RpcErrorResponse};
use super::{sessions, subscriptions};
use crate::config::OfferKind;

/// The member with the addresses of the resources that a host subscribes to.
const URIS: &str = "resourceSubscriptions";
const ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The member by which a host subscribes to a list, and the notification that reports a change of
/// that list: for tools, groups and tags.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("groupsListChanged", notifications::GROUPS),
    ("tagsListChanged", notifications::TAGS),
];

/// Detects changes of these lists.
#[derive(Debug)]
pub(super) struct ListChanges {
    tools: watch::Receiver<Option<Arc<ServedTools>>>,
    /// The tools last reported. Their digests are computed only when newer tools arrive, so that
    /// the first answers do not wait for digests.
    told: Option<Arc<ServedTools>>,
}

impl ListChanges {
    pub(super) fn new(context: &ServeContext) -> Self {
        let mut tools = context.tools();
        let told = tools.borrow_and_update().clone();
        Self { tools, told }
    }

    /// Waits until a list has changed, and returns the notifications to send. The first tools do
    /// not count as a change. Never returns if no further change is possible.
    pub(super) async fn changed(&mut self) -> Vec<&'static str> {
        while self.tools.changed().await.is_ok() {
            let now = self.tools.borrow_and_update().clone();
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

/// Sends a host the notifications it subscribed to, until it disconnects or serving ends.
pub(super) async fn listen(
    context: &ServeContext,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let Some(Value::Object(wanted)) = request.params.get("notifications") else {
        let why = "`notifications` is missing or not an object";
        return Err(RpcErrorResponse::invalid(why));
    };
    let room = Arc::clone(context.listeners());
    let Ok(_room) = room.try_acquire_owned() else {
        return Err(RpcErrorResponse::new(
            rpc::INTERNAL,
            "too many `subscriptions/listen` requests are open",
        ));
    };
    let is_wanted = |(key, _): &(&str, &str)| wanted.get(*key) == Some(&Value::Bool(true));
    let lists = LISTS.into_iter().chain(offered(context)).filter(is_wanted);
    let lists: Vec<_> = lists.collect();
    let honoured = lists
        .iter()
        .map(|(key, _)| ((*key).to_owned(), true.into()));
    let mut honoured: Map<String, Value> = honoured.collect();
    let id = json!({ ID_KEY: request.id });
    // Changes from here on are reported, including those before the acknowledgement.
    let (mut changes, mut news) = (ListChanges::new(context), context.notifications().read());
    let subscriptions = subscribed(context, request, wanted.get(URIS)).await?;
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
            let updates: Vec<_> =
                subscriptions::notifications_for(&request.session, context, updates).collect();
            if sessions::save(context, &request.session).await.is_err() {
                continue;
            }
            for mut params in updates {
                rpc::set_member(&mut params, "_meta", id.clone());
                request.peer.notify(notifications::UPDATED, &params).await;
            }
        }
    };
    tokio::select! {
        () = telling => {}
        _ = context.ending().wanted() => {}
        _ = request.cancel.cancelled() => {}
        () = request.session.silent() => {}
    }
    Ok(json!({ "_meta": id }))
}

/// Returns the lists of prompts and of resources, if a server offers them: the member by which a
/// host subscribes, and the notification.
fn offered(context: &ServeContext) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lists = [
        (
            OfferKind::Prompts,
            ("promptsListChanged", notifications::PROMPTS),
        ),
        (
            OfferKind::Resources,
            ("resourcesListChanged", notifications::RESOURCES),
        ),
    ];
    let offers = &context.settings().offers;
    let offered = lists.map(|(what, list)| offers.any(what).then_some(list));
    offered.into_iter().flatten()
}

/// Subscribes to the resources that the host names. Resources whose server reports no changes are
/// omitted.
async fn subscribed(
    context: &ServeContext,
    request: &Request,
    wanted: Option<&Value>,
) -> Result<HostSubscriptions, RpcErrorResponse> {
    let uris = wanted.and_then(Value::as_array).into_iter().flatten();
    let uris: BTreeSet<_> = uris.filter_map(Value::as_str).collect();
    if uris.len() > notifications::SUBSCRIPTIONS_MAX {
        let max = notifications::SUBSCRIPTIONS_MAX;
        let why = format!("`{URIS}` names more than {max} resources");
        return Err(RpcErrorResponse::invalid(why));
    }
    if uris.is_empty() || !context.settings().offers.any(OfferKind::Resources) {
        return Ok(HostSubscriptions::new());
    }
    let tool_index = context.tool_index().await?;
    let asking = uris.into_iter().map(|uri| {
        let tool_index = &tool_index;
        async move {
            let subscription = subscriptions::subscription(context, tool_index, request, uri).await;
            Some((uri.to_owned(), subscription.ok()?))
        }
    });
    Ok(join_all(asking).await.into_iter().flatten().collect())
}
