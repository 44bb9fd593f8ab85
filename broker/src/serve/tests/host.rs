//! A test host. It supports both eras over both transports, and collects the messages it receives
//! between its requests.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::shared_state::SharedState;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::wire::{fetch, post_and_hear};
use crate::broker::{Broker, Builder, InProcessTool, ToolFailure};
use crate::config::ServerConfig;
use crate::private_file::StateDir;
use crate::serve::stdio::{self, DrainTimeouts};
use crate::serve::{AccessGuard, McpServer, ServeSettings, rpc, sessions};
use crate::tempdir::TempDir;
use crate::upstream::Era;
use crate::upstream::era::MODERN_VERSION;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostTransport {
    Streams,
    Http,
}

/// The era and the transport of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostKind {
    pub(super) era: Era,
    pub(super) over: HostTransport,
    /// Whether the host sends the session handle that it has received. Hosts of the newer era need
    /// not know the handle, and hosts of the older era get none.
    pub(super) echoes_handle: bool,
}

impl HostKind {
    pub(super) fn without_echo(self) -> Self {
        Self {
            echoes_handle: false,
            ..self
        }
    }
}

impl fmt::Display for HostKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {:?}", self.era, self.over)
    }
}

pub(super) struct Host {
    way: HostKind,
    /// The name of the client.
    name: String,
    capabilities: Value,
    line: Line,
    heard: mpsc::UnboundedReceiver<Value>,
    latest: u64,
    /// The session handle that was last received.
    pub(super) handle: Option<Value>,
    pub(super) told: VecDeque<Value>,
    /// Requests in progress over HTTP. Aborting one closes its connection.
    pub(super) posts: BTreeMap<u64, tokio::task::AbortHandle>,
    _scratch: Arc<TempDir>,
}

enum Line {
    Streams(DuplexStream),
    Http {
        address: SocketAddr,
        heard: mpsc::UnboundedSender<Value>,
        /// The session id of the older era.
        session: Arc<Mutex<Option<String>>>,
    },
}

/// The server that all hosts of a test connect to.
pub(super) struct TestServer {
    serve: McpServer,
    address: SocketAddr,
    scratch: Arc<TempDir>,
}

pub(super) fn tool<F, Fut>(server: &str, name: &str, text: &str, function: F) -> InProcessTool
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, ToolFailure>> + 'static,
{
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "Any text"}},
        "additionalProperties": false,
    });
    let description = json!({"name": name, "description": text, "inputSchema": schema});
    InProcessTool::new(server, description, function)
}

/// A description with invisible characters.
const WAITS: &str = "Waits \u{200b}for ever\u{1b}. \u{202e}Really.";
/// Time limit that is long enough on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(600);
/// The folder of a test's tool files.
const FILES: &str = "tool_descriptions";

/// Builds a broker with a few tools. `word.secret` is denied; `word.ask` needs approval.
async fn broker(scratch: &TempDir) -> Broker {
    let echo = async |args: Value| Ok(args);
    let never = async |_| std::future::pending::<Result<Value, ToolFailure>>().await;
    let upper = async |args: Value| {
        let text = args["text"].as_str().unwrap_or_default().to_uppercase();
        Ok(json!({"text": text}))
    };
    let polite = "Gives its arguments back. It is polite.";
    let files = scratch.path().join(FILES);
    let builder = if files.exists() {
        Broker::builder().descriptions(files)
    } else {
        Broker::builder()
    };
    builder
        .state_dir(scratch.path())
        .discovery(true)
        .extraction_by_context()
        .approver(crate::approver::NeverApprover)
        .allow("*.*")
        .and_then(|it| it.ask("word.ask"))
        .and_then(|it| it.deny("word.secret"))
        .unwrap()
        .tool(tool("word", "echo", polite, echo))
        .tool(tool("word", "to-upper", "Makes text upper case.", upper))
        .tool(tool("word", "fail", "Always fails.", async |_| {
            Err::<Value, _>(ToolFailure::new("no luck"))
        }))
        .tool(tool("word", "ask", "Is asked about.", echo))
        .tool(tool("word", "secret", "Is never called.", echo))
        .tool(tool("clock", "wait", WAITS, never))
        .build()
        .await
        .unwrap()
}

fn describe(scratch: &TempDir, tool: &str, file: &Value) {
    let path = scratch.path().join(FILES).join(format!("{tool}.json"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, file.to_string()).unwrap();
}

/// Copies a folder with everything in it, and with the modes of its files and folders.
fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_files(&entry.path(), &target);
            std::fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

impl TestServer {
    pub(super) async fn open(settings: ServeSettings) -> Self {
        Self::open_in(TempDir::new(), settings).await
    }

    /// Opens a server with tool files for two of the tools.
    pub(super) async fn described(settings: ServeSettings) -> Self {
        let scratch = TempDir::new();
        let echo = json!({
            "name": "echo",
            "version": "1.0.0",
            "groups": ["trying"],
            "tags": ["stable"],
            "examples": [{"description": "A word", "input": {"text": "hello"}}],
            "usage_guidance": {"common_patterns": ["It is only to try things"]},
            "error_guidance": {"common_errors": [{"error": "none", "solution": "It never fails"}]},
        });
        let wait = json!({"name": "wait", "groups": ["trying"], "tags": ["slow", "stable"]});
        describe(&scratch, "word/echo", &echo);
        describe(&scratch, "clock/wait", &wait);
        Self::open_in(scratch, settings).await
    }

    /// Replaces the tool file of a tool of `word`.
    pub(super) fn describe(&self, tool: &str, file: &Value) {
        describe(&self.scratch, &format!("word/{tool}"), file);
    }

    /// Changes the list of tools.
    pub(super) async fn change(&self) {
        self.describe("echo", &json!({"name": "echo", "groups": ["changed"]}));
        self.renew().await;
    }

    /// Loads the changed tool files.
    pub(super) async fn renew(&self) {
        self.serve.ready(broker(&self.scratch).await);
    }

    /// Serves one host over a pair of streams until they end.
    pub(super) async fn over(
        &self,
        (input, output): (DuplexStream, DuplexStream),
        parting: DrainTimeouts,
    ) -> io::Result<()> {
        stdio::serve(self.serve.context.clone(), input, output, parting).await
    }

    /// Ends serving, for all hosts.
    pub(super) fn end(&self) {
        self.serve.end("enough");
    }

    /// Starts the server again with another broker in the same folder.
    pub(super) async fn restart(&mut self, builder: Builder) {
        self.end();
        *self = self.second(builder).await;
    }

    /// Starts a second server in the same folder, which the first one knows nothing of.
    pub(super) async fn second(&self, builder: Builder) -> Self {
        self.beside(builder, Arc::clone(&self.scratch)).await
    }

    /// Starts a server on a copy of the folder. The copy has what a killed process would leave: the
    /// runs of this server are not alive there.
    pub(super) async fn after_kill(&self, builder: Builder) -> Self {
        let scratch = Arc::new(TempDir::new());
        copy_files(self.scratch.path(), scratch.path());
        self.beside(builder, scratch).await
    }

    async fn beside(&self, builder: Builder, scratch: Arc<TempDir>) -> Self {
        let builder = builder.state_dir(scratch.path()).allow("*.*").unwrap();
        let broker = builder.build().await.unwrap();
        let settings = self.serve.context.settings().clone();
        Self::open_at(scratch, broker, settings).await
    }

    /// Returns the state directory.
    pub(super) fn state(&self) -> StateDir {
        StateDir::open(self.scratch.path().to_owned()).unwrap()
    }

    /// Moves the last uses of all sessions and callers into the past.
    pub(super) fn age_records(&self, by_ms: u64) {
        for file in self.records() {
            // A server that has just ended may still replace a file.
            let Ok(text) = std::fs::read(&file) else {
                continue;
            };
            // A damaged file has no times.
            let Ok(mut state) = SharedState::parse(&text) else {
                continue;
            };
            state.used_at_ms = state.used_at_ms.saturating_sub(by_ms);
            let sessions = state.sessions.values_mut();
            sessions.for_each(|used_at_ms| *used_at_ms = used_at_ms.saturating_sub(by_ms));
            std::fs::write(&file, state.to_text().unwrap()).unwrap();
        }
    }

    /// Removes the records of sessions that are over.
    pub(super) async fn clean_up(&self) {
        sessions::clean_up_records(&self.serve.context).await;
    }

    /// Connects a host of an earlier process. Over HTTP, its session continues.
    pub(super) async fn reconnect(&self, host: &mut Host) {
        match &mut host.line {
            Line::Streams(_) => {
                let capabilities = host.capabilities.clone();
                *host = self.host_named(&host.name, host.way, capabilities).await;
            }
            Line::Http { address, .. } => *address = self.address,
        }
    }

    /// Returns the files of all sessions and callers.
    pub(super) fn records(&self) -> Vec<PathBuf> {
        let callers = self.scratch.path().join("serve/callers");
        let folders = std::fs::read_dir(callers).into_iter().flatten().flatten();
        let files =
            folders.flat_map(|it| std::fs::read_dir(it.path()).into_iter().flatten().flatten());
        let mut files: Vec<_> = files.map(|it| it.path()).collect();
        files.sort();
        files
    }

    /// Returns the folder of its files.
    pub(super) fn place(&self) -> String {
        self.scratch.path().display().to_string()
    }

    /// Opens a server with one configured server and nothing else.
    pub(super) async fn before(server: ServerConfig, settings: ServeSettings) -> Self {
        let builder = Broker::builder().servers([server]);
        Self::built(builder.servers_join_later(true), settings).await
    }

    /// Opens a server with the tools of this builder.
    pub(super) async fn built(builder: Builder, settings: ServeSettings) -> Self {
        let scratch = TempDir::new();
        let builder = builder.state_dir(scratch.path()).allow("*.*").unwrap();
        let broker = builder.build().await.unwrap();
        Self::open_with(scratch, broker, settings).await
    }

    async fn open_in(scratch: TempDir, settings: ServeSettings) -> Self {
        let broker = broker(&scratch).await;
        Self::open_with(scratch, broker, settings).await
    }

    async fn open_with(scratch: TempDir, broker: Broker, settings: ServeSettings) -> Self {
        Self::open_at(Arc::new(scratch), broker, settings).await
    }

    async fn open_at(scratch: Arc<TempDir>, broker: Broker, settings: ServeSettings) -> Self {
        let serve =
            McpServer::new(settings, StateDir::open(scratch.path().to_owned()).unwrap()).unwrap();
        serve.ready(broker);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gate = AccessGuard::new(address, None).unwrap();
        let hosting = serve.clone();
        tokio::spawn(async move { hosting.http(listener, gate).await });
        Self {
            serve,
            address,
            scratch,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects a host whose client has a name of its own.
    pub(super) async fn host(&self, way: HostKind, capabilities: Value) -> Host {
        static HOSTS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test {}", HOSTS.fetch_add(1, Ordering::Relaxed));
        self.host_named(&name, way, capabilities).await
    }

    pub(super) async fn host_named(&self, name: &str, way: HostKind, capabilities: Value) -> Host {
        let (hear, heard) = mpsc::unbounded_channel();
        let line = match way.over {
            HostTransport::Streams => Line::Streams(self.streams(hear)),
            HostTransport::Http => Line::Http {
                address: self.address,
                heard: hear,
                session: Arc::default(),
            },
        };
        let mut host = Host {
            way,
            name: name.to_owned(),
            capabilities: capabilities.clone(),
            line,
            heard,
            latest: 0,
            handle: None,
            told: VecDeque::new(),
            posts: BTreeMap::new(),
            _scratch: Arc::clone(&self.scratch),
        };
        if way.era == Era::Legacy {
            let info = json!({"name": name, "version": "1"});
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": info,
            });
            host.request("initialize", params).await.unwrap();
            host.notify("notifications/initialized", json!({})).await;
        }
        host
    }

    fn streams(&self, hear: mpsc::UnboundedSender<Value>) -> DuplexStream {
        let (input, theirs) = tokio::io::duplex(1024 * 1024);
        let (ours, output) = tokio::io::duplex(1024 * 1024);
        let serve = self.serve.clone();
        tokio::spawn(async move { serve.over(theirs, ours).await });
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = hear.send(serde_json::from_str(&line).unwrap());
            }
        });
        input
    }
}

impl Host {
    pub(super) async fn connect(way: HostKind, settings: ServeSettings) -> Self {
        Self::connect_as(way, settings, json!({})).await
    }

    /// Connects a host with these capabilities.
    pub(super) async fn connect_as(
        way: HostKind,
        settings: ServeSettings,
        capabilities: Value,
    ) -> Self {
        TestServer::open(settings)
            .await
            .host(way, capabilities)
            .await
    }

    /// Returns the id of the session, which exists in the older era over HTTP.
    pub(super) fn session(&self) -> String {
        match &self.line {
            Line::Http { session, .. } => session.lock().unwrap().clone().unwrap(),
            Line::Streams(_) => String::new(),
        }
    }

    /// Ends the session, if the era and the transport have a way to do so.
    pub(super) async fn end_session(&mut self) {
        if let (Line::Http { address, .. }, Era::Legacy) = (&self.line, self.way.era) {
            let id = self.session();
            let ended = fetch(*address, "DELETE", &[("Mcp-Session-Id", &id)], "").await;
            assert_eq!(ended.status, 204, "{ended:?}");
        }
    }

    pub(super) async fn say(&mut self, message: &str) {
        match &mut self.line {
            Line::Streams(input) => {
                input.write_all(message.as_bytes()).await.unwrap();
                input.write_all(b"\n").await.unwrap();
            }
            Line::Http {
                address,
                heard,
                session,
            } => {
                let post = post_and_hear(
                    *address,
                    message.to_owned(),
                    heard.clone(),
                    Arc::clone(session),
                );
                let posted = tokio::spawn(post).abort_handle();
                self.posts.insert(self.latest, posted);
            }
        }
    }

    /// Sends a notification. It arrives before any later message.
    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        match &self.line {
            Line::Streams(_) => self.say(&message).await,
            Line::Http {
                address,
                heard,
                session,
            } => post_and_hear(*address, message, heard.clone(), Arc::clone(session)).await,
        }
    }

    /// Cancels a request, in the way of the era and the transport.
    pub(super) async fn cancel(&mut self, id: u64) {
        match self.way {
            HostKind {
                era: Era::Modern,
                over: HostTransport::Http,
                ..
            } => self.posts.remove(&id).unwrap().abort(),
            _ => {
                let why = json!({"requestId": id, "reason": "enough"});
                self.notify("notifications/cancelled", why).await;
            }
        }
    }

    /// Sends a request without waiting for the answer, and returns its id.
    pub(super) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.latest += 1;
        if self.way.era == Era::Modern {
            params["_meta"][rpc::VERSION_KEY] = MODERN_VERSION.into();
            params["_meta"][rpc::CLIENT_INFO_KEY] = json!({"name": self.name, "version": "1"});
            params["_meta"][rpc::CAPABILITIES_KEY] = self.capabilities.clone();
            if let Some(handle) = self.handle.as_ref().filter(|_| self.way.echoes_handle) {
                params["_meta"][rpc::SESSION_KEY] = handle.clone();
            }
        }
        let id = self.latest;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&message.to_string()).await;
        id
    }

    /// Returns the next message of any kind.
    pub(super) async fn hear(&mut self) -> Value {
        let message = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        message.expect("a message in time").expect("a message")
    }

    pub(super) async fn answer_to(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let message = self.hear().await;
            if message["id"] == id && message.get("method").is_none() {
                if let Some(handle) = message["result"]["_meta"].get(rpc::SESSION_KEY) {
                    self.handle = Some(handle.clone());
                }
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.told.push_back(message);
        }
    }

    /// Returns the next request from the server.
    pub(super) async fn asked(&mut self) -> Value {
        loop {
            let message = self.hear().await;
            if message.get("method").is_some() && message.get("id").is_some() {
                return message;
            }
            self.told.push_back(message);
        }
    }

    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params).await;
        self.answer_to(id).await
    }

    pub(super) async fn call(&mut self, name: &str, args: Value) -> Value {
        let params = json!({"name": name, "arguments": args});
        self.request("tools/call", params).await.unwrap()
    }

    pub(super) async fn run(&mut self, code: &str) -> Value {
        self.call("run_script", json!({"code": code})).await
    }

    /// Returns the JSON of the resource with these tools.
    pub(super) async fn descriptions(&mut self, query: &str) -> Value {
        let uri = format!("resource:///tool_descriptions{query}");
        let read = self
            .request("resources/read", json!({"uri": uri}))
            .await
            .unwrap();
        let contents = &read["contents"][0];
        assert_eq!(contents["uri"], uri);
        assert_eq!(contents["mimeType"], "application/json");
        serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
    }
}
