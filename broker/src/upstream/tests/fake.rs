//! An in-memory server that follows a script.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::id::{ServerName, ToolName};
use airlock_core::outcome::Reply;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::client_bridge::ClientCapabilities;
use crate::deadline::Deadline;
use crate::upstream::child::LiveProcesses;
use crate::upstream::diagnostics::Diagnostics;
use crate::upstream::era::EraMemory;
use crate::upstream::link::Link;
use crate::upstream::message_limits::MessageLimits;
use crate::upstream::pool::{ServerListing, Upstream};
use crate::upstream::server::{CallRevision, SendOutcome, ToolCall, UpstreamServer};
use crate::upstream::server_request::CallOrigin;
use crate::upstream::spec::{ServerSpec, Transport};
use crate::upstream::stdio::StdioLink;

/// The reaction of a server to a message.
#[derive(Debug, Clone)]
pub(crate) enum FakeReply {
    Json(Value),
    Raw(Vec<u8>),
    After(Duration, Value),
    Die,
    /// The server reads nothing from here on.
    Deaf,
}

type Script = dyn Fn(usize, &Value) -> Vec<FakeReply> + Send + Sync;

pub(crate) struct FakeServer {
    pub(crate) spec: ServerSpec,
    pub(crate) message_limits: MessageLimits,
    pub(crate) eras: EraMemory,
    /// The client capabilities to send to the server.
    pub(crate) abilities: ClientCapabilities,
    script: Arc<Script>,
    pub(crate) heard: Arc<Mutex<Vec<Value>>>,
}

impl FakeServer {
    /// Creates a server. The script gets the number of the connection, from 1, and the message.
    pub(crate) fn new(
        script: impl Fn(usize, &Value) -> Vec<FakeReply> + Send + Sync + 'static,
    ) -> Self {
        let transport = Transport::Stdio {
            command: "fake".into(),
            args: vec![],
            env: vec![],
            cwd: None,
        };
        Self {
            spec: ServerSpec::new("fake", transport),
            message_limits: MessageLimits {
                result_bytes_max: 100_000,
                list_page_bytes_max: 100_000,
                ..MessageLimits::default()
            },
            eras: EraMemory::none(),
            abilities: ClientCapabilities::default(),
            script: Arc::new(script),
            heard: Arc::default(),
        }
    }

    /// Creates a well-behaved server of the older era, except for `tools/call`.
    pub(crate) fn calling(
        script: impl Fn(usize, &Value) -> Vec<FakeReply> + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |connect, message| match legacy(message) {
            Some(says) => says,
            None => script(connect, message),
        })
    }

    pub(crate) async fn connect(self) -> (ConnectedFake, ServerListing) {
        let (connected, server) = self.server();
        let (upstream, mut listed) = Upstream::connect_servers(vec![server]).await;
        let connected = ConnectedFake {
            upstream,
            ..connected
        };
        (connected, listed.remove(0))
    }

    /// Returns the server before any connection.
    pub(crate) fn server(self) -> (ConnectedFake, Arc<UpstreamServer>) {
        let dials = Arc::new(Mutex::new(0));
        let (script, heard, counted) = (self.script.clone(), self.heard.clone(), dials.clone());
        let diagnostics = Arc::new(Diagnostics::default());
        let (message_bytes_max, kept) =
            (self.message_limits.message_bytes_max(), diagnostics.clone());
        let connect = Box::new(move || {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            *counted.lock().unwrap() += 1;
            let connect = *counted.lock().unwrap();
            tokio::spawn(play(theirs, connect, script.clone(), heard.clone()));
            let (reader, writer) = tokio::io::split(ours);
            Ok(Link::Stdio(StdioLink::over(
                reader,
                writer,
                message_bytes_max,
                kept.clone(),
            )))
        });
        let server = Arc::new(UpstreamServer::new(
            self.spec,
            self.message_limits,
            self.eras,
            connect,
            diagnostics,
            LiveProcesses::default(),
            self.abilities.from_now_on(),
        ));
        let connected = ConnectedFake {
            upstream: Upstream::default(),
            heard: self.heard,
            dials,
        };
        (connected, server)
    }
}

/// A fake server that has been connected.
pub(crate) struct ConnectedFake {
    pub(crate) upstream: Upstream,
    pub(crate) heard: Arc<Mutex<Vec<Value>>>,
    dials: Arc<Mutex<usize>>,
}

impl ConnectedFake {
    pub(crate) fn call(
        &self,
        arguments: &str,
        within_ms: u64,
    ) -> impl Future<Output = Reply> + Send + use<> {
        let (server, tool) = (ServerName("fake".into()), ToolName("t".into()));
        self.upstream.call(
            &server,
            &tool,
            arguments.as_bytes().to_vec(),
            Duration::from_millis(within_ms),
        )
    }

    /// Makes a call whose origin can be asked.
    pub(crate) fn call_for(
        &self,
        origin: CallOrigin,
    ) -> impl Future<Output = Reply> + Send + use<> {
        self.call_with("{}", origin)
    }

    pub(crate) fn call_with(
        &self,
        arguments: &str,
        origin: CallOrigin,
    ) -> impl Future<Output = Reply> + Send + use<> {
        let (server, tool) = (ServerName("fake".into()), ToolName("t".into()));
        let (deadline, arguments) = (origin.deadline.clone(), arguments.as_bytes().to_vec());
        self.upstream
            .call_in(&server, &tool, arguments, (Some(origin), deadline))
    }

    pub(crate) fn server(&self) -> Arc<UpstreamServer> {
        self.upstream.server(&ServerName("fake".into())).unwrap()
    }

    pub(crate) fn dials(&self) -> usize {
        *self.dials.lock().unwrap()
    }

    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        self.heard
            .lock()
            .unwrap()
            .iter()
            .filter(|message| message["method"] == method)
            .cloned()
            .collect()
    }

    pub(crate) fn report(&self) -> crate::upstream::DiagnosticsReport {
        self.upstream
            .diagnostics(&ServerName("fake".into()))
            .unwrap()
    }
}

impl Upstream {
    /// Makes a call without comparing descriptions. The list is read if the connection is new. A
    /// call that did not arrive because the connection had ended is made once more.
    pub(crate) fn call(
        &self,
        server: &ServerName,
        tool: &ToolName,
        arguments: Vec<u8>,
        within: Duration,
    ) -> impl Future<Output = Reply> + Send + use<> {
        self.call_in(server, tool, arguments, (None, Deadline::new(within)))
    }

    pub(crate) fn call_in(
        &self,
        server: &ServerName,
        tool: &ToolName,
        arguments: Vec<u8>,
        (origin, deadline): (Option<CallOrigin>, Deadline),
    ) -> impl Future<Output = Reply> + Send + use<> {
        let server = self.server(server).unwrap();
        let asked = ToolCall {
            tool: tool.0.to_string(),
            arguments,
            trace: None,
            origin,
            deadline,
        };
        async move {
            let (since, mut reading) = (server.readings(), server.readings());
            let mut has_ended = false;
            loop {
                let against = CallRevision { reading, since };
                if !server.is_current(against) {
                    reading = match server.list().await {
                        Ok((_, reading, _)) => reading,
                        Err(error) => {
                            let why = error.to_string();
                            return Reply::NotSent { why };
                        }
                    };
                }
                let against = CallRevision { reading, since };
                match server.clone().call(&asked, against).await {
                    SendOutcome::Answered(reply) => return reply,
                    SendOutcome::Ended(reply) if has_ended => return reply,
                    SendOutcome::Ended(_) => has_ended = true,
                    SendOutcome::Unread => {}
                }
            }
        }
    }
}

async fn play(
    stream: tokio::io::DuplexStream,
    connect: usize,
    script: Arc<Script>,
    heard: Arc<Mutex<Vec<Value>>>,
) {
    let (reader, writer) = tokio::io::split(stream);
    let writer = Arc::new(tokio::sync::Mutex::new(writer));
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        heard.lock().unwrap().push(message.clone());
        for say in script(connect, &message) {
            let (delay, bytes) = match say {
                FakeReply::Json(value) => (None, format!("{value}\n").into_bytes()),
                FakeReply::Raw(bytes) => (None, bytes),
                FakeReply::After(delay, value) => (Some(delay), format!("{value}\n").into_bytes()),
                FakeReply::Die => return,
                FakeReply::Deaf => std::future::pending().await,
            };
            let writer = writer.clone();
            let speak = async move {
                if let Some(delay) = delay {
                    tokio::time::sleep(delay).await;
                }
                let _ = writer.lock().await.write_all(&bytes).await;
            };
            if delay.is_some() {
                tokio::spawn(speak);
            } else {
                speak.await;
            }
        }
    }
}

pub(crate) fn result(to: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": to["id"], "result": result})
}

pub(crate) fn error(to: &Value, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": to["id"], "error": {"code": code, "message": "no"}})
}

pub(crate) fn text(to: &Value, said: &str) -> Value {
    result(to, json!({"content": [{"type": "text", "text": said}]}))
}

pub(crate) fn initialized(to: &Value) -> Value {
    result(
        to,
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1", "icons": [{"src": "data:x"}]}, "instructions": "be kind"
        }),
    )
}

pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// Returns the answers of a well-behaved server of the older era, or `None` for a call.
pub(crate) fn legacy(message: &Value) -> Option<Vec<FakeReply>> {
    let says = match message["method"].as_str() {
        Some("initialize") => vec![FakeReply::Json(initialized(message))],
        Some("tools/list") => vec![FakeReply::Json(result(
            message,
            json!({"tools": [tool("t")]}),
        ))],
        Some("tools/call") => return None,
        _ if message.get("id").is_some() && message.get("method").is_some() => {
            vec![FakeReply::Json(error(message, -32_601))]
        }
        _ => vec![],
    };
    Some(says)
}

/// Formats a reply as short text, for tables.
pub(crate) fn words(reply: &Reply) -> String {
    match reply {
        Reply::Result {
            is_error,
            content,
            structured_content,
        } => {
            let content: Value = serde_json::from_slice(content).unwrap();
            let structured = structured_content
                .as_ref()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let error = if *is_error { "error " } else { "" };
            format!(
                "{error}{}{}",
                content[0]["text"].as_str().unwrap_or("-"),
                structured.map_or(String::new(), |text| format!(" {text}"))
            )
        }
        Reply::Refused { code, .. } => format!("refused {code}"),
        Reply::NotSent { .. } => "not sent".to_owned(),
        Reply::Changed => "changed".to_owned(),
        Reply::Failed { code, .. } => format!("failed {code}"),
        Reply::Lost { cause, .. } => format!("lost {cause:?}"),
    }
}
