//! All servers of a broker: connected side by side, each failing for itself.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use airlock_core::id::ServerName;
use airlock_core::outcome::Reply;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit, broadcast};

use super::caps::Caps;
use super::child::{self, Alive, Program};
use super::connection::Connection;
use super::diagnostics::{Diagnostics, Report};
use super::era::{Era, EraMemory};
use super::error::ConnectError;
use super::fetch::{Fetch, Fetched, Unfetched};
use super::handshake::Dial;
use super::http::HttpLink;
use super::link::Link;
use super::list::{ListProblem, Listing};
use super::news::{News, Newsroom};
use super::secret::Secret;
use super::server::{Against, Asked, Sent, Server};
use super::spec::{ServerSpec, Transport};
use super::stdio::StdioLink;
use super::wall::Wall;
use super::watching::Watched;
use crate::carrier::Declared;
use crate::config::Secrets;

/// What all servers have in common.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The environment of every child: `PATH` and `HOME`, as a rule. Nothing else is passed on.
    pub base_env: Vec<(String, String)>,
    pub caps: Caps,
    pub eras: EraMemory,
    /// What servers of the older era are told once that can be asked of whoever calls them.
    /// Nobody is connected to before that is known.
    pub abilities: Declared,
}

/// What became of reading one server's list.
#[derive(Debug, Clone)]
pub struct Listed {
    pub server: ServerName,
    /// The descriptions as the server sent them, those left out excepted.
    pub tools: Vec<Value>,
    pub problems: Vec<ListProblem>,
    /// Why there is no tool at all.
    pub failure: Option<ConnectError>,
    pub era: Option<Era>,
    /// The revision agreed on.
    pub version: Option<String>,
    /// What the server says of itself: `name`, `title`, `version`.
    pub server_info: Option<Map<String, Value>>,
    pub instructions: Option<String>,
    /// Which reading of the server's list this is.
    pub(crate) reading: u64,
}

/// The servers. Dropping it ends the children in the background; [`Upstream::close`] waits for it.
#[derive(Default)]
pub struct Upstream {
    servers: BTreeMap<ServerName, Arc<Server>>,
    /// Rung when some server's list is no longer the one that was read.
    bell: Arc<Notify>,
    /// Where they tell of what they have besides tools.
    news: Newsroom,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.servers.keys()).finish()
    }
}

impl Upstream {
    /// Connects to nothing yet.
    #[must_use]
    pub fn new(specs: Vec<ServerSpec>, surroundings: &Surroundings) -> Self {
        let (bell, news) = (Arc::<Notify>::default(), Newsroom::default());
        let configured = |spec| Arc::new(configured(spec, surroundings, (&bell, &news)));
        let servers = specs.into_iter().map(configured).collect();
        Self::of(servers, bell, news)
    }

    /// Connects to all servers at once and reads their tools. Runs on a tokio runtime,
    /// which from then on carries the connections.
    pub async fn connect_all(
        specs: Vec<ServerSpec>,
        surroundings: &Surroundings,
    ) -> (Self, Vec<Listed>) {
        let names: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
        let upstream = Self::new(specs, surroundings);
        let listed = join_all(names.iter().map(|name| upstream.list(name))).await;
        (upstream, listed.into_iter().flatten().collect())
    }

    #[cfg(test)]
    pub(super) fn server(&self, name: &ServerName) -> Arc<Server> {
        self.servers.get(name).unwrap().clone()
    }

    #[cfg(test)]
    pub(crate) fn of_fakes(servers: Vec<Arc<Server>>) -> Self {
        Self::of(servers, Arc::default(), Newsroom::default())
    }

    #[cfg(test)]
    pub(super) async fn connect_servers(servers: Vec<Arc<Server>>) -> (Self, Vec<Listed>) {
        let listed = join_all(servers.iter().map(listed)).await;
        (Self::of_fakes(servers), listed)
    }

    fn of(servers: Vec<Arc<Server>>, bell: Arc<Notify>, news: Newsroom) -> Self {
        let named = |server: Arc<Server>| (server.spec().name.clone(), server);
        Self {
            servers: servers.into_iter().map(named).collect(),
            bell,
            news,
        }
    }

    /// Connects to one server, unless it is connected, and reads its tools.
    pub fn list(&self, server: &ServerName) -> impl Future<Output = Option<Listed>> + Send + use<> {
        let server = self.servers.get(server).cloned();
        async move { Some(listed(&server?).await) }
    }

    /// Rung when some server's list is no longer the one that was read.
    pub(crate) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// What servers tell of besides their tools, from now on.
    pub(crate) fn news(&self) -> broadcast::Receiver<(ServerName, News)> {
        self.news.read()
    }

    /// A server is to say when its prompts or resources are others.
    pub(crate) fn want_lists(&self, server: &ServerName) {
        if let Some(server) = self.servers.get(server) {
            server.watching.want_lists();
        }
    }

    /// Servers that said so, or that were connected to anew since.
    pub(crate) fn outdated(&self) -> Vec<ServerName> {
        let outdated = |server: &&Arc<Server>| server.diagnostics().is_list_outdated();
        let servers = self.servers.values().filter(outdated);
        servers.map(|server| server.spec().name.clone()).collect()
    }

    pub(crate) fn is_outdated(&self, server: &ServerName) -> bool {
        let server = self.servers.get(server);
        server.is_some_and(|it| it.diagnostics().is_list_outdated())
    }

    /// How long nobody has called a server; nothing while somebody does.
    pub(crate) fn idle_for(&self, server: &ServerName) -> Option<Duration> {
        self.servers.get(server)?.idle_for()
    }

    /// Keeps all calls of a server waiting as long as it is held; nothing while somebody calls it.
    pub(crate) fn still(&self, server: &ServerName) -> Option<OwnedSemaphorePermit> {
        self.servers.get(server)?.still()
    }

    /// How often reading a server's list was begun.
    pub(crate) fn readings(&self, server: &ServerName) -> u64 {
        self.servers.get(server).map_or(0, |it| it.readings())
    }

    /// Whether a call may go out now that was held against this reading of the list.
    pub(crate) fn is_current(&self, server: &ServerName, against: Against) -> bool {
        let server = self.servers.get(server);
        server.is_some_and(|it| it.is_current(against))
    }

    /// Ends the connection to a server, and its process, until somebody needs it again.
    pub(crate) fn disconnect(
        &self,
        server: &ServerName,
    ) -> impl Future<Output = ()> + Send + use<> {
        let server = self.servers.get(server).cloned();
        async move {
            if let Some(server) = server {
                server.disconnect().await;
            }
        }
    }

    /// A call with the canonical bytes of its arguments, which are sent as they are. It was held
    /// against a reading of the list, and leaves over the connection of that reading or not at
    /// all. Dropping the future tells the server that nobody waits any more. It must be polled
    /// where the runtime of [`Upstream::connect_all`] is entered.
    pub(crate) fn call_against(
        &self,
        server: &ServerName,
        asked: Arc<Asked>,
        against: Against,
    ) -> impl Future<Output = Sent> + Send + use<> {
        let called = self.servers.get(server).cloned();
        async move {
            match called {
                Some(server) => server.call(&asked, against).await,
                None => Sent::Answered(Reply::NotSent {
                    why: "no such server is configured".to_owned(),
                }),
            }
        }
    }

    pub(crate) fn fetch(
        &self,
        server: &ServerName,
        fetch: Arc<Fetch>,
        wall: Wall,
    ) -> impl Future<Output = Result<Fetched, Unfetched>> + Send + use<> {
        let asked = self.servers.get(server).cloned();
        async move {
            match asked {
                Some(server) => server.fetch(&fetch, &wall).await,
                None => Err(Unfetched::Failed("no such server is configured".to_owned())),
            }
        }
    }

    pub(crate) fn watch(
        &self,
        server: &ServerName,
        uri: String,
        wall: Wall,
    ) -> impl Future<Output = Result<Watched, Unfetched>> + Send + use<> {
        let asked = self.servers.get(server).cloned();
        async move {
            match asked {
                Some(server) => server.watch(&uri, &wall).await,
                None => Err(Unfetched::Failed("no such server is configured".to_owned())),
            }
        }
    }

    /// What a server said beside its answers, its credentials masked.
    #[must_use]
    pub fn diagnostics(&self, server: &ServerName) -> Option<Report> {
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
    surroundings: &Surroundings,
    (bell, news): (&Arc<Notify>, &Newsroom),
) -> Server {
    let secrets = Secrets::new(spec.secrets().iter().map(Secret::expose));
    let diagnostics = Diagnostics::new(secrets).ringing(bell.clone());
    let diagnostics = Arc::new(diagnostics.telling(news.of(&spec.name)));
    let alive = Alive::default();
    let dial = dial(
        spec.clone(),
        surroundings.clone(),
        diagnostics.clone(),
        alive.clone(),
    );
    Server::new(
        spec,
        surroundings.caps,
        surroundings.eras.clone(),
        dial,
        diagnostics,
        alive,
        surroundings.abilities.clone(),
    )
}

fn dial(
    spec: ServerSpec,
    surroundings: Surroundings,
    diagnostics: Arc<Diagnostics>,
    alive: Alive,
) -> Box<Dial> {
    let message_bytes_max = surroundings.caps.message_bytes_max();
    let timeouts = spec.timeouts;
    Box::new(move || match &spec.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let base_env = &surroundings.base_env;
            let program = Program {
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
            timeouts.connect,
            message_bytes_max,
            diagnostics.clone(),
        )
        .map(Link::Http),
    })
}

async fn listed(server: &Arc<Server>) -> Listed {
    let name = server.spec().name.clone();
    match server.list().await {
        Ok((connection, reading, listing)) => Listed {
            reading,
            ..present(name, &connection, listing)
        },
        Err(failure) => Listed {
            server: name,
            tools: Vec::new(),
            problems: Vec::new(),
            failure: Some(failure),
            era: None,
            version: None,
            server_info: None,
            instructions: None,
            reading: 0,
        },
    }
}

fn present(server: ServerName, connection: &Connection, listing: Listing) -> Listed {
    let agreed = &connection.agreed;
    Listed {
        server,
        tools: listing.tools,
        problems: listing.problems,
        failure: None,
        era: Some(agreed.era),
        version: Some(agreed.version.clone()),
        server_info: agreed.server_info.clone(),
        instructions: agreed.instructions.clone(),
        reading: 0,
    }
}
