//! A server in memory that does what its script says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::id::{ServerName, ToolName};
use airlock_core::outcome::Reply;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::carrier::Abilities;
use crate::upstream::caps::Caps;
use crate::upstream::child::Alive;
use crate::upstream::diagnostics::Diagnostics;
use crate::upstream::era::EraMemory;
use crate::upstream::inquiry::Behind;
use crate::upstream::link::Link;
use crate::upstream::pool::{Listed, Upstream};
use crate::upstream::server::{Against, Asked, Sent, Server};
use crate::upstream::spec::{ServerSpec, Transport};
use crate::upstream::stdio::StdioLink;
use crate::upstream::wall::Wall;

/// What a server does about a message.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    Json(Value),
    Raw(Vec<u8>),
    After(Duration, Value),
    Die,
    /// From here on it reads nothing.
    Deaf,
}

type Script = dyn Fn(usize, &Value) -> Vec<Say> + Send + Sync;

pub(crate) struct Fake {
    pub(crate) spec: ServerSpec,
    pub(crate) caps: Caps,
    pub(crate) eras: EraMemory,
    /// What it is told that can be asked.
    pub(crate) abilities: Abilities,
    script: Arc<Script>,
    pub(crate) heard: Arc<Mutex<Vec<Value>>>,
}

impl Fake {
    /// The script gets the number of the connection, from 1, and the message.
    pub(crate) fn new(script: impl Fn(usize, &Value) -> Vec<Say> + Send + Sync + 'static) -> Self {
        let transport = Transport::Stdio {
            command: "fake".into(),
            args: vec![],
            env: vec![],
            cwd: None,
        };
        Self {
            spec: ServerSpec::new("fake", transport),
            caps: Caps {
                result_bytes_max: 100_000,
                list_page_bytes_max: 100_000,
                ..Caps::default()
            },
            eras: EraMemory::none(),
            abilities: Abilities::default(),
            script: Arc::new(script),
            heard: Arc::default(),
        }
    }

    /// A well-behaved server of the older era, except for `tools/call`.
    pub(crate) fn calling(
        script: impl Fn(usize, &Value) -> Vec<Say> + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |dial, message| match legacy(message) {
            Some(says) => says,
            None => script(dial, message),
        })
    }

    pub(crate) async fn connect(self) -> (Connected, Listed) {
        let (connected, server) = self.server();
        let (upstream, mut listed) = Upstream::connect_servers(vec![server]).await;
        let connected = Connected {
            upstream,
            ..connected
        };
        (connected, listed.remove(0))
    }

    /// The server before anybody connects to it.
    pub(crate) fn server(self) -> (Connected, Arc<Server>) {
        let dials = Arc::new(Mutex::new(0));
        let (script, heard, counted) = (self.script.clone(), self.heard.clone(), dials.clone());
        let diagnostics = Arc::new(Diagnostics::default());
        let (message_bytes_max, kept) = (self.caps.message_bytes_max(), diagnostics.clone());
        let dial = Box::new(move || {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            *counted.lock().unwrap() += 1;
            let dial = *counted.lock().unwrap();
            tokio::spawn(play(theirs, dial, script.clone(), heard.clone()));
            let (reader, writer) = tokio::io::split(ours);
            Ok(Link::Stdio(StdioLink::over(
                reader,
                writer,
                message_bytes_max,
                kept.clone(),
            )))
        });
        let server = Arc::new(Server::new(
            self.spec,
            self.caps,
            self.eras,
            dial,
            diagnostics,
            Alive::default(),
            self.abilities.from_now_on(),
        ));
        let connected = Connected {
            upstream: Upstream::default(),
            heard: self.heard,
            dials,
        };
        (connected, server)
    }
}

/// A fake that has been connected to.
pub(crate) struct Connected {
    pub(crate) upstream: Upstream,
    pub(crate) heard: Arc<Mutex<Vec<Value>>>,
    dials: Arc<Mutex<usize>>,
}

impl Connected {
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

    /// A call for somebody who can be asked.
    pub(crate) fn call_for(&self, behind: Behind) -> impl Future<Output = Reply> + Send + use<> {
        self.call_with("{}", behind)
    }

    pub(crate) fn call_with(
        &self,
        arguments: &str,
        behind: Behind,
    ) -> impl Future<Output = Reply> + Send + use<> {
        let (server, tool) = (ServerName("fake".into()), ToolName("t".into()));
        let (wall, arguments) = (behind.wall.clone(), arguments.as_bytes().to_vec());
        self.upstream
            .call_in(&server, &tool, arguments, (Some(behind), wall))
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
    /// A call of whoever compares no descriptions: its list is read where the connection is new,
    /// and a call that did not arrive because the connection had ended is made once more.
    pub(crate) fn call(
        &self,
        server: &ServerName,
        tool: &ToolName,
        arguments: Vec<u8>,
        within: Duration,
    ) -> impl Future<Output = Reply> + Send + use<> {
        self.call_in(server, tool, arguments, (None, Wall::new(within)))
    }

    pub(crate) fn call_in(
        &self,
        server: &ServerName,
        tool: &ToolName,
        arguments: Vec<u8>,
        (behind, wall): (Option<Behind>, Wall),
    ) -> impl Future<Output = Reply> + Send + use<> {
        let server = self.server(server);
        let asked = Asked {
            tool: tool.0.to_string(),
            arguments,
            trace: None,
            behind,
            wall,
        };
        async move {
            let (since, mut reading) = (server.readings(), server.readings());
            let mut has_ended = false;
            loop {
                let against = Against { reading, since };
                if !server.is_current(against) {
                    reading = match server.list().await {
                        Ok((_, reading, _)) => reading,
                        Err(error) => {
                            let why = error.to_string();
                            return Reply::NotSent { why };
                        }
                    };
                }
                let against = Against { reading, since };
                match server.clone().call(&asked, against).await {
                    Sent::Answered(reply) => return reply,
                    Sent::Ended(reply) if has_ended => return reply,
                    Sent::Ended(_) => has_ended = true,
                    Sent::Unread => {}
                }
            }
        }
    }
}

async fn play(
    stream: tokio::io::DuplexStream,
    dial: usize,
    script: Arc<Script>,
    heard: Arc<Mutex<Vec<Value>>>,
) {
    let (reader, writer) = tokio::io::split(stream);
    let writer = Arc::new(tokio::sync::Mutex::new(writer));
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        heard.lock().unwrap().push(message.clone());
        for say in script(dial, &message) {
            let (delay, bytes) = match say {
                Say::Json(value) => (None, format!("{value}\n").into_bytes()),
                Say::Raw(bytes) => (None, bytes),
                Say::After(delay, value) => (Some(delay), format!("{value}\n").into_bytes()),
                Say::Die => return,
                Say::Deaf => std::future::pending().await,
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

/// The answers of a well-behaved server of the older era; `None` for a call.
pub(crate) fn legacy(message: &Value) -> Option<Vec<Say>> {
    let says = match message["method"].as_str() {
        Some("initialize") => vec![Say::Json(initialized(message))],
        Some("tools/list") => vec![Say::Json(result(message, json!({"tools": [tool("t")]})))],
        Some("tools/call") => return None,
        _ if message.get("id").is_some() && message.get("method").is_some() => {
            vec![Say::Json(error(message, -32_601))]
        }
        _ => vec![],
    };
    Some(says)
}

/// The words of a reply that a table can hold.
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
