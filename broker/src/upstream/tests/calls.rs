//! Calls with valid, invalid, late, repeated and missing answers.

use std::time::Duration;

use airlock_core::outcome::Reply;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::fake::{FakeReply, FakeServer, error, result, text, words};

/// Creates a server that does what the argument `do` of a call names, and echoes the argument
/// otherwise.
fn playing(script: impl Fn(&str, &Value) -> Vec<FakeReply> + Send + Sync + 'static) -> FakeServer {
    FakeServer::calling(move |_, message| {
        script(
            message["params"]["arguments"]["do"]
                .as_str()
                .unwrap_or_default(),
            message,
        )
    })
}

fn raw(message: &Value, result: &str) -> FakeReply {
    FakeReply::Raw(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n",
            message["id"]
        )
        .into_bytes(),
    )
}

fn stray(bytes: &[u8]) -> FakeReply {
    FakeReply::Raw(bytes.to_vec())
}

#[tokio::test]
async fn each_answer_kind_is_decoded_and_connection_survives() {
    let fake = playing(|trick, message| {
        match trick {
        "value" => vec![raw(
            message,
            r#"{"content":[],"structuredContent":{"n":123456789012345678901234567890}}"#,
        )],
        "is-error" => vec![raw(
            message,
            r#"{"content":[{"type":"text","text":"bad"}],"isError":true}"#,
        )],
        "rpc-error" => vec![FakeReply::Json(error(message, -32_602))],
        "input" => vec![raw(
            message,
            r#"{"resultType":"input_required","inputRequests":{}}"#,
        )],
        "too-large" => vec![raw(
            message,
            &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(400_000)),
        )],
        "too-large-id-behind" => vec![FakeReply::Raw(
            format!(
                "{{\"result\":{{\"x\":\"{}\"}},\"jsonrpc\":\"2.0\",\"id\":{}}}\n",
                "x".repeat(400_000),
                message["id"]
            )
            .into_bytes(),
        )],
        "slightly-too-large" => vec![raw(
            message,
            &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(100_000)),
        )],
        "deep" => vec![raw(
            message,
            &format!(
                "{{\"content\":{}{}}}",
                "[".repeat(30_000),
                "]".repeat(30_000)
            ),
        )],
        "utf-8" => vec![FakeReply::Raw(
            [
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":\"",
                    message["id"]
                )
                .as_bytes(),
                b"\xff\"}\n",
            ]
            .concat(),
        )],
        "no-result" => vec![FakeReply::Json(json!({"jsonrpc": "2.0", "id": message["id"]}))],
        "garbage-before" => vec![
            stray(b"Listening on port 1\n\n{\"level\":\"info\"}\n\xff\xfe\n[1]\n"),
            FakeReply::Json(json!({"jsonrpc": "2.0", "id": 999_999, "result": {}})),
            FakeReply::Json(json!({"jsonrpc": "2.0", "id": "other", "result": {}})),
            FakeReply::Json(text(message, "clean")),
        ],
        "too-large-notification" => vec![
            stray(
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{}\"}}\n",
                    "x".repeat(400_000)
                )
                .as_bytes(),
            ),
            stray(format!("DEBUG {}\n", "x".repeat(400_000)).as_bytes()),
            FakeReply::Json(text(message, "unharmed")),
        ],
        "twice" => vec![
            FakeReply::Json(text(message, "first")),
            FakeReply::Json(text(message, "second")),
        ],
        "string-id" => vec![FakeReply::Json(
            json!({"jsonrpc": "2.0", "id": message["id"].to_string(), "result": {"content": []}}),
        )],
        _ => vec![FakeReply::Json(text(message, "fine"))],
    }
    });
    let (connected, _) = fake.connect().await;
    for (trick, expected) in [
        ("value", r#"- {"n":123456789012345678901234567890}"#),
        ("is-error", "error bad"),
        ("rpc-error", "refused -32602"),
        ("input", "lost InputRequired"),
        ("too-large", "lost TooLarge"),
        ("too-large-id-behind", "lost TooLarge"),
        ("slightly-too-large", "lost TooLarge"),
        ("deep", "lost Unreadable"),
        ("utf-8", "lost Unreadable"),
        ("no-result", "lost Unreadable"),
        ("garbage-before", "clean"),
        ("too-large-notification", "unharmed"),
        ("twice", "first"),
        ("string-id", "-"),
    ] {
        let reply = connected
            .call(&format!(r#"{{"do":"{trick}"}}"#), 60_000)
            .await;
        assert_eq!(words(&reply), expected, "{trick}: {reply:?}");
        assert_eq!(
            words(&connected.call("{}", 60_000).await),
            "fine",
            "after {trick}"
        );
    }
    assert_eq!(connected.dials(), 1);
    let report = connected.report();
    assert_eq!(report.unmatched_total, 2);
    assert_eq!(
        (
            report.stray_total,
            report.stray_lines.first().unwrap().as_str()
        ),
        (7, "Listening on port 1")
    );
}

#[tokio::test]
async fn arguments_arrive_byte_for_byte_and_answers_in_any_order() {
    let fake = FakeServer::calling(|_, message| {
        let n = message["params"]["arguments"]["n"].as_u64().unwrap();
        vec![FakeReply::After(
            Duration::from_millis(40 - 4 * n),
            text(message, &n.to_string()),
        )]
    });
    let (connected, _) = fake.connect().await;
    let calls = (0..10).map(|n| connected.call(&format!(r#"{{"n":{n}}}"#), 60_000));
    let replies: Vec<String> = join_all(calls).await.iter().map(words).collect();
    assert_eq!(replies, (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn unattributable_line_ends_connection_and_next_call_reconnects() {
    let fake = playing(|trick, message| match trick {
        "nameless" => vec![
            FakeReply::Raw(format!("{{\"result\":\"{}\"", "x".repeat(400_000)).into_bytes()),
            stray(b"\n"),
        ],
        "endless" => vec![FakeReply::Raw(vec![b'x'; 2_000_000])],
        _ => vec![FakeReply::Json(text(message, "fine"))],
    });
    let (connected, _) = fake.connect().await;
    for trick in ["nameless", "endless"] {
        let reply = connected
            .call(&format!(r#"{{"do":"{trick}"}}"#), 60_000)
            .await;
        assert_eq!(words(&reply), "lost TooLarge", "{trick}: {reply:?}");
        assert_eq!(
            words(&connected.call("{}", 60_000).await),
            "fine",
            "after {trick}"
        );
    }
    assert_eq!(connected.dials(), 3);
}

#[tokio::test(start_paused = true)]
async fn unanswered_call_times_out_and_late_answer_is_dropped() {
    let fake = playing(|trick, message| match trick {
        "late" => vec![FakeReply::After(
            Duration::from_secs(5),
            text(message, "late"),
        )],
        _ => vec![FakeReply::Json(text(message, "fine"))],
    });
    let (connected, _) = fake.connect().await;
    let reply = connected.call(r#"{"do":"late"}"#, 1_000).await;
    assert_eq!(words(&reply), "lost TimedOut");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(words(&connected.call("{}", 1_000).await), "fine");
    assert_eq!(connected.report().unmatched_total, 1);
    let id = &connected.heard("tools/call")[0]["id"];
    assert_eq!(
        &connected.heard("notifications/cancelled")[0]["params"]["requestId"],
        id
    );
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_cancelled_and_queued_one_is_never_sent() {
    let mut fake = playing(|_, _| vec![]);
    fake.spec.concurrency_max = 1;
    let (connected, _) = fake.connect().await;
    let first = tokio::spawn(connected.call(r#"{"n":1}"#, 60_000));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(
        words(&connected.call(r#"{"n":2}"#, 1_000).await),
        "not sent"
    );
    first.abort();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(connected.heard("tools/call").len(), 1);
    assert_eq!(connected.heard("notifications/cancelled").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancellation_is_sent_even_if_closed_at_once() {
    let (connected, _) = playing(|_, _| vec![]).connect().await;
    let mut call = Box::pin(connected.call("{}", 60_000));
    tokio::select! {
        reply = &mut call => panic!("{reply:?}"),
        () = tokio::time::sleep(Duration::from_millis(10)) => {}
    }
    drop(call);
    connected.upstream.close().await;
    // The paused clock advances only when no task can run.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(connected.heard("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn server_crash_loses_in_flight_calls_and_next_call_restarts_it() {
    let fake = playing(|trick, message| match trick {
        "die" => vec![FakeReply::Die],
        "wait" => vec![],
        _ => vec![FakeReply::Json(text(message, "fine"))],
    });
    let (connected, _) = fake.connect().await;
    let waiting = tokio::spawn(connected.call(r#"{"do":"wait"}"#, 60_000));
    while connected.heard("tools/call").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(
        words(&connected.call(r#"{"do":"die"}"#, 60_000).await),
        "lost Disconnected"
    );
    assert_eq!(words(&waiting.await.unwrap()), "lost Disconnected");
    assert_eq!(words(&connected.call("{}", 60_000).await), "fine");
    assert_eq!(connected.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn dead_server_is_not_redialled_for_every_call() {
    let fake = FakeServer::new(|connect, message| match connect {
        1 => super::fake::legacy(message).unwrap_or_else(|| vec![FakeReply::Die]),
        _ => vec![FakeReply::Die],
    });
    let (connected, _) = fake.connect().await;
    assert_eq!(
        words(&connected.call("{}", 5_000).await),
        "lost Disconnected"
    );
    for _ in 0..20 {
        let reply = connected.call("{}", 5_000).await;
        let Reply::NotSent { why } = reply else {
            panic!("{reply:?}")
        };
        assert!(why.contains("ended during the handshake"), "{why}");
    }
    assert_eq!(connected.dials(), 3);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let _ = connected.call("{}", 5_000).await;
    assert_eq!(connected.dials(), 5);
}

#[tokio::test]
async fn notification_flood_is_only_counted() {
    const FLOOD: usize = 200_000;
    let fake = playing(|_, message| {
        let line = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
        vec![
            FakeReply::Raw(line.repeat(FLOOD)),
            FakeReply::Json(text(message, "dry")),
        ]
    });
    let (connected, _) = fake.connect().await;
    assert_eq!(words(&connected.call("{}", 60_000).await), "dry");
    let report = connected.report();
    assert_eq!(
        (report.notifications_total, report.list_changed),
        (FLOOD as u64, true)
    );
}

#[tokio::test(start_paused = true)]
async fn server_requests_are_refused_and_ping_is_answered() {
    let fake = playing(|_, message| {
        vec![
            FakeReply::Json(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})),
            FakeReply::Json(
                json!({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {}}),
            ),
            FakeReply::After(Duration::from_millis(50), text(message, "fine")),
        ]
    });
    let (connected, _) = fake.connect().await;
    assert_eq!(words(&connected.call("{}", 5_000).await), "fine");
    let heard = connected.heard.lock().unwrap().clone();
    assert!(
        heard.contains(&json!({"jsonrpc": "2.0", "id": "p", "result": {}})),
        "{heard:?}"
    );
    assert!(
        heard
            .iter()
            .any(|message| message["id"] == 5 && message["error"]["code"] == -32_601),
        "{heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn server_that_does_not_read_loses_started_call_only() {
    let fake = FakeServer::calling(|_, _| vec![FakeReply::Deaf]);
    let (connected, _) = fake.connect().await;
    // The server reads one message. Only a part of the next message fits into the pipe.
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(200_000));
    let calls = (0..40).map(|_| connected.call(&large, 2_000));
    let mut replies: Vec<String> = join_all(calls).await.iter().map(words).collect();
    replies.sort();
    assert_eq!(replies[..2], ["lost TimedOut", "lost TimedOut"]);
    assert!(
        replies[2..].iter().all(|reply| reply == "not sent"),
        "{replies:?}"
    );
    assert_eq!(connected.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn unreadable_text_is_not_quoted_as_reason() {
    const SAID: &str = "customer-data";
    let fake = playing(|trick, message| match trick {
        "text" => vec![raw(message, &format!(r#""{}""#, SAID.repeat(1_000)))],
        "array" => vec![raw(message, &format!(r#"["{SAID}"]"#))],
        "structured" => vec![raw(message, &format!(r#"{{"isError":"{SAID}"}}"#))],
        _ => vec![FakeReply::Json(json!({
            "jsonrpc": "2.0", "id": message["id"],
            "error": {"code": 1, "message": "no ".repeat(10_000)}
        }))],
    });
    let (connected, _) = fake.connect().await;
    for trick in ["text", "array", "structured"] {
        let reply = connected
            .call(&format!(r#"{{"do":"{trick}"}}"#), 60_000)
            .await;
        assert_eq!(words(&reply), "lost Unreadable", "{trick}");
        let Reply::Lost { why, .. } = reply else {
            panic!()
        };
        assert!(!why.contains(SAID) && why.len() < 1_000, "{trick}: {why}");
    }
    let Reply::Refused { message, .. } = connected.call("{}", 5_000).await else {
        panic!()
    };
    assert!(message.len() < 5_000);
}

#[tokio::test]
async fn result_is_accepted_at_maximum_depth() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let fake = playing(move |trick, message| {
        let levels = trick.parse().unwrap();
        let structured = deep(levels);
        vec![raw(
            message,
            &format!(r#"{{"content":[],"structuredContent":{structured}}}"#),
        )]
    });
    let (connected, _) = fake.connect().await;
    for (levels, expected) in [
        (300, format!("- {}", deep(300))),
        (513, format!("- {}", deep(513))),
        (1_000, "lost Unreadable".to_owned()),
    ] {
        let reply = connected
            .call(&format!(r#"{{"do":"{levels}"}}"#), 5_000)
            .await;
        assert_eq!(words(&reply), expected, "{levels}");
    }
}

#[tokio::test]
async fn arguments_with_newline_are_not_sent() {
    let (connected, _) =
        FakeServer::calling(|_, message| vec![FakeReply::Json(result(message, json!({})))])
            .connect()
            .await;
    assert_eq!(words(&connected.call("{\n}", 1_000).await), "not sent");
    assert!(connected.heard("tools/call").is_empty());
}
