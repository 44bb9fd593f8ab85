//! A host of the older era that talks to `airlock serve` over its pipes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::patience::PATIENCE;

/// One connection, with the messages that were received but not yet returned.
#[derive(Debug)]
pub struct StdioHost {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    heard: VecDeque<Value>,
    latest: u64,
    /// The result of `initialize`.
    pub greeting: Value,
}

impl StdioHost {
    /// Starts the command and performs the handshake.
    pub fn start(command: &mut Command, capabilities: &Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
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
        let mut host = Self {
            stdin: child.stdin.take(),
            child,
            lines,
            heard: VecDeque::new(),
            latest: 0,
            greeting: Value::Null,
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "a test", "version": "1"},
        });
        host.greeting = host.request("initialize", &params);
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the result of a request; an error fails the test.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.wait_for(|it| it["id"] == id && it["method"].is_null());
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.latest += 1;
        let id = self.latest;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Calls one of the listed tools.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    /// Returns the first message that fits. Waits for one if none was received.
    pub fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&fits) {
            return self.heard.remove(at).expect("a message");
        }
        loop {
            let message = self.lines.recv_timeout(PATIENCE).expect("a message");
            if fits(&message) {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    pub fn wait_for_list_change(&mut self) {
        self.wait_for(|it| it["method"] == "notifications/tools/list_changed");
    }

    pub fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("an open stdin");
        writeln!(stdin, "{message}").expect("a server that reads");
        stdin.flush().expect("a server that reads");
    }
}

/// Returns the text of a tool's result.
#[must_use]
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

impl Drop for StdioHost {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
