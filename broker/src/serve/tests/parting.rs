//! Hosts that say what they want, close their side and read on.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::host::House;
use super::*;
use crate::serve::rpc;
use crate::serve::stdio::Parting;
use crate::upstream::era::MODERN_VERSION;

/// Longer than anything takes on a machine that is busy with other tests.
const LONG: Duration = Duration::from_secs(600);
/// Much shorter than that, and still long for a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// All that is answered to these lines, with nothing said behind them.
async fn answers_to(house: &House, lines: &[Value], parting: Parting) -> Vec<Value> {
    let (mut input, theirs) = tokio::io::duplex(1024 * 1024);
    let (ours, mut output) = tokio::io::duplex(1024 * 1024);
    for line in lines {
        let line = format!("{line}\n");
        input.write_all(line.as_bytes()).await.unwrap();
    }
    drop(input);
    let mut text = String::new();
    let (served, read) = futures_util::join!(
        house.over((theirs, ours), parting),
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
async fn what_was_read_before_the_end_of_the_input_is_answered() {
    let house = House::open(settings()).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let parting = Parting {
        by_itself: LONG,
        as_cancelled: LONG,
        read: LONG,
    };
    let asked = [list, ping, call(3, "return 'five'")];
    let answers = answers_to(&house, &asked, parting).await;
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
async fn what_does_not_end_after_the_end_of_the_input_is_answered_as_cancelled() {
    let house = House::open(settings()).await;
    let parting = Parting {
        by_itself: Duration::ZERO,
        as_cancelled: LONG,
        read: LONG,
    };
    let asked = [call(1, "while (true) {}")];
    let answers = answers_to(&house, &asked, parting).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["id"], 1);
    let told = answers[0]["result"].to_string();
    assert!(told.contains("the host is gone"), "{told}");
}

#[tokio::test]
async fn whoever_listens_is_answered_at_once_after_the_end_of_the_input() {
    let house = House::open(settings()).await;
    let parting = Parting {
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
    let answers = timeout(SOON, answers_to(&house, &asked, parting)).await;
    let answers = answers.expect("nothing is waited for");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(
        answers[0]["result"]["resultType"], "complete",
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_host_that_does_not_read_keeps_nobody_after_the_end_of_the_input() {
    let house = House::open(settings()).await;
    let none = Duration::ZERO;
    let parting = Parting {
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
    let served = timeout(SOON, house.over((theirs, ours), parting)).await;
    served.expect("nobody is waited for").unwrap();
    drop(unread);
}
