//! Sees to it that a server tells what is wanted of it, over the connection that there is: in
//! the older era resource by resource, in the newer by one request that stays open and is made
//! anew when something else is wanted.

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
use super::link::{Link, LinkError};
use super::listening::is_refused;
use super::news::News;
use super::watching::{Standing, Wanted, Watching};

/// For a server to say whether it will tell of a resource.
const WITHIN: Duration = Duration::from_secs(10);
/// How long the request before goes on beside one that was just made, so that nothing is missed.
const OVERLAP: Duration = Duration::from_secs(1);
/// A host does not wait longer for the stream on which the older era tells over HTTP.
const STREAM_WITHIN: Duration = Duration::from_secs(1);
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(300);

/// Ends when it is dropped, and holds the connection until then.
#[derive(Debug)]
pub(super) struct Following(#[expect(dead_code, reason = "ends when it is dropped")] Task);

/// A task that ends when it is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Task {
    fn begin(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }
}

impl Following {
    pub(super) fn begin(
        connection: &Arc<Connection>,
        watching: &Watching,
        diagnostics: &Arc<Diagnostics>,
    ) -> Self {
        watching.begin_anew();
        // What changed while there was no connection was told to nobody.
        for uri in watching.wanted().uris {
            diagnostics.tell(News::Resource(uri));
        }
        let follower = Follower {
            connection: Arc::clone(connection),
            watching: watching.clone(),
            diagnostics: Arc::clone(diagnostics),
        };
        Self(Task::begin(async move {
            match follower.connection.agreed.era {
                Era::Legacy => follower.one_by_one().await,
                Era::Modern => follower.all_together().await,
            }
        }))
    }
}

#[derive(Clone)]
struct Follower {
    connection: Arc<Connection>,
    watching: Watching,
    diagnostics: Arc<Diagnostics>,
}

impl Follower {
    /// What of it this server has at all.
    fn possible(&self, mut wanted: Wanted) -> Wanted {
        let has = &self.connection.agreed.has;
        wanted.lists &= has.prompt_changes || has.resource_changes;
        if !has.subscriptions {
            wanted.uris.clear();
        }
        wanted
    }

    fn refuse_all(&self, wanted: &Wanted) {
        for uri in &wanted.uris {
            self.watching.note(uri, Some(Some(no_such_thing())));
        }
    }

    async fn one_by_one(self) {
        let mut known = BTreeMap::<String, Standing>::new();
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
                    // A server that goes on telling is not listened to.
                    let _ = self.connection.subscribe(&uri, false, WITHIN).await;
                }
            }
            for uri in &wanted.uris {
                if known.contains_key(uri) {
                    continue;
                }
                let standing = match possible.uris.contains(uri) {
                    true => said(self.connection.subscribe(uri, true, WITHIN).await),
                    false => Some(no_such_thing()),
                };
                known.insert(uri.clone(), standing.clone());
                self.watching.note(uri, Some(standing));
            }
            self.watching.is_other_than(&wanted).await;
        }
    }

    /// The stream of the older era over HTTP, opened again when it ends.
    async fn attend(&self) -> Task {
        let (opened, is_open) = oneshot::channel();
        let connection = Arc::clone(&self.connection);
        let task = Task::begin(async move {
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
                    // It has none, and tells of nothing.
                    return;
                }
                if since.elapsed() > PAUSE_LAST {
                    pause = PAUSE_FIRST;
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_LAST);
            }
        });
        // One that does not open is not waited for.
        let _ = timeout(STREAM_WITHIN, is_open).await;
        task
    }

    async fn all_together(self) {
        let mut before: Option<Task> = None;
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
            let now = Task::begin(async move { follower.listen(asked).await });
            let other = self.watching.is_other_than(&wanted);
            tokio::pin!(other);
            // A moment in which both tell: what changes between the two is told once at least.
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

    /// What is not among what was named is told by nobody: whoever wants to know reads it again.
    fn note_promised(&self, wanted: &Wanted, named: Option<&BTreeSet<String>>) {
        for uri in &wanted.uris {
            let is_told = named.is_none_or(|it| it.contains(uri));
            let standing = (!is_told).then(no_such_thing);
            self.watching.note(uri, Some(standing));
        }
    }

    /// Asks to be told, again and again.
    async fn listen(self, wanted: Wanted) {
        let mut pause = PAUSE_FIRST;
        loop {
            let since = Instant::now();
            let mut promised = self.diagnostics.watched();
            promised.mark_unchanged();
            let telling = self.connection.listen_besides(&wanted);
            tokio::pin!(telling);
            let answer = tokio::select! {
                answer = &mut telling => answer,
                // Whoever did not refuse by then tells.
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
                let refused = said(answer);
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

fn said(answer: Result<Answer, LinkError>) -> Standing {
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
        message: "it does not tell when a resource changes".to_owned(),
        supported: Vec::new(),
        data: None,
    }
}
