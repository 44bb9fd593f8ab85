//! An MCP server on stdio that behaves: its tools answer with every kind of
//! content, wait for ever, or end the server, as hosts behind airlock need it.
//!
//! `fixture-server [LOG]`: the file gets a line for each call and cancellation.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

/// Named so that the server `test` lists them as the conformance suite calls them.
const TOOLS: [&str; 16] = [
    "simple_text",
    "image_content",
    "audio_content",
    "embedded_resource",
    "multiple_content_types",
    "error_handling",
    "tool_with_progress",
    "logging_tool",
    "streaming_elicitation",
    "input_required_result_elicitation",
    "input_required_result_request_state",
    "input_required_result_tampered_state",
    "input_required_result_capabilities",
    "trigger_tool_change",
    "wait",
    "crash",
];
/// Listed every other time that `trigger_tool_change` was called.
const NOW_AND_THEN: &str = "now_and_then";
/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// A RIFF header without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

fn main() -> std::io::Result<()> {
    let path = std::env::args_os().nth(1);
    let open = |path| {
        std::fs::File::options()
            .create(true)
            .append(true)
            .open(path)
    };
    let mut log = path.map(open).transpose()?;
    let mut note = |line: &str| match &mut log {
        Some(log) => writeln!(log, "{line}"),
        None => Ok(()),
    };
    note(&format!("pid {}", std::process::id()))?;
    let mut tools: Vec<&str> = TOOLS.to_vec();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        let method = message["method"].as_str().unwrap_or_default();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        if method == "notifications/cancelled" {
            note("cancelled")?;
        }
        let Some(id) = message.get("id") else {
            continue;
        };
        let result = match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "fixture", "version": "1"},
            }),
            "tools/list" => {
                let list: Vec<_> = tools.iter().map(|name| tool_of(name)).collect();
                json!({"tools": list})
            }
            "tools/call" => {
                note(&format!("call {tool}"))?;
                if tool == "trigger_tool_change" {
                    change(&mut tools)?;
                }
                match tool {
                    "wait" => continue,
                    "crash" => std::process::exit(3),
                    _ => called(tool),
                }
            }
            "ping" => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": "no such method"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                continue;
            }
        };
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
    }
    note("stdin ended")
}

/// Another list of tools, and the word that there is one.
fn change(tools: &mut Vec<&str>) -> std::io::Result<()> {
    match tools.iter().position(|name| *name == NOW_AND_THEN) {
        Some(at) => drop(tools.remove(at)),
        None => tools.push(NOW_AND_THEN),
    }
    send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
}

fn tool_of(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Answers for `{name}`."),
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
    })
}

fn called(tool: &str) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"});
    let resource = json!({
        "type": "resource",
        "resource": {"uri": "test://embedded", "mimeType": "text/plain", "text": "embedded"},
    });
    match tool {
        "image_content" => json!({"content": [image]}),
        "audio_content" => json!({"content": [audio]}),
        "embedded_resource" => json!({"content": [resource]}),
        "multiple_content_types" => json!({"content": [text("several"), image, resource]}),
        "error_handling" => json!({"content": [text("it fails on purpose")], "isError": true}),
        _ => json!({"content": [text(&format!("this is {tool}"))]}),
    }
}

fn send(message: &Value) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
