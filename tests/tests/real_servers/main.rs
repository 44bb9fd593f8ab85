//! Servers that nobody here wrote, over both transports and in both eras: what
//! they answer has to arrive as what it is. One file per server.

mod everything;
mod filesystem;
mod git;
mod memory;
mod passing;
mod several;
mod sqlite;
mod time;

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::command::{Ended, Home, start};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Runs code with these servers, everything allowed; `servers` is the table of `airlock.toml`.
fn run(home: &Home, servers: &Value, code: &str) -> Ended {
    let config =
        toml::to_string(&json!({"servers": servers, "rules": {"allow": ["*.*"]}})).unwrap();
    let config = home.write("airlock.toml", config);
    let script = home.write("script.js", code);
    let args = [
        "run",
        script.to_str().unwrap(),
        "--json",
        "--config",
        config.to_str().unwrap(),
        "--timeout",
        "60s",
    ];
    let mut command = home.airlock(args);
    // Python writes its caches beside its packages, which are shared; the home is not.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    start(&mut command, "").wait()
}

fn value(home: &Home, servers: &Value, code: &str) -> Value {
    run(home, servers, code).expect_code(0).json()["value"].clone()
}

fn stdio(command: &[String], more: &[&str]) -> Value {
    let args: Vec<&str> = command[1..]
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    json!({"command": command[0], "args": args})
}

fn with(mut server: Value, key: &str, what: impl Into<Value>) -> Value {
    server[key] = what.into();
    server
}

/// A server over HTTP, stopped at the end of the test.
struct Listening {
    child: Child,
    url: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(make: impl Fn(u16) -> Command) -> Listening {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let child = make(port)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "the server does not listen"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Listening {
        child,
        url: format!("http://127.0.0.1:{port}/mcp"),
    }
}
