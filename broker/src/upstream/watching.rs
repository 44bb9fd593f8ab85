//! What hosts want to be told of one server besides its tools: that its lists of prompts and
//! resources are others, and which of its resources have changed. Several may want the same:
//! the server is told once, and told again when the last of them has gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;

use super::jsonrpc::RpcError;

/// Resources of one server that are watched, whoever watches them.
const URIS_MAX: usize = 1_000;

/// Cheap to clone; all clones are about the same server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watching(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: watch::Sender<Counted>,
    /// What the server of the moment has said to each address that it was told.
    standing: watch::Sender<BTreeMap<String, Standing>>,
}

#[derive(Debug, Default)]
struct Counted {
    lists: bool,
    uris: BTreeMap<String, usize>,
}

/// What is wanted at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) lists: bool,
    pub(super) uris: BTreeSet<String>,
}

/// None: it tells of changes.
pub(super) type Standing = Option<RpcError>;

/// One host's wish to be told of one resource, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    watching: Watching,
    uri: String,
}

/// So many are watched already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) usize);

impl Watching {
    pub(crate) fn want_lists(&self) {
        self.0.wanted.send_if_modified(|wanted| {
            let is_new = !wanted.lists;
            wanted.lists = true;
            is_new
        });
    }

    pub(super) fn watch(&self, uri: &str) -> Result<Watched, TooMany> {
        let mut has_room = true;
        self.0.wanted.send_if_modified(|wanted| {
            has_room = wanted.uris.contains_key(uri) || wanted.uris.len() < URIS_MAX;
            if has_room {
                *wanted.uris.entry(uri.to_owned()).or_default() += 1;
            }
            has_room
        });
        has_room
            .then(|| Watched {
                watching: self.clone(),
                uri: uri.to_owned(),
            })
            .ok_or(TooMany(URIS_MAX))
    }

    /// Somebody waits for news of a resource: the connection is needed.
    pub(super) fn is_needed(&self) -> bool {
        !self.0.wanted.borrow().uris.is_empty()
    }

    pub(super) fn wanted(&self) -> Wanted {
        let wanted = self.0.wanted.borrow();
        Wanted {
            lists: wanted.lists,
            uris: wanted.uris.keys().cloned().collect(),
        }
    }

    /// Returns when something else is wanted than this.
    pub(super) async fn is_other_than(&self, before: &Wanted) {
        let mut wanted = self.0.wanted.subscribe();
        let is_other =
            |now: &Counted| now.lists != before.lists || !now.uris.keys().eq(before.uris.iter());
        // The sender lives in `self`.
        let _ = wanted.wait_for(is_other).await;
    }

    /// A server has said something to an address, or is to be asked about it anew.
    pub(super) fn note(&self, uri: &str, standing: Option<Standing>) {
        self.0.standing.send_modify(|all| match standing {
            Some(standing) => drop(all.insert(uri.to_owned(), standing)),
            None => drop(all.remove(uri)),
        });
    }

    /// Nothing was said yet over the connection that there is now.
    pub(super) fn begin_anew(&self) {
        self.0.standing.send_modify(BTreeMap::clear);
    }
}

impl Watched {
    /// What the server says to it, once it was told.
    pub(super) async fn standing(&self) -> Standing {
        let mut all = self.watching.0.standing.subscribe();
        let said = all.wait_for(|all| all.contains_key(&self.uri)).await;
        // The sender lives in `self`.
        said.ok().and_then(|all| all.get(&self.uri)?.clone())
    }
}

impl Drop for Watched {
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
    fn a_resource_is_watched_as_long_as_somebody_watches_it_and_only_so_many_are() {
        let watching = Watching::default();
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
        assert_eq!(watching.watch("b:1").unwrap_err(), TooMany(URIS_MAX));
        let again = watching.watch("a:7").unwrap();
        drop(all);
        assert_eq!(watching.wanted().uris, BTreeSet::from(["a:7".into()]));
        drop(again);
    }
}
