//! The MCP server that agent hosts connect to. It offers a few tools of airlock's own. Through
//! these tools, hosts call the tools of all servers. A tool's full description is disclosed only
//! when a host needs the tool.
//!
//! No other module communicates with hosts. Each call is decided by the same code as the calls of
//! all other runs.

mod binaries;
mod client_request;
mod content_blocks;
mod context;
mod disclosure;
mod followed_run;
mod host_approver;
mod host_limits;
mod http;
mod idle;
mod list_reads;
mod listed_schema;
mod listen;
mod logging;
mod method;
mod notifications;
mod offer;
mod own_tools;
mod passthrough;
mod paused_runs;
mod peer;
mod progress;
mod prompt;
mod replay_buffer;
mod request;
mod resources;
mod result_store;
mod resumed_runs;
mod router;
mod rpc;
mod run_description;
mod run_text;
mod sampling;
mod seal;
mod server_requests;
mod server_wait;
mod session;
mod sessions;
mod settings;
mod shown_list;
mod shutdown;
mod stdio;
mod subscriptions;

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::broker::Broker;
use crate::broker::tool_index::ToolIndex;
use crate::client_bridge::DeclaredCapabilities;
use crate::private_file::StateDir;
use context::{ServeContext, ServedTools};
use stdio::DrainTimeouts;

pub(crate) use http::MakeServer;
pub use http::{AccessGuard, BadOauth, InvalidToken, OauthSettings, ResourceServer, url};
pub use prompt::text as system_prompt;
pub use seal::SealKeyError;
pub use settings::{ConnectionLimits, Disclosure, ListMode, ServeSettings, message_bytes_max};

/// A broker, offered as an MCP server. Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub struct McpServer {
    context: ServeContext,
    tools: Arc<watch::Sender<Option<Arc<ServedTools>>>>,
    settings: ServeSettings,
    /// The tasks that follow the broker. They end with the last clone of the server.
    following: Arc<Following>,
}

#[derive(Debug, Default)]
struct Following(Mutex<Vec<AbortHandle>>);

impl Following {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(task).abort_handle();
        let tasks = self.0.lock();
        tasks.unwrap_or_else(PoisonError::into_inner).push(task);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let tasks = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl McpServer {
    /// Creates a server without a broker. Hosts can connect at once; requests that need the broker
    /// wait for [`Self::ready`]. Sessions are stored in the state directory, which has to be the
    /// broker's.
    pub fn new(settings: ServeSettings, state: StateDir) -> Result<Self, SealKeyError> {
        let (tools, watched) = watch::channel(None);
        Ok(Self {
            context: ServeContext::new(watched, settings.clone(), state)?,
            tools: Arc::new(tools),
            settings,
            following: Arc::default(),
        })
    }

    /// Returns the client capabilities to declare to servers, for
    /// [`Builder::declared`](crate::Builder). They are known once the first host has sent its
    /// capabilities, or once [`Self::http`] is called.
    #[must_use]
    pub fn declared(&self) -> DeclaredCapabilities {
        self.context.declared()
    }

    /// Starts serving this broker. Must be called inside a tokio runtime; tasks spawned there
    /// follow the broker's changes.
    pub fn ready(&self, broker: Broker) {
        let changes = broker.changes();
        let following = &self.following;
        following.spawn(subscriptions::follow(broker.clone(), self.context.clone()));
        following.spawn(idle::return_memory(broker.clone()));
        if broker.has_tool_files() {
            following.spawn(look_at_tool_files(broker.clone()));
        }
        let index = ToolIndex::new(broker, self.settings.declare_limit());
        let list = own_tools::changing(&index, &self.settings);
        self.tools
            .send_replace(Some(Arc::new(ServedTools::new(index, list))));
        let tools = Arc::downgrade(&self.tools);
        tokio::spawn(follow(changes, tools, self.settings.clone()));
    }

    /// Ends all runs and all connections. [`Self::over`] and [`Self::http`] return after the hosts
    /// have received the results of their runs.
    pub fn end(&self, why: &str) {
        self.context.ending().begin(why);
    }

    /// Serves one host over stdin and stdout until the host disconnects.
    pub async fn stdio(&self) -> io::Result<()> {
        self.over(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves one host over any pair of line-based streams.
    pub async fn over(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        stdio::serve(
            self.context.clone(),
            input,
            output,
            DrainTimeouts::default(),
        )
        .await
    }

    /// Serves any number of hosts over streamable HTTP, until the returned future is dropped.
    pub async fn http(&self, listener: TcpListener, gate: AccessGuard) -> io::Result<()> {
        // Over HTTP, the hosts' capabilities are not known in advance, so all permitted
        // capabilities are declared. If a host lacks one, a server that needs it during a call gets
        // an error.
        self.context.declare(self.settings.pass);
        http::serve(self.context.clone(), listener, gate, None).await
    }

    /// Serves any number of hosts over streamable HTTP, with a server of its own for each caller.
    /// This server needs no broker, and [`Self::end`] ends those of the callers too.
    pub(crate) async fn http_for_callers(
        &self,
        listener: TcpListener,
        gate: AccessGuard,
        make: Arc<MakeServer>,
    ) -> io::Result<()> {
        http::serve(self.context.clone(), listener, gate, Some(make)).await
    }
}

/// How often airlock looks for changed tool files, so that hosts learn of a change without a request.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks for changed tool files. A change is published like one of a server. Never returns.
async fn look_at_tool_files(broker: Broker) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let broker = broker.clone();
        let _ = tokio::task::spawn_blocking(move || broker.known()).await;
    }
}

/// Publishes a new set of tools whenever a server has joined or changed.
async fn follow(
    mut changes: watch::Receiver<u64>,
    tools: Weak<watch::Sender<Option<Arc<ServedTools>>>>,
    settings: ServeSettings,
) {
    while changes.changed().await.is_ok() {
        let before = tools.upgrade().and_then(|tools| tools.borrow().clone());
        let Some(before) = before else {
            return;
        };
        let settings = settings.clone();
        let making = tokio::task::spawn_blocking(move || renewed(&before, &settings));
        if let (Ok(made), Some(tools)) = (making.await, tools.upgrade()) {
            tools.send_replace(Some(Arc::new(made)));
        }
    }
}

/// Returns the tools after a change, and reuses everything that has not changed.
fn renewed(before: &ServedTools, settings: &ServeSettings) -> ServedTools {
    let index = before.index.renewed(settings.declare_limit());
    if index.has_tools_of(&before.index) {
        return before.with_index(index);
    }
    let list = own_tools::changing(&index, settings);
    ServedTools::new(index, list)
}

#[cfg(test)]
mod tests;
