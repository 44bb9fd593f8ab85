//! Servers that make inquiries during a call, in both eras.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::id::{CallId, ServerName, ToolName};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::fake::{FakeReply, FakeServer, error, legacy, result, text, tool, words};
use super::fake_http::{FakeHttpServer, HttpReply, older};
use super::http::event;
use crate::client_bridge::{ClientCapabilities, InquiryKind};
use crate::deadline::Deadline;
use crate::upstream::fetch::Fetch;
use crate::upstream::server_request::{CallOrigin, RaisedRequest, RequestError, RequestRouter};

const WITHIN: Duration = Duration::from_secs(60);

/// Creates a run whose host can be asked.
fn run(
    abilities: ClientCapabilities,
) -> (
    impl Fn(u32) -> CallOrigin,
    mpsc::UnboundedReceiver<RaisedRequest>,
) {
    run_of(None, abilities)
}

/// Creates a run of a host that may have other runs too.
fn run_of(
    host: Option<&str>,
    abilities: ClientCapabilities,
) -> (
    impl Fn(u32) -> CallOrigin,
    mpsc::UnboundedReceiver<RaisedRequest>,
) {
    let (router, raised) = RequestRouter::new(abilities, host.map(Arc::from), None);
    let origin = move |call| {
        let server = ServerName("fake".into());
        CallOrigin::new(server, CallId(call), router.clone(), Deadline::new(WITHIN))
    };
    (origin, raised)
}

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": "Who?", "requestedSchema": schema})
}

fn asks(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form()})
}

/// Creates a server of the older era that makes an inquiry in each call, and returns the answer.
fn asking() -> FakeServer {
    let call = Mutex::new(Value::Null);
    FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            *call.lock().unwrap() = message.clone();
            vec![FakeReply::Json(asks(&json!("q")))]
        }
        None if message["id"] == "q" => {
            let told = message
                .get("result")
                .unwrap_or(&message["error"]["message"]);
            vec![FakeReply::Json(text(
                &call.lock().unwrap(),
                &told.to_string(),
            ))]
        }
        _ => legacy(message).unwrap_or_default(),
    })
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"name": "x"}})
}

#[tokio::test]
async fn server_request_reaches_calling_run_and_returns() {
    let mut fake = asking();
    fake.abilities = ClientCapabilities::ALL;
    let (connected, _) = fake.connect().await;
    let told = &connected.heard("initialize")[0]["params"]["capabilities"];
    assert_eq!(*told, ClientCapabilities::ALL.declared());
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let host = async {
        let raised = raised.recv().await.unwrap();
        assert_eq!(
            (raised.call, raised.inquiry.wants),
            (CallId(3), InquiryKind::Form)
        );
        assert_eq!(&*raised.inquiry.server.0, "fake");
        raised.told.send(Ok(yes())).unwrap();
    };
    let (reply, ()) = futures_util::join!(connected.call_for(origin(3)), host);
    assert_eq!(words(&reply), yes().to_string());
}

#[tokio::test]
async fn call_deadline_pauses_during_server_request() {
    tokio::time::pause();
    let (connected, _) = asking().connect().await;
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let host = async {
        let raised = raised.recv().await.unwrap();
        tokio::time::sleep(WITHIN * 10).await;
        raised.told.send(Ok(yes())).unwrap();
    };
    let (reply, ()) = futures_util::join!(connected.call_for(origin(1)), host);
    assert_eq!(words(&reply), yes().to_string());
}

#[tokio::test]
async fn server_request_is_refused_without_host() {
    let (connected, _) = asking().connect().await;
    let (origin, _raised) = run(ClientCapabilities::default());
    let reply = words(&connected.call_for(origin(1)).await);
    assert!(reply.contains("cannot be asked"), "{reply}");
    let (origin, raised) = run(ClientCapabilities::ALL);
    drop(raised);
    let reply = words(&connected.call_for(origin(1)).await);
    assert!(reply.contains("no longer waits"), "{reply}");
    let reply = words(&connected.call("{}", 60_000).await);
    assert!(reply.contains("no call is in progress"), "{reply}");
}

#[tokio::test]
async fn server_request_with_two_runs_is_not_guessed() {
    let calls = Mutex::new(Vec::<Value>::new());
    let fake = FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut calls = calls.lock().unwrap();
            calls.push(message.clone());
            match calls.len() {
                2 => vec![FakeReply::Json(asks(&json!(7)))],
                _ => vec![],
            }
        }
        None if message["id"] == 7 => {
            let told = message["error"]["message"].to_string();
            let calls = calls.lock().unwrap();
            calls
                .iter()
                .map(|call| FakeReply::Json(text(call, &told)))
                .collect()
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let ((one, mut first), (other, mut second)) =
        (run(ClientCapabilities::ALL), run(ClientCapabilities::ALL));
    let calls = [connected.call_for(one(1)), connected.call_for(other(1))];
    for reply in futures_util::future::join_all(calls).await {
        assert!(words(&reply).contains("several runs"), "{reply:?}");
    }
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
}

/// Creates a server that does not answer its first call or read, and makes an inquiry in the second
/// call.
fn slow_then_asking() -> FakeServer {
    let calls = Mutex::new(Vec::<Value>::new());
    FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("resources/read") => vec![],
        Some("tools/call") if message["params"]["arguments"]["do"] == "nothing" => vec![],
        Some("tools/call") => {
            calls.lock().unwrap().push(message.clone());
            vec![FakeReply::Json(asks(&json!("q")))]
        }
        None if message["id"] == "q" => {
            let told = message
                .get("result")
                .unwrap_or(&message["error"]["message"]);
            let call = calls.lock().unwrap().pop().unwrap();
            vec![FakeReply::Json(text(&call, &told.to_string()))]
        }
        _ => legacy(message).unwrap_or_default(),
    })
}

#[tokio::test]
async fn abandoned_call_still_counts_as_open() {
    tokio::time::pause();
    let (connected, _) = slow_then_asking().connect().await;
    let ((one, _hears), (other, mut others)) = (
        run_of(Some("a"), ClientCapabilities::ALL),
        run_of(Some("b"), ClientCapabilities::ALL),
    );
    let given_up = connected.call_with(r#"{"do":"nothing"}"#, one(1));
    assert!(timeout(Duration::from_millis(20), given_up).await.is_err());
    let reply = words(&connected.call_for(other(1)).await);
    assert!(reply.contains("several hosts"), "{reply}");
    assert!(others.try_recv().is_err());
    // A later run of the same host belongs to the same person.
    let (again, mut raised) = run_of(Some("a"), ClientCapabilities::ALL);
    let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(connected.call_for(again(1)), host);
    assert_eq!(words(&reply), yes().to_string());
    // After this time the server counts as finished with the abandoned call.
    tokio::time::sleep(Duration::from_secs(601)).await;
    let host = async { others.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(connected.call_for(other(2)), host);
    assert_eq!(words(&reply), yes().to_string());
}

#[tokio::test]
async fn late_answer_closes_abandoned_call() {
    tokio::time::pause();
    let fake = FakeServer::new(|_, message| match message["method"].as_str() {
        Some("tools/call") if message["params"]["arguments"]["do"] == "nothing" => {
            vec![FakeReply::After(
                Duration::from_millis(60),
                text(message, "late"),
            )]
        }
        Some("tools/call") => vec![
            FakeReply::Json(asks(&json!("q"))),
            FakeReply::After(Duration::from_millis(20), text(message, "said")),
        ],
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let ((one, _hears), (other, mut others)) =
        (run(ClientCapabilities::ALL), run(ClientCapabilities::ALL));
    let given_up = connected.call_with(r#"{"do":"nothing"}"#, one(1));
    assert!(timeout(Duration::from_millis(10), given_up).await.is_err());
    while connected.report().unmatched_total == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    connected.call_for(other(1)).await;
    assert!(others.try_recv().is_ok());
}

#[tokio::test]
async fn server_request_during_other_reads_is_refused() {
    tokio::time::pause();
    let (connected, _) = slow_then_asking().connect().await;
    let server = connected.server();
    let fetch = Fetch {
        method: "resources/read",
        params: serde_json::Map::new(),
        name: None,
        bytes_max: usize::MAX,
    };
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    // The clock advances only when no task can run.
    let deadline = Deadline::new(Duration::from_millis(500));
    let reading = server.fetch(&fetch, &deadline);
    let calling = async {
        while connected.heard("resources/read").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        connected.call_for(origin(1)).await
    };
    let (reply, _) = futures_util::join!(calling, reading);
    let reply = words(&reply);
    assert!(reply.contains("several hosts"), "{reply}");
    assert!(raised.try_recv().is_err());
}

#[tokio::test]
async fn several_calls_of_one_run_share_its_host() {
    let calls = Mutex::new(Vec::<Value>::new());
    let fake = FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut calls = calls.lock().unwrap();
            calls.push(message.clone());
            match calls.len() {
                2 => vec![FakeReply::Json(asks(&json!(7)))],
                _ => vec![],
            }
        }
        None if message["id"] == 7 => {
            let told = message["result"].to_string();
            let calls = calls.lock().unwrap();
            calls
                .iter()
                .map(|call| FakeReply::Json(text(call, &told)))
                .collect()
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let host = async {
        let raised = raised.recv().await.unwrap();
        assert_eq!((raised.call, raised.or), (CallId(1), vec![CallId(2)]));
        raised.told.send(Ok(yes())).unwrap();
    };
    let calls = [connected.call_for(origin(1)), connected.call_for(origin(2))];
    let (replies, ()) = futures_util::join!(futures_util::future::join_all(calls), host);
    let expected = yes().to_string();
    assert!(
        replies.iter().map(words).all(|it| it == expected),
        "{replies:?}"
    );
}

#[tokio::test]
async fn cancelled_server_request_is_withdrawn() {
    tokio::time::pause();
    let fake = FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let params = json!({"requestId": "q", "reason": "enough"});
            let gone =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            vec![
                FakeReply::Json(asks(&json!("q"))),
                FakeReply::After(Duration::from_millis(20), gone),
                FakeReply::After(Duration::from_millis(200), text(message, "without it")),
            ]
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let host = async { raised.recv().await.unwrap().told.closed().await };
    let (reply, ()) = futures_util::join!(connected.call_for(origin(1)), host);
    assert_eq!(words(&reply), "without it");
}

/// Creates a server of the newer era that asks for a name first, and returns the answer.
fn wanting() -> FakeServer {
    FakeServer::new(|_, message| {
        let params = &message["params"];
        let answer = match message["method"].as_str() {
            Some("server/discover") => {
                let versions = json!(["2026-07-28"]);
                result(
                    message,
                    json!({"supportedVersions": versions, "capabilities": {}}),
                )
            }
            Some("tools/list") => result(message, json!({"tools": [tool("t")]})),
            Some("tools/call") if params.get("requestState") == Some(&json!({"round": 1})) => {
                text(message, &params["inputResponses"].to_string())
            }
            Some("tools/call") => {
                let request = json!({"method": "elicitation/create", "params": form()});
                result(
                    message,
                    json!({
                        "resultType": "input_required",
                        "inputRequests": {"who": request},
                        "requestState": {"round": 1},
                    }),
                )
            }
            _ => error(message, -32_601),
        };
        match message.get("id") {
            Some(_) => vec![FakeReply::Json(answer)],
            None => vec![],
        }
    })
}

#[tokio::test]
async fn newer_era_call_is_repeated_with_input_responses() {
    let (connected, _) = wanting().connect().await;
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(connected.call_for(origin(1)), host);
    assert_eq!(words(&reply), json!({"who": yes()}).to_string());
    let key = "io.modelcontextprotocol/clientCapabilities";
    for call in connected.heard("tools/call") {
        let told = &call["params"]["_meta"][key];
        assert_eq!(*told, ClientCapabilities::ALL.declared(), "{call}");
    }
}

#[tokio::test]
async fn newer_era_call_without_host_ends_with_error() {
    let (connected, _) = wanting().connect().await;
    let (origin, _raised) = run(ClientCapabilities::default());
    for reply in [
        connected.call_for(origin(1)).await,
        connected.call("{}", 60_000).await,
    ] {
        assert_eq!(words(&reply), "lost InputRequired");
    }
    let calls = connected.heard("tools/call");
    let told = &calls[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!((calls.len(), told), (2, &json!({})));
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let host = async {
        let refused = RequestError::unanswered("no");
        raised
            .recv()
            .await
            .unwrap()
            .told
            .send(Err(refused))
            .unwrap();
    };
    let (reply, ()) = futures_util::join!(connected.call_for(origin(1)), host);
    assert_eq!(words(&reply), "lost InputRequired");
}

#[tokio::test]
async fn newer_era_unusable_input_request_asks_nobody() {
    let fake = FakeServer::new(|_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let form = json!({"method": "elicitation/create", "params": form()});
            let unknown = json!({"method": "tasks/get", "params": {}});
            vec![FakeReply::Json(result(
                message,
                json!({
                    "resultType": "input_required",
                    "inputRequests": {"a": form, "b": unknown},
                }),
            ))]
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let (origin, mut raised) = run(ClientCapabilities::ALL);
    let reply = connected.call_for(origin(1)).await;
    assert_eq!(words(&reply), "lost InputRequired");
    assert!(raised.try_recv().is_err());
}

/// A call that has reached the server is never reported as not sent.
#[tokio::test]
async fn newer_era_refused_second_round_is_lost() {
    for status in [401, 404, 429, 503] {
        let web = FakeHttpServer::start(move |asked| match asked.method() {
            "tools/call" if asked.body["params"].get("inputResponses").is_some() => {
                HttpReply::status(status)
            }
            "tools/call" => {
                let form = json!({"method": "elicitation/create", "params": form()});
                let wanted = json!({"resultType": "input_required", "inputRequests": {"a": form}});
                HttpReply::json(&result(&asked.body, wanted))
            }
            _ => older(asked).unwrap_or_else(|| HttpReply::status(404)),
        })
        .await;
        let (upstream, _) = web.connect().await;
        let (origin, mut raised) = run(ClientCapabilities::ALL);
        let origin = origin(1);
        let (server, tool) = (ServerName("web".into()), ToolName("t".into()));
        let deadline = origin.deadline.clone();
        let call = upstream.call_in(&server, &tool, b"{}".to_vec(), (Some(origin), deadline));
        let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
        let (reply, ()) = futures_util::join!(call, host);
        assert_eq!(words(&reply), "lost Disconnected", "{status}");
    }
}

#[tokio::test]
async fn endless_input_requests_are_abandoned() {
    let fake = FakeServer::new(|_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let more = json!({"resultType": "input_required", "requestState": "again"});
            vec![FakeReply::Json(result(message, more))]
        }
        _ => legacy(message).unwrap_or_default(),
    });
    tokio::time::pause();
    let (connected, _) = fake.connect().await;
    assert_eq!(
        words(&connected.call("{}", 60_000).await),
        "lost InputRequired"
    );
    assert_eq!(connected.heard("tools/call").len(), 10);
}

/// A person's answer is not lost if a gateway has errors or limits requests.
#[tokio::test]
async fn http_call_stream_attributes_server_requests() {
    let (told, call) = (Arc::new(AtomicBool::new(false)), Mutex::new(Value::Null));
    let attempts = AtomicU32::new(0);
    let web = FakeHttpServer::start(move |asked| match (asked.verb.as_str(), asked.method()) {
        ("POST", "tools/call") => {
            *call.lock().unwrap() = asked.body.clone();
            HttpReply::events(&format!("id: 1\nretry: 100\n{}", event(&asks(&json!(1)))))
        }
        ("POST", "") if asked.body["id"] == 1 => {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 => return HttpReply::status(429),
                1 => return HttpReply::status(503),
                _ => {}
            }
            told.store(true, Ordering::Relaxed);
            HttpReply::status(202)
        }
        ("GET", _) if told.load(Ordering::Relaxed) => {
            HttpReply::events(&event(&text(&call.lock().unwrap(), "told")))
        }
        ("GET", _) => HttpReply::events("id: 1\nretry: 100\ndata:\n\n"),
        _ => older(asked).unwrap_or_else(|| HttpReply::status(404)),
    })
    .await;
    let (upstream, _) = web.connect().await;
    let ((one, mut raised), (other, mut others)) =
        (run(ClientCapabilities::ALL), run(ClientCapabilities::ALL));
    let call = |origin: CallOrigin| {
        let (server, tool) = (ServerName("web".into()), ToolName("t".into()));
        let deadline = origin.deadline.clone();
        upstream.call_in(&server, &tool, b"{}".to_vec(), (Some(origin), deadline))
    };
    let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(call(one(1)), host);
    assert_eq!(words(&reply), "told");
    assert!(others.try_recv().is_err());
    drop(other);
}
