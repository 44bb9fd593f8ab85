//! Notifications that airlock sends to hosts, unrelated to their requests. A changed list of an
//! offered server is reported to all listeners. A changed resource is reported to its subscribers.
//! A completed URL elicitation is reported to the host that was asked to open the URL.
//! Notifications that arrive together are merged.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use airlock_core::id::ServerName;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::upstream::subscriptions::ResourceSubscription;

/// Maximum number of resources that one session, or one open listen request, subscribes to.
pub(super) const SUBSCRIPTIONS_MAX: usize = 256;
/// Maximum number of batches that wait for a receiver.
const WAITING_MAX: usize = 64;
pub(super) const GROUPS: &str = "notifications/groups/list_changed";
pub(super) const TAGS: &str = "notifications/tags/list_changed";
pub(super) const PROMPTS: &str = "notifications/prompts/list_changed";
pub(super) const RESOURCES: &str = "notifications/resources/list_changed";
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// One resource that a host has subscribed to.
#[derive(Debug)]
pub(super) struct HostSubscription {
    pub(super) server: ServerName,
    /// The server's own address of the resource.
    pub(super) theirs: String,
    pub(super) _watched: ResourceSubscription,
}

/// Subscriptions by the address that the host uses.
pub(super) type HostSubscriptions = HashMap<String, HostSubscription>;

/// The notifications that servers sent at about the same time.
#[derive(Debug, Clone, Default)]
pub(super) struct NotificationBatch {
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) updated: BTreeSet<(ServerName, String)>,
    /// Servers and ids of completed URL elicitations.
    pub(super) opened: BTreeSet<(ServerName, String)>,
    /// Whether notifications were lost, so that anything may have changed.
    pub(super) is_partial: bool,
}

/// Publishes notifications for hosts. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HostNotifications(broadcast::Sender<Arc<NotificationBatch>>);

impl Default for HostNotifications {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

/// A subscription to the batches.
#[derive(Debug)]
pub(super) struct NotificationStream(broadcast::Receiver<Arc<NotificationBatch>>);

impl HostNotifications {
    pub(super) fn read(&self) -> NotificationStream {
        NotificationStream(self.0.subscribe())
    }

    pub(super) fn send(&self, batch: NotificationBatch) {
        // Sending fails only if there is no receiver, and then nothing is lost.
        let _ = self.0.send(Arc::new(batch));
    }
}

impl NotificationStream {
    /// Returns the next batch. Never returns if there are no more.
    pub(super) async fn next(&mut self) -> Arc<NotificationBatch> {
        match self.0.recv().await {
            Ok(batch) => batch,
            Err(RecvError::Lagged(_)) => Arc::new(NotificationBatch {
                prompts: true,
                resources: true,
                is_partial: true,
                ..NotificationBatch::default()
            }),
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl NotificationBatch {
    /// Returns the notifications for the lists that have changed.
    pub(super) fn lists(&self) -> impl Iterator<Item = &'static str> {
        let lists = [(self.prompts, PROMPTS), (self.resources, RESOURCES)];
        lists
            .into_iter()
            .filter_map(|(is_told, method)| is_told.then_some(method))
    }

    /// Whether the URL elicitation of this server with this id was completed.
    pub(super) fn is_opened(&self, whose: &(ServerName, String)) -> bool {
        self.opened.contains(whose)
    }

    /// Returns the servers of the updated resources in these subscriptions, with the addresses that
    /// the host uses.
    pub(super) fn of(&self, subscriptions: &HostSubscriptions) -> BTreeSet<(ServerName, String)> {
        let mut told = BTreeSet::new();
        for (uri, subscription) in subscriptions {
            let HostSubscription { server, theirs, .. } = subscription;
            if self.is_partial {
                told.insert((server.clone(), uri.clone()));
            }
            for (_, updated) in self.updated.iter().filter(|(it, _)| it == server) {
                // The resource itself, or a resource below it.
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
