//! The hosts' subscriptions at one server to changes of its lists of prompts and resources, and of
//! single resources. Equal subscriptions share one subscription at the server, which ends when the
//! last of them is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use super::jsonrpc::RpcError;

/// Maximum number of watched resources of one server, for all hosts.
const URIS_MAX: usize = 1_000;

/// The subscriptions at one server. Cheap to clone; all clones belong to the same server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerSubscriptions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: watch::Sender<SubscriptionCounts>,
    /// The server's answers to the subscriptions over the current connection, by address.
    standing: watch::Sender<BTreeMap<String, ActiveSubscription>>,
}

#[derive(Debug, Default)]
struct SubscriptionCounts {
    lists: bool,
    uris: BTreeMap<String, usize>,
}

/// The subscriptions that are wanted at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WantedSubscriptions {
    pub(super) lists: bool,
    pub(super) uris: BTreeSet<String>,
}

/// `None` if the server reports changes, otherwise the error.
pub(super) type ActiveSubscription = Option<RpcError>;

/// One host's subscription to one resource, until it is dropped.
#[derive(Debug)]
pub(crate) struct ResourceSubscription {
    watching: ServerSubscriptions,
    uri: String,
}

/// The maximum number of watched resources is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManySubscriptions(pub(crate) usize);

impl ServerSubscriptions {
    pub(crate) fn want_lists(&self) {
        self.0.wanted.send_if_modified(|wanted| {
            let is_new = !wanted.lists;
            wanted.lists = true;
            is_new
        });
    }

    pub(super) fn watch(&self, uri: &str) -> Result<ResourceSubscription, TooManySubscriptions> {
        let mut has_room = true;
        self.0.wanted.send_if_modified(|wanted| {
            has_room = wanted.uris.contains_key(uri) || wanted.uris.len() < URIS_MAX;
            if has_room {
                *wanted.uris.entry(uri.to_owned()).or_default() += 1;
            }
            has_room
        });
        has_room
            .then(|| ResourceSubscription {
                watching: self.clone(),
                uri: uri.to_owned(),
            })
            .ok_or(TooManySubscriptions(URIS_MAX))
    }

    /// Whether any host subscribes to a resource, so that the connection is needed.
    pub(super) fn is_needed(&self) -> bool {
        !self.0.wanted.borrow().uris.is_empty()
    }

    pub(super) fn wanted(&self) -> WantedSubscriptions {
        let wanted = self.0.wanted.borrow();
        WantedSubscriptions {
            lists: wanted.lists,
            uris: wanted.uris.keys().cloned().collect(),
        }
    }

    /// Waits until the wanted subscriptions differ from these.
    pub(super) async fn is_other_than(&self, before: &WantedSubscriptions) {
        let mut wanted = self.0.wanted.subscribe();
        let is_other = |now: &SubscriptionCounts| {
            now.lists != before.lists || !now.uris.keys().eq(before.uris.iter())
        };
        // Cannot fail, because the sender is a field of `self`.
        let _ = wanted.wait_for(is_other).await;
    }

    /// Records the server's answer for an address, or removes it so that the server is asked again.
    pub(super) fn note(&self, uri: &str, standing: Option<ActiveSubscription>) {
        self.0.standing.send_modify(|all| match standing {
            Some(standing) => drop(all.insert(uri.to_owned(), standing)),
            None => drop(all.remove(uri)),
        });
    }

    /// Removes all answers, because the connection is new.
    pub(super) fn begin_anew(&self) {
        self.0.standing.send_modify(BTreeMap::clear);
    }
}

impl ResourceSubscription {
    /// Waits for the server's answer for this resource.
    pub(super) async fn standing(&self) -> ActiveSubscription {
        let mut all = self.watching.0.standing.subscribe();
        let said = all.wait_for(|all| all.contains_key(&self.uri)).await;
        // Cannot fail, because the sender is a field of `self`.
        said.ok().and_then(|all| all.get(&self.uri)?.clone())
    }
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        self.watching.0.wanted.send_modify(|wanted| {
            if let Some(count) = wanted.uris.get_mut(&self.uri) {
                *count -= 1;
                if *count == 0 {
                    wanted.uris.remove(&self.uri);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_subscription_lasts_while_used_and_is_bounded() {
        let watching = ServerSubscriptions::default();
        let (first, second) = (
            watching.watch("a:1").unwrap(),
            watching.watch("a:1").unwrap(),
        );
        drop(first);
        assert!(watching.is_needed());
        drop(second);
        assert!(!watching.is_needed());
        let all: Vec<_> = (0..URIS_MAX)
            .map(|n| watching.watch(&format!("a:{n}")).unwrap())
            .collect();
        assert_eq!(
            watching.watch("b:1").unwrap_err(),
            TooManySubscriptions(URIS_MAX)
        );
        let again = watching.watch("a:7").unwrap();
        drop(all);
        assert_eq!(watching.wanted().uris, BTreeSet::from(["a:7".into()]));
        drop(again);
    }
}
