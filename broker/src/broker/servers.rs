//! The servers of a broker over its whole life: they join when they are there,
//! are listed again when they say so, and rest when nobody needs them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use airlock_core::decide::CallParts;
use airlock_core::id::{Digest, ServerName, ToolId};
use airlock_core::outcome::Reply;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify};
use tokio::time::sleep;

use super::Along;
use super::roster::Change;
use super::shelf::Shelf;
use super::status::ServerState;
use crate::upstream::{Surrounded, Upstream};

/// A server that says all the time that it has changed is listed no more often.
const LIST_PAUSE: Duration = Duration::from_millis(500);
/// A server that could not be connected to is tried again, later and later.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LAST: Duration = Duration::from_secs(300);

pub(crate) struct Servers {
    upstream: Upstream,
    pub(super) shelf: Shelf,
    on_demand: HashMap<ServerName, Duration>,
    /// Whoever lists a server holds its gate; the others find it done.
    gates: HashMap<ServerName, Mutex<()>>,
    runtime: Handle,
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
            servers.gates.insert(name.clone(), Mutex::default());
            servers.on_demand.extend(idle.map(|idle| (name, idle)));
        }
        let servers = Arc::new(servers);
        let hearing = hear(Arc::downgrade(&servers), servers.upstream.bell());
        servers.runtime.spawn(hearing);
        servers
    }

    /// Connects to all that are not left for later, and waits for none of them.
    pub(super) fn start(self: &Arc<Self>) {
        for name in self.gates.keys() {
            if !self.on_demand.contains_key(name) {
                let starting = keep_trying(Arc::downgrade(self), name.clone());
                self.runtime.spawn(starting);
            }
        }
    }

    /// Connects to a server and reads its tools, unless that was done; done once, however many
    /// wait for it. An error says why it cannot be.
    pub(super) async fn join(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let Some(gate) = self.gates.get(server) else {
            return Err("no such server is configured".to_owned());
        };
        let _held = gate.lock().await;
        if self.is_connected(server) {
            return Ok(());
        }
        self.list(server).await?;
        if let Some(idle) = self.on_demand.get(server) {
            let resting = rest_when_idle(Arc::downgrade(self), server.clone(), *idle);
            self.runtime.spawn(resting);
        }
        Ok(())
    }

    /// A call that was decided. Its server is connected to when that is needed first. It leaves
    /// only when the server still describes the tool as the call was decided with.
    pub(super) async fn call(self: Arc<Self>, call: CallParts, along: Along) -> Reply {
        let not_sent = |why: String| Reply::NotSent { why };
        let (server, wall) = (call.tool.server.clone(), along.behind.wall.clone());
        if !self.is_connected(&server) {
            match wall.limit(self.join(&server)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => return not_sent(why),
                Err(_) => return not_sent("the server is still starting".to_owned()),
            }
        }
        if self.digest(&call.tool) != Some(call.upstream_digest) {
            return Reply::Changed;
        }
        let args = call.args.bytes().to_vec();
        let surrounded = Surrounded {
            trace: along.trace,
            behind: Some(along.behind),
        };
        self.upstream
            .call_in(&server, &call.tool.tool, args, (surrounded, wall))
            .await
    }

    /// Ends the connection to a server that is there on demand, unless somebody calls it.
    pub(super) async fn rest(self: &Arc<Self>, server: &ServerName) -> bool {
        let Some(gate) = self.gates.get(server) else {
            return false;
        };
        let _held = gate.lock().await;
        if !self.on_demand.contains_key(server) || self.upstream.idle_for(server).is_none() {
            return false;
        }
        self.take(Change::Rests(server.clone())).await;
        self.upstream.disconnect(server).await;
        true
    }

    pub(super) async fn close(&self) {
        self.upstream.close().await;
    }

    async fn list(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let Some(listed) = self.upstream.list(server).await else {
            return Err("no such server is configured".to_owned());
        };
        self.take(Change::Listed(Box::new(listed))).await;
        match self.state(server) {
            Some(ServerState::Unavailable(why)) => Err(why),
            _ => Ok(()),
        }
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

    fn digest(&self, tool: &ToolId) -> Option<Digest> {
        let known = self.shelf.last().1;
        let tool = known.standing.catalog.find(tool)?;
        Some(tool.upstream_digest)
    }
}

/// Whoever listens for changes finds nobody to tell, and ends.
impl Drop for Servers {
    fn drop(&mut self) {
        self.upstream.bell().notify_one();
    }
}

/// Lists servers anew that say that they have changed.
async fn hear(servers: Weak<Servers>, bell: Arc<Notify>) {
    loop {
        bell.notified().await;
        let Some(servers) = servers.upgrade() else {
            return;
        };
        for name in servers.upstream.outdated() {
            let servers = Arc::clone(&servers);
            servers.runtime.clone().spawn(async move {
                if let Some(gate) = servers.gates.get(&name) {
                    let _held = gate.lock().await;
                    // What cannot be listed now stays as it was.
                    if servers.is_connected(&name) && servers.is_outdated(&name) {
                        let _ = servers.list_again(&name).await;
                    }
                }
            });
        }
        drop(servers);
        sleep(LIST_PAUSE).await;
    }
}

impl Servers {
    fn is_outdated(&self, server: &ServerName) -> bool {
        self.upstream.outdated().contains(server)
    }

    async fn list_again(self: &Arc<Self>, server: &ServerName) -> Option<()> {
        let listed = self.upstream.list(server).await?;
        if listed.failure.is_none() {
            self.take(Change::Listed(Box::new(listed))).await;
        }
        Some(())
    }
}

async fn keep_trying(servers: Weak<Servers>, name: ServerName) {
    let mut pause = RETRY_FIRST;
    loop {
        // Not kept while it waits: a broker that is dropped takes its servers with it.
        let Some(joining) = servers.upgrade() else {
            return;
        };
        if joining.join(&name).await.is_ok() {
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
        if !servers.is_connected(&name) {
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
