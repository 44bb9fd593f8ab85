//! A host of either era over either transport, which talks to the `airlock` program.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::command::Home;
use crate::patience::PATIENCE;
use crate::serving::{HttpResponse, ServeProcess};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// An era and a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub is_modern: bool,
    pub is_http: bool,
}

/// Both eras over both transports.
pub const CELLS: [Cell; 4] = [
    Cell::new(false, false),
    Cell::new(true, false),
    Cell::new(false, true),
    Cell::new(true, true),
];

impl Cell {
    const fn new(is_modern: bool, is_http: bool) -> Self {
        Self { is_modern, is_http }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let era = if self.is_modern { MODERN } else { LEGACY };
        write!(
            f,
            "{era} over {}",
            if self.is_http { "HTTP" } else { "stdio" }
        )
    }
}

/// One host with its own airlock process.
#[derive(Debug)]
pub struct AnyHost {
    pub cell: Cell,
    line: Line,
    name: String,
    capabilities: Value,
    latest: u64,
    /// The result of `initialize` or `server/discover`.
    pub greeting: Value,
    /// Messages that no request waited for.
    pub heard: VecDeque<Value>,
}

#[derive(Debug)]
enum Line {
    Stdio {
        child: Child,
        stdin: Option<ChildStdin>,
        lines: Receiver<Value>,
        home: Home,
    },
    Http {
        process: ServeProcess,
        session: Option<String>,
        /// The open stream of messages that belong to no request.
        stream: Option<HttpResponse>,
    },
}

impl AnyHost {
    /// Starts `airlock serve` with these arguments, and connects the client of this name.
    #[must_use]
    pub fn start(cell: Cell, home: Home, args: &[&str], name: &str, capabilities: Value) -> Self {
        Self::start_with(cell, home, args, &[], name, capabilities)
    }

    /// Starts `airlock serve` with these environment variables too.
    #[must_use]
    pub fn start_with(
        cell: Cell,
        home: Home,
        args: &[&str],
        env: &[(&str, &str)],
        name: &str,
        capabilities: Value,
    ) -> Self {
        let mut command = home.serve(args);
        command.envs(env.iter().copied());
        let line = match cell.is_http {
            true => Line::Http {
                process: ServeProcess::start_command(home, command),
                session: None,
                stream: None,
            },
            false => stdio(home, command),
        };
        let mut host = Self {
            cell,
            line,
            name: name.to_owned(),
            capabilities: capabilities.clone(),
            latest: 0,
            greeting: Value::Null,
            heard: VecDeque::new(),
        };
        host.greeting = if cell.is_modern {
            host.request("server/discover", json!({}))
        } else {
            let info = json!({"name": name, "version": "1"});
            let params = json!({
                "protocolVersion": LEGACY,
                "capabilities": capabilities,
                "clientInfo": info,
            });
            let greeting = host.request("initialize", params);
            host.notify("notifications/initialized");
            greeting
        };
        host
    }

    #[must_use]
    pub fn home(&self) -> &Home {
        match &self.line {
            Line::Stdio { home, .. } => home,
            Line::Http { process, .. } => &process.home,
        }
    }

    /// Returns the result of a request; an error fails the test.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(
            answer["error"].is_null(),
            "{} {method}: {answer}",
            self.cell
        );
        answer["result"].clone()
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, args: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": args}))
    }

    pub fn run(&mut self, code: &str) -> Value {
        self.call("run_script", json!({ "code": code }))
    }

    /// Returns the text that a model gets.
    pub fn told(&mut self, tool: &str, args: Value) -> String {
        text(&self.call(tool, args)).to_owned()
    }

    /// Sends a request and returns the whole answer.
    pub fn answer(&mut self, method: &str, mut params: Value) -> Value {
        self.latest += 1;
        let id = self.latest;
        if self.cell.is_modern {
            let info = json!({"name": self.name, "version": "1"});
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = info;
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let is_answer = |it: &Value| it["id"] == id && it["method"].is_null();
        match &mut self.line {
            Line::Stdio { stdin, lines, .. } => {
                let stdin = stdin.as_mut().expect("an open stdin");
                writeln!(stdin, "{message}").expect("a server that reads");
                loop {
                    let message = lines.recv_timeout(PATIENCE).expect("a message");
                    if is_answer(&message) {
                        return message;
                    }
                    self.heard.push_back(message);
                }
            }
            Line::Http {
                process, session, ..
            } => {
                let named = params["name"].as_str().or(params["uri"].as_str());
                let mut page = post(
                    process,
                    self.cell,
                    session.as_deref(),
                    method,
                    named,
                    &message,
                );
                if method == "initialize" {
                    *session = page.header("mcp-session-id");
                }
                loop {
                    let message = page.next_message();
                    let message = message.unwrap_or_else(|| panic!("no answer: {page:?}"));
                    if is_answer(&message) {
                        return message;
                    }
                    self.heard.push_back(message);
                }
            }
        }
    }

    /// Returns the process behind a host over HTTP.
    #[must_use]
    pub fn process(&self) -> &ServeProcess {
        match &self.line {
            Line::Http { process, .. } => process,
            Line::Stdio { .. } => panic!("a host over stdio"),
        }
    }

    /// Opens the stream of messages that belong to no request. Over stdio, there is only one stream.
    pub fn listen(&mut self) {
        if let Line::Http {
            process,
            session,
            stream,
        } = &mut self.line
        {
            let id = session.as_deref().expect("a session");
            let headers = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", id)];
            *stream = Some(process.request("GET", &headers, ""));
        }
    }

    /// Returns the next message that belongs to no request.
    pub fn next_news(&mut self) -> Value {
        match &mut self.line {
            Line::Stdio { lines, .. } => match self.heard.pop_front() {
                Some(message) => message,
                None => lines.recv_timeout(PATIENCE).expect("a message"),
            },
            Line::Http { stream, .. } => {
                let stream = stream.as_mut().expect("an open stream");
                stream.next_message().expect("a message")
            }
        }
    }

    fn notify(&mut self, method: &str) {
        let message = json!({"jsonrpc": "2.0", "method": method});
        match &mut self.line {
            Line::Stdio { stdin, .. } => {
                let stdin = stdin.as_mut().expect("an open stdin");
                writeln!(stdin, "{message}").expect("a server that reads");
            }
            Line::Http {
                process, session, ..
            } => {
                let session = session.as_deref();
                let page = post(process, self.cell, session, method, None, &message);
                assert_eq!(page.status, 202);
            }
        }
    }
}

fn post(
    process: &ServeProcess,
    cell: Cell,
    session: Option<&str>,
    method: &str,
    name: Option<&str>,
    message: &Value,
) -> HttpResponse {
    let version = if cell.is_modern { MODERN } else { LEGACY };
    let mut headers = vec![("MCP-Protocol-Version", version)];
    if cell.is_modern {
        headers.push(("Mcp-Method", method));
        headers.extend(name.map(|name| ("Mcp-Name", name)));
    } else {
        headers.extend(session.map(|it| ("Mcp-Session-Id", it)));
    }
    process.request("POST", &headers, &message.to_string())
}

fn stdio(home: Home, mut command: Command) -> Line {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("airlock starts");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let (hear, lines) = channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            let message = serde_json::from_str(&line).expect("a line of JSON");
            if hear.send(message).is_err() {
                return;
            }
        }
    });
    Line::Stdio {
        stdin: child.stdin.take(),
        child,
        lines,
        home,
    }
}

/// Returns the first text of a result.
#[must_use]
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

impl Drop for AnyHost {
    fn drop(&mut self) {
        if let Line::Stdio { child, stdin, .. } = &mut self.line {
            drop(stdin.take());
            let _ = child.wait();
        }
    }
}
