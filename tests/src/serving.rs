//! Runs `airlock serve --http` on a free port, with a client that sends plain HTTP requests.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::command::Home;
use crate::patience::PATIENCE;
use crate::process::Process;

/// Arguments of `airlock serve` that take everything else from the configuration of the home.
pub const CONFIGURED: [&str; 6] = [
    "--config",
    "airlock.toml",
    "--disclosure",
    "full",
    "--start-wait",
    "600s",
];

/// A server process; killed at the end of its test.
#[derive(Debug)]
pub struct ServeProcess {
    child: Child,
    /// Collects the stderr that follows the line with the address.
    stderr: Option<thread::JoinHandle<String>>,
    pub address: String,
    pub home: Home,
}

/// A response whose body may still be arriving.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// The headers in lower case, one per line.
    pub headers: String,
    body: BufReader<TcpStream>,
}

/// A host of the older era, in its own session.
#[derive(Debug, Clone)]
pub struct Session {
    address: String,
    id: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
}

impl ServeProcess {
    /// Starts `airlock serve` with these arguments in a new home, and waits until it accepts hosts.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::start_in(Home::new(), args)
    }

    #[must_use]
    pub fn start_in<S: AsRef<OsStr>>(home: Home, args: impl IntoIterator<Item = S>) -> Self {
        let command = home.serve(args);
        Self::start_command(home, command)
    }

    /// Starts this `airlock serve`, and waits until it accepts hosts.
    #[must_use]
    pub fn start_command(home: Home, mut command: Command) -> Self {
        let mut child = command
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
                panic!("airlock did not start to serve\n{said}");
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
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    #[must_use]
    pub fn process(&self) -> Process {
        Process(self.pid())
    }

    /// Sends a request with these additional headers.
    #[must_use]
    pub fn request(&self, verb: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        request(&self.address, verb, "/mcp", headers, body)
    }

    /// Sends a request to another path.
    #[must_use]
    pub fn fetch(&self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        request(&self.address, "GET", path, headers, "")
    }

    /// Opens a session for a host with these `capabilities`, whose client has a unique name.
    #[must_use]
    pub fn session(&self, capabilities: &Value) -> Session {
        static CLIENTS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test {}", CLIENTS.fetch_add(1, Ordering::Relaxed));
        self.session_of(&name, capabilities)
    }

    /// Opens a session for the client of this name.
    #[must_use]
    pub fn session_of(&self, name: &str, capabilities: &Value) -> Session {
        self.open(name, capabilities, None)
    }

    /// Opens a session for the caller with this token.
    #[must_use]
    pub fn session_with_token(&self, token: &str, capabilities: &Value) -> Session {
        self.open("test", capabilities, Some(format!("Bearer {token}")))
    }

    fn open(&self, name: &str, capabilities: &Value, authorization: Option<String>) -> Session {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": name, "version": "1"},
        });
        let header = authorization.as_deref().map(|it| ("Authorization", it));
        let headers: Vec<_> = header.into_iter().collect();
        let page = self.request("POST", &headers, &message(Some(0), "initialize", &params));
        let id = page.header("mcp-session-id").expect("a session");
        Session {
            address: self.address.clone(),
            id,
            authorization,
        }
    }

    /// Ends the process by a signal, and starts another one in the same home.
    #[must_use]
    pub fn restart<S: AsRef<OsStr>>(
        mut self,
        signal: Signal,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        self.stop(signal);
        Self::start_in(std::mem::take(&mut self.home), args)
    }

    /// Sends a signal and waits for the end. Returns the exit code, the duration, and stderr.
    pub fn stop(&mut self, signal: Signal) -> (Option<i32>, Duration, String) {
        let since = Instant::now();
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("sending a signal");
        let code = loop {
            match self.child.try_wait().expect("a child process") {
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

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, so that the server never blocks on its output.
fn read_stderr(stderr: ChildStderr, place: &mpsc::Sender<String>) -> String {
    let mut said = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        // A warning can name the address of a server.
        let is_own = line.starts_with("serving ");
        let url = line.rsplit_once("http://").filter(|_| is_own);
        let url = url.map(|(_, rest)| rest);
        if let Some((address, _)) = url.and_then(|url| url.split_once("/mcp")) {
            let _ = place.send(address.to_owned());
        }
        said.push_str(&line);
        said.push('\n');
    }
    said
}

impl Session {
    /// Returns the same session at another process.
    #[must_use]
    pub fn moved_to(&self, process: &ServeProcess) -> Self {
        Self {
            address: process.address.clone(),
            id: self.id.clone(),
            authorization: self.authorization.clone(),
        }
    }

    /// Sends a request and returns the response while it is arriving.
    #[must_use]
    pub fn begin(&self, id: u64, method: &str, params: &Value) -> HttpResponse {
        self.post(&message(Some(id), method, params))
    }

    /// Sends a request and does not wait for its response.
    #[must_use]
    pub fn begin_without_waiting(&self, id: u64, method: &str, params: &Value) -> TcpStream {
        send(
            &self.address,
            "POST",
            "/mcp",
            &self.headers(),
            &message(Some(id), method, params),
        )
    }

    pub fn notify(&self, method: &str, params: &Value) {
        assert_eq!(self.post(&message(None, method, params)).status, 202);
    }

    /// Opens the stream of messages that belong to no request.
    #[must_use]
    pub fn listen(&self) -> HttpResponse {
        self.notify("notifications/initialized", &json!({}));
        request(&self.address, "GET", "/mcp", &self.headers(), "")
    }

    pub fn end(&self) {
        let ended = request(&self.address, "DELETE", "/mcp", &self.headers(), "");
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

    /// Calls a tool and waits for the result.
    #[must_use]
    pub fn call(&self, id: u64, tool: &str, args: &Value) -> Value {
        let params = json!({"name": tool, "arguments": args});
        self.begin(id, "tools/call", &params).answer(id)
    }

    #[must_use]
    pub fn run(&self, id: u64, code: &str) -> Value {
        self.call(id, "run_script", &json!({ "code": code }))
    }

    fn post(&self, body: &str) -> HttpResponse {
        request(&self.address, "POST", "/mcp", &self.headers(), body)
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let usual = [
            ("Mcp-Session-Id", self.id.as_str()),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        let authorization = self.authorization.as_deref();
        let authorization = authorization.map(|it| ("Authorization", it));
        usual.into_iter().chain(authorization).collect()
    }
}

impl HttpResponse {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let start = format!("{name}: ");
        let mut lines = self.headers.lines();
        lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    }

    /// Returns the next message of the body.
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

    /// Returns the first message with this method.
    #[must_use]
    pub fn told(&mut self, method: &str) -> Value {
        loop {
            let message = self.next_message();
            let message = message.unwrap_or_else(|| panic!("the response ended before {method}"));
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Returns the result of this request, and skips all messages before it.
    #[must_use]
    pub fn answer(mut self, id: u64) -> Value {
        while let Some(message) = self.next_message() {
            if message["id"] == id && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
        panic!("no response to {id}: {} {}", self.status, self.headers);
    }

    /// Returns the whole body as text.
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

/// Sends a request over HTTP/1.0, in which a response ends with its connection.
pub(crate) fn request(
    address: &str,
    verb: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpResponse {
    let stream = send(address, verb, path, headers, body);
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
    HttpResponse {
        status: status.and_then(|it| it.parse().ok()).unwrap_or_default(),
        headers: head.join("\n"),
        body,
    }
}

fn send(address: &str, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
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
    stream
}
