//! An MCP server on stdio that lists the tools of a file page by page, and answers each call with
//! its arguments. The file is `{"result": {"tools": […]}}` or a bare array.
//!
//! Usage: `replaying-server FILE [--after OTHER]`. With `--after`, the server stays silent until
//! the file OTHER exists, like a server that starts slowly. FILE is read for each request. If its
//! tools differ from the list that the host last got, a call reports the change before it answers.
//! `REPLAY_LOG` names a file that gets a line per message.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

const PAGE: usize = 100;

struct Server {
    file: PathBuf,
    /// The text of the list that was last sent to the host.
    told: String,
    log: Option<std::fs::File>,
}

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let file = args.next().map(PathBuf::from).unwrap_or_default();
    if args.next().as_deref() == Some("--after") {
        let other = args.next().map(PathBuf::from).unwrap_or_default();
        while !other.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let log = std::env::var_os("REPLAY_LOG").map(|path| {
        let mut options = std::fs::File::options();
        options.create(true).append(true).open(path)
    });
    let mut server = Server {
        file,
        told: String::new(),
        log: log.transpose()?,
    };
    for line in std::io::stdin().lock().lines() {
        if let Ok(message) = serde_json::from_str::<Value>(&line?) {
            server.hear(&message)?;
        }
    }
    Ok(())
}

impl Server {
    fn hear(&mut self, message: &Value) -> std::io::Result<()> {
        let (id, params) = (&message["id"], &message["params"]);
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(log) = &mut self.log {
            let name = params["name"].as_str().unwrap_or_default();
            let trace = params["_meta"]["traceparent"].as_str().unwrap_or_default();
            // Written with a single call, because a test may be reading.
            let line = format!("{} {method} {name} {trace}\n", std::process::id());
            log.write_all(line.as_bytes())?;
        }
        if id.is_null() {
            return Ok(());
        }
        match method {
            "initialize" => answer(
                id,
                &json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "replaying", "version": "1"},
                }),
            ),
            "ping" => answer(id, &json!({})),
            "tools/list" => {
                let page = self.page(params["cursor"].as_str());
                answer(id, &page)
            }
            "tools/call" => {
                if !self.told.is_empty() && self.text() != self.told {
                    let changed = "notifications/tools/list_changed";
                    send(&json!({"jsonrpc": "2.0", "method": changed}))?;
                }
                let echo = json!({"tool": params["name"], "arguments": params["arguments"]});
                let content = json!([{"type": "text", "text": echo.to_string()}]);
                answer(id, &json!({"content": content, "structuredContent": echo}))
            }
            _ => send(
                &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}),
            ),
        }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap_or_default()
    }

    fn page(&mut self, cursor: Option<&str>) -> Value {
        self.told = self.text();
        let saved: Value = serde_json::from_str(&self.told).unwrap_or_default();
        let tools = saved.pointer("/result/tools").unwrap_or(&saved);
        let tools = tools.as_array().cloned().unwrap_or_default();
        let from: usize = cursor.and_then(|it| it.parse().ok()).unwrap_or_default();
        let page: Vec<_> = tools.iter().skip(from).take(PAGE).collect();
        let mut result = json!({ "tools": page });
        if from + PAGE < tools.len() {
            result["nextCursor"] = (from + PAGE).to_string().into();
        }
        result
    }
}

fn answer(id: &Value, result: &Value) -> std::io::Result<()> {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn send(message: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}")?;
    out.flush()
}
