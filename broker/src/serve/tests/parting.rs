//! Tests hosts that send their requests, close their sending side and continue to read.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::host::TestServer;
use super::*;
use crate::serve::rpc;
use crate::serve::stdio::DrainTimeouts;
use crate::upstream::era::MODERN_VERSION;

/// Time limit that is long enough on a machine that is busy with other tests.
const LONG: Duration = Duration::from_secs(600);
/// A time much shorter than `LONG`, but still long enough for a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// Returns all answers to these lines; the host then closes its side.
async fn answers_to(server: &TestServer, lines: &[Value], parting: DrainTimeouts) -> Vec<Value> {
    let (mut input, theirs) = tokio::io::duplex(1024 * 1024);
    let (ours, mut output) = tokio::io::duplex(1024 * 1024);
    for line in lines {
        let line = format!("{line}\n");
        input.write_all(line.as_bytes()).await.unwrap();
    }
    drop(input);
    let mut text = String::new();
    let (served, read) = futures_util::join!(
        server.over((theirs, ours), parting),
        output.read_to_string(&mut text)
    );
    served.unwrap();
    read.unwrap();
    let messages = text.lines().map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter(|message: &Value| message.get("method").is_none())
        .collect()
}

fn call(id: u64, code: &str) -> Value {
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn requests_read_before_eof_are_answered() {
    let server = TestServer::open(settings()).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let parting = DrainTimeouts {
        by_itself: LONG,
        as_cancelled: LONG,
        read: LONG,
    };
    let asked = [list, ping, call(3, "return 'five'")];
    let answers = answers_to(&server, &asked, parting).await;
    let mut ids: Vec<_> = answers
        .iter()
        .map(|it| it["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3], "{answers:?}");
    let ran = answers.iter().find(|it| it["id"] == 3).unwrap();
    assert!(text(&ran["result"]).contains("five"), "{ran}");
}

#[tokio::test]
async fn unfinished_requests_after_eof_are_answered_as_cancelled() {
    let server = TestServer::open(settings()).await;
    let parting = DrainTimeouts {
        by_itself: Duration::ZERO,
        as_cancelled: LONG,
        read: LONG,
    };
    let asked = [call(1, "while (true) {}")];
    let answers = answers_to(&server, &asked, parting).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["id"], 1);
    let told = answers[0]["result"].to_string();
    assert!(told.contains("the host disconnected"), "{told}");
}

#[tokio::test]
async fn subscription_is_answered_at_eof() {
    let server = TestServer::open(settings()).await;
    let parting = DrainTimeouts {
        by_itself: LONG,
        as_cancelled: LONG,
        read: LONG,
    };
    let mut params = json!({"notifications": {"toolsListChanged": true}});
    params["_meta"][rpc::VERSION_KEY] = MODERN_VERSION.into();
    params["_meta"][rpc::CAPABILITIES_KEY] = json!({});
    let listen =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let asked = [listen];
    let answers = timeout(SOON, answers_to(&server, &asked, parting)).await;
    let answers = answers.expect("serving ends at once");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(
        answers[0]["result"]["resultType"], "complete",
        "{answers:?}"
    );
}

#[tokio::test]
async fn unread_output_does_not_block_exit_after_eof() {
    let server = TestServer::open(settings()).await;
    let none = Duration::ZERO;
    let parting = DrainTimeouts {
        by_itself: none,
        as_cancelled: none,
        read: none,
    };
    let (mut input, theirs) = tokio::io::duplex(1024);
    let (ours, unread) = tokio::io::duplex(1);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    input
        .write_all(format!("{ping}\n").as_bytes())
        .await
        .unwrap();
    drop(input);
    let served = timeout(SOON, server.over((theirs, ours), parting)).await;
    served.expect("serving ends at once").unwrap();
    drop(unread);
}
