//! A server behind a house, of the older era over HTTP: it notes what reaches it, and says in
//! the middle of a call when its tools have changed.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::upstream::{Era, EraChoice, ServerSpec, ServerUrl, Transport};

/// Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub(super) struct Behind {
    url: String,
    state: Arc<Mutex<State>>,
}

/// What it says to a method with these params, an error as its code and its text; nothing where
/// it says what any server does.
pub(super) type Says = fn(&str, &Value) -> Option<Result<Value, (i64, &'static str)>>;

struct State {
    says: Says,
    tools: Value,
    /// The methods of the messages that came.
    heard: Vec<String>,
    has_changed: bool,
}

impl Behind {
    pub(super) async fn open(tools: Value) -> Self {
        Self::saying(tools, |_, _| None).await
    }

    pub(super) async fn saying(tools: Value, says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = Self {
            url: format!("http://{}/mcp", listener.local_addr().unwrap()),
            state: Arc::new(Mutex::new(State {
                says,
                tools,
                heard: Vec::new(),
                has_changed: false,
            })),
        };
        let answering = behind.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answering.clone().answer(stream));
            }
        });
        behind
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

    /// What it lists from now on; it says so in the next call.
    pub(super) fn list(&self, tools: Value) {
        let mut state = self.state.lock().unwrap();
        state.tools = tools;
        state.has_changed = true;
    }

    /// How many messages came with this method.
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

    /// The messages that answer this one, as events; none to a notification.
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
