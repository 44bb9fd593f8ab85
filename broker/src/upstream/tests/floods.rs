//! Servers that send too much data, and several calls that lose one connection at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use airlock_core::id::{ServerName, ToolName};
use futures_util::future::{join, join_all};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::children::{SERVER, call as call_child, connect, shell, stderr, text as child_text};
use super::fake::{FakeReply, FakeServer, text, words};
use super::fake_http::{FakeHttpServer, HttpReply, call};
use super::http::{event, sessions};
use crate::deadline::Deadline;
use crate::upstream::diagnostics::Diagnostics;
use crate::upstream::outgoing::OutgoingRequest;
use crate::upstream::stdio::StdioLink;

const GIBIBYTE: u64 = 1 << 30;

#[tokio::test]
async fn gibibyte_line_ends_connection_unread() {
    let line = tokio::io::repeat(b'x').take(GIBIBYTE);
    let diagnostics = Arc::new(Diagnostics::default());
    let link = StdioLink::over(line, tokio::io::sink(), 100_000, diagnostics);
    let outgoing = OutgoingRequest {
        method: "tools/call",
        params: "{}".to_owned(),
        ..OutgoingRequest::default()
    };
    let error = link
        .request(&outgoing, &Deadline::new(Duration::from_secs(60)))
        .await;
    let why = error.unwrap_err().why();
    assert!(why.contains("100000 bytes"), "{why}");
    assert!(link.is_closed());
}

#[tokio::test]
async fn requests_of_a_server_that_does_not_read_are_not_queued() {
    let asked = br#"{"jsonrpc":"2.0","id":ID,"method":"roots/list"}"#;
    let asked = String::from_utf8_lossy(asked);
    let lines: String = (0..10_000)
        .map(|id| format!("{}\n", asked.replace("ID", &id.to_string())))
        .collect();
    let (ours, theirs) = tokio::io::duplex(1_024);
    let (mut said, reader) = tokio::io::duplex(64 * 1024);
    let link = StdioLink::over(reader, ours, 100_000, Arc::default());
    said.write_all(lines.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert!(tasks < 100, "{tasks}");
    assert!(!link.is_closed());
    drop(theirs);
}

#[tokio::test]
async fn stderr_flood_blocks_no_answer_and_only_tail_is_kept() {
    const KEPT_MAX: usize = 32 * 1024;
    let flood = format!(
        "head -c 64000000 /dev/zero | tr '\\0' x >&2; echo last >&2; {}",
        child_text("dry")
    );
    let (upstream, _) = connect(shell(SERVER.replace("CALL", &flood))).await;
    assert_eq!(words(&call_child(&upstream).await), "dry");
    let kept = stderr(&upstream);
    assert!(kept.len() <= KEPT_MAX, "{} bytes", kept.len());
}

#[tokio::test]
async fn event_flood_blocks_no_answer_and_times_out() {
    let web = FakeHttpServer::start(sessions(|asked| {
        let flood = event(&json!({"jsonrpc": "2.0", "method": "notifications/x"})).repeat(20_000);
        match asked.body["params"]["arguments"]["do"].as_str() {
            Some("answer") => {
                HttpReply::events(&format!("{flood}{}", event(&text(&asked.body, "dry"))))
            }
            _ => HttpReply::events(&flood).hanging(),
        }
    }))
    .await;
    let (upstream, _) = web.connect().await;
    let reply = call(&upstream, &json!({"do": "answer"})).await;
    assert_eq!(words(&reply), "dry");
    let name = ServerName("web".into());
    // On a busy machine, the call may not have left within the shorter time.
    let mut ended = String::new();
    for within_ms in [500, 10_000, 100_000] {
        let within = Duration::from_millis(within_ms);
        let endless = upstream.call(&name, &ToolName("t".into()), b"{}".to_vec(), within);
        ended = words(&endless.await);
        if ended == "lost TimedOut" {
            break;
        }
    }
    assert_eq!(ended, "lost TimedOut");
    let report = upstream.diagnostics(&name).unwrap();
    assert!(report.notifications_total >= 20_000, "{report:?}");
}

#[tokio::test]
async fn two_calls_losing_a_session_share_one_new_session() {
    let sessions_begun = Arc::new(AtomicUsize::new(0));
    let begun = sessions_begun.clone();
    let web = FakeHttpServer::start(move |asked| match super::fake_http::older(asked) {
        Some(page) if asked.method() == "initialize" => {
            let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
            page.with("Mcp-Session-Id", &format!("s-{number}"))
        }
        Some(page) => page,
        None if asked.headers["mcp-session-id"] == "s-1" => HttpReply::status(404),
        None => HttpReply::json(&text(&asked.body, "again")),
    })
    .await;
    let (upstream, _) = web.connect().await;
    let (one, two) = (json!({"n": 1}), json!({"n": 2}));
    let replies = join(call(&upstream, &one), call(&upstream, &two)).await;
    assert_eq!(
        (words(&replies.0), words(&replies.1)),
        ("again".to_owned(), "again".to_owned())
    );
    assert_eq!(sessions_begun.load(Ordering::SeqCst), 2);
    let calls = web.asked("tools/call");
    for number in [1, 2] {
        let made: Vec<&str> = calls
            .iter()
            .filter(|call| call.body["params"]["arguments"]["n"] == number)
            .map(|call| call.headers["mcp-session-id"].as_str())
            .collect();
        // The slower call may find that the new session has already begun.
        assert!(
            matches!(made.as_slice(), ["s-1", "s-2"] | ["s-2"]),
            "{made:?}"
        );
    }
}

#[tokio::test]
async fn calls_finding_server_dead_start_it_once() {
    let fake = FakeServer::calling(|connect, message| match connect {
        1 => vec![FakeReply::Die],
        _ => vec![FakeReply::Json(text(message, "fine"))],
    });
    let (connected, _) = fake.connect().await;
    assert_eq!(
        words(&connected.call("{}", 5_000).await),
        "lost Disconnected"
    );
    let replies = join_all((0..8).map(|_| connected.call("{}", 5_000))).await;
    for reply in &replies {
        assert_eq!(words(reply), "fine");
    }
    assert_eq!(connected.dials(), 2);
}
