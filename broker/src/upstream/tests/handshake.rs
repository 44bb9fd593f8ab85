//! Handshakes with servers of many kinds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{FakeReply, FakeServer, error, initialized, legacy, result, text, tool, words};
use crate::upstream::era::{Era, EraChoice, EraMemory};
use crate::upstream::error::ConnectError;

fn discovered(to: &Value, versions: Value) -> Value {
    result(
        to,
        json!({
            "resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}},
            "instructions": "be quick", "ttlMs": 1, "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2", "icons": []}}
        }),
    )
}

/// Answers like a server of the newer era that does not know `initialize`.
fn modern(message: &Value) -> Vec<FakeReply> {
    let answer = match message["method"].as_str() {
        Some("server/discover") => discovered(message, json!(["2026-07-28"])),
        Some("tools/list") => result(
            message,
            json!({"tools": [tool("t")], "resultType": "complete"}),
        ),
        Some("tools/call") => text(message, "new"),
        _ => error(message, -32_601),
    };
    if message.get("id").is_some() {
        vec![FakeReply::Json(answer)]
    } else {
        vec![]
    }
}

/// Delays all answers of the script.
fn late(says: Vec<FakeReply>, delay: Duration) -> Vec<FakeReply> {
    let later = |say| match say {
        FakeReply::Json(value) => FakeReply::After(delay, value),
        other => other,
    };
    says.into_iter().map(later).collect()
}

fn is(message: &Value, method: &str) -> bool {
    message["method"] == method
}

async fn check(fake: FakeServer, expected: Result<Era, &str>, dials: usize) {
    let (connected, listed) = fake.connect().await;
    match (&listed.failure, expected) {
        (None, Ok(era)) => {
            assert_eq!(listed.era, Some(era));
            assert_eq!(listed.tools.len(), 1);
            assert!(words(&connected.call("{}", 1_000).await).len() > 1);
        }
        (Some(failure), Err(part)) => assert!(failure.to_string().contains(part), "{failure}"),
        (failure, expected) => panic!("{failure:?}, {expected:?}"),
    }
    assert_eq!(connected.dials(), dials);
}

#[tokio::test(start_paused = true)]
async fn every_server_behaviour_negotiates_the_right_era() {
    let any = |_: usize, message: &Value| {
        legacy(message).unwrap_or_else(|| vec![FakeReply::Json(text(message, "old"))])
    };
    check(FakeServer::new(any), Ok(Era::Legacy), 1).await;
    check(
        FakeServer::new(|_, message| modern(message)),
        Ok(Era::Modern),
        1,
    )
    .await;
    // The server does not answer unknown methods.
    let silent = move |connect, message: &Value| {
        if is(message, "server/discover") {
            vec![]
        } else {
            any(connect, message)
        }
    };
    check(FakeServer::new(silent), Ok(Era::Legacy), 1).await;
    // The server ends if the first message is not `initialize`.
    let touchy = move |connect, message: &Value| {
        if is(message, "server/discover") {
            vec![FakeReply::Die]
        } else {
            any(connect, message)
        }
    };
    check(FakeServer::new(touchy), Ok(Era::Legacy), 2).await;
    // The server answers the first message, and ends because it was not `initialize`.
    let parting = move |connect, message: &Value| {
        if is(message, "server/discover") {
            vec![FakeReply::Json(error(message, -32_601)), FakeReply::Die]
        } else {
            any(connect, message)
        }
    };
    check(FakeServer::new(parting), Ok(Era::Legacy), 2).await;
    // The server knows the method, but not this version.
    let other = move |connect, message: &Value| {
        if is(message, "server/discover") {
            vec![FakeReply::Json(discovered(message, json!(["2027-01-01"])))]
        } else {
            any(connect, message)
        }
    };
    check(FakeServer::new(other), Ok(Era::Legacy), 1).await;
    // The server first refuses this version, although it lists the version as supported.
    let forgetful = AtomicBool::new(true);
    let twice = move |_: usize, message: &Value| {
        if !forgetful.swap(false, Ordering::SeqCst) {
            return modern(message);
        }
        let detail = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
        vec![FakeReply::Json(
            json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32_022, "message": "no", "data": detail}}),
        )]
    };
    check(FakeServer::new(twice), Ok(Era::Modern), 1).await;
    // The server is slow to start and supports only the newer era.
    let slow = |_: usize, message: &Value| late(modern(message), Duration::from_secs(8));
    check(FakeServer::new(slow), Ok(Era::Modern), 1).await;
    // The server answers the probe long after `initialize` was sent.
    let late_answer = move |connect, message: &Value| {
        if is(message, "server/discover") {
            late(
                vec![FakeReply::Json(error(message, -32_601))],
                Duration::from_secs(5),
            )
        } else {
            late(any(connect, message), Duration::from_secs(4))
        }
    };
    let (connected, listed) = FakeServer::new(late_answer).connect().await;
    assert_eq!((listed.era, listed.failure), (Some(Era::Legacy), None));
    assert_eq!(connected.report().unmatched_total, 1);
}

#[tokio::test(start_paused = true)]
async fn failed_negotiation_reports_reason() {
    check(
        FakeServer::new(|_, _| vec![]),
        Err("did not finish connecting"),
        1,
    )
    .await;
    check(
        FakeServer::new(|_, _| vec![FakeReply::Die]),
        Err("ended during the handshake"),
        2,
    )
    .await;
    let alien = |_: usize, message: &Value| {
        let mut told = initialized(message);
        told["result"]["protocolVersion"] = json!("1999-01-01");
        if is(message, "initialize") {
            vec![FakeReply::Json(told)]
        } else {
            vec![FakeReply::Json(error(message, -1))]
        }
    };
    check(FakeServer::new(alien), Err("1999-01-01"), 1).await;
    check(
        FakeServer::new(|_, message| vec![FakeReply::Json(error(message, -32_000))]),
        Err("-32000"),
        1,
    )
    .await;
    check(
        FakeServer::new(|_, message| vec![FakeReply::Json(result(message, json!("hello")))]),
        Err("initialize"),
        1,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn pinned_era_is_not_probed() {
    let mut fake = FakeServer::new(|_, message| legacy(message).unwrap_or_default());
    fake.spec.era = EraChoice::Pinned(Era::Legacy);
    let (connected, _) = fake.connect().await;
    assert!(connected.heard("server/discover").is_empty());

    let mut fake = FakeServer::new(|_, message| legacy(message).unwrap_or_default());
    fake.spec.era = EraChoice::Pinned(Era::Modern);
    let (connected, listed) = fake.connect().await;
    assert!(
        matches!(listed.failure, Some(ConnectError::NotMcp { .. })),
        "{listed:?}"
    );
    assert!(connected.heard("initialize").is_empty());
}

#[tokio::test(start_paused = true)]
async fn era_is_remembered_and_corrected() {
    let kept: Arc<Mutex<HashMap<String, Era>>> = Arc::default();
    let memory = || {
        let (load, store) = (kept.clone(), kept.clone());
        EraMemory::new(
            move |digest| load.lock().unwrap().get(&digest.to_string()).copied(),
            move |digest, era| {
                store.lock().unwrap().insert(digest.to_string(), era);
            },
        )
    };
    let mut fake = FakeServer::new(|_, message| legacy(message).unwrap_or_default());
    fake.eras = memory();
    let (connected, _) = fake.connect().await;
    assert_eq!(connected.heard("server/discover").len(), 1);

    let mut fake = FakeServer::new(|_, message| legacy(message).unwrap_or_default());
    fake.eras = memory();
    let (connected, _) = fake.connect().await;
    assert!(connected.heard("server/discover").is_empty());

    let mut fake = FakeServer::new(|_, message| modern(message));
    fake.eras = memory();
    let (_, listed) = fake.connect().await;
    assert_eq!(listed.era, Some(Era::Modern));
    assert_eq!(
        kept.lock().unwrap().values().copied().collect::<Vec<_>>(),
        [Era::Modern]
    );
}

#[tokio::test(start_paused = true)]
async fn wrong_remembered_era_does_not_block_connecting() {
    type Script = fn(&Value) -> Vec<FakeReply>;
    let old: Script =
        |message| legacy(message).unwrap_or_else(|| vec![FakeReply::Json(text(message, "old"))]);
    let cases: [(Era, Script, Era); 4] = [
        (Era::Modern, old, Era::Legacy),
        (
            Era::Modern,
            |message| match is(message, "server/discover") {
                true => vec![],
                false => {
                    legacy(message).unwrap_or_else(|| vec![FakeReply::Json(text(message, "old"))])
                }
            },
            Era::Legacy,
        ),
        (Era::Legacy, modern, Era::Modern),
        (
            Era::Legacy,
            |message| match is(message, "initialize") {
                true => vec![],
                false => modern(message),
            },
            Era::Modern,
        ),
    ];
    for (remembered, script, spoken) in cases {
        let mut fake = FakeServer::new(move |_, message| script(message));
        let stored: Arc<Mutex<Vec<Era>>> = Arc::default();
        let store = stored.clone();
        fake.eras = EraMemory::new(
            move |_| Some(remembered),
            move |_, era| store.lock().unwrap().push(era),
        );
        let (connected, listed) = fake.connect().await;
        assert_eq!((listed.era, listed.failure), (Some(spoken), None));
        assert_eq!(*stored.lock().unwrap(), [spoken]);
        assert!(words(&connected.call("{}", 1_000).await).len() > 1);
    }
}

#[tokio::test(start_paused = true)]
async fn close_does_not_wait_for_starting_server() {
    let (_, server) = FakeServer::new(|_, _| vec![]).server();
    let starting = tokio::spawn({
        let server = server.clone();
        async move { server.list().await.map(|_| ()) }
    });
    tokio::task::yield_now().await;
    server.close().await;
    let failure = starting.await.unwrap().unwrap_err().to_string();
    assert!(failure.contains("the broker is closing"), "{failure}");
}

#[tokio::test]
async fn newer_era_requests_carry_client_info_and_revision() {
    let (connected, listed) = FakeServer::new(|_, message| modern(message))
        .connect()
        .await;
    let _ = connected.call("{\"a\":1}", 1_000).await;
    for message in connected.heard.lock().unwrap().iter() {
        let meta = &message["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28",
            "{message}"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientInfo"]["name"],
            "airlock"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            json!({})
        );
    }
    assert_eq!(
        connected.heard("tools/call")[0]["params"]["arguments"],
        json!({"a": 1})
    );
    assert_eq!(listed.instructions.as_deref(), Some("be quick"));
    assert_eq!(
        Value::from(listed.server_info.unwrap()),
        json!({"name": "new", "version": "2"})
    );
}

#[tokio::test]
async fn older_era_sends_initialized_and_nothing_newer() {
    let (connected, listed) =
        FakeServer::calling(|_, message| vec![FakeReply::Json(text(message, "old"))])
            .connect()
            .await;
    let _ = connected.call("{}", 1_000).await;
    assert_eq!(connected.heard("notifications/initialized").len(), 1);
    assert!(
        connected.heard("tools/call")[0]["params"]
            .get("_meta")
            .is_none()
    );
    assert_eq!(
        connected.heard("initialize")[0]["params"]["capabilities"],
        json!({})
    );
    assert_eq!(listed.version.as_deref(), Some("2025-11-25"));
}
