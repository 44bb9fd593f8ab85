//! A server over HTTP whose one tool answers with a stream: first whatever it was
//! given, then the answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Streaming {
    address: SocketAddr,
}

impl Streaming {
    pub(crate) fn start(text: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let text: Arc<str> = text.into();
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let text = Arc::clone(&text);
                // A client that has heard enough hangs up; that is its right.
                thread::spawn(move || answer(stream, &text).ok());
            }
        });
        Self { address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

fn answer(stream: TcpStream, text: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(said) = line.strip_prefix("content-length:") {
            length = said.trim().parse().unwrap_or(0);
        }
    }
    if !first.starts_with("POST") {
        return reply(&mut stream, "405 Method Not Allowed", "text/plain", "");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = &message["id"];
    if id.is_null() {
        return reply(&mut stream, "202 Accepted", "text/plain", "");
    }
    let said = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let json = "application/json";
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "shop", "version": "1"}});
            reply(&mut stream, "200 OK", json, &said(result))
        }
        "tools/list" => {
            let tool = json!({"name": "find", "inputSchema": {"type": "object"}});
            reply(&mut stream, "200 OK", json, &said(json!({"tools": [tool]})))
        }
        "tools/call" => {
            let found = json!({"content": [{"type": "text", "text": "found"}]});
            let body = format!("{text}\n\ndata: {}\n\n", said(found));
            reply(&mut stream, "200 OK", "text/event-stream", &body)
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            reply(&mut stream, "200 OK", json, &body)
        }
    }
}

fn reply(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}
