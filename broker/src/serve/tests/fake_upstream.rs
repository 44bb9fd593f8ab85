//! A fake server behind the test server, of the older era over HTTP. It records the messages it
//! receives, and reports changes of its tools during a call.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::upstream::{Era, EraChoice, ServerSpec, ServerUrl, Transport};

/// A fake server. Cheap to clone; all clones share its state.
#[derive(Clone)]
pub(super) struct FakeUpstream {
    url: String,
    state: Arc<Mutex<State>>,
}

/// Returns the reply to a method with these params; an error is a code and a text. `None` selects
/// the default reply.
pub(super) type CannedReply = fn(&str, &Value) -> Option<Result<Value, (i64, &'static str)>>;

struct State {
    says: CannedReply,
    tools: Value,
    /// The methods of the received messages.
    heard: Vec<String>,
    has_changed: bool,
}

impl FakeUpstream {
    pub(super) async fn open(tools: Value) -> Self {
        Self::saying(tools, |_, _| None).await
    }

    pub(super) async fn saying(tools: Value, says: CannedReply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Self {
            url: format!("http://{}/mcp", listener.local_addr().unwrap()),
            state: Arc::new(Mutex::new(State {
                says,
                tools,
                heard: Vec::new(),
                has_changed: false,
            })),
        };
        let answering = upstream.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answering.clone().answer(stream));
            }
        });
        upstream
    }

    pub(super) fn spec(&self, name: &str) -> ServerSpec {
        let transport = Transport::Http {
            url: ServerUrl::parse(&self.url).unwrap(),
            headers: Vec::new(),
        };
        ServerSpec {
            era: EraChoice::Pinned(Era::Legacy),
            ..ServerSpec::new(name, transport)
        }
    }

    /// Replaces the list of tools. The next call reports the change.
    pub(super) fn list(&self, tools: Value) {
        let mut state = self.state.lock().unwrap();
        state.tools = tools;
        state.has_changed = true;
    }

    /// Returns how many messages with this method were received.
    pub(super) fn heard(&self, method: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.heard.iter().filter(|it| *it == method).count()
    }

    async fn answer(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = stream.read_line(&mut head).await.ok()?;
            (read > 0).then_some(())?;
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|it| it.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await.ok()?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = self.say(&message);
        let (status, kind, text) = match said {
            Some(events) => ("200 OK", "text/event-stream", events),
            None if message.is_null() => ("405 Method Not Allowed", "text/plain", String::new()),
            None => ("202 Accepted", "text/plain", String::new()),
        };
        let length = text.len();
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{text}"
        );
        stream.get_mut().write_all(response.as_bytes()).await.ok()
    }

    /// Returns the messages that answer this one, as events, or `None` for a notification.
    fn say(&self, message: &Value) -> Option<String> {
        let mut state = self.state.lock().unwrap();
        let method = message["method"].as_str()?;
        state.heard.push(method.to_owned());
        let id = message.get("id")?;
        let said = (state.says)(method, &message["params"]);
        let said = said.unwrap_or_else(|| Ok(state.usual(method, &message["params"])));
        let answer = match said {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                let error = json!({"code": code, "message": message});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        let mut events = String::new();
        if method == "tools/call" && std::mem::take(&mut state.has_changed) {
            let changed = "notifications/tools/list_changed";
            let changed = json!({"jsonrpc": "2.0", "method": changed});
            events.push_str(&format!("data: {changed}\n\n"));
        }
        Some(events + &format!("data: {answer}\n\n"))
    }
}

impl State {
    fn usual(&self, method: &str, params: &Value) -> Value {
        match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "behind", "version": "1"},
            }),
            "tools/list" => json!({"tools": self.tools}),
            "tools/call" => {
                let args = &params["arguments"];
                let content = json!([{"type": "text", "text": args.to_string()}]);
                json!({"content": content, "structuredContent": args})
            }
            _ => json!({}),
        }
    }
}
