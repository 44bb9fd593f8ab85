//! All servers of a broker. Servers connect concurrently, and a failure affects only one server.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use airlock_core::id::ServerName;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::{Notify, broadcast};

use super::child::{self, ChildCommand, LiveProcesses};
use super::connection::Connection;
use super::diagnostics::{Diagnostics, DiagnosticsReport};
use super::era::{Era, EraMemory};
use super::error::ConnectError;
use super::groups_and_tags::GroupsAndTags;
use super::handshake::Connect;
use super::http::HttpLink;
use super::link::Link;
use super::list::{ListProblem, Listing};
use super::message_limits::MessageLimits;
use super::notifications::{NotificationHub, ServerNotification};
use super::server::UpstreamServer;
use super::spec::{ServerSpec, Transport};
use super::stdio::StdioLink;
use crate::client_bridge::DeclaredCapabilities;
use crate::secret::Secret;
use crate::secrets::Secrets;

/// Settings that all servers share.
#[derive(Debug, Clone)]
pub struct UpstreamSettings {
    /// The environment of every child, usually `PATH` and `HOME`. Nothing else is inherited.
    pub base_env: Vec<(String, String)>,
    pub message_limits: MessageLimits,
    pub eras: EraMemory,
    /// The client capabilities declared to servers of the older era. No server is connected before
    /// they are known.
    pub abilities: DeclaredCapabilities,
}

/// The result of reading one server's list.
#[derive(Debug, Clone)]
pub struct ServerListing {
    pub server: ServerName,
    /// The descriptions as the server sent them, without the skipped tools.
    pub tools: Vec<Value>,
    pub problems: Vec<ListProblem>,
    /// What the server says about its groups and tags.
    pub groups_and_tags: GroupsAndTags,
    /// The reason why there are no tools.
    pub failure: Option<ConnectError>,
    pub era: Option<Era>,
    /// The protocol version of the connection.
    pub version: Option<String>,
    /// The server's data about itself: `name`, `title`, `version`.
    pub server_info: Option<Map<String, Value>>,
    pub instructions: Option<String>,
    /// The number of this read of the server's list.
    pub(crate) reading: u64,
}

/// All servers. Dropping this value ends the children in the background; [`Upstream::close`] waits
/// until they have ended.
#[derive(Default)]
pub struct Upstream {
    servers: BTreeMap<ServerName, Arc<UpstreamServer>>,
    /// Notified when the list of any server is outdated.
    wake: Arc<Notify>,
    /// Publishes the servers' notifications other than those about tools.
    news: NotificationHub,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.servers.keys()).finish()
    }
}

impl Upstream {
    /// Creates the servers without connecting to them.
    #[must_use]
    pub fn new(specs: Vec<ServerSpec>, surroundings: &UpstreamSettings) -> Self {
        let (wake, news) = (Arc::<Notify>::default(), NotificationHub::default());
        let configured = |spec| Arc::new(configured(spec, surroundings, &wake, &news));
        let servers = specs.into_iter().map(configured).collect();
        Self::from_servers(servers, wake, news)
    }

    /// Connects to all servers at once and reads their tools. Must be called on a tokio runtime,
    /// which then drives the connections.
    pub async fn connect_all(
        specs: Vec<ServerSpec>,
        surroundings: &UpstreamSettings,
    ) -> (Self, Vec<ServerListing>) {
        let names: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
        let upstream = Self::new(specs, surroundings);
        let listed = join_all(names.iter().map(|name| upstream.list(name))).await;
        (upstream, listed.into_iter().flatten().collect())
    }

    pub(crate) fn server(&self, name: &ServerName) -> Option<Arc<UpstreamServer>> {
        self.servers.get(name).cloned()
    }

    #[cfg(test)]
    pub(crate) fn of_fakes(servers: Vec<Arc<UpstreamServer>>) -> Self {
        Self::from_servers(servers, Arc::default(), NotificationHub::default())
    }

    #[cfg(test)]
    pub(super) async fn connect_servers(
        servers: Vec<Arc<UpstreamServer>>,
    ) -> (Self, Vec<ServerListing>) {
        let listed = join_all(servers.iter().map(listed)).await;
        (Self::of_fakes(servers), listed)
    }

    fn from_servers(
        servers: Vec<Arc<UpstreamServer>>,
        wake: Arc<Notify>,
        news: NotificationHub,
    ) -> Self {
        let named = |server: Arc<UpstreamServer>| (server.spec().name.clone(), server);
        Self {
            servers: servers.into_iter().map(named).collect(),
            wake,
            news,
        }
    }

    /// Connects to one server if necessary, and reads its tools.
    pub fn list(
        &self,
        server: &ServerName,
    ) -> impl Future<Output = Option<ServerListing>> + Send + use<> {
        let server = self.servers.get(server).cloned();
        async move { Some(listed(&server?).await) }
    }

    /// Returns a handle that is notified when the list of any server is outdated.
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Subscribes to the servers' notifications other than those about tools.
    pub(crate) fn news(&self) -> broadcast::Receiver<(ServerName, ServerNotification)> {
        self.news.read()
    }

    /// Returns the servers whose list is outdated: since the list was read, they reported a change
    /// or were reconnected.
    pub(crate) fn outdated(&self) -> Vec<ServerName> {
        let outdated = |server: &&Arc<UpstreamServer>| server.is_outdated();
        let servers = self.servers.values().filter(outdated);
        servers.map(|server| server.spec().name.clone()).collect()
    }

    /// Returns the diagnostics of a server, with credentials masked.
    #[must_use]
    pub fn diagnostics(&self, server: &ServerName) -> Option<DiagnosticsReport> {
        Some(self.servers.get(server)?.diagnostics().report())
    }

    /// Ends all sessions and children, and waits until they are gone.
    pub async fn close(&self) {
        join_all(self.servers.values().map(|server| server.close())).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        for server in self.servers.values() {
            server.begin_closing();
        }
    }
}

fn configured(
    spec: ServerSpec,
    surroundings: &UpstreamSettings,
    wake: &Arc<Notify>,
    news: &NotificationHub,
) -> UpstreamServer {
    let secrets = Secrets::new(spec.secrets().iter().map(Secret::expose));
    let diagnostics = Diagnostics::new(secrets).ringing(wake.clone());
    let diagnostics = Arc::new(diagnostics.telling(news.of(&spec.name)));
    let alive = LiveProcesses::default();
    let connect = connector(
        spec.clone(),
        surroundings.clone(),
        diagnostics.clone(),
        alive.clone(),
    );
    UpstreamServer::new(
        spec,
        surroundings.message_limits,
        surroundings.eras.clone(),
        connect,
        diagnostics,
        alive,
        surroundings.abilities.clone(),
    )
}

fn connector(
    spec: ServerSpec,
    surroundings: UpstreamSettings,
    diagnostics: Arc<Diagnostics>,
    alive: LiveProcesses,
) -> Box<Connect> {
    let message_bytes_max = surroundings.message_limits.message_bytes_max();
    let timeouts = spec.timeouts;
    Box::new(move || match &spec.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let base_env = &surroundings.base_env;
            let program = ChildCommand {
                command,
                args,
                base_env,
                env,
                cwd: cwd.as_deref(),
            };
            let started = child::start(program)?;
            let link = StdioLink::over_child(
                started,
                &alive,
                timeouts.close_grace,
                message_bytes_max,
                diagnostics.clone(),
            );
            Ok(Link::Stdio(link))
        }
        Transport::Http { url, headers } => HttpLink::new(
            url,
            headers,
            spec.login.clone(),
            timeouts.connect,
            message_bytes_max,
            diagnostics.clone(),
        )
        .map(Link::Http),
    })
}

async fn listed(server: &Arc<UpstreamServer>) -> ServerListing {
    let name = server.spec().name.clone();
    match server.list().await {
        Ok((connection, reading, listing)) => ServerListing {
            reading,
            ..present(name, &connection, listing)
        },
        Err(failure) => ServerListing {
            server: name,
            tools: Vec::new(),
            problems: Vec::new(),
            groups_and_tags: GroupsAndTags::default(),
            failure: Some(failure),
            era: None,
            version: None,
            server_info: None,
            instructions: None,
            reading: 0,
        },
    }
}

fn present(server: ServerName, connection: &Connection, listing: Listing) -> ServerListing {
    let negotiated = &connection.negotiated;
    ServerListing {
        server,
        tools: listing.tools,
        problems: listing.problems,
        groups_and_tags: listing.groups_and_tags,
        failure: None,
        era: Some(negotiated.era),
        version: Some(negotiated.version.clone()),
        server_info: negotiated.server_info.clone(),
        instructions: negotiated.instructions.clone(),
        reading: 0,
    }
}
