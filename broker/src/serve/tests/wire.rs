//! HTTP client of the test hosts.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::serve::rpc;

/// A complete response.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) headers: String,
    pub(super) body: String,
}

/// Sends one request and waits for the complete response.
pub(super) async fn fetch(
    address: SocketAddr,
    verb: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Page {
    let mut stream = open(address, verb, headers, body).await;
    let (status, headers) = head(&mut stream).await;
    let mut body = String::new();
    stream.read_to_string(&mut body).await.unwrap();
    Page {
        status,
        headers,
        body,
    }
}

/// Returns the headers of a message, in either era.
pub(super) fn headers_of(message: &Value, session: Option<String>) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("Content-Type", "application/json".to_owned()),
        ("Accept", "application/json, text/event-stream".to_owned()),
    ];
    let params = &message["params"];
    if let Some(version) = params["_meta"][rpc::VERSION_KEY].as_str() {
        headers.push(("MCP-Protocol-Version", version.to_owned()));
        headers.push(("Mcp-Method", message["method"].as_str().unwrap().to_owned()));
        let name = match message["method"].as_str() {
            Some("tools/call" | "prompts/get") => params["name"].as_str(),
            Some("resources/read") => params["uri"].as_str(),
            _ => None,
        };
        headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
    } else if let Some(session) = session {
        headers.push(("Mcp-Session-Id", session));
        headers.push(("MCP-Protocol-Version", "2025-11-25".to_owned()));
    }
    headers
}

pub(super) async fn post_and_hear(
    address: SocketAddr,
    message: String,
    heard: mpsc::UnboundedSender<Value>,
    session: Arc<Mutex<Option<String>>>,
) {
    let value: Value = serde_json::from_str(&message).unwrap();
    let headers = headers_of(&value, session.lock().unwrap().clone());
    let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let mut stream = open(address, "POST", &headers, &message).await;
    let (_, headers) = head(&mut stream).await;
    let given = headers
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    if let Some(given) = given {
        *session.lock().unwrap() = Some(given.to_owned());
    }
    let is_stream = headers.contains("text/event-stream");
    while let Some(line) = next_line(&mut stream).await {
        let data = if is_stream {
            line.strip_prefix("data: ")
        } else {
            Some(line.as_str())
        };
        if let Some(data) = data.filter(|it| !it.is_empty()) {
            let _ = heard.send(serde_json::from_str(data).unwrap());
        }
    }
}

/// Opens a connection with HTTP/1.0, so that a response ends when the connection closes.
pub(super) async fn open(
    address: SocketAddr,
    verb: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut text = format!("{verb} /mcp HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    stream.write_all(text.as_bytes()).await.unwrap();
    BufReader::new(stream)
}

pub(super) async fn head(stream: &mut BufReader<TcpStream>) -> (u16, String) {
    let first = next_line(stream).await.unwrap_or_default();
    let status = first.split(' ').nth(1).and_then(|it| it.parse().ok());
    let mut headers = String::new();
    while let Some(line) = next_line(stream).await.filter(|line| !line.is_empty()) {
        headers.push_str(&line.to_ascii_lowercase());
        headers.push('\n');
    }
    (status.unwrap_or_default(), headers)
}

pub(super) async fn next_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}
