//! Connections that send no request or only a part of one, and too many connections.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::host::TestServer;
use super::*;
use crate::serve::ConnectionLimits;

fn settings(patience: ConnectionLimits) -> ServeSettings {
    ServeSettings {
        patience,
        ..super::settings()
    }
}

fn hasty() -> ConnectionLimits {
    ConnectionLimits {
        head: Duration::from_millis(100),
        body: Duration::from_millis(100),
        ..ConnectionLimits::default()
    }
}

/// Returns everything that is received until the server closes the connection.
async fn answer(server: &TestServer, said: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    // The server may have closed a refused connection already.
    let _ = stream.write_all(said.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn half_a_request_times_out() {
    let server = TestServer::open(settings(hasty())).await;
    assert_eq!(answer(&server, "").await, "");
    let head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
    let half = answer(&server, head).await;
    assert!(!half.contains(" 200 "), "{half}");
    let body = answer(&server, &format!("{head}Content-Length: 100\r\n\r\n{{")).await;
    assert!(body.starts_with("HTTP/1.1 408 "), "{body}");
    assert!(body.contains("did not arrive in time"), "{body}");
}

/// The stream of the answer is silent for four times the time limit of a request.
#[tokio::test]
async fn answer_may_take_longer_than_request_timeout() {
    let settings = ServeSettings {
        disclosure: Disclosure::Full,
        ..settings(hasty())
    };
    let server = TestServer::open(settings).await;
    let mut host = server.host(WAYS[2], json!({"elicitation": {}})).await;
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
async fn excess_connections_are_refused_and_others_kept() {
    let patience = ConnectionLimits {
        connections_max: 2,
        ..ConnectionLimits::default()
    };
    let server = TestServer::open(settings(patience)).await;
    let first = TcpStream::connect(server.address()).await.unwrap();
    let _second = TcpStream::connect(server.address()).await.unwrap();
    let third = answer(&server, "").await;
    assert!(third.starts_with("HTTP/1.1 503 "), "{third}");
    assert!(third.contains("too many connections"), "{third}");
    drop(first);
    // The place is free again once the server has noticed that the connection was closed.
    let get = "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    loop {
        let page = answer(&server, get).await;
        if page.starts_with("HTTP/1.1 406 ") {
            break;
        }
        assert!(
            page.is_empty() || page.starts_with("HTTP/1.1 503 "),
            "{page}"
        );
    }
}
