//! A server that counts its calls, over HTTP. It has the tool `w.create` with the argument `title`, and
//! closes the connection after some calls without a reply.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The server loses the reply to each call whose number is a multiple of this.
const LOST_EACH: usize = 5;
/// How long a connection may send nothing.
const READ_WALL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct CountingHttpServer {
    address: SocketAddr,
    made: Arc<Mutex<Vec<String>>>,
}

impl CountingHttpServer {
    /// Starts the server. It handles one connection after the other, until the test ends.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let made = Arc::default();
        let server = Self {
            address,
            made: Arc::clone(&made),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that was killed leaves a broken connection.
                let _ = answer(stream, &made);
            }
        });
        server
    }

    /// Returns a configuration with the server.
    #[must_use]
    pub fn config(&self) -> String {
        format!("[servers.w]\nurl = \"http://{}/mcp\"\n", self.address)
    }

    /// Returns the titles of the calls that the server got, in order. Requests that were sent before
    /// count, also if their client has gone.
    #[must_use]
    pub fn made(&self) -> Vec<String> {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
        // The answer comes after those to all earlier connections.
        let _ = stream.read_to_end(&mut Vec::new());
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.clone()
    }
}

fn answer(mut stream: TcpStream, made: &Mutex<Vec<String>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_WALL))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    if !first.starts_with("POST ") {
        return reply(&mut stream, "405 Method Not Allowed", "");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = &message["id"];
    if id.is_null() {
        return reply(&mut stream, "202 Accepted", "");
    }
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "counting", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{
            "name": "create",
            "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
        }]}),
        Some("tools/call") => {
            let title = &message["params"]["arguments"]["title"];
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push(title.as_str().unwrap_or_default().to_owned());
            if made.len().is_multiple_of(LOST_EACH) {
                return Ok(());
            }
            json!({"content": [{"type": "text", "text": "made"}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return reply(&mut stream, "200 OK", &body.to_string());
        }
    };
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
    reply(&mut stream, "200 OK", &body.to_string())
}

fn reply(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}
