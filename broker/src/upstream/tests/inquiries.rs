//! Servers that ask something in the middle of a call, in both eras.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airlock_core::id::{CallId, ServerName, ToolName};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::fake::{Fake, Say, error, legacy, result, text, tool, words};
use super::fake_http::{Page, Web, older};
use super::http::event;
use crate::carrier::{Abilities, Wants};
use crate::upstream::fetch::Fetch;
use crate::upstream::inquiry::{Behind, InquiryDesk, Raised, Refused};
use crate::upstream::wall::Wall;

const WITHIN: Duration = Duration::from_secs(60);

/// A run whose calls somebody can be asked for.
fn run(abilities: Abilities) -> (impl Fn(u32) -> Behind, mpsc::UnboundedReceiver<Raised>) {
    run_of(None, abilities)
}

/// The same of a host that other runs may be of too.
fn run_of(
    host: Option<&str>,
    abilities: Abilities,
) -> (impl Fn(u32) -> Behind, mpsc::UnboundedReceiver<Raised>) {
    let (desk, raised) = InquiryDesk::new(abilities, host.map(Arc::from), None);
    let behind = move |call| {
        let server = ServerName("fake".into());
        Behind::new(server, CallId(call), desk.clone(), Wall::new(WITHIN))
    };
    (behind, raised)
}

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": "Who?", "requestedSchema": schema})
}

fn asks(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form()})
}

/// A server of the older era that asks in each call, and answers with what it is told.
fn asking() -> Fake {
    let call = Mutex::new(Value::Null);
    Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            *call.lock().unwrap() = message.clone();
            vec![Say::Json(asks(&json!("q")))]
        }
        None if message["id"] == "q" => {
            let told = message
                .get("result")
                .unwrap_or(&message["error"]["message"]);
            vec![Say::Json(text(&call.lock().unwrap(), &told.to_string()))]
        }
        _ => legacy(message).unwrap_or_default(),
    })
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"name": "x"}})
}

#[tokio::test]
async fn what_a_server_asks_reaches_the_run_that_called_and_comes_back() {
    let mut fake = asking();
    fake.abilities = Abilities::ALL;
    let (connected, _) = fake.connect().await;
    let told = &connected.heard("initialize")[0]["params"]["capabilities"];
    assert_eq!(*told, Abilities::ALL.declared());
    let (behind, mut raised) = run(Abilities::ALL);
    let host = async {
        let raised = raised.recv().await.unwrap();
        assert_eq!(
            (raised.call, raised.inquiry.wants),
            (CallId(3), Wants::Form)
        );
        assert_eq!(&*raised.inquiry.server.0, "fake");
        raised.told.send(Ok(yes())).unwrap();
    };
    let (reply, ()) = futures_util::join!(connected.call_for(behind(3)), host);
    assert_eq!(words(&reply), yes().to_string());
}

#[tokio::test]
async fn the_calls_time_stands_still_while_somebody_is_asked() {
    tokio::time::pause();
    let (connected, _) = asking().connect().await;
    let (behind, mut raised) = run(Abilities::ALL);
    let host = async {
        let raised = raised.recv().await.unwrap();
        tokio::time::sleep(WITHIN * 10).await;
        raised.told.send(Ok(yes())).unwrap();
    };
    let (reply, ()) = futures_util::join!(connected.call_for(behind(1)), host);
    assert_eq!(words(&reply), yes().to_string());
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_server_is_refused() {
    let (connected, _) = asking().connect().await;
    let (behind, _raised) = run(Abilities::default());
    let reply = words(&connected.call_for(behind(1)).await);
    assert!(reply.contains("cannot be asked"), "{reply}");
    let (behind, raised) = run(Abilities::ALL);
    drop(raised);
    let reply = words(&connected.call_for(behind(1)).await);
    assert!(reply.contains("no longer waits"), "{reply}");
    let reply = words(&connected.call("{}", 60_000).await);
    assert!(reply.contains("no call is in progress"), "{reply}");
}

#[tokio::test]
async fn of_two_runs_neither_is_asked_for_the_other() {
    let calls = Mutex::new(Vec::<Value>::new());
    let fake = Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut calls = calls.lock().unwrap();
            calls.push(message.clone());
            match calls.len() {
                2 => vec![Say::Json(asks(&json!(7)))],
                _ => vec![],
            }
        }
        None if message["id"] == 7 => {
            let told = message["error"]["message"].to_string();
            let calls = calls.lock().unwrap();
            calls
                .iter()
                .map(|call| Say::Json(text(call, &told)))
                .collect()
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let ((one, mut first), (other, mut second)) = (run(Abilities::ALL), run(Abilities::ALL));
    let calls = [connected.call_for(one(1)), connected.call_for(other(1))];
    for reply in futures_util::future::join_all(calls).await {
        assert!(words(&reply).contains("several runs"), "{reply:?}");
    }
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
}

/// A server that says nothing to its first call or read, and asks in the second call.
fn slow_then_asking() -> Fake {
    let calls = Mutex::new(Vec::<Value>::new());
    Fake::new(move |_, message| match message["method"].as_str() {
        Some("resources/read") => vec![],
        Some("tools/call") if message["params"]["arguments"]["do"] == "nothing" => vec![],
        Some("tools/call") => {
            calls.lock().unwrap().push(message.clone());
            vec![Say::Json(asks(&json!("q")))]
        }
        None if message["id"] == "q" => {
            let told = message
                .get("result")
                .unwrap_or(&message["error"]["message"]);
            let call = calls.lock().unwrap().pop().unwrap();
            vec![Say::Json(text(&call, &told.to_string()))]
        }
        _ => legacy(message).unwrap_or_default(),
    })
}

#[tokio::test]
async fn a_call_that_was_given_up_is_still_with_the_server() {
    tokio::time::pause();
    let (connected, _) = slow_then_asking().connect().await;
    let ((one, _hears), (other, mut others)) = (
        run_of(Some("a"), Abilities::ALL),
        run_of(Some("b"), Abilities::ALL),
    );
    let given_up = connected.call_with(r#"{"do":"nothing"}"#, one(1));
    assert!(timeout(Duration::from_millis(20), given_up).await.is_err());
    let reply = words(&connected.call_for(other(1)).await);
    assert!(reply.contains("several hosts"), "{reply}");
    assert!(others.try_recv().is_err());
    // A later run of the same host is asked by the same person's name.
    let (again, mut raised) = run_of(Some("a"), Abilities::ALL);
    let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(connected.call_for(again(1)), host);
    assert_eq!(words(&reply), yes().to_string());
    // No server goes on for ever.
    tokio::time::sleep(Duration::from_secs(601)).await;
    let host = async { others.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(connected.call_for(other(2)), host);
    assert_eq!(words(&reply), yes().to_string());
}

#[tokio::test]
async fn a_late_answer_says_that_a_call_which_was_given_up_is_over() {
    tokio::time::pause();
    let fake = Fake::new(|_, message| match message["method"].as_str() {
        Some("tools/call") if message["params"]["arguments"]["do"] == "nothing" => {
            vec![Say::After(Duration::from_millis(60), text(message, "late"))]
        }
        Some("tools/call") => vec![
            Say::Json(asks(&json!("q"))),
            Say::After(Duration::from_millis(20), text(message, "said")),
        ],
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let ((one, _hears), (other, mut others)) = (run(Abilities::ALL), run(Abilities::ALL));
    let given_up = connected.call_with(r#"{"do":"nothing"}"#, one(1));
    assert!(timeout(Duration::from_millis(10), given_up).await.is_err());
    while connected.report().unmatched_total == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    connected.call_for(other(1)).await;
    assert!(others.try_recv().is_ok());
}

#[tokio::test]
async fn nobody_is_asked_while_somebody_reads_something_else_of_the_server() {
    tokio::time::pause();
    let (connected, _) = slow_then_asking().connect().await;
    let server = connected.upstream.server(&ServerName("fake".into()));
    let fetch = Fetch {
        method: "resources/read",
        params: serde_json::Map::new(),
        name: None,
        bytes_max: usize::MAX,
    };
    let (behind, mut raised) = run(Abilities::ALL);
    // The clock moves only when nobody has anything to do.
    let wall = Wall::new(Duration::from_millis(500));
    let reading = server.fetch(&fetch, &wall);
    let calling = async {
        while connected.heard("resources/read").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        connected.call_for(behind(1)).await
    };
    let (reply, _) = futures_util::join!(calling, reading);
    let reply = words(&reply);
    assert!(reply.contains("several hosts"), "{reply}");
    assert!(raised.try_recv().is_err());
}

#[tokio::test]
async fn several_calls_of_one_run_are_no_riddle() {
    let calls = Mutex::new(Vec::<Value>::new());
    let fake = Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut calls = calls.lock().unwrap();
            calls.push(message.clone());
            match calls.len() {
                2 => vec![Say::Json(asks(&json!(7)))],
                _ => vec![],
            }
        }
        None if message["id"] == 7 => {
            let told = message["result"].to_string();
            let calls = calls.lock().unwrap();
            calls
                .iter()
                .map(|call| Say::Json(text(call, &told)))
                .collect()
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let (behind, mut raised) = run(Abilities::ALL);
    let host = async {
        let raised = raised.recv().await.unwrap();
        assert_eq!((raised.call, raised.or), (CallId(1), vec![CallId(2)]));
        raised.told.send(Ok(yes())).unwrap();
    };
    let calls = [connected.call_for(behind(1)), connected.call_for(behind(2))];
    let (replies, ()) = futures_util::join!(futures_util::future::join_all(calls), host);
    let expected = yes().to_string();
    assert!(
        replies.iter().map(words).all(|it| it == expected),
        "{replies:?}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_want_to_know_any_more_withdraws_what_it_asked() {
    tokio::time::pause();
    let fake = Fake::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let params = json!({"requestId": "q", "reason": "enough"});
            let gone =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            vec![
                Say::Json(asks(&json!("q"))),
                Say::After(Duration::from_millis(20), gone),
                Say::After(Duration::from_millis(200), text(message, "without it")),
            ]
        }
        _ => legacy(message).unwrap_or_default(),
    });
    let (connected, _) = fake.connect().await;
    let (behind, mut raised) = run(Abilities::ALL);
    let host = async { raised.recv().await.unwrap().told.closed().await };
    let (reply, ()) = futures_util::join!(connected.call_for(behind(1)), host);
    assert_eq!(words(&reply), "without it");
}

/// A server of the newer era that wants a name first, and says what it was told.
fn wanting() -> Fake {
    Fake::new(|_, message| {
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
            Some(_) => vec![Say::Json(answer)],
            None => vec![],
        }
    })
}

#[tokio::test]
async fn in_the_newer_era_the_call_is_made_again_with_what_was_said() {
    let (connected, _) = wanting().connect().await;
    let (behind, mut raised) = run(Abilities::ALL);
    let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(connected.call_for(behind(1)), host);
    assert_eq!(words(&reply), json!({"who": yes()}).to_string());
    let key = "io.modelcontextprotocol/clientCapabilities";
    for call in connected.heard("tools/call") {
        let told = &call["params"]["_meta"][key];
        assert_eq!(*told, Abilities::ALL.declared(), "{call}");
    }
}

#[tokio::test]
async fn in_the_newer_era_a_call_that_nobody_can_be_asked_for_says_so_and_ends() {
    let (connected, _) = wanting().connect().await;
    let (behind, _raised) = run(Abilities::default());
    for reply in [
        connected.call_for(behind(1)).await,
        connected.call("{}", 60_000).await,
    ] {
        assert_eq!(words(&reply), "lost InputRequired");
    }
    let calls = connected.heard("tools/call");
    let told = &calls[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!((calls.len(), told), (2, &json!({})));
    let (behind, mut raised) = run(Abilities::ALL);
    let host = async {
        let refused = Refused::unanswered("no");
        raised
            .recv()
            .await
            .unwrap()
            .told
            .send(Err(refused))
            .unwrap();
    };
    let (reply, ()) = futures_util::join!(connected.call_for(behind(1)), host);
    assert_eq!(words(&reply), "lost InputRequired");
}

#[tokio::test]
async fn in_the_newer_era_nobody_is_asked_in_vain() {
    let fake = Fake::new(|_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let form = json!({"method": "elicitation/create", "params": form()});
            let unknown = json!({"method": "tasks/get", "params": {}});
            vec![Say::Json(result(
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
    let (behind, mut raised) = run(Abilities::ALL);
    let reply = connected.call_for(behind(1)).await;
    assert_eq!(words(&reply), "lost InputRequired");
    assert!(raised.try_recv().is_err());
}

/// What has been with the server is not said to have never left.
#[tokio::test]
async fn in_the_newer_era_a_second_round_that_is_not_accepted_is_lost() {
    for status in [401, 404, 429, 503] {
        let web = Web::start(move |asked| match asked.method() {
            "tools/call" if asked.body["params"].get("inputResponses").is_some() => {
                Page::status(status)
            }
            "tools/call" => {
                let form = json!({"method": "elicitation/create", "params": form()});
                let wanted = json!({"resultType": "input_required", "inputRequests": {"a": form}});
                Page::json(&result(&asked.body, wanted))
            }
            _ => older(asked).unwrap_or_else(|| Page::status(404)),
        })
        .await;
        let (upstream, _) = web.connect().await;
        let (behind, mut raised) = run(Abilities::ALL);
        let behind = behind(1);
        let (server, tool) = (ServerName("web".into()), ToolName("t".into()));
        let wall = behind.wall.clone();
        let call = upstream.call_in(&server, &tool, b"{}".to_vec(), (Some(behind), wall));
        let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
        let (reply, ()) = futures_util::join!(call, host);
        assert_eq!(words(&reply), "lost Disconnected", "{status}");
    }
}

#[tokio::test]
async fn a_server_that_never_has_enough_is_left() {
    let fake = Fake::new(|_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let more = json!({"resultType": "input_required", "requestState": "again"});
            vec![Say::Json(result(message, more))]
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

/// A gateway in trouble, or one that is asked too much, does not lose what a person said.
#[tokio::test]
async fn over_http_the_stream_of_a_call_says_whom_a_server_asks() {
    let (told, call) = (Arc::new(AtomicBool::new(false)), Mutex::new(Value::Null));
    let attempts = AtomicU32::new(0);
    let web = Web::start(move |asked| match (asked.verb.as_str(), asked.method()) {
        ("POST", "tools/call") => {
            *call.lock().unwrap() = asked.body.clone();
            Page::events(&format!("id: 1\nretry: 100\n{}", event(&asks(&json!(1)))))
        }
        ("POST", "") if asked.body["id"] == 1 => {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 => return Page::status(429),
                1 => return Page::status(503),
                _ => {}
            }
            told.store(true, Ordering::Relaxed);
            Page::status(202)
        }
        ("GET", _) if told.load(Ordering::Relaxed) => {
            Page::events(&event(&text(&call.lock().unwrap(), "told")))
        }
        ("GET", _) => Page::events("id: 1\nretry: 100\ndata:\n\n"),
        _ => older(asked).unwrap_or_else(|| Page::status(404)),
    })
    .await;
    let (upstream, _) = web.connect().await;
    let ((one, mut raised), (other, mut others)) = (run(Abilities::ALL), run(Abilities::ALL));
    let call = |behind: Behind| {
        let (server, tool) = (ServerName("web".into()), ToolName("t".into()));
        let wall = behind.wall.clone();
        upstream.call_in(&server, &tool, b"{}".to_vec(), (Some(behind), wall))
    };
    let host = async { raised.recv().await.unwrap().told.send(Ok(yes())).unwrap() };
    let (reply, ()) = futures_util::join!(call(one(1)), host);
    assert_eq!(words(&reply), "told");
    assert!(others.try_recv().is_err());
    drop(other);
}
