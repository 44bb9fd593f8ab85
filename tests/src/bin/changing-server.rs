//! An MCP server on stdio whose tools are in a file that a test rewrites.
//!
//! Usage: `changing-server FOLDER`. The server reads `FOLDER/tools.json` for each `tools/list`. The
//! tool `change` reports that the list has changed, `die` ends the process, and `wait` answers as
//! soon as `FOLDER/go` exists. Every other tool answers with its own name.
//!
//! While `FOLDER/hold` exists, the server answers no handshake. While `FOLDER/hold-list` exists, it
//! answers no `tools/list`; while `FOLDER/fail-list` exists, it answers with an error. If
//! `FOLDER/newer` exists, the server uses the newer era and reports changes only to listeners.
//! `FOLDER/log` gets a line for the start and for each list, call and listener.

use std::fs::File;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Id of the request that listens for changes.
static LISTENER: Mutex<Option<u64>> = Mutex::new(None);

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_default());
    note(&folder, "start")?;
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        if message.get("id").is_some() && message.get("method").is_some() {
            let folder = folder.clone();
            thread::spawn(move || answer(&folder, &message));
        }
    }
    Ok(())
}

fn answer(folder: &Path, message: &Value) -> std::io::Result<()> {
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" if folder.join("newer").exists() => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}},
            "ttlMs": 3_600_000,
            "cacheScope": "public",
        }),
        "subscriptions/listen" if folder.join("newer").exists() => {
            note(folder, "listen")?;
            let id = &message["id"];
            *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = id.as_u64();
            let params =
                json!({"_meta": {SUBSCRIPTION: id}, "notifications": {"toolsListChanged": true}});
            let method = "notifications/subscriptions/acknowledged";
            return send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        }
        "initialize" => {
            while_there(&folder.join("hold"));
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "changing", "version": "1"},
            })
        }
        "tools/list" if folder.join("fail-list").exists() => {
            note(folder, "list failed")?;
            return fail(message, -32_603, "no list today");
        }
        "tools/list" => {
            while_there(&folder.join("hold-list"));
            let tools = std::fs::read(folder.join("tools.json"))?;
            note(folder, "list")?;
            json!({"tools": serde_json::from_slice::<Value>(&tools)?})
        }
        "tools/call" => call(
            folder,
            message["params"]["name"].as_str().unwrap_or_default(),
        )?,
        "ping" => json!({}),
        _ => return fail(message, -32_601, "no such method"),
    };
    send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn call(folder: &Path, tool: &str) -> std::io::Result<Value> {
    note(folder, &format!("call {tool}"))?;
    match tool {
        "change" => {
            let listener = *LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
            let method = "notifications/tools/list_changed";
            let params = json!({"_meta": {SUBSCRIPTION: listener}});
            if listener.is_some() || !folder.join("newer").exists() {
                send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
            }
        }
        "die" => std::process::exit(3),
        "wait" => {
            while !folder.join("go").exists() {
                thread::park_timeout(Duration::from_millis(2));
            }
        }
        _ => {}
    }
    Ok(json!({"content": [{"type": "text", "text": tool}]}))
}

fn while_there(path: &Path) {
    while path.exists() {
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// Writes a line with a single call, because another thread may write at the same moment and a test
/// may be reading.
fn note(folder: &Path, line: &str) -> std::io::Result<()> {
    let log = folder.join("log");
    let mut log = File::options().create(true).append(true).open(log)?;
    log.write_all(format!("{line}\n").as_bytes())
}

fn fail(message: &Value, code: i64, why: &str) -> std::io::Result<()> {
    let error = json!({"code": code, "message": why});
    send(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

fn send(message: &Value) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
