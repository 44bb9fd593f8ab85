//! Tests the demo server over an in-memory pipe.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use super::tools::{DemoTools, ToolReply, descriptions};

struct Talk {
    to: DuplexStream,
    from: tokio::io::Lines<BufReader<DuplexStream>>,
}

impl Talk {
    fn start() -> Self {
        let (to, input) = tokio::io::duplex(1 << 20);
        let (output, from) = tokio::io::duplex(1 << 20);
        tokio::spawn(super::serve_over(input, output));
        Self {
            to,
            from: BufReader::new(from).lines(),
        }
    }

    async fn say(&mut self, message: Value) {
        self.to
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.from.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await;
        self.hear().await
    }
}

fn call(name: &str, arguments: Value) -> Value {
    let arguments = arguments.as_object().unwrap().clone();
    match DemoTools::default().call(name, arguments).unwrap() {
        ToolReply::Now(result) | ToolReply::After(_, result) => result,
    }
}

fn modern() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}

#[test]
fn typed_tools_keep_their_schemas() {
    let samples = [
        ("logs_query", json!({"level": "error", "limit": 500})),
        ("logs_services", json!({})),
        ("logs_count", json!({"service": "auth"})),
        ("tickets_list", json!({"text": "QUEUE"})),
        (
            "tickets_create",
            json!({"title": "a", "priority": "high", "labels": ["b"]}),
        ),
        ("tickets_delete", json!({"id": 1})),
        ("slow_echo", json!({"ms": 1, "value": [null]})),
        ("logs_chart", json!({"service": "auth"})),
        ("flaky_report", json!({"period": "day"})),
        ("get-time", json!({})),
    ];
    let descriptions = descriptions();
    assert_eq!(descriptions.as_array().unwrap().len(), samples.len());
    for (name, arguments) in samples {
        let described = descriptions
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap();
        let accepts = |schema: &Value, value: &Value| {
            codegen::validate::Validator::compile(schema)
                .unwrap()
                .accepts(value)
        };
        assert!(accepts(&described["inputSchema"], &arguments), "{name}");
        let result = call(name, arguments);
        assert_eq!(result.get("isError"), None, "{name}: {result}");
        assert_eq!(
            described.get("outputSchema").is_some(),
            result.get("structuredContent").is_some(),
            "{name}"
        );
        if let Some(schema) = described.get("outputSchema") {
            assert!(
                accepts(schema, &result["structuredContent"]),
                "{name}: {result}"
            );
        }
    }
}

#[test]
fn demo_log_errors_have_five_kinds() {
    let result = call("logs_query", json!({"level": "error", "limit": 200}));
    let entries = result["structuredContent"]["entries"]
        .as_array()
        .unwrap()
        .clone();
    let mut kinds: Vec<&str> = entries
        .iter()
        .map(|entry| entry["message"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.len(), 15);
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 5);
    let later = call(
        "logs_query",
        json!({"level": "error", "since": "2026-11-20T09:00:00Z"}),
    );
    assert_eq!(
        later["structuredContent"]["entries"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn tool_failure_is_an_error_result() {
    for (name, arguments) in [
        ("flaky_report", json!({})),
        ("tickets_delete", json!({"id": 99})),
        ("tickets_create", json!({"title": ""})),
        ("logs_query", json!({"levle": "error"})),
        ("logs_query", json!({"limit": 501})),
        ("logs_query", json!({"since": "yesterday"})),
        ("logs_chart", json!({"service": "none"})),
        ("slow_echo", json!({"ms": 700_000, "value": 1})),
    ] {
        let result = call(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty());
    }
    assert_eq!(
        DemoTools::default().call("none", serde_json::Map::new()),
        None
    );
}

#[tokio::test]
async fn both_eras_are_supported() {
    let mut talk = Talk::start();
    let told = talk
        .ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
        )
        .await;
    assert_eq!(told["result"]["protocolVersion"], "2025-06-18");
    let told = talk.ask("tools/list", json!({})).await;
    assert!(told["result"].get("resultType").is_none(), "{told}");

    let told = talk
        .ask("server/discover", json!({"_meta": modern()}))
        .await;
    assert_eq!(told["result"]["supportedVersions"], json!(["2026-07-28"]));
    let told = talk.ask("tools/list", json!({"_meta": modern()})).await;
    assert_eq!(
        (&told["result"]["resultType"], &told["result"]["cacheScope"]),
        (&json!("complete"), &json!("public"))
    );
}

#[tokio::test]
async fn unknown_method_or_tool_is_refused() {
    let mut talk = Talk::start();
    let other = json!({"io.modelcontextprotocol/protocolVersion": "2027-01-01"});
    for (method, params, code) in [
        ("resources/list", json!({}), -32_601),
        (
            "tools/call",
            json!({"name": "none", "arguments": {}}),
            -32_602,
        ),
        (
            "tools/call",
            json!({"name": "get-time", "arguments": []}),
            -32_602,
        ),
        ("tools/list", json!({"cursor": "x"}), -32_602),
        ("server/discover", json!({}), -32_602),
        ("server/discover", json!({"_meta": other}), -32_022),
    ] {
        assert_eq!(
            talk.ask(method, params).await["error"]["code"],
            code,
            "{method}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slow_calls_run_concurrently_and_cancelled_one_is_not_answered() {
    let mut talk = Talk::start();
    for (id, ms) in [(1, 300), (2, 100), (3, 200)] {
        let params = json!({"name": "slow_echo", "arguments": {"ms": ms, "value": id}});
        talk.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .await;
    }
    talk.say(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
    )
    .await;
    let started = tokio::time::Instant::now();
    assert_eq!(talk.hear().await["id"], 2);
    assert_eq!(talk.hear().await["result"]["structuredContent"]["value"], 1);
    assert!(started.elapsed() < Duration::from_millis(350));
}
