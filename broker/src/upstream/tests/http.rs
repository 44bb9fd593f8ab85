//! Streamable HTTP, in both eras, against servers with a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use airlock_core::outcome::Reply;
use serde_json::{Value, json};

use super::fake::{error, result, text, tool, words};
use super::fake_http::{Asked, Page, Web, call, listing, older};
use crate::upstream::era::Era;

/// A server of the older era with sessions, except for calls.
pub(super) fn sessions(
    script: impl Fn(&Asked) -> Page + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Page + Send + Sync {
    move |asked| match older(asked) {
        Some(page) if asked.method() == "initialize" => page.with("Mcp-Session-Id", "s-1"),
        Some(page) => page,
        None => script(asked),
    }
}

/// A server of the newer era, except for calls.
fn modern(
    tools: Value,
    script: impl Fn(&Asked) -> Page + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Page + Send + Sync {
    move |asked| match asked.method() {
        "server/discover" => Page::json(&result(
            &asked.body,
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
        )),
        "tools/list" => listing(asked, &tools),
        "tools/call" => script(asked),
        _ => Page {
            status: 404,
            ..Page::json(&error(&asked.body, -32_601))
        },
    }
}

pub(super) fn event(value: &Value) -> String {
    format!("event: message\ndata: {value}\n\n")
}

#[tokio::test]
async fn in_the_older_era_the_session_and_the_revision_go_with_every_message() {
    let web = Web::start(sessions(|asked| Page::json(&text(&asked.body, "old")))).await;
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
async fn in_the_newer_era_headers_repeat_the_method_the_tool_and_marked_arguments() {
    let tools = json!([
        {"name": "t", "inputSchema": {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
        {"name": "bad", "inputSchema": {"properties": {"x": {"type": "number", "x-mcp-header": "X"}}}}
    ]);
    let web = Web::start(modern(tools, |asked| Page::json(&text(&asked.body, "new")))).await;
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
async fn each_kind_of_http_answer_is_read_for_what_it_is() {
    let web = Web::start(sessions(|asked| {
        let body = &asked.body;
        match body["params"]["arguments"]["do"].as_str().unwrap() {
            "json" => Page::json(&text(body, "json")),
            "events" => Page::events(&format!(
                ": hi\n\nid: 0\ndata:\n\n{}{}{}",
                event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})),
                event(&json!({"jsonrpc": "2.0", "id": 77, "method": "roots/list"})),
                event(&text(body, "events"))
            ))
            .hanging(),
            "rpc-error" => Page { status: 400, ..Page::json(&error(body, -32_602)) },
            "bare-error" => Page { status: 400, ..Page::json(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32_700, "message": "?"}})) },
            "401" => Page::status(401),
            "429" => Page::status(429),
            "502" => Page::status(502),
            "408" => Page::status(408),
            "303" => Page::status(303).with("Location", "/done"),
            "307" => Page::status(307).with("Location", "http://evil.example/"),
            "gateway-504" => Page { status: 504, ..Page::json(&json!({"error": {"code": 504, "message": "upstream timeout"}})) },
            "gateway-504-rpc" => Page { status: 504, ..Page::json(&error(body, -32_000)) },
            "gateway-400" => Page { status: 400, ..Page::json(&json!({"error": {"code": 400, "message": "?"}})) },
            "bare-409" => Page { status: 409, ..Page::json(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1}})) },
            "other-id" => Page { status: 400, ..Page::json(&json!({"jsonrpc": "2.0", "id": 9_999, "error": {"code": 1}})) },
            "500-rpc" => Page { status: 500, ..Page::json(&error(body, -32_603)) },
            "result-500" => Page { status: 500, ..Page::json(&text(body, "done")) },
            "stray-event" => Page::events(&format!(
                "{}{}",
                event(&json!({"error": {"code": 1, "message": "of somebody"}})),
                event(&text(body, "mine"))
            )),
            "302" => Page::status(302).with("Location", "http://evil.example/"),
            "202" => Page::status(202),
            "html" => Page { body: b"<html>".to_vec(), ..Page::json(&Value::Null) },
            "large" => Page::json(&text(body, &"x".repeat(200_000))),
            "large-event" => Page::events(&event(&text(body, &"x".repeat(200_000)))),
            _ => Page::events(": nothing follows\n\n"),
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
async fn a_session_that_is_gone_is_begun_again_once_and_the_call_made_in_the_new_one() {
    let calls = AtomicUsize::new(0);
    let web = Web::start(sessions(move |asked| {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Page::status(404),
            1 => Page::json(&text(&asked.body, "again")),
            _ => Page::status(404),
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
async fn a_session_that_is_gone_is_begun_again_for_the_next_call_when_the_server_says_400() {
    let calls = AtomicUsize::new(0);
    let web = Web::start(sessions(move |asked| {
        match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Page {
                status: 400,
                ..Page::json(&error(&asked.body, -32_000))
            },
            _ => Page::json(&text(&asked.body, "again")),
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
async fn a_stream_that_breaks_is_taken_up_behind_its_last_event() {
    let web = Web::start(sessions(|_| Page::events("id: e-7\ndata:\n\n"))).await;
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

    let web = Web::start(
        move |asked: &Asked| match (asked.verb.as_str(), older(asked)) {
            ("GET", _) => Page::events(&event(
                &json!({"jsonrpc": "2.0", "id": 4, "result": {"content": "resumed"}}),
            )),
            (_, Some(page)) => page,
            _ => Page::events("id: e-7\ndata:\n\n"),
        },
    )
    .await;
    let (upstream, _) = web.connect().await;
    assert_eq!(words(&call(&upstream, &json!({})).await), "resumed");
}

#[tokio::test]
async fn a_server_in_trouble_is_asked_again_for_the_rest_of_a_stream_in_its_own_time() {
    let gets = AtomicUsize::new(0);
    let web = Web::start(move |asked: &Asked| {
        if asked.verb == "GET" {
            return match gets.fetch_add(1, Ordering::SeqCst) {
                0 | 1 | 3 => Page::status(503),
                2 => Page::events("id: e-8\ndata:\n\n"),
                _ => Page::events(&event(
                    &json!({"jsonrpc": "2.0", "id": 4, "result": {"content": "resumed"}}),
                )),
            };
        }
        older(asked).unwrap_or_else(|| Page::events("retry: 1\nid: e-7\ndata:\n\n"))
    })
    .await;
    let (upstream, _) = web.connect().await;
    assert_eq!(words(&call(&upstream, &json!({})).await), "resumed");
    let asked = web.asked.lock().unwrap().clone();
    let behind: Vec<String> = asked
        .iter()
        .filter(|asked| asked.verb == "GET")
        .map(|asked| asked.headers["last-event-id"].clone())
        .collect();
    assert_eq!(behind, ["e-7", "e-7", "e-7", "e-8", "e-8"]);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_by_a_message_in_the_older_era_and_by_hanging_up_in_the_newer()
{
    let until = async |happened: &dyn Fn() -> bool| {
        for _ in 0..6_000 {
            if happened() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    };
    // Drops a call that has left.
    let give_up = async |web: &Web, upstream: &crate::upstream::pool::Upstream| {
        let arguments = json!({});
        let has_left = async || until(&|| !web.asked("tools/call").is_empty()).await;
        tokio::select! {
            reply = call(upstream, &arguments) => panic!("{reply:?}"),
            has_left = has_left() => assert!(has_left),
        }
    };
    let web = Web::start(sessions(|_| Page::events(": wait\n\n").hanging())).await;
    let (upstream, _) = web.connect().await;
    give_up(&web, &upstream).await;
    assert!(until(&|| web.asked("notifications/cancelled").len() == 1).await);
    let id = &web.asked("tools/call")[0].body["id"];
    assert_eq!(
        &web.asked("notifications/cancelled")[0].body["params"]["requestId"],
        id
    );

    let web = Web::start(modern(json!([tool("t")]), |_| {
        Page::events(": wait\n\n").hanging()
    }))
    .await;
    let (upstream, _) = web.connect().await;
    give_up(&web, &upstream).await;
    assert!(until(&|| *web.hung_up.lock().unwrap() == 1).await);
    assert!(web.asked("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn an_address_that_cannot_be_used_says_why_and_shows_no_credential() {
    type Script = fn(&Asked) -> Page;
    let cases: [(Script, &str); 5] = [
        (
            |_| Page::status(401),
            "refused the credentials (HTTP status 401)",
        ),
        (
            |_| {
                let error = json!({"error": {"code": 401, "status": "UNAUTHENTICATED"}});
                let page = Page::json(&error);
                Page {
                    status: 401,
                    ..page
                }
            },
            "refused the credentials (HTTP status 401)",
        ),
        (|_| Page::status(405), "HTTP status 405"),
        (
            |_| Page {
                body: b"<html>hello".to_vec(),
                ..Page::status(200)
            },
            "does not answer as an MCP server",
        ),
        (
            |_| Page::events(": nothing\n\n").hanging(),
            "did not finish connecting",
        ),
    ];
    for (script, part) in cases {
        let web = Web::start(script).await;
        let (_, listed) = match part {
            // Only one of them is waited for in vain.
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
    let gone = Web {
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
