//! Manages the servers of a broker: connects to them, lists their tools again after a change, and
//! disconnects idle ones.

mod list_changed;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use airlock_core::code::Code;
use airlock_core::decide::CallParts;
use airlock_core::id::{ServerName, ToolId};
use airlock_core::outcome::Reply;
use codegen::tool_file_format::RateLimit;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::CallContext;
use super::latest_listings::ListedDigests;
use super::login_tool;
use super::rate_limits::RateLimits;
use super::registry::ToolRegistry;
use super::server_registry::ServerChange;
use super::status::ServerState;
use crate::deadline::Deadline;
use crate::login::ServerLogin;
use crate::upstream::fetch::{Fetch, FetchError, FetchResponse};
use crate::upstream::subscriptions::ResourceSubscription;
use crate::upstream::{CallRevision, SendOutcome, ServerListing, ToolCall, Upstream};
use list_changed::listen;

/// The first and the last pause before another attempt to connect to a server or to list its tools.
/// The pause doubles with each attempt.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LAST: Duration = Duration::from_secs(300);
/// The pause before connecting to a server whose tools are known from an earlier start. It lets
/// airlock answer the first requests before it starts a dozen processes.
const REMEMBERED_PAUSE: Duration = Duration::from_millis(30);
/// Maximum number of attempts per call. While a call waits, its connection may end and its server
/// may change.
const TRIES_MAX: usize = 4;

const NO_SUCH_SERVER: &str = "no such server is configured";

pub(crate) struct Servers {
    upstream: Upstream,
    pub(super) registry: ToolRegistry,
    on_demand: HashMap<ServerName, OnDemand>,
    gates: HashMap<ServerName, ListLock>,
    rate_limits: RateLimits,
    runtime: Handle,
}

#[derive(Default)]
struct ListLock {
    /// Held by the task that lists the server. A task that has waited for this lock finds a
    /// completed list.
    listing: Mutex<()>,
    /// Whether a task is already retrying to reach the server.
    is_tried: AtomicBool,
}

/// A server that is disconnected after `idle` without a call.
struct OnDemand {
    idle: Duration,
    /// Whether a task is already waiting for the server to become idle.
    is_watched: AtomicBool,
}

impl Servers {
    pub(super) fn new(
        upstream: Upstream,
        registry: ToolRegistry,
        idle: impl Iterator<Item = (ServerName, Option<Duration>)>,
        runtime: Handle,
    ) -> Arc<Self> {
        let mut servers = Self {
            upstream,
            registry,
            on_demand: HashMap::new(),
            gates: HashMap::new(),
            rate_limits: RateLimits::default(),
            runtime,
        };
        for (name, idle) in idle {
            servers.gates.insert(name.clone(), ListLock::default());
            let is_watched = AtomicBool::new(false);
            let on_demand = idle.map(|idle| OnDemand { idle, is_watched });
            servers.on_demand.extend(on_demand.map(|it| (name, it)));
        }
        let servers = Arc::new(servers);
        let hearing = listen(Arc::downgrade(&servers), servers.upstream.wake());
        servers.runtime.spawn(hearing);
        servers
    }

    /// Connects to all servers that are not on demand, without waiting for them.
    pub(super) fn start(self: &Arc<Self>) {
        let known = self.registry.last().1;
        for status in known.servers.iter().filter(|it| !it.is_on_demand) {
            let pause = if status.tools.is_some() {
                REMEMBERED_PAUSE
            } else {
                Duration::ZERO
            };
            self.try_again(&ServerName(status.name.as_str().into()), pause);
        }
    }

    /// Connects to a server after a pause, and retries until it succeeds. Only one task retries per
    /// server.
    fn try_again(self: &Arc<Self>, server: &ServerName, pause: Duration) {
        let gate = self.gates.get(server);
        if gate.is_some_and(|it| !it.is_tried.swap(true, Ordering::SeqCst)) {
            let trying = keep_trying(Arc::downgrade(self), server.clone(), pause);
            self.runtime.spawn(trying);
        }
    }

    /// Ends the retries. Returns false if the server was disconnected again in the meantime and no
    /// other task retries.
    fn is_tried_enough(&self, server: &ServerName) -> bool {
        let Some(gate) = self.gates.get(server) else {
            return true;
        };
        gate.is_tried.store(false, Ordering::SeqCst);
        self.is_connected(server) || gate.is_tried.swap(true, Ordering::SeqCst)
    }

    /// Connects to a server and reads its tools, unless it is connected. Concurrent callers share
    /// one attempt. The error is the reason for the failure.
    pub(super) async fn join(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let _held = self.gate(server)?.lock().await;
        if self.is_connected(server) {
            return Ok(());
        }
        self.connect(server).await
    }

    /// Performs an authorized call. The call is sent only over a connection on which the server has
    /// described the tool exactly as the decision assumed. If necessary, this function first
    /// connects and reads the list.
    pub(super) async fn call(self: Arc<Self>, call: CallParts, call_context: CallContext) -> Reply {
        let (server, origin) = (&call.tool.server, call_context.origin);
        let deadline = origin.deadline.clone();
        let Some(upstream) = self.upstream.server(server) else {
            return not_sent(NO_SUCH_SERVER);
        };
        if let Some(limit) = self.rate_limit(&call.tool) {
            let admitted = self.rate_limits.admit(&call.tool, &limit);
            match deadline.limit(admitted).await {
                Ok(Ok(())) => {}
                Ok(Err(reached)) => return limited(reached.to_string()),
                Err(_) => {
                    return limited("the tool's rate limit leaves no time for the call".into());
                }
            }
        }
        let since = upstream.readings();
        let asked = ToolCall {
            tool: call.tool.tool.0.to_string(),
            arguments: call.args.bytes().to_vec(),
            trace: call_context.trace,
            origin: Some(origin.clone()),
            deadline: deadline.clone(),
        };
        let mut reply = not_sent("the server's connections end before the call can be sent");
        let mut has_logged_in = false;
        for _ in 0..TRIES_MAX {
            let said = match deadline.limit(self.said(server, since)).await {
                Ok(Ok(said)) => said,
                Ok(Err(why)) if has_logged_in => return not_sent(why),
                Ok(Err(why)) => match upstream.log_in_to_connect(&origin).await {
                    None => return not_sent(why),
                    Some(Err(reply)) => return reply,
                    Some(Ok(())) => {
                        has_logged_in = true;
                        continue;
                    }
                },
                Err(_) => return not_sent("the server is still starting"),
            };
            if login_tool::is_called(&call) {
                return login_tool::reply();
            }
            if said.digest(&call.tool.tool) != Some(call.upstream_digest) {
                return Reply::Changed;
            }
            if has_logged_in && origin.is_ending() {
                return not_sent("the run is ending");
            }
            let reading = said.reading;
            let against = CallRevision { reading, since };
            match Arc::clone(&upstream).call(&asked, against).await {
                SendOutcome::Answered(reply) => return reply,
                SendOutcome::Ended(last) => reply = last,
                SendOutcome::Unread => {}
            }
        }
        reply
    }

    /// Returns the rate limit that a tool file or the server declares.
    fn rate_limit(&self, tool: &ToolId) -> Option<RateLimit> {
        let known = self.registry.last().1;
        let metadata = known.description(tool)?.metadata.clone()?;
        metadata.rate_limit.clone()
    }

    /// Returns the tool list of a server over its current connection. A list that may be outdated
    /// is read again, unless its reading began after `since`.
    async fn said(
        self: &Arc<Self>,
        server: &ServerName,
        since: u64,
    ) -> Result<ListedDigests, String> {
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
        let said = self.registry.says(server);
        said.ok_or_else(|| "the server's tools could not be loaded".to_owned())
    }

    fn current(&self, server: &ServerName, since: u64) -> Option<ListedDigests> {
        let said = self.registry.says(server)?;
        let reading = said.reading;
        let revision = CallRevision { reading, since };
        let is_current =
            self.is_connected(server) && self.upstream.server(server)?.is_current(revision);
        is_current.then_some(said)
    }

    /// Ends the connection to an on-demand server, unless a call is in progress. A call that
    /// arrives meanwhile waits for the end, and starts the server again.
    pub(super) async fn rest(self: &Arc<Self>, server: &ServerName) -> bool {
        let Ok(gate) = self.gate(server) else {
            return false;
        };
        let _held = gate.lock().await;
        let Some(on_demand) = self.on_demand.get(server) else {
            return false;
        };
        let Some(upstream) = self.upstream.server(server) else {
            return false;
        };
        let Some(_still) = upstream.still() else {
            return false;
        };
        // From here on, the next connection starts watching for idleness again.
        on_demand.is_watched.store(false, Ordering::SeqCst);
        self.take(ServerChange::Rests(server.clone())).await;
        upstream.disconnect().await;
        true
    }

    /// Reads the tools of a server again if they may have changed. Returns true if the list is then
    /// up to date.
    pub(super) async fn catch_up(self: &Arc<Self>, server: &ServerName) -> bool {
        let Ok(gate) = self.gate(server) else {
            return true;
        };
        let _held = gate.lock().await;
        let is_behind = self.is_connected(server)
            && self
                .upstream
                .server(server)
                .is_some_and(|it| it.is_outdated());
        !is_behind || self.list_again(server).await.is_ok()
    }

    /// Returns the servers that are connected and may have changed since their tools were read.
    pub(super) fn outdated(&self) -> Vec<ServerName> {
        let outdated = self.upstream.outdated().into_iter();
        outdated.filter(|it| self.is_connected(it)).collect()
    }

    /// Fetches something other than tools from a server. A fetch changes nothing, so it is repeated
    /// if a connection has ended. As for a call, the gate is not held while the request is sent.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        server: &ServerName,
        fetch: Fetch,
        deadline: &Deadline,
    ) -> Result<FetchResponse, FetchError> {
        let late = |_| FetchError::Failed("the request took too long".to_owned());
        let upstream = self.upstream.server(server);
        let upstream = upstream.ok_or_else(|| FetchError::Failed(NO_SUCH_SERVER.to_owned()))?;
        let since = upstream.readings();
        let joined = deadline.limit(self.join(server)).await.map_err(late)?;
        joined.map_err(FetchError::Failed)?;
        let mut ended = String::new();
        for _ in 0..TRIES_MAX {
            match upstream.fetch(&fetch, deadline).await {
                Err(FetchError::Ended(why)) => ended = why,
                answered => return answered,
            }
            let again = deadline.limit(self.said(server, since)).await;
            again.map_err(late)?.map_err(FetchError::Failed)?;
        }
        Err(FetchError::Failed(ended))
    }

    /// Subscribes to changes of a resource, until the result is dropped.
    pub(super) async fn watch(
        self: &Arc<Self>,
        server: &ServerName,
        uri: &str,
        deadline: &Deadline,
    ) -> Result<ResourceSubscription, FetchError> {
        let late = |_| FetchError::Failed("the request took too long".to_owned());
        let upstream = self.upstream.server(server);
        let upstream = upstream.ok_or_else(|| FetchError::Failed(NO_SUCH_SERVER.to_owned()))?;
        let since = upstream.readings();
        let joined = deadline.limit(self.join(server)).await.map_err(late)?;
        joined.map_err(FetchError::Failed)?;
        // A connection that has ended is replaced.
        let there = deadline.limit(self.said(server, since)).await;
        there.map_err(late)?.map_err(FetchError::Failed)?;
        upstream.watch(uri, deadline).await
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
        gate.ok_or_else(|| NO_SUCH_SERVER.to_owned())
    }

    /// Connects to a server. The caller holds the gate of the server, which is not connected.
    async fn connect(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let listed = self.list(server).await?;
        let is_there = listed.failure.is_none();
        self.take(ServerChange::Listed(Box::new(listed))).await;
        if is_there {
            self.let_rest(server);
        }
        match self.state(server) {
            Some(ServerState::Unavailable(why)) => Err(why),
            _ => Ok(()),
        }
    }

    /// Starts watching an on-demand server for idleness, even if it offers no tool.
    fn let_rest(self: &Arc<Self>, server: &ServerName) {
        if let Some(on_demand) = self.on_demand.get(server)
            && !on_demand.is_watched.swap(true, Ordering::SeqCst)
        {
            let resting = rest_when_idle(Arc::downgrade(self), server.clone(), on_demand.idle);
            self.runtime.spawn(resting);
        }
    }

    /// Lists the tools of a connected server again. The caller holds the gate of the server. If
    /// that fails, the known tools stay but cannot be called: the server becomes unavailable and is
    /// retried.
    async fn list_again(self: &Arc<Self>, server: &ServerName) -> Result<(), String> {
        let listed = self.list(server).await?;
        self.take(ServerChange::Listed(Box::new(listed))).await;
        let Some(ServerState::Unavailable(why)) = self.state(server) else {
            return Ok(());
        };
        if !self.on_demand.contains_key(server) {
            self.try_again(server, RETRY_FIRST);
        }
        Err(why)
    }

    async fn list(&self, server: &ServerName) -> Result<ServerListing, String> {
        let listed = self.upstream.list(server).await;
        listed.ok_or_else(|| "no such server is configured".to_owned())
    }

    /// Applies a change on a blocking thread, because compiling the schemas of thousands of tools
    /// takes long.
    async fn take(self: &Arc<Self>, change: ServerChange) {
        let servers = Arc::clone(self);
        let taking = self
            .runtime
            .spawn_blocking(move || servers.registry.take(change));
        let _ = taking.await;
    }

    fn is_connected(&self, server: &ServerName) -> bool {
        self.state(server) == Some(ServerState::Connected)
    }

    fn state(&self, server: &ServerName) -> Option<ServerState> {
        let known = self.registry.last().1;
        let status = known.servers.iter().find(|it| *it.name == *server.0)?;
        Some(status.state.clone())
    }
}

/// Wakes the listener for changes, which then ends because the servers are gone.
impl Drop for Servers {
    fn drop(&mut self) {
        self.upstream.wake().notify_one();
    }
}

/// The reply for a call that the tool's rate limit holds back. The script gets the reason.
fn limited(message: String) -> Reply {
    Reply::Failed {
        code: Code::ServerUnavailable,
        message,
        left: false,
    }
}

fn not_sent(why: impl Into<String>) -> Reply {
    Reply::NotSent { why: why.into() }
}

/// Retries to connect to a server. The first attempt comes after `wait`.
async fn keep_trying(servers: Weak<Servers>, name: ServerName, wait: Duration) {
    sleep(wait).await;
    let mut pause = RETRY_FIRST;
    loop {
        // No strong reference is kept while waiting, so that dropping the broker drops its servers.
        let Some(joining) = servers.upgrade() else {
            return;
        };
        let server = joining.upstream.server(&name);
        let login = server.and_then(|it| it.spec().login.clone());
        let version = || login.as_ref().and_then(ServerLogin::version);
        let before = version();
        if joining.join(&name).await.is_ok() && joining.is_tried_enough(&name) {
            return;
        }
        drop(joining);
        match &login {
            None => sleep(pause).await,
            // After a login, which can be made in another process, the next attempt comes at once.
            Some(_) => sleep_until_change(pause, || version() != before).await,
        }
        pause = (pause * 2).min(RETRY_LAST);
    }
}

/// Sleeps until a change, and no longer than `pause`. A change that has already happened is noticed
/// after the first step, so that attempts never follow each other without a pause.
async fn sleep_until_change(pause: Duration, is_changed: impl Fn() -> bool) {
    const LOOK_AGAIN: Duration = Duration::from_secs(1);
    let mut left = pause;
    while !left.is_zero() {
        let step = left.min(LOOK_AGAIN);
        sleep(step).await;
        left -= step;
        if is_changed() {
            return;
        }
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
        let upstream = servers.upstream.server(&name);
        match upstream.and_then(|it| it.idle_for()) {
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
