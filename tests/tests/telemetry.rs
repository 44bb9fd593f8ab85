//! Tests the traces and metrics that a collector receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::{Value, json};
use tests::command::{Home, program};
use tests::patience::{PATIENCE, in_one_of_three};
use tests::stdio_host::{StdioHost, text};

const SECRET: &str = "the words of the argument";

/// The path, headers and body of a posted export.
type PostedExport = (String, String, Value);

/// Starts a collector, which accepts one connection at a time.
fn collector() -> (String, Receiver<PostedExport>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (put, posted) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let put = put.clone();
            thread::spawn(move || take_all(stream, &put));
        }
    });
    (address, posted)
}

fn take_all(stream: TcpStream, put: &Sender<PostedExport>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1)?;
        let length: usize = length.split("\r\n").next()?.parse().ok()?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let path = head.split(' ').nth(1)?.to_owned();
        put.send((path, head, serde_json::from_slice(&body).ok()?))
            .ok()?;
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        (&stream).write_all(answer.as_bytes()).ok()?;
    }
}

/// Returns a home with one server, `word`, which logs the messages that it receives.
fn home() -> Home {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let tool = |name: &str| json!({"name": name, "inputSchema": schema});
    let tools = home.write(
        "word.json",
        json!([tool("echo"), tool("secret")]).to_string(),
    );
    let (program, log) = (json!(program("replaying-server")), home.path().join("log"));
    let config = format!(
        "[rules]\nallow = [\"*.*\"]\ndeny = [\"*.secret\"]\n[servers.word]\ncommand = {program}\n\
         args = [{}]\nenv = {{ REPLAY_LOG = {} }}\n",
        json!(tools),
        json!(log)
    );
    home.write("airlock.toml", config);
    home
}

/// Waits for the root span, and returns all spans that have arrived.
fn spans(posted: &Receiver<PostedExport>) -> Vec<Value> {
    let mut spans = Vec::new();
    while !spans.iter().any(|it: &Value| it["name"] == "run_script") {
        let (path, _, body) = posted.recv_timeout(PATIENCE).expect("an export");
        if path == "/v1/traces" {
            let of = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.extend(of.as_array().unwrap().clone());
        }
    }
    spans
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found = spans.iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key);
    found.map_or(&Value::Null, |it| &it["value"]["stringValue"])
}

const SCRIPT: &str = "const a = await word.echo({text: input}); \
    await word.secret({text: input}).catch(() => 0); return a.arguments.text";

/// Returns the arguments of a run of the script.
fn running(input: &str) -> [&str; 7] {
    let file = "airlock.toml";
    ["run", "--config", file, "-e", SCRIPT, "--input", input]
}

#[test]
fn run_trace_has_calls_decisions_and_requests_without_content() {
    // At its end, a process waits only briefly for its collector.
    in_one_of_three(a_run_is_a_trace);
}

fn a_run_is_a_trace() {
    let (address, posted) = collector();
    let home = home();
    let input = json!(SECRET).to_string();
    let mut command = home.airlock(running(&input));
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc");
    command.env("OTEL_SERVICE_NAME", "my-airlock");
    let ended = tests::command::start(&mut command, "")
        .wait()
        .expect_code(0);
    assert!(ended.stdout.contains(SECRET), "{ended}");
    let all: Vec<PostedExport> = std::iter::from_fn(|| posted.try_recv().ok()).collect();
    let told = all.iter().map(|(_, _, body)| body.to_string());
    let told: String = told.collect();
    assert!(!told.contains(SECRET), "{told}");
    assert!(all.iter().all(|(_, head, _)| head.contains("api-key: abc")));
    for metric in [
        "mcp.client.operation.duration",
        "airlock.run.duration",
        "airlock.calls",
    ] {
        assert!(told.contains(metric), "{metric} in {told}");
    }
    let (put, again) = channel();
    all.into_iter().for_each(|it| put.send(it).unwrap());
    drop(put);
    let spans = spans(&again);
    let root = named(&spans, "run_script");
    let call = named(&spans, "execute_tool word.echo");
    let request = named(&spans, "tools/call echo");
    assert_eq!(root["parentSpanId"], "");
    assert_eq!(call["parentSpanId"], root["spanId"]);
    assert_eq!(request["parentSpanId"], call["spanId"]);
    assert_eq!(request["kind"], 3);
    assert_eq!(attribute(request, "mcp.method.name"), "tools/call");
    let denied = named(&spans, "execute_tool word.secret");
    assert_eq!(attribute(denied, "airlock.decision"), "deny");
    assert_eq!(attribute(denied, "error.type"), "denied");
    assert!(spans.iter().all(|it| it["name"] != "tools/call secret"));
    let decisions = spans.iter().filter(|it| it["name"] == "decision");
    assert_eq!(decisions.count(), 2);
    assert!(spans.iter().all(|it| it["traceId"] == root["traceId"]));
    let index = home.path().join(".local/state/airlock/index.jsonl");
    let signed = std::fs::read_to_string(index).unwrap();
    let signed: Value = serde_json::from_str(&signed).unwrap();
    for part in ["head", "key", "signature"] {
        let sent = attribute(root, &format!("airlock.journal.{part}"));
        assert_eq!(sent, &signed[part], "{part}");
    }
    // The request to the server contained its span.
    let log = std::fs::read_to_string(home.path().join("log")).unwrap();
    let (trace, span) = (request["traceId"].as_str(), request["spanId"].as_str());
    let sent = format!("00-{}-{}-01", trace.unwrap(), span.unwrap());
    assert!(log.contains(&sent), "{sent} in {log}");
}

#[test]
fn trace_context_propagates_from_host_to_server() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (address, posted) = collector();
    let home = home();
    let mut command = home.serve(["--quiet", "--config", "airlock.toml"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    let mut host = StdioHost::start(&mut command, &json!({}));
    let arguments = json!({"code": SCRIPT, "input": SECRET});
    let meta = json!({"traceparent": PARENT});
    let params = json!({"name": "run_script", "arguments": arguments, "_meta": meta});
    let ran = host.request("tools/call", &params);
    assert!(text(&ran).contains(SECRET), "{ran}");
    let spans = spans(&posted);
    let root = named(&spans, "run_script");
    assert_eq!(root["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(root["parentSpanId"], "00f067aa0ba902b7");
    let log = std::fs::read_to_string(home.path().join("log")).unwrap();
    assert!(
        log.contains("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{log}"
    );
}

#[test]
fn description_fetches_are_counted() {
    in_one_of_three(fetches_are_told);
}

fn fetches_are_told() {
    let (address, posted) = collector();
    let home = home();
    let mut command = home.serve(["--quiet", "--disclosure", "progressive"]);
    command.args(["--config", "airlock.toml"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    let mut host = StdioHost::start(&mut command, &json!({}));
    let mut fetch = || host.call("get_tool_details", &json!({"tools": ["word.echo"]}));
    while !text(&fetch()).contains("too many description fetches") {}
    drop(host);
    let all = posted.try_iter().map(|(_, _, body)| body.to_string());
    let fetches: Vec<_> = all
        .filter(|it| it.contains("airlock.descriptions.fetches"))
        .collect();
    let told = fetches.last().expect("metrics");
    assert!(
        told.contains("too-often") && told.contains("shown"),
        "{told}"
    );
}

#[test]
fn missing_or_silent_collector_costs_nothing() {
    let home = home();
    let args = running("\"x\"");
    home.run(args).expect_code(0);
    let log = std::fs::read_to_string(home.path().join("log")).unwrap();
    assert!(!log.contains("00-"), "{log}");
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for address in ["http://127.0.0.1:1", &silent] {
        let mut command = home.airlock(args);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
        let ended = tests::command::start(&mut command, "")
            .wait()
            .expect_code(0);
        assert_eq!(ended.stdout.trim(), "x", "{ended}");
        let ended = ended.expect_stderr("the collector does not get all traces and metrics");
        assert_eq!(
            ended.stderr.matches("the collector does not").count(),
            1,
            "{ended}"
        );
    }
    // An environment variable for another program on the same machine does not stop airlock.
    let mut command = home.airlock(args);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let ended = tests::command::start(&mut command, "")
        .wait()
        .expect_code(0);
    assert!(ended.stderr.contains("no telemetry is sent"), "{ended}");
}
