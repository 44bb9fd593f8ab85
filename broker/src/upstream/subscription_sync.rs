//! Keeps a server's subscriptions in sync with what hosts want, over the current connection. The
//! older era subscribes to each resource. The newer era uses one request that stays open, and
//! replaces it when the wanted set changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::connection::Connection;
use super::diagnostics::Diagnostics;
use super::era::Era;
use super::jsonrpc::{Answer, METHOD_NOT_FOUND, RpcError};
use super::link::Link;
use super::list_subscription::is_refused;
use super::notifications::ServerNotification;
use super::outgoing::LinkError;
use super::subscriptions::{ActiveSubscription, ServerSubscriptions, WantedSubscriptions};

/// Maximum time for a server to confirm the subscription to a resource.
const WITHIN: Duration = Duration::from_secs(10);
/// Time for which the previous request stays open after its replacement is sent, so that no change
/// is missed.
const OVERLAP: Duration = Duration::from_secs(1);
/// Maximum time that a host waits for the stream of the older era over HTTP.
const STREAM_WITHIN: Duration = Duration::from_secs(1);
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(300);

/// The synchronising task. It runs until this value is dropped, and keeps the connection until
/// then.
#[derive(Debug)]
pub(super) struct SubscriptionSync(
    #[expect(dead_code, reason = "the task ends on drop")] AbortOnDrop,
);

/// A task that is aborted on drop.
#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl AbortOnDrop {
    fn begin(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }
}

impl SubscriptionSync {
    pub(super) fn begin(
        connection: &Arc<Connection>,
        watching: &ServerSubscriptions,
        diagnostics: &Arc<Diagnostics>,
    ) -> Self {
        watching.begin_anew();
        // Changes without a connection were not reported, so all watched resources count as
        // changed.
        for uri in watching.wanted().uris {
            diagnostics.tell(ServerNotification::Resource(uri));
        }
        let follower = SyncTask {
            connection: Arc::clone(connection),
            watching: watching.clone(),
            diagnostics: Arc::clone(diagnostics),
        };
        Self(AbortOnDrop::begin(async move {
            match follower.connection.negotiated.era {
                Era::Legacy => follower.one_by_one().await,
                Era::Modern => follower.all_together().await,
            }
        }))
    }
}

#[derive(Clone)]
struct SyncTask {
    connection: Arc<Connection>,
    watching: ServerSubscriptions,
    diagnostics: Arc<Diagnostics>,
}

impl SyncTask {
    /// Returns the part of the wanted subscriptions that this server supports.
    fn possible(&self, mut wanted: WantedSubscriptions) -> WantedSubscriptions {
        let has = &self.connection.negotiated.has;
        wanted.lists &= has.prompt_changes || has.resource_changes;
        if !has.subscriptions {
            wanted.uris.clear();
        }
        wanted
    }

    fn refuse_all(&self, wanted: &WantedSubscriptions) {
        for uri in &wanted.uris {
            self.watching.note(uri, Some(Some(no_such_thing())));
        }
    }

    async fn one_by_one(self) {
        let mut known = BTreeMap::<String, ActiveSubscription>::new();
        let mut stream = None;
        loop {
            let wanted = self.watching.wanted();
            let possible = self.possible(wanted.clone());
            if let Link::Http(_) = &self.connection.link {
                let is_needed = possible.lists || !possible.uris.is_empty();
                match (is_needed, &stream) {
                    (true, None) => stream = Some(self.attend().await),
                    (false, Some(_)) => stream = None,
                    _ => {}
                }
            }
            let left: Vec<_> = known
                .keys()
                .filter(|it| !wanted.uris.contains(*it))
                .cloned()
                .collect();
            for uri in left {
                self.watching.note(&uri, None);
                if let Some(None) = known.remove(&uri) {
                    // An error has no effect: later notifications for this resource are ignored.
                    let _ = self.connection.subscribe(&uri, false, WITHIN).await;
                }
            }
            for uri in &wanted.uris {
                if known.contains_key(uri) {
                    continue;
                }
                let standing = match possible.uris.contains(uri) {
                    true => {
                        subscription_from_answer(self.connection.subscribe(uri, true, WITHIN).await)
                    }
                    false => Some(no_such_thing()),
                };
                known.insert(uri.clone(), standing.clone());
                self.watching.note(uri, Some(standing));
            }
            self.watching.is_other_than(&wanted).await;
        }
    }

    /// Opens the stream of the older era over HTTP, and opens it again when it ends.
    async fn attend(&self) -> AbortOnDrop {
        let (opened, is_open) = oneshot::channel();
        let connection = Arc::clone(&self.connection);
        let task = AbortOnDrop::begin(async move {
            let Link::Http(link) = &connection.link else {
                return;
            };
            let (mut opened, mut reader) = (Some(opened), link.reader());
            let mut pause = PAUSE_FIRST;
            while !link.is_closed() {
                let since = Instant::now();
                let is_open = || {
                    let _ = opened.take().map(|it| it.send(()));
                };
                let ended = link.attend(&mut reader, is_open).await;
                if matches!(ended, Err(LinkError::Status { status, .. }) if status < 500) {
                    // The server has no such stream and reports nothing.
                    return;
                }
                if since.elapsed() > PAUSE_LAST {
                    pause = PAUSE_FIRST;
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_LAST);
            }
        });
        // If the stream does not open in time, subscribing continues without it.
        let _ = timeout(STREAM_WITHIN, is_open).await;
        task
    }

    async fn all_together(self) {
        let mut before: Option<AbortOnDrop> = None;
        loop {
            let wanted = self.watching.wanted();
            let possible = self.possible(wanted.clone());
            if possible.uris.len() < wanted.uris.len() {
                self.refuse_all(&wanted);
            }
            if !possible.lists && possible.uris.is_empty() {
                before = None;
                self.watching.is_other_than(&wanted).await;
                continue;
            }
            let follower = self.clone();
            let asked = possible.clone();
            let now = AbortOnDrop::begin(async move { follower.listen(asked).await });
            let other = self.watching.is_other_than(&wanted);
            tokio::pin!(other);
            // Both requests are open for a moment, so that each change is reported at least once.
            let is_other = tokio::select! {
                () = &mut other => true,
                () = sleep(OVERLAP) => false,
            };
            drop(before.replace(now));
            if !is_other {
                other.await;
            }
        }
    }

    /// Records which wanted resources the server will report. The server reports no changes of the
    /// others, so hosts have to poll them.
    fn note_promised(&self, wanted: &WantedSubscriptions, named: Option<&BTreeSet<String>>) {
        for uri in &wanted.uris {
            let is_told = named.is_none_or(|it| it.contains(uri));
            let standing = (!is_told).then(no_such_thing);
            self.watching.note(uri, Some(standing));
        }
    }

    /// Subscribes, and subscribes again whenever the request ends.
    async fn listen(self, wanted: WantedSubscriptions) {
        let mut pause = PAUSE_FIRST;
        loop {
            let since = Instant::now();
            let mut promised = self.diagnostics.watched();
            promised.mark_unchanged();
            let telling = self.connection.listen_besides(&wanted);
            tokio::pin!(telling);
            let answer = tokio::select! {
                answer = &mut telling => answer,
                // A server that has not refused by then counts as subscribed.
                named = timeout(OVERLAP / 2, promised.changed()) => {
                    let named = named.is_ok().then(|| promised.borrow().clone());
                    self.note_promised(&wanted, named.as_ref());
                    telling.await
                }
            };
            if self.connection.link.is_closed() {
                return;
            }
            if is_refused(&answer) {
                let refused = subscription_from_answer(answer);
                for uri in &wanted.uris {
                    self.watching.note(uri, Some(refused.clone()));
                }
                return;
            }
            if since.elapsed() > PAUSE_LAST {
                pause = PAUSE_FIRST;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LAST);
        }
    }
}

fn subscription_from_answer(answer: Result<Answer, LinkError>) -> ActiveSubscription {
    let internal = |why: String| RpcError {
        code: -32_603,
        message: why,
        ..no_such_thing()
    };
    match answer {
        Ok(Answer::Result(_)) => None,
        Ok(Answer::Error(error)) => Some(error),
        Ok(Answer::Unreadable(why)) => Some(internal(why)),
        Err(error) => Some(internal(error.why())),
    }
}

fn no_such_thing() -> RpcError {
    RpcError {
        code: METHOD_NOT_FOUND,
        message: "changes of this resource are not reported".to_owned(),
        supported: Vec::new(),
        data: None,
    }
}
