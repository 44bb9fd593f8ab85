//! The servers of a broker over its whole life: they join when they are there,
//! are listed again when they say so, and rest when nobody needs them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use airlock_core::decide::CallParts;
use airlock_core::id::ServerName;
use airlock_core::outcome::Reply;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::Along;
use super::hearing::hear;
use super::roster::Change;
use super::says::Said;
use super::shelf::Shelf;
use super::status::ServerState;
use crate::upstream::fetch::{Fetch, Fetched, Unfetched};
use crate::upstream::wall::Wall;
use crate::upstream::watching::Watched;
use crate::upstream::{Against, Asked, Listed, Sent, Upstream};

/// A server that could not be connected to, or listed, is tried again, later and later.
pub(super) const RETRY_FIRST: Duration = Duration::from_secs(2);
pub(super) const RETRY_LAST: Duration = Duration::from_secs(300);
/// What a server listed when it was last seen can be found without it: the first answers do not
/// stand in line behind the start of a dozen processes.
const REMEMBERED_PAUSE: Duration = Duration::from_millis(30);
/// Of one call: its connection may end, and its server may change, while it waits to leave.
const TRIES_MAX: usize = 4;

pub(crate) struct Servers {
    upstream: Upstream,
    pub(super) shelf: Shelf,
    on_demand: HashMap<ServerName, OnDemand>,
    gates: HashMap<ServerName, Gate>,
    runtime: Handle,
}

#[derive(Default)]
struct Gate {
    /// Whoever lists the server holds it; the others find it done.
    listing: Mutex<()>,
    /// Somebody tries again and again to reach the server.
    is_tried: AtomicBool,
}

/// A server that rests when nobody has called it for so long.
struct OnDemand {
    idle: Duration,
    /// Somebody waits for that.
    is_watched: AtomicBool,
}

impl Servers {
    pub(super) fn new(
        upstream: Upstream,
        shelf: Shelf,
        idle: impl Iterator<Item = (ServerName, Option<Duration>)>,
        runtime: Handle,
    ) -> Arc<Self> {
        let mut servers = Self {
            upstream,
            shelf,
            on_demand: HashMap::new(),
            gates: HashMap::new(),
            runtime,
        };
        for (name, idle) in idle {
            servers.gates.insert(name.clone(), Gate::default());
            let is_watched = AtomicBool::new(false);
            let on_demand = idle.map(|idle| OnDemand { idle, is_watched });
            servers.on_demand.extend(on_demand.map(|it| (name, it)));
        }
        let servers = Arc::new(servers);
        let hearing = hear(Arc::downgrade(&servers), servers.upstream.bell());
        servers.runtime.spawn(hearing);
        servers
    }

    /// Connects to all that are not left for later, and waits for none of them.
    pub(super) fn start(self: &Arc<Self>) {
        let known = self.shelf.last().1;
        for status in known.servers.iter().filter(|it| !it.is_on_demand) {
            let pause = if status.tools.is_some() {
                REMEMBERED_PAUSE
            } else {
                Duration::ZERO
            };
            self.try_again(&ServerName(status.name.as_str().into()), pause);
        }
    }

    /// After a pause, and then again and again until it is there; one at a time is enough.
    fn try_again(self: &Arc<Self>, server: &ServerName, pause: Duration) {
        let gate = self.gates.get(server);
        if gate.is_some_and(|it| !it.is_tried.swap(true, Ordering::SeqCst)) {
            let trying = keep_trying(Arc::downgrade(self), server.clone(), pause);
            self.runtime.spawn(trying);
        }
    }

    /// Nobody tries any more, unless the server was lost again meanwhile.
    fn is_tried_enough(&self, server: &ServerName) -> bool {
        let Some(gate) = self.gates.get(server) else {
            return true;
        };
        gate.is_tried.store(false, Ordering::SeqCst);
        self.is_connected(server) || gate.is_tried.swap(true, Ordering::SeqCst)
    }

    /// Connects to a server and reads its tools, unless that was done; done once, however many
    /// wait for it. An error says why it cannot be.
    pub(super) async fn join(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let _held = self.gate(server)?.lock().await;
        if self.is_connected(server) {
            return Ok(());
        }
        self.connect(server).await
    }

    /// A call that was decided. It leaves only over a connection over which its server has
    /// described the tool as the call was decided with; connecting and reading the list come
    /// first where they have to.
    pub(super) async fn call(self: Arc<Self>, call: CallParts, along: Along) -> Reply {
        let (server, wall) = (&call.tool.server, along.behind.wall.clone());
        let since = self.upstream.readings(server);
        let asked = Arc::new(Asked {
            tool: call.tool.tool.0.to_string(),
            arguments: call.args.bytes().to_vec(),
            trace: along.trace,
            behind: Some(along.behind),
            wall: wall.clone(),
        });
        let mut reply = not_sent("its connections end before anything can be sent");
        for _ in 0..TRIES_MAX {
            let said = match wall.limit(self.said(server, since)).await {
                Ok(Ok(said)) => said,
                Ok(Err(why)) => return not_sent(why),
                Err(_) => return not_sent("the server is still starting"),
            };
            if said.digest(&call.tool.tool) != Some(call.upstream_digest) {
                return Reply::Changed;
            }
            let reading = said.reading;
            let against = Against { reading, since };
            let sent = self
                .upstream
                .call_against(server, Arc::clone(&asked), against);
            match sent.await {
                Sent::Answered(reply) => return reply,
                Sent::Ended(last) => reply = last,
                Sent::Unread => {}
            }
        }
        reply
    }

    /// What a server says of its tools over the connection that there is. The list is read anew
    /// where it may be another one by now, unless that was begun after `since`.
    async fn said(self: &Arc<Self>, server: &ServerName, since: u64) -> Result<Said, String> {
        if let Some(said) = self.current(server, since) {
            return Ok(said);
        }
        let _held = self.gate(server)?.lock().await;
        if let Some(said) = self.current(server, since) {
            return Ok(said);
        }
        if self.is_connected(server) {
            self.list_again(server).await?;
        } else {
            self.connect(server).await?;
        }
        let said = self.shelf.says(server);
        said.ok_or_else(|| "its tools could not be taken in".to_owned())
    }

    fn current(&self, server: &ServerName, since: u64) -> Option<Said> {
        let said = self.shelf.says(server)?;
        let reading = said.reading;
        let is_current = self.is_connected(server)
            && self.upstream.is_current(server, Against { reading, since });
        is_current.then_some(said)
    }

    /// Ends the connection to a server that is there on demand, unless somebody calls it. A call
    /// that comes meanwhile waits until that is done, and starts the server again.
    pub(super) async fn rest(self: &Arc<Self>, server: &ServerName) -> bool {
        let Ok(gate) = self.gate(server) else {
            return false;
        };
        let _held = gate.lock().await;
        let Some(on_demand) = self.on_demand.get(server) else {
            return false;
        };
        let Some(_still) = self.upstream.still(server) else {
            return false;
        };
        // Whoever connects again from here on has it watched again.
        on_demand.is_watched.store(false, Ordering::SeqCst);
        self.take(Change::Rests(server.clone())).await;
        self.upstream.disconnect(server).await;
        true
    }

    /// True when nothing is left to be heard of a server that may have changed.
    pub(super) async fn catch_up(self: &Arc<Self>, server: &ServerName) -> bool {
        let Ok(gate) = self.gate(server) else {
            return true;
        };
        let _held = gate.lock().await;
        let is_behind = self.is_connected(server) && self.upstream.is_outdated(server);
        !is_behind || self.list_again(server).await.is_ok()
    }

    /// Those that are connected and may have changed since their tools were read.
    pub(super) fn outdated(&self) -> Vec<ServerName> {
        let outdated = self.upstream.outdated().into_iter();
        outdated.filter(|it| self.is_connected(it)).collect()
    }

    /// What a server has besides tools. Asking changes nothing, and so is repeated where a
    /// connection has ended. Like a call it starts nothing behind the gate.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        server: &ServerName,
        fetch: Fetch,
        wall: &Wall,
    ) -> Result<Fetched, Unfetched> {
        let late = |_| Unfetched::Failed("it took too long".to_owned());
        let since = self.upstream.readings(server);
        let joined = wall.limit(self.join(server)).await.map_err(late)?;
        joined.map_err(Unfetched::Failed)?;
        let fetch = Arc::new(fetch);
        let mut ended = String::new();
        for _ in 0..TRIES_MAX {
            let asked = self
                .upstream
                .fetch(server, Arc::clone(&fetch), wall.clone());
            match asked.await {
                Err(Unfetched::Ended(why)) => ended = why,
                answered => return answered,
            }
            let again = wall.limit(self.said(server, since)).await;
            again.map_err(late)?.map_err(Unfetched::Failed)?;
        }
        Err(Unfetched::Failed(ended))
    }

    /// Has a server tell when one of its resources changes, until what comes back is dropped.
    pub(super) async fn watch(
        self: &Arc<Self>,
        server: &ServerName,
        uri: &str,
        wall: &Wall,
    ) -> Result<Watched, Unfetched> {
        let late = |_| Unfetched::Failed("it took too long".to_owned());
        let since = self.upstream.readings(server);
        let joined = wall.limit(self.join(server)).await.map_err(late)?;
        joined.map_err(Unfetched::Failed)?;
        // A connection that has ended is made anew.
        let there = wall.limit(self.said(server, since)).await;
        there.map_err(late)?.map_err(Unfetched::Failed)?;
        let watched = self.upstream.watch(server, uri.to_owned(), wall.clone());
        watched.await
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) async fn close(&self) {
        self.upstream.close().await;
    }

    fn gate(&self, server: &ServerName) -> Result<&Mutex<()>, String> {
        let gate = self.gates.get(server).map(|it| &it.listing);
        gate.ok_or_else(|| "no such server is configured".to_owned())
    }

    /// For whoever holds the gate of a server that is not connected.
    async fn connect(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let listed = self.list(server).await?;
        let is_there = listed.failure.is_none();
        self.take(Change::Listed(Box::new(listed))).await;
        if is_there {
            self.let_rest(server);
        }
        match self.state(server) {
            Some(ServerState::Unavailable(why)) => Err(why),
            _ => Ok(()),
        }
    }

    /// A server that is there on demand rests when nobody calls it, also one of which nothing is
    /// offered.
    fn let_rest(self: &Arc<Self>, server: &ServerName) {
        if let Some(on_demand) = self.on_demand.get(server)
            && !on_demand.is_watched.swap(true, Ordering::SeqCst)
        {
            let resting = rest_when_idle(Arc::downgrade(self), server.clone(), on_demand.idle);
            self.runtime.spawn(resting);
        }
    }

    /// For whoever holds the gate of a server that is connected. What cannot be listed now stays
    /// as it was, and nothing leaves on it: its server is said to be unavailable, and tried again.
    async fn list_again(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let listed = self.list(server).await?;
        self.take(Change::Listed(Box::new(listed))).await;
        let Some(ServerState::Unavailable(why)) = self.state(server) else {
            return Ok(());
        };
        if !self.on_demand.contains_key(server) {
            self.try_again(server, RETRY_FIRST);
        }
        Err(why)
    }

    async fn list(&self, server: &ServerName) -> Result<Listed, String> {
        let listed = self.upstream.list(server).await;
        listed.ok_or_else(|| "no such server is configured".to_owned())
    }

    /// Compiling what thousands of tools take is no work for a thread that others wait for.
    async fn take(self: &Arc<Self>, change: Change) {
        let servers = Arc::clone(self);
        let taking = self
            .runtime
            .spawn_blocking(move || servers.shelf.take(change));
        let _ = taking.await;
    }

    fn is_connected(&self, server: &ServerName) -> bool {
        self.state(server) == Some(ServerState::Connected)
    }

    fn state(&self, server: &ServerName) -> Option<ServerState> {
        let known = self.shelf.last().1;
        let status = known.servers.iter().find(|it| *it.name == *server.0)?;
        Some(status.state.clone())
    }
}

/// Whoever listens for changes finds nobody to tell, and ends.
impl Drop for Servers {
    fn drop(&mut self) {
        self.upstream.bell().notify_one();
    }
}

fn not_sent(why: impl Into<String>) -> Reply {
    Reply::NotSent { why: why.into() }
}

/// For the first time after `wait`.
async fn keep_trying(servers: Weak<Servers>, name: ServerName, wait: Duration) {
    sleep(wait).await;
    let mut pause = RETRY_FIRST;
    loop {
        // Not kept while it waits: a broker that is dropped takes its servers with it.
        let Some(joining) = servers.upgrade() else {
            return;
        };
        if joining.join(&name).await.is_ok() && joining.is_tried_enough(&name) {
            return;
        }
        drop(joining);
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_LAST);
    }
}

async fn rest_when_idle(servers: Weak<Servers>, name: ServerName, idle: Duration) {
    let mut wait = idle;
    loop {
        sleep(wait).await;
        let Some(servers) = servers.upgrade() else {
            return;
        };
        if servers.state(&name) == Some(ServerState::OnDemand) {
            return;
        }
        match servers.upstream.idle_for(&name) {
            Some(since) if since >= idle => {
                if servers.rest(&name).await {
                    return;
                }
                wait = idle;
            }
            Some(since) => wait = idle.saturating_sub(since).max(Duration::from_millis(1)),
            None => wait = idle,
        }
    }
}

#[cfg(test)]
mod tests;
