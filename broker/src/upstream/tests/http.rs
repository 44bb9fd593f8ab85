//! Streamable HTTP, in both eras, against servers with a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use airlock_core::outcome::Reply;
use serde_json::{Value, json};

use super::fake::{error, result, text, tool, words};
use super::fake_http::{FakeHttpServer, HttpReply, ReceivedRequest, call, listing, older};
use crate::upstream::era::Era;

/// Answers like a server of the older era with sessions; calls go to the script.
pub(super) fn sessions(
    script: impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync + 'static,
) -> impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync {
    move |asked| match older(asked) {
        Some(page) if asked.method() == "initialize" => page.with("Mcp-Session-Id", "s-1"),
        Some(page) => page,
        None => script(asked),
    }
}

/// Answers like a server of the newer era; calls go to the script.
fn modern(
    tools: Value,
    script: impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync + 'static,
) -> impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync {
    move |asked| match asked.method() {
        "server/discover" => HttpReply::json(&result(
            &asked.body,
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
        )),
        "tools/list" => listing(asked, &tools),
        "tools/call" => script(asked),
        _ => HttpReply {
            status: 404,
            ..HttpReply::json(&error(&asked.body, -32_601))
        },
    }
}

pub(super) fn event(value: &Value) -> String {
    format!("event: message\ndata: {value}\n\n")
}

#[tokio::test]
async fn older_era_http_sends_session_and_revision_headers() {
    let web =
        FakeHttpServer::start(sessions(|asked| HttpReply::json(&text(&asked.body, "old")))).await;
    let (upstream, listed) = web.connect().await;
    assert_eq!((listed.era, listed.failure), (Some(Era::Legacy), None));
    assert_eq!(words(&call(&upstream, &json!({"a": 1})).await), "old");
    upstream.close().await;
    for method in ["notifications/initialized", "tools/list", "tools/call"] {
        let asked = &web.asked(method)[0];
        assert_eq!(asked.headers["mcp-session-id"], "s-1", "{method}");
        assert_eq!(asked.headers["mcp-protocol-version"], "2025-11-25");
        assert_eq!(asked.headers["authorization"], "Bearer header-secret");
        assert_eq!(
            asked.headers["accept"],
            "application/json, text/event-stream"
        );
    }
    let first = &web.asked("initialize")[0];
    assert!(!first.headers.contains_key("mcp-protocol-version"));
    let last = web.asked.lock().unwrap().last().unwrap().clone();
    assert_eq!(
        (last.verb.as_str(), last.headers["mcp-session-id"].as_str()),
        ("DELETE", "s-1")
    );
}

#[tokio::test]
async fn newer_era_http_sends_method_tool_and_mirrored_headers() {
    let tools = json!([
        {"name": "t", "inputSchema": {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
        {"name": "bad", "inputSchema": {"properties": {"x": {"type": "number", "x-mcp-header": "X"}}}}
    ]);
    let web = FakeHttpServer::start(modern(tools, |asked| {
        HttpReply::json(&text(&asked.body, "new"))
    }))
    .await;
    let (upstream, listed) = web.connect().await;
    assert_eq!(listed.era, Some(Era::Modern));
    assert_eq!((listed.tools.len(), listed.problems.len()), (1, 1));
    assert!(listed.problems[0].to_string().contains("`bad`"));
    assert_eq!(
        words(&call(&upstream, &json!({"region": "Köln"})).await),
        "new"
    );
    let asked = &web.asked("tools/call")[0];
    for (header, value) in [
        ("mcp-method", "tools/call"),
        ("mcp-name", "t"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-param-region", "=?base64?S8O2bG4=?="),
    ] {
        assert_eq!(
            asked.headers.get(header).map(String::as_str),
            Some(value),
            "{header}"
        );
    }
    assert!(!asked.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn each_http_answer_kind_is_decoded() {
    let web = FakeHttpServer::start(sessions(|asked| {
        let body = &asked.body;
        match body["params"]["arguments"]["do"].as_str().unwrap() {
            "json" => HttpReply::json(&text(body, "json")),
            "events" => HttpReply::events(&format!(
                ": hi\n\nid: 0\ndata:\n\n{}{}{}",
                event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})),
                event(&json!({"jsonrpc": "2.0", "id": 77, "method": "roots/list"})),
                event(&text(body, "events"))
            ))
            .hanging(),
            "rpc-error" => HttpReply { status: 400, ..HttpReply::json(&error(body, -32_602)) },
            "bare-error" => HttpReply { status: 400, ..HttpReply::json(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32_700, "message": "?"}})) },
            "401" => HttpReply::status(401),
            "429" => HttpReply::status(429),
            "502" => HttpReply::status(502),
            "408" => HttpReply::status(408),
            "303" => HttpReply::status(303).with("Location", "/done"),
            "307" => HttpReply::status(307).with("Location", "http://evil.example/"),
            "gateway-504" => HttpReply { status: 504, ..HttpReply::json(&json!({"error": {"code": 504, "message": "upstream timeout"}})) },
            "gateway-504-rpc" => HttpReply { status: 504, ..HttpReply::json(&error(body, -32_000)) },
            "gateway-400" => HttpReply { status: 400, ..HttpReply::json(&json!({"error": {"code": 400, "message": "?"}})) },
            "bare-409" => HttpReply { status: 409, ..HttpReply::json(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1}})) },
            "other-id" => HttpReply { status: 400, ..HttpReply::json(&json!({"jsonrpc": "2.0", "id": 9_999, "error": {"code": 1}})) },
            "500-rpc" => HttpReply { status: 500, ..HttpReply::json(&error(body, -32_603)) },
            "result-500" => HttpReply { status: 500, ..HttpReply::json(&text(body, "done")) },
            "stray-event" => HttpReply::events(&format!(
                "{}{}",
                event(&json!({"error": {"code": 1, "message": "of somebody"}})),
                event(&text(body, "mine"))
            )),
            "302" => HttpReply::status(302).with("Location", "http://evil.example/"),
            "202" => HttpReply::status(202),
            "html" => HttpReply { body: b"<html>".to_vec(), ..HttpReply::json(&Value::Null) },
            "large" => HttpReply::json(&text(body, &"x".repeat(200_000))),
            "large-event" => HttpReply::events(&event(&text(body, &"x".repeat(200_000)))),
            _ => HttpReply::events(": nothing follows\n\n"),
        }
    }))
    .await;
    let (upstream, _) = web.connect().await;
    for (trick, expected) in [
        ("json", "json"),
        ("events", "events"),
        ("rpc-error", "refused -32602"),
        ("bare-error", "refused -32700"),
        ("401", "not sent"),
        ("429", "not sent"),
        ("502", "lost Disconnected"),
        ("408", "lost Disconnected"),
        ("302", "lost Disconnected"),
        ("303", "lost Disconnected"),
        ("307", "not sent"),
        ("gateway-504", "lost Disconnected"),
        ("gateway-504-rpc", "lost Disconnected"),
        ("gateway-400", "lost Disconnected"),
        ("bare-409", "lost Disconnected"),
        ("other-id", "lost Disconnected"),
        ("500-rpc", "refused -32603"),
        ("result-500", "done"),
        ("stray-event", "mine"),
        ("202", "lost Unreadable"),
        ("html", "lost Unreadable"),
        ("large", "lost TooLarge"),
        ("large-event", "lost TooLarge"),
        ("broken-stream", "lost Disconnected"),
    ] {
        let reply = call(&upstream, &json!({"do": trick})).await;
        assert_eq!(words(&reply), expected, "{trick}: {reply:?}");
        let shown = format!("{reply:?}");
        assert!(!shown.contains("-secret"), "{shown}");
    }
    let answered = web
        .asked
        .lock()
        .unwrap()
        .iter()
        .any(|asked| asked.body["id"] == 77 && asked.body["error"]["code"] == -32_601);
    assert!(answered);
}

#[tokio::test]
async fn lost_session_is_renewed_once_and_call_retried() {
    let calls = AtomicUsize::new(0);
    let web = FakeHttpServer::start(sessions(move |asked| {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => HttpReply::status(404),
            1 => HttpReply::json(&text(&asked.body, "again")),
            _ => HttpReply::status(404),
        }
    }))
    .await;
    let (upstream, _) = web.connect().await;
    assert_eq!(words(&call(&upstream, &json!({})).await), "again");
    assert_eq!(web.asked("initialize").len(), 2);
    assert_eq!(words(&call(&upstream, &json!({})).await), "not sent");
    assert_eq!(web.asked("tools/call").len(), 4);
}

#[tokio::test]
async fn http_400_renews_session_for_next_call() {
    let calls = AtomicUsize::new(0);
    let web = FakeHttpServer::start(sessions(move |asked| {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => HttpReply {
                status: 400,
                ..HttpReply::json(&error(&asked.body, -32_000))
            },
            _ => HttpReply::json(&text(&asked.body, "again")),
        }
    }))
    .await;
    let (upstream, _) = web.connect().await;
    assert_eq!(words(&call(&upstream, &json!({})).await), "refused -32000");
    assert_eq!(web.asked("tools/call").len(), 1);
    assert_eq!(words(&call(&upstream, &json!({})).await), "again");
    assert_eq!(web.asked("initialize").len(), 2);
}

#[tokio::test]
async fn broken_stream_resumes_after_last_event() {
    let web = FakeHttpServer::start(sessions(|_| HttpReply::events("id: e-7\ndata:\n\n"))).await;
    let (upstream, _) = web.connect().await;
    let lost = call(&upstream, &json!({})).await;
    assert_eq!(words(&lost), "lost Disconnected");
    let get = web
        .asked
        .lock()
        .unwrap()
        .iter()
        .find(|asked| asked.verb == "GET")
        .cloned()
        .unwrap();
    assert_eq!(
        (
            get.headers["last-event-id"].as_str(),
            get.headers["mcp-session-id"].as_str()
        ),
        ("e-7", "s-1")
    );

    let web = FakeHttpServer::start(move |asked: &ReceivedRequest| {
        match (asked.verb.as_str(), older(asked)) {
            ("GET", _) => HttpReply::events(&event(
                &json!({"jsonrpc": "2.0", "id": 4, "result": {"content": "resumed"}}),
            )),
            (_, Some(page)) => page,
            _ => HttpReply::events("id: e-7\ndata:\n\n"),
        }
    })
    .await;
    let (upstream, _) = web.connect().await;
    assert_eq!(words(&call(&upstream, &json!({})).await), "resumed");
}

#[tokio::test]
async fn stream_retry_respects_server_delay() {
    let gets = AtomicUsize::new(0);
    let web = FakeHttpServer::start(move |asked: &ReceivedRequest| {
        if asked.verb == "GET" {
            return match gets.fetch_add(1, Ordering::SeqCst) {
                0 | 1 | 3 => HttpReply::status(503),
                2 => HttpReply::events("id: e-8\ndata:\n\n"),
                _ => HttpReply::events(&event(
                    &json!({"jsonrpc": "2.0", "id": 4, "result": {"content": "resumed"}}),
                )),
            };
        }
        older(asked).unwrap_or_else(|| HttpReply::events("retry: 1\nid: e-7\ndata:\n\n"))
    })
    .await;
    let (upstream, _) = web.connect().await;
    assert_eq!(words(&call(&upstream, &json!({})).await), "resumed");
    let asked = web.asked.lock().unwrap().clone();
    let origin: Vec<String> = asked
        .iter()
        .filter(|asked| asked.verb == "GET")
        .map(|asked| asked.headers["last-event-id"].clone())
        .collect();
    assert_eq!(origin, ["e-7", "e-7", "e-7", "e-8", "e-8"]);
}

#[tokio::test]
async fn dropped_call_is_cancelled_per_era() {
    let until = async |happened: &dyn Fn() -> bool| {
        for _ in 0..6_000 {
            if happened() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    };
    // Sends a call and drops it after it has left.
    let give_up = async |web: &FakeHttpServer, upstream: &crate::upstream::pool::Upstream| {
        let arguments = json!({});
        let has_left = async || until(&|| !web.asked("tools/call").is_empty()).await;
        tokio::select! {
            reply = call(upstream, &arguments) => panic!("{reply:?}"),
            has_left = has_left() => assert!(has_left),
        }
    };
    let web = FakeHttpServer::start(sessions(|_| HttpReply::events(": wait\n\n").hanging())).await;
    let (upstream, _) = web.connect().await;
    give_up(&web, &upstream).await;
    assert!(until(&|| web.asked("notifications/cancelled").len() == 1).await);
    let id = &web.asked("tools/call")[0].body["id"];
    assert_eq!(
        &web.asked("notifications/cancelled")[0].body["params"]["requestId"],
        id
    );

    let web = FakeHttpServer::start(modern(json!([tool("t")]), |_| {
        HttpReply::events(": wait\n\n").hanging()
    }))
    .await;
    let (upstream, _) = web.connect().await;
    give_up(&web, &upstream).await;
    assert!(until(&|| *web.hung_up.lock().unwrap() == 1).await);
    assert!(web.asked("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn unusable_url_reports_reason_without_credentials() {
    type Script = fn(&ReceivedRequest) -> HttpReply;
    let cases: [(Script, &str); 5] = [
        (
            |_| HttpReply::status(401),
            "refused the credentials (HTTP status 401)",
        ),
        (
            |_| {
                let error = json!({"error": {"code": 401, "status": "UNAUTHENTICATED"}});
                let page = HttpReply::json(&error);
                HttpReply {
                    status: 401,
                    ..page
                }
            },
            "refused the credentials (HTTP status 401)",
        ),
        (|_| HttpReply::status(405), "HTTP status 405"),
        (
            |_| HttpReply {
                body: b"<html>hello".to_vec(),
                ..HttpReply::status(200)
            },
            "does not answer as an MCP server",
        ),
        (
            |_| HttpReply::events(": nothing\n\n").hanging(),
            "did not finish connecting",
        ),
    ];
    for (script, part) in cases {
        let web = FakeHttpServer::start(script).await;
        let (_, listed) = match part {
            // Only this server never answers, so its time limits are short.
            "did not finish connecting" => {
                let (probe, connect) = (Duration::from_millis(300), Duration::from_secs(2));
                web.connect_within(probe, connect).await
            }
            _ => web.connect().await,
        };
        let failure = listed.failure.unwrap().to_string();
        assert!(failure.contains(part), "{failure}");
        assert!(!failure.contains("secret"), "{failure}");
    }
    let gone = FakeHttpServer {
        url: "http://127.0.0.1:1/mcp".into(),
        asked: Default::default(),
        hung_up: Default::default(),
    };
    let (upstream, listed) = gone.connect().await;
    assert!(
        listed
            .failure
            .unwrap()
            .to_string()
            .contains("cannot be reached")
    );
    assert!(matches!(
        call(&upstream, &json!({})).await,
        Reply::NotSent { .. }
    ));
}
