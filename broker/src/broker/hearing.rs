//! Listens for servers that may have changed, and has their tools read anew: at most twice a
//! second, and where that fails again later.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use airlock_core::id::ServerName;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::servers::{RETRY_FIRST, RETRY_LAST, Servers};

/// A server that says all the time that it has changed is listed no more often.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// Rounds of reading lists. Servers that take long hold up no others.
#[derive(Debug, Default)]
struct Rounds {
    busy: HashSet<ServerName>,
    /// When a list that could not be read is tried again, and how long that was waited for.
    again: HashMap<ServerName, (Instant, Duration)>,
}

pub(super) async fn hear(servers: Weak<Servers>, bell: Arc<Notify>) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut rounds = Rounds::default();
    loop {
        tokio::select! {
            () = bell.notified() => {}
            () = rounds.next_due() => {}
            // It may have changed once more while it was read.
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
                    // Nobody hears it when the broker is gone.
                    let _ = tell.send((name, is_heard));
                });
            }
        }
        rounds.forget_due();
        drop(servers);
        sleep(LIST_PAUSE).await;
    }
}

impl Rounds {
    /// False while it is being read, or waits for its time.
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

    /// What was due and is not being read needed no reading any more: somebody else has read it.
    fn forget_due(&mut self) {
        let (now, busy) = (Instant::now(), &self.busy);
        self.again
            .retain(|name, (at, _)| *at > now || busy.contains(name));
    }
}
