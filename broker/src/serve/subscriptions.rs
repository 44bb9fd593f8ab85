//! Reports servers' changes to hosts: receives notifications of servers, subscribes to resources,
//! and selects the notifications for each session.

use std::collections::BTreeSet;
use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::sleep;

use super::context::ServeContext;
use super::notifications::{HostSubscription, NotificationBatch, SUBSCRIPTIONS_MAX, UPDATED};
use super::request::Request;
use super::rpc::{self, RpcErrorResponse};
use super::session::HostSession;
use super::{passthrough, resources};
use crate::broker::Broker;
use crate::broker::tool_index::ToolIndex;
use crate::config::{OfferKind, Offers};
use crate::secrets::Secrets;
use crate::upstream::notifications::ServerNotification;

/// Notifications within this time are merged, however often servers send them.
const PAUSE: Duration = Duration::from_millis(100);
const OPENED: &str = "notifications/elicitation/complete";

/// Collects notifications of offered servers for as long as the broker exists.
pub(super) async fn follow(broker: Broker, context: ServeContext) {
    let mut news = broker.news();
    let secrets = broker.secrets();
    let offers = context.settings().offers.clone();
    offers
        .0
        .iter()
        .for_each(|it| broker.want_lists(it.server()));
    drop(broker);
    loop {
        let mut batch = NotificationBatch::default();
        let mut next = Some(news.recv().await);
        while let Some(told) = next {
            match told {
                Ok((server, told)) if is_clean(&secrets, &told) => {
                    add(&mut batch, &offers, server, told)
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => batch.is_partial = true,
                Err(RecvError::Closed) => return,
            }
            next = match news.try_recv() {
                Ok(told) => Some(Ok(told)),
                Err(broadcast::error::TryRecvError::Lagged(n)) => Some(Err(RecvError::Lagged(n))),
                Err(_) => None,
            };
        }
        if batch.is_partial {
            (batch.prompts, batch.resources) = (true, true);
        }
        context.notifications().send(batch);
        sleep(PAUSE).await;
    }
}

/// Whether the notification contains no known credential. A notification with a credential is
/// dropped.
fn is_clean(secrets: &Secrets, told: &ServerNotification) -> bool {
    match told {
        ServerNotification::Resource(uri) => secrets.redact(uri).is_none(),
        _ => true,
    }
}

/// Adds a notification to the batch, if that kind of notification of its server is offered to
/// hosts.
fn add(
    batch: &mut NotificationBatch,
    offers: &Offers,
    server: ServerName,
    told: ServerNotification,
) {
    let has = |what| offers.has(&server.0, what);
    match told {
        ServerNotification::Prompts => batch.prompts |= has(OfferKind::Prompts),
        ServerNotification::Resources => batch.resources |= has(OfferKind::Resources),
        ServerNotification::Resource(uri)
            if has(OfferKind::Resources) && passthrough::is_uri(&uri) =>
        {
            batch.updated.insert((server, uri));
        }
        ServerNotification::Opened(id) => drop(batch.opened.insert((server, id))),
        ServerNotification::Resource(_) => {}
    }
}

/// Handles `resources/subscribe` of the older era.
pub(super) async fn subscribe(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let uri = uri(request)?;
    if request.session.subscribes_to(uri) {
        return Ok(json!({}));
    }
    let subscription = subscription(context, tool_index, request, uri).await?;
    match request.session.note_subscription(uri, subscription) {
        true => Ok(json!({})),
        false => Err(too_many()),
    }
}

/// Handles `resources/unsubscribe` of the older era.
pub(super) fn unsubscribe(request: &Request) -> Result<Value, RpcErrorResponse> {
    request.session.forget_subscription(uri(request)?);
    Ok(json!({}))
}

fn uri(request: &Request) -> Result<&str, RpcErrorResponse> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    uri.ok_or_else(|| RpcErrorResponse::invalid("`uri` is missing or not a string"))
}

fn too_many() -> RpcErrorResponse {
    let why = format!("too many subscriptions; the maximum is {SUBSCRIPTIONS_MAX} resources");
    RpcErrorResponse::new(rpc::INTERNAL, why)
}

/// Subscribes to changes of a resource at its server.
pub(super) async fn subscription(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    uri: &str,
) -> Result<HostSubscription, RpcErrorResponse> {
    if resources::is_own(uri) {
        let why = "this resource does not support subscriptions";
        return Err(RpcErrorResponse::invalid(why));
    }
    let (server, theirs) = passthrough::whose_resource(context, tool_index, request, uri).await?;
    let watched = passthrough::watched(context, tool_index, request, &server, &theirs).await?;
    Ok(HostSubscription {
        server,
        theirs,
        _watched: watched,
    })
}

/// Returns the notifications for a session, with params. Addresses in them count as read.
pub(super) fn told_in(
    session: &HostSession,
    context: &ServeContext,
    batch: &NotificationBatch,
) -> Vec<(&'static str, Value)> {
    let updates = notifications_for(session, context, session.updates(batch));
    let lists = batch.lists().map(|method| (method, json!({})));
    let opened = session.take_opened(batch).into_iter();
    let opened = opened.map(|id| (OPENED, json!({ "elicitationId": id })));
    let updates = updates.map(|params| (UPDATED, params));
    lists.chain(updates).chain(opened).collect()
}

/// Returns the params of the notifications about changed resources.
pub(super) fn notifications_for<'a>(
    session: &'a HostSession,
    context: &ServeContext,
    updates: BTreeSet<(ServerName, String)>,
) -> impl Iterator<Item = Value> + use<'a> {
    let tool_index = context.tool_index_now();
    updates.into_iter().map(move |(server, uri)| {
        if let Some(tool_index) = &tool_index {
            session.hear_from(&tool_index.broker, &server);
        }
        json!({ "uri": uri })
    })
}
