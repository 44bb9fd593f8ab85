//! Listens for servers that may have changed, and reads their tools again. Each list is read at
//! most twice a second. After a failure, the next attempt comes later.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use airlock_core::id::ServerName;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::{RETRY_FIRST, RETRY_LAST, Servers};

/// The minimum pause between two readings, for a server that reports changes all the time.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// The state of reading lists. A slow server does not delay the others.
#[derive(Debug, Default)]
struct RelistRounds {
    busy: HashSet<ServerName>,
    /// For each server whose list could not be read, the time of the next attempt and the pause
    /// before it.
    again: HashMap<ServerName, (Instant, Duration)>,
}

pub(super) async fn listen(servers: Weak<Servers>, wake: Arc<Notify>) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut rounds = RelistRounds::default();
    loop {
        tokio::select! {
            () = wake.notified() => {}
            () = rounds.next_due() => {}
            // The server may have changed again while its list was read.
            Some((name, is_heard)) = told.recv() => rounds.note(name, is_heard),
        }
        let Some(servers) = servers.upgrade() else {
            return;
        };
        for name in servers.outdated() {
            if rounds.begin(&name) {
                let (servers, tell) = (Arc::clone(&servers), tell.clone());
                servers.runtime().clone().spawn(async move {
                    let is_heard = servers.catch_up(&name).await;
                    // The receiver is gone when the broker is gone.
                    let _ = tell.send((name, is_heard));
                });
            }
        }
        rounds.forget_due();
        drop(servers);
        sleep(LIST_PAUSE).await;
    }
}

impl RelistRounds {
    /// Returns false while the list is being read, or while the server waits for its next attempt.
    fn begin(&mut self, server: &ServerName) -> bool {
        let waits = |(at, _): &(Instant, Duration)| *at > Instant::now();
        let is_due = !self.again.get(server).is_some_and(waits);
        is_due && self.busy.insert(server.clone())
    }

    fn note(&mut self, server: ServerName, is_heard: bool) {
        self.busy.remove(&server);
        if is_heard {
            self.again.remove(&server);
            return;
        }
        let waited = self.again.get(&server).map(|(_, waited)| *waited);
        let pause = waited.map_or(RETRY_FIRST, |waited| (waited * 2).min(RETRY_LAST));
        self.again.insert(server, (Instant::now() + pause, pause));
    }

    async fn next_due(&self) {
        let due = self
            .again
            .iter()
            .filter(|(name, _)| !self.busy.contains(*name));
        match due.map(|(_, (at, _))| *at).min() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Forgets due servers that are not being read. Another task has read their lists already.
    fn forget_due(&mut self) {
        let (now, busy) = (Instant::now(), &self.busy);
        self.again
            .retain(|name, (at, _)| *at > now || busy.contains(name));
    }
}
