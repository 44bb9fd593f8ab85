//! Agreeing on an era with servers of every temper.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Fake, Say, error, initialized, legacy, result, text, tool, words};
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

/// A server of the newer era that does not know `initialize`.
fn modern(message: &Value) -> Vec<Say> {
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
        vec![Say::Json(answer)]
    } else {
        vec![]
    }
}

/// The script's answers, all of them late.
fn late(says: Vec<Say>, delay: Duration) -> Vec<Say> {
    let later = |say| match say {
        Say::Json(value) => Say::After(delay, value),
        other => other,
    };
    says.into_iter().map(later).collect()
}

fn is(message: &Value, method: &str) -> bool {
    message["method"] == method
}

async fn check(fake: Fake, expected: Result<Era, &str>, dials: usize) {
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
async fn every_temper_ends_in_the_right_era() {
    let any = |_: usize, message: &Value| {
        legacy(message).unwrap_or_else(|| vec![Say::Json(text(message, "old"))])
    };
    check(Fake::new(any), Ok(Era::Legacy), 1).await;
    check(Fake::new(|_, message| modern(message)), Ok(Era::Modern), 1).await;
    // It does not answer what it does not know.
    let silent = move |dial, message: &Value| {
        if is(message, "server/discover") {
            vec![]
        } else {
            any(dial, message)
        }
    };
    check(Fake::new(silent), Ok(Era::Legacy), 1).await;
    // It ends when the first message is not `initialize`.
    let touchy = move |dial, message: &Value| {
        if is(message, "server/discover") {
            vec![Say::Die]
        } else {
            any(dial, message)
        }
    };
    check(Fake::new(touchy), Ok(Era::Legacy), 2).await;
    // It answers the first message, and ends because it was not `initialize`.
    let parting = move |dial, message: &Value| {
        if is(message, "server/discover") {
            vec![Say::Json(error(message, -32_601)), Say::Die]
        } else {
            any(dial, message)
        }
    };
    check(Fake::new(parting), Ok(Era::Legacy), 2).await;
    // It knows the method, and not our revision.
    let other = move |dial, message: &Value| {
        if is(message, "server/discover") {
            vec![Say::Json(discovered(message, json!(["2027-01-01"])))]
        } else {
            any(dial, message)
        }
    };
    check(Fake::new(other), Ok(Era::Legacy), 1).await;
    // It refuses our revision at first, and names it as one that it speaks.
    let forgetful = AtomicBool::new(true);
    let twice = move |_: usize, message: &Value| {
        if !forgetful.swap(false, Ordering::SeqCst) {
            return modern(message);
        }
        let detail = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
        vec![Say::Json(
            json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32_022, "message": "no", "data": detail}}),
        )]
    };
    check(Fake::new(twice), Ok(Era::Modern), 1).await;
    // It is slow to start, and speaks the newer era alone.
    let slow = |_: usize, message: &Value| late(modern(message), Duration::from_secs(8));
    check(Fake::new(slow), Ok(Era::Modern), 1).await;
    // It answers the probe when `initialize` has long been sent.
    let late_answer = move |dial, message: &Value| {
        if is(message, "server/discover") {
            late(
                vec![Say::Json(error(message, -32_601))],
                Duration::from_secs(5),
            )
        } else {
            late(any(dial, message), Duration::from_secs(4))
        }
    };
    let (connected, listed) = Fake::new(late_answer).connect().await;
    assert_eq!((listed.era, listed.failure), (Some(Era::Legacy), None));
    assert_eq!(connected.report().unmatched_total, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_agreed_with_is_a_failure_that_says_why() {
    check(
        Fake::new(|_, _| vec![]),
        Err("did not finish connecting"),
        1,
    )
    .await;
    check(
        Fake::new(|_, _| vec![Say::Die]),
        Err("ended while connecting"),
        2,
    )
    .await;
    let alien = |_: usize, message: &Value| {
        let mut told = initialized(message);
        told["result"]["protocolVersion"] = json!("1999-01-01");
        if is(message, "initialize") {
            vec![Say::Json(told)]
        } else {
            vec![Say::Json(error(message, -1))]
        }
    };
    check(Fake::new(alien), Err("1999-01-01"), 1).await;
    check(
        Fake::new(|_, message| vec![Say::Json(error(message, -32_000))]),
        Err("-32000"),
        1,
    )
    .await;
    check(
        Fake::new(|_, message| vec![Say::Json(result(message, json!("hello")))]),
        Err("initialize"),
        1,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pinned_era_is_not_probed() {
    let mut fake = Fake::new(|_, message| legacy(message).unwrap_or_default());
    fake.spec.era = EraChoice::Pinned(Era::Legacy);
    let (connected, _) = fake.connect().await;
    assert!(connected.heard("server/discover").is_empty());

    let mut fake = Fake::new(|_, message| legacy(message).unwrap_or_default());
    fake.spec.era = EraChoice::Pinned(Era::Modern);
    let (connected, listed) = fake.connect().await;
    assert!(
        matches!(listed.failure, Some(ConnectError::NotMcp { .. })),
        "{listed:?}"
    );
    assert!(connected.heard("initialize").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_era_is_remembered_and_a_wrong_memory_is_corrected() {
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
    let mut fake = Fake::new(|_, message| legacy(message).unwrap_or_default());
    fake.eras = memory();
    let (connected, _) = fake.connect().await;
    assert_eq!(connected.heard("server/discover").len(), 1);

    let mut fake = Fake::new(|_, message| legacy(message).unwrap_or_default());
    fake.eras = memory();
    let (connected, _) = fake.connect().await;
    assert!(connected.heard("server/discover").is_empty());

    let mut fake = Fake::new(|_, message| modern(message));
    fake.eras = memory();
    let (_, listed) = fake.connect().await;
    assert_eq!(listed.era, Some(Era::Modern));
    assert_eq!(
        kept.lock().unwrap().values().copied().collect::<Vec<_>>(),
        [Era::Modern]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_memory_does_not_keep_a_server_away_whether_it_refuses_or_is_silent() {
    type Script = fn(&Value) -> Vec<Say>;
    let old: Script =
        |message| legacy(message).unwrap_or_else(|| vec![Say::Json(text(message, "old"))]);
    let cases: [(Era, Script, Era); 4] = [
        (Era::Modern, old, Era::Legacy),
        (
            Era::Modern,
            |message| match is(message, "server/discover") {
                true => vec![],
                false => legacy(message).unwrap_or_else(|| vec![Say::Json(text(message, "old"))]),
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
        let mut fake = Fake::new(move |_, message| script(message));
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
async fn closing_does_not_wait_for_a_server_that_is_still_starting() {
    let (_, server) = Fake::new(|_, _| vec![]).server();
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
async fn in_the_newer_era_every_request_says_who_asks_and_in_which_revision() {
    let (connected, listed) = Fake::new(|_, message| modern(message)).connect().await;
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
async fn in_the_older_era_the_server_is_told_that_we_are_ready_and_nothing_of_the_newer() {
    let (connected, listed) = Fake::calling(|_, message| vec![Say::Json(text(message, "old"))])
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
