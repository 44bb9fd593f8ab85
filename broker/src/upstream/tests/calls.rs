//! Calls that are answered well, badly, late, twice, or never.

use std::time::Duration;

use airlock_core::outcome::Reply;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::fake::{Fake, Say, error, result, text, words};

/// Does what the call's argument `do` says, and echoes it otherwise.
fn playing(script: impl Fn(&str, &Value) -> Vec<Say> + Send + Sync + 'static) -> Fake {
    Fake::calling(move |_, message| {
        script(
            message["params"]["arguments"]["do"]
                .as_str()
                .unwrap_or_default(),
            message,
        )
    })
}

fn raw(message: &Value, result: &str) -> Say {
    Say::Raw(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n",
            message["id"]
        )
        .into_bytes(),
    )
}

fn stray(bytes: &[u8]) -> Say {
    Say::Raw(bytes.to_vec())
}

#[tokio::test]
async fn each_kind_of_answer_is_read_for_what_it_is_and_the_next_call_is_well() {
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
        "rpc-error" => vec![Say::Json(error(message, -32_602))],
        "input" => vec![raw(
            message,
            r#"{"resultType":"input_required","inputRequests":{}}"#,
        )],
        "too-large" => vec![raw(
            message,
            &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(400_000)),
        )],
        "too-large-id-behind" => vec![Say::Raw(
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
        "utf-8" => vec![Say::Raw(
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
        "no-result" => vec![Say::Json(json!({"jsonrpc": "2.0", "id": message["id"]}))],
        "garbage-before" => vec![
            stray(b"Listening on port 1\n\n{\"level\":\"info\"}\n\xff\xfe\n[1]\n"),
            Say::Json(json!({"jsonrpc": "2.0", "id": 999_999, "result": {}})),
            Say::Json(json!({"jsonrpc": "2.0", "id": "other", "result": {}})),
            Say::Json(text(message, "clean")),
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
            Say::Json(text(message, "unharmed")),
        ],
        "twice" => vec![
            Say::Json(text(message, "first")),
            Say::Json(text(message, "second")),
        ],
        "string-id" => vec![Say::Json(
            json!({"jsonrpc": "2.0", "id": message["id"].to_string(), "result": {"content": []}}),
        )],
        _ => vec![Say::Json(text(message, "fine"))],
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
async fn the_arguments_arrive_byte_for_byte_and_answers_may_come_in_any_order() {
    let fake = Fake::calling(|_, message| {
        let n = message["params"]["arguments"]["n"].as_u64().unwrap();
        vec![Say::After(
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
async fn a_line_whose_call_nobody_can_name_ends_the_connection_and_the_next_call_begins_a_new_one()
{
    let fake = playing(|trick, message| match trick {
        "nameless" => vec![
            Say::Raw(format!("{{\"result\":\"{}\"", "x".repeat(400_000)).into_bytes()),
            stray(b"\n"),
        ],
        "endless" => vec![Say::Raw(vec![b'x'; 2_000_000])],
        _ => vec![Say::Json(text(message, "fine"))],
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
async fn a_call_that_is_not_answered_times_out_and_its_late_answer_is_dropped() {
    let fake = playing(|trick, message| match trick {
        "late" => vec![Say::After(Duration::from_secs(5), text(message, "late"))],
        _ => vec![Say::Json(text(message, "fine"))],
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
async fn a_call_that_is_dropped_is_cancelled_and_one_that_still_queues_never_leaves() {
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
async fn the_cancellation_of_a_dropped_call_leaves_although_all_is_closed_at_once() {
    let (connected, _) = playing(|_, _| vec![]).connect().await;
    let mut call = Box::pin(connected.call("{}", 60_000));
    tokio::select! {
        reply = &mut call => panic!("{reply:?}"),
        () = tokio::time::sleep(Duration::from_millis(10)) => {}
    }
    drop(call);
    connected.upstream.close().await;
    // The paused clock moves only when nobody has anything to do.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(connected.heard("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_loses_the_calls_in_flight_and_is_there_for_the_next() {
    let fake = playing(|trick, message| match trick {
        "die" => vec![Say::Die],
        "wait" => vec![],
        _ => vec![Say::Json(text(message, "fine"))],
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
async fn a_server_that_does_not_come_back_is_not_sent_to_and_not_dialled_for_every_call() {
    let fake = Fake::new(|dial, message| match dial {
        1 => super::fake::legacy(message).unwrap_or_else(|| vec![Say::Die]),
        _ => vec![Say::Die],
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
        assert!(why.contains("ended while connecting"), "{why}");
    }
    assert_eq!(connected.dials(), 3);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let _ = connected.call("{}", 5_000).await;
    assert_eq!(connected.dials(), 5);
}

#[tokio::test]
async fn a_flood_of_notifications_is_counted_and_nothing_else() {
    const FLOOD: usize = 200_000;
    let fake = playing(|_, message| {
        let line = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
        vec![
            Say::Raw(line.repeat(FLOOD)),
            Say::Json(text(message, "dry")),
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
async fn what_a_server_asks_of_us_is_answered_with_no_and_a_ping_with_yes() {
    let fake = playing(|_, message| {
        vec![
            Say::Json(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})),
            Say::Json(
                json!({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {}}),
            ),
            Say::After(Duration::from_millis(50), text(message, "fine")),
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
async fn a_server_that_does_not_listen_loses_what_began_to_leave_and_gets_nothing_else() {
    let fake = Fake::calling(|_, _| vec![Say::Deaf]);
    let (connected, _) = fake.connect().await;
    // One is read; of the next as much leaves as the pipe holds.
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
async fn what_cannot_be_read_does_not_become_the_reason() {
    const SAID: &str = "customer-data";
    let fake = playing(|trick, message| match trick {
        "text" => vec![raw(message, &format!(r#""{}""#, SAID.repeat(1_000)))],
        "array" => vec![raw(message, &format!(r#"["{SAID}"]"#))],
        "structured" => vec![raw(message, &format!(r#"{{"isError":"{SAID}"}}"#))],
        _ => vec![Say::Json(json!({
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
async fn a_result_is_taken_at_any_depth_that_a_limit_can_name() {
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
async fn arguments_that_are_not_one_line_never_leave() {
    let (connected, _) = Fake::calling(|_, message| vec![Say::Json(result(message, json!({})))])
        .connect()
        .await;
    assert_eq!(words(&connected.call("{\n}", 1_000).await), "not sent");
    assert!(connected.heard("tools/call").is_empty());
}
