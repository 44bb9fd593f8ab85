//! What hosts are told outside of their requests: that a list of offered servers is another
//! one, to all that listen; that a resource has changed, to those that have asked for it; that an
//! address was done with, to the one that was asked to open it. What comes at once is told once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::sleep;

use super::desk::Desk;
use super::offered::{self, What};
use super::request::Request;
use super::resources;
use super::rpc::{self, Refusal};
use super::session::HostSession;
use super::shelf::Shelf;
use crate::broker::Broker;
use crate::config::Secrets;
use crate::upstream::news::News;
use crate::upstream::watching::Watched;

/// Resources that one session, or one request that stays open, is told of.
pub(super) const SUBSCRIPTIONS_MAX: usize = 256;
/// What is told within this is told together, however often servers say it.
const PAUSE: Duration = Duration::from_millis(100);
/// Batches that wait for somebody who tells them on.
const WAITING_MAX: usize = 64;
pub(super) const PROMPTS: &str = "notifications/prompts/list_changed";
pub(super) const RESOURCES: &str = "notifications/resources/list_changed";
const OPENED: &str = "notifications/elicitation/complete";
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// One thing that a host has asked to be told of.
#[derive(Debug)]
pub(super) struct Subscription {
    server: ServerName,
    /// What its server calls it.
    theirs: String,
    _watched: Watched,
}

/// Subscriptions by the addresses that the host has for them.
pub(super) type Subscriptions = HashMap<String, Subscription>;

/// What servers have told in one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    prompts: bool,
    resources: bool,
    updated: BTreeSet<(ServerName, String)>,
    /// Names of addresses that somebody is done with.
    opened: BTreeSet<(ServerName, String)>,
    /// Something was missed: anything may have changed.
    is_partial: bool,
}

/// What is told on to hosts. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Bulletin(broadcast::Sender<Arc<Batch>>);

impl Default for Bulletin {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

/// The batches as they come.
#[derive(Debug)]
pub(super) struct Batches(broadcast::Receiver<Arc<Batch>>);

impl Bulletin {
    pub(super) fn read(&self) -> Batches {
        Batches(self.0.subscribe())
    }
}

impl Batches {
    /// The next one; never when there will be none.
    pub(super) async fn next(&mut self) -> Arc<Batch> {
        match self.0.recv().await {
            Ok(batch) => batch,
            Err(RecvError::Lagged(_)) => Arc::new(Batch {
                prompts: true,
                resources: true,
                is_partial: true,
                ..Batch::default()
            }),
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Batch {
    /// The lists that are others now.
    pub(super) fn lists(&self) -> impl Iterator<Item = &'static str> {
        let lists = [(self.prompts, PROMPTS), (self.resources, RESOURCES)];
        lists
            .into_iter()
            .filter_map(|(is_told, method)| is_told.then_some(method))
    }

    /// Whether somebody is done with the address to which a server gave this name.
    pub(super) fn is_opened(&self, whose: &(ServerName, String)) -> bool {
        self.opened.contains(whose)
    }

    /// The addresses that a host is told of, as it knows them, and whose they are.
    pub(super) fn of(&self, subscriptions: &Subscriptions) -> BTreeSet<(ServerName, String)> {
        let mut told = BTreeSet::new();
        for (uri, subscription) in subscriptions {
            let Subscription { server, theirs, .. } = subscription;
            if self.is_partial {
                told.insert((server.clone(), uri.clone()));
            }
            for (_, updated) in self.updated.iter().filter(|(it, _)| it == server) {
                // It, or something below it.
                let rest = updated.strip_prefix(theirs.as_str());
                let is_below =
                    |rest: &&str| rest.is_empty() || rest.starts_with('/') || theirs.ends_with('/');
                if let Some(rest) = rest.filter(is_below) {
                    told.insert((server.clone(), format!("{uri}{rest}")));
                }
            }
        }
        told
    }
}

/// Takes in what offered servers tell, as long as the broker is there.
pub(super) async fn follow(broker: Broker, desk: Desk) {
    let mut news = broker.news();
    let secrets = broker.secrets();
    let offers = desk.settings().offers.clone();
    offers
        .0
        .iter()
        .for_each(|it| broker.want_lists(it.server()));
    drop(broker);
    loop {
        let mut batch = Batch::default();
        let mut next = Some(news.recv().await);
        while let Some(told) = next {
            match told {
                Ok((server, told)) if is_clean(&secrets, &told) => batch.take(&desk, server, told),
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
        // Nobody may listen.
        let _ = desk.bulletin().0.send(Arc::new(batch));
        sleep(PAUSE).await;
    }
}

/// An address that has a known credential in it is told to nobody.
fn is_clean(secrets: &Secrets, told: &News) -> bool {
    match told {
        News::Resource(uri) => secrets.strike(uri).is_none(),
        _ => true,
    }
}

impl Batch {
    fn take(&mut self, desk: &Desk, server: ServerName, told: News) {
        let has = |what| desk.settings().offers.has(&server.0, what);
        match told {
            News::Prompts => self.prompts |= has(What::Prompts),
            News::Resources => self.resources |= has(What::Resources),
            News::Resource(uri) if has(What::Resources) && offered::is_uri(&uri) => {
                self.updated.insert((server, uri));
            }
            News::Opened(id) => drop(self.opened.insert((server, id))),
            News::Resource(_) => {}
        }
    }
}

/// `resources/subscribe` of the older era.
pub(super) async fn subscribe(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
) -> Result<Value, Refusal> {
    let uri = uri(request)?;
    if request.session.subscribes_to(uri) {
        return Ok(json!({}));
    }
    let subscription = subscription(desk, shelf, request, uri).await?;
    match request.session.note_subscription(uri, subscription) {
        true => Ok(json!({})),
        false => Err(too_many()),
    }
}

/// `resources/unsubscribe` of the older era.
pub(super) fn unsubscribe(request: &Request) -> Result<Value, Refusal> {
    request.session.forget_subscription(uri(request)?);
    Ok(json!({}))
}

fn uri(request: &Request) -> Result<&str, Refusal> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    uri.ok_or_else(|| Refusal::invalid("`uri` is missing or not a string"))
}

fn too_many() -> Refusal {
    let why = format!("{SUBSCRIPTIONS_MAX} resources are subscribed to already");
    Refusal::new(rpc::INTERNAL, why)
}

/// Asks its server to tell when a resource changes.
pub(super) async fn subscription(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    uri: &str,
) -> Result<Subscription, Refusal> {
    if resources::is_own(uri) {
        let why = "this resource does not support subscriptions";
        return Err(Refusal::invalid(why));
    }
    let (server, theirs) = offered::whose_resource(desk, shelf, request, uri).await?;
    let watched = offered::watched(desk, shelf, request, (&server, &theirs)).await?;
    Ok(Subscription {
        server,
        theirs,
        _watched: watched,
    })
}

/// What a session is told, with params; what servers say in it counts as heard.
pub(super) fn told_in(
    session: &HostSession,
    desk: &Desk,
    batch: &Batch,
) -> Vec<(&'static str, Value)> {
    let updates = heard(session, desk, session.updates(batch));
    let lists = batch.lists().map(|method| (method, json!({})));
    let opened = session.take_opened(batch).into_iter();
    let opened = opened.map(|id| (OPENED, json!({ "elicitationId": id })));
    let updates = updates.map(|params| (UPDATED, params));
    lists.chain(updates).chain(opened).collect()
}

/// The params of what is told of resources that have changed.
pub(super) fn heard<'a>(
    session: &'a HostSession,
    desk: &Desk,
    updates: BTreeSet<(ServerName, String)>,
) -> impl Iterator<Item = Value> + use<'a> {
    let shelf = desk.shelf_now();
    updates.into_iter().map(move |(server, uri)| {
        if let Some(shelf) = &shelf {
            session.hear_from(&shelf.broker, &server);
        }
        json!({ "uri": uri })
    })
}
