//! `airlock serve --http` on a port of its own, and a host that speaks to it
//! in plain HTTP.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::command::Home;
use crate::patience::PATIENCE;

/// A server; killed at the end of its test.
#[derive(Debug)]
pub struct Serving {
    child: Child,
    /// What it says on stderr after the place where it serves.
    stderr: Option<thread::JoinHandle<String>>,
    pub address: String,
    pub home: Home,
}

/// A response whose body may still be coming.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    /// Lower case, a line each.
    pub headers: String,
    body: BufReader<TcpStream>,
}

/// A host of the older era with a session of its own.
#[derive(Debug, Clone)]
pub struct Session {
    address: String,
    id: String,
}

impl Serving {
    /// Serves with these arguments, in a new home, and waits until hosts can come.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::start_in(Home::new(), args)
    }

    #[must_use]
    pub fn start_in<S: AsRef<OsStr>>(home: Home, args: impl IntoIterator<Item = S>) -> Self {
        let mut child = home
            .serve(args)
            .args(["--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("airlock starts");
        let (place, places) = mpsc::channel();
        let stderr = child.stderr.take().expect("a pipe");
        let stderr = thread::spawn(move || read_stderr(stderr, &place));
        let address = match places.recv_timeout(PATIENCE) {
            Ok(address) => address,
            Err(_) => {
                let _ = child.kill();
                let said = stderr.join().unwrap_or_default();
                panic!("airlock does not serve\n{said}");
            }
        };
        Self {
            child,
            stderr: Some(stderr),
            address,
            home,
        }
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A request with these headers beside those that every request has.
    #[must_use]
    pub fn request(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> Page {
        request(&self.address, verb, "/mcp", headers, body)
    }

    /// The same at another path.
    #[must_use]
    pub fn fetch(&self, path: &str, headers: &[(&str, &str)]) -> Page {
        request(&self.address, "GET", path, headers, "")
    }

    /// A host that can do what `capabilities` say.
    #[must_use]
    pub fn session(&self, capabilities: &Value) -> Session {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let page = self.request("POST", &[], &message(Some(0), "initialize", &params));
        let id = page.header("mcp-session-id").expect("a session");
        Session {
            address: self.address.clone(),
            id,
        }
    }

    /// Sends a signal and waits for the end; its code, how long that took, and what was said.
    pub fn stop(&mut self, signal: Signal) -> (Option<i32>, Duration, String) {
        let since = Instant::now();
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), signal).expect("a signal to our own child");
        let code = loop {
            match self.child.try_wait().expect("our own child") {
                Some(status) => break status.code(),
                None if since.elapsed() > PATIENCE => break None,
                None => thread::park_timeout(Duration::from_millis(2)),
            }
        };
        let took = since.elapsed();
        let _ = self.child.kill();
        let said = self.stderr.take().and_then(|it| it.join().ok());
        (code, took, said.unwrap_or_default())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, so that the server never waits for a reader.
fn read_stderr(stderr: ChildStderr, place: &mpsc::Sender<String>) -> String {
    let mut said = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let url = line.rsplit_once("http://").map(|(_, rest)| rest);
        if let Some((address, _)) = url.and_then(|url| url.split_once("/mcp")) {
            let _ = place.send(address.to_owned());
        }
        said.push_str(&line);
        said.push('\n');
    }
    said
}

impl Session {
    /// Sends a request and hands out the response while it is coming.
    #[must_use]
    pub fn begin(&self, id: u64, method: &str, params: &Value) -> Page {
        self.post(&message(Some(id), method, params))
    }

    pub fn notify(&self, method: &str, params: &Value) {
        assert_eq!(self.post(&message(None, method, params)).status, 202);
    }

    /// The stream of what it is told outside of its requests, from now on.
    #[must_use]
    pub fn listen(&self) -> Page {
        self.notify("notifications/initialized", &json!({}));
        let headers = [
            ("Mcp-Session-Id", self.id.as_str()),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        request(&self.address, "GET", "/mcp", &headers, "")
    }

    pub fn end(&self) {
        let headers = [("Mcp-Session-Id", self.id.as_str())];
        let ended = request(&self.address, "DELETE", "/mcp", &headers, "");
        assert_eq!(ended.status, 204);
    }

    /// Answers a request of the server.
    pub fn reply(&self, id: &Value, result: &Value) {
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(self.post(&reply.to_string()).status, 202);
    }

    /// Refuses a request of the server.
    pub fn refuse(&self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        let refusal = json!({"jsonrpc": "2.0", "id": id, "error": error});
        assert_eq!(self.post(&refusal.to_string()).status, 202);
    }

    /// Calls a tool to its end.
    #[must_use]
    pub fn call(&self, id: u64, tool: &str, args: &Value) -> Value {
        let params = json!({"name": tool, "arguments": args});
        self.begin(id, "tools/call", &params).answer(id)
    }

    #[must_use]
    pub fn run(&self, id: u64, code: &str) -> Value {
        self.call(id, "run_script", &json!({ "code": code }))
    }

    fn post(&self, body: &str) -> Page {
        let headers = [
            ("Mcp-Session-Id", self.id.as_str()),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        request(&self.address, "POST", "/mcp", &headers, body)
    }
}

impl Page {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let start = format!("{name}: ");
        let mut lines = self.headers.lines();
        lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    }

    /// The next message of the body.
    pub fn next_message(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.body.read_line(&mut line).expect("a body") > 0 {
            let text = line.strip_prefix("data: ").unwrap_or(&line).trim();
            if let Ok(message) = serde_json::from_str(text) {
                return Some(message);
            }
            line.clear();
        }
        None
    }

    /// The first message that has this method.
    #[must_use]
    pub fn told(&mut self, method: &str) -> Value {
        loop {
            let message = self.next_message();
            let message = message.unwrap_or_else(|| panic!("the answer ended before {method}"));
            if message["method"] == method {
                return message;
            }
        }
    }

    /// The result of this request, whatever comes before it.
    #[must_use]
    pub fn answer(mut self, id: u64) -> Value {
        while let Some(message) = self.next_message() {
            if message["id"] == id && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
        panic!("no answer to {id}: {} {}", self.status, self.headers);
    }

    /// The whole body as text.
    #[must_use]
    pub fn text(mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).expect("a body");
        text
    }
}

#[must_use]
pub fn message(id: Option<u64>, method: &str, params: &Value) -> String {
    let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message.to_string()
}

/// The older HTTP: a response ends where its connection does.
fn request(address: &str, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Page {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a time limit");
    let mut text = format!(
        "{verb} {path} HTTP/1.0\r\nContent-Length: {}\r\n",
        body.len()
    );
    let usual = [
        ("Host", address),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let missing = usual
        .iter()
        .filter(|(name, _)| !headers.iter().any(|(it, _)| it == name));
    for (name, value) in missing.chain(headers) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{text}\r\n{body}").as_bytes())
        .expect("a request");
    let mut body = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        let read = body.read_line(&mut line).expect("a response");
        let line = line.trim_end().to_ascii_lowercase();
        if read == 0 || line.is_empty() {
            break;
        }
        head.push(line);
    }
    let status = head.first().and_then(|line| line.split(' ').nth(1));
    Page {
        status: status.and_then(|it| it.parse().ok()).unwrap_or_default(),
        headers: head.join("\n"),
        body,
    }
}
