//! Connections that say nothing, or not all of it, and too many of them.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::host::House;
use super::*;
use crate::serve::Patience;

fn settings(patience: Patience) -> Settings {
    Settings {
        patience,
        ..super::settings()
    }
}

fn hasty() -> Patience {
    Patience {
        head: Duration::from_millis(100),
        body: Duration::from_millis(100),
        ..Patience::default()
    }
}

/// What comes back until the other side closes.
async fn answer(house: &House, said: &str) -> String {
    let mut stream = TcpStream::connect(house.address()).await.unwrap();
    // Whoever was sent away may be gone already.
    let _ = stream.write_all(said.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn half_a_request_is_not_waited_for_without_end() {
    let house = House::open(settings(hasty())).await;
    assert_eq!(answer(&house, "").await, "");
    let head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
    let half = answer(&house, head).await;
    assert!(!half.contains(" 200 "), "{half}");
    let body = answer(&house, &format!("{head}Content-Length: 100\r\n\r\n{{")).await;
    assert!(body.starts_with("HTTP/1.1 408 "), "{body}");
    assert!(body.contains("did not come to its end in time"), "{body}");
}

/// The stream of the answer is silent for four times as long as a request may take.
#[tokio::test]
async fn an_answer_may_take_longer_than_anybody_may_take_to_ask() {
    let settings = Settings {
        disclosure: Disclosure::Full,
        ..settings(hasty())
    };
    let house = House::open(settings).await;
    let mut host = house.host(WAYS[2], json!({"elicitation": {}})).await;
    let code = "return (await word.ask({text: 'late'})).text";
    let params = json!({"name": "run_script", "arguments": {"code": code}});
    let id = host.begin("tools/call", params).await;
    let asked = host.asked().await;
    tokio::time::sleep(hasty().body * 4).await;
    let yes = json!({"action": "accept", "content": {"decision": "allow"}});
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes});
    host.say(&reply.to_string()).await;
    let result = host.answer_to(id).await.unwrap();
    assert_eq!(result["structuredContent"]["value"], "late");
}

#[tokio::test]
async fn those_that_are_too_many_are_sent_away_and_the_others_stay() {
    let patience = Patience {
        connections_max: 2,
        ..Patience::default()
    };
    let house = House::open(settings(patience)).await;
    let first = TcpStream::connect(house.address()).await.unwrap();
    let _second = TcpStream::connect(house.address()).await.unwrap();
    let third = answer(&house, "").await;
    assert!(third.starts_with("HTTP/1.1 503 "), "{third}");
    assert!(third.contains("too many connections"), "{third}");
    drop(first);
    // The place is free as soon as the other side has heard of it.
    let get = "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    loop {
        let page = answer(&house, get).await;
        if page.starts_with("HTTP/1.1 406 ") {
            break;
        }
        assert!(
            page.is_empty() || page.starts_with("HTTP/1.1 503 "),
            "{page}"
        );
    }
}
