//! Tests third-party servers over both transports and in both eras. Their results must arrive
//! unchanged. Each server has its own file.

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

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home, start};
use tests::patience::wait_until;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Runs code with these servers and all calls allowed. `servers` is the table of `airlock.toml`.
fn run(home: &Home, servers: &Value, code: &str) -> CommandOutput {
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
        "1000s",
    ];
    let mut command = home.airlock(args);
    // Otherwise Python would write its caches beside its packages, which all tests share.
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
struct HttpServerProcess {
    child: Child,
    url: String,
}

impl Drop for HttpServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server on a port that was free a moment ago. If another process has taken the port, the
/// server ends, and this function tries another port.
fn listen(make: impl Fn(u16) -> Command) -> HttpServerProcess {
    const TRIES: usize = 3;
    let listening = (0..TRIES).find_map(|_| try_listen(&make));
    listening.expect("a server that listens")
}

fn try_listen(make: impl Fn(u16) -> Command) -> Option<HttpServerProcess> {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let child = make(port)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut listening = HttpServerProcess {
        child,
        url: format!("http://127.0.0.1:{port}/mcp"),
    };
    let (mut has_ended, mut is_open) = (false, false);
    wait_until(|| {
        has_ended = !matches!(listening.child.try_wait(), Ok(None));
        is_open = is_listened_to(port);
        has_ended || is_open
    });
    (is_open && !has_ended).then_some(listening)
}

/// Returns whether a process listens on the port. A connection to a free local port may by chance
/// be connected to itself.
fn is_listened_to(port: u16) -> bool {
    let stream = TcpStream::connect(("127.0.0.1", port));
    stream.is_ok_and(|it| it.local_addr().unwrap() != it.peer_addr().unwrap())
}
