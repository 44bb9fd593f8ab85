//! Notifications to hosts about changes of the list of tools.

use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::TcpStream;

use super::host::TestServer;
use super::wire::{fetch, head, next_line, open};
use super::*;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";

async fn listening(server: &TestServer, way: HostKind, wanted: Value) -> (Host, u64) {
    let mut host = server.host(way, json!({})).await;
    let params = json!({"notifications": wanted});
    let id = host.begin("subscriptions/listen", params).await;
    let first = host.hear().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][KEY], id, "{first}");
    let tools = wanted.get("toolsListChanged");
    let honoured = &first["params"]["notifications"];
    assert_eq!(honoured.get("toolsListChanged"), tools, "{first}");
    assert!(honoured.get("promptsListChanged").is_none(), "{first}");
    (host, id)
}

#[tokio::test]
async fn newer_era_subscription_is_notified_until_shutdown() {
    for way in [WAYS[1], WAYS[3]] {
        let server = TestServer::open(in_mode(ListMode::Progressive)).await;
        let both = json!({"toolsListChanged": true, "promptsListChanged": true});
        let (mut told, id) = listening(&server, way, both).await;
        let prompts = json!({"promptsListChanged": true});
        let (mut other, other_id) = listening(&server, way, prompts).await;
        server.change().await;
        let change = told.hear().await;
        assert_eq!(change["method"], "notifications/tools/list_changed");
        assert_eq!(change["params"]["_meta"][KEY], id, "{change}");
        server.end();
        let last = told.answer_to(id).await.unwrap();
        assert_eq!(
            (&last["resultType"], &last["_meta"][KEY]),
            (&json!("complete"), &json!(id))
        );
        other.answer_to(other_id).await.unwrap();
        assert!(other.told.is_empty(), "it did not ask: {:?}", other.told);
    }
}

#[tokio::test]
async fn ended_subscription_gets_no_notifications() {
    let server = TestServer::open(in_mode(ListMode::Progressive)).await;
    let (mut host, id) = listening(&server, MODERN, json!({"toolsListChanged": true})).await;
    host.cancel(id).await;
    host.request("prompts/list", json!({})).await.unwrap();
    server.change().await;
    host.request("tools/list", json!({})).await.unwrap();
    assert!(host.told.is_empty(), "{:?}", host.told);
}

#[tokio::test]
async fn list_changed_capability_is_declared_in_both_eras() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let (method, params) = match way.era {
            Era::Legacy => ("initialize", json!({"protocolVersion": "2025-11-25"})),
            Era::Modern => ("server/discover", json!({})),
        };
        let said = host.request(method, params).await.unwrap();
        let promised = &said["capabilities"]["tools"]["listChanged"];
        assert_eq!(promised, &json!(true), "{way}: {said}");
        let listen = host.request("subscriptions/listen", json!({})).await;
        let code = if way.era == Era::Modern {
            -32_602
        } else {
            -32_601
        };
        assert_eq!(listen.unwrap_err()["code"], code, "{way}");
    }
}

#[tokio::test]
async fn older_era_host_is_notified_over_stdio() {
    let server = TestServer::open(in_mode(ListMode::Progressive)).await;
    let mut host = server.host(LEGACY, json!({})).await;
    host.request("ping", json!({})).await.unwrap();
    server.change().await;
    let change = host.hear().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
}

/// The stream of a session of the older era, read event by event.
pub(super) struct SessionStream(BufReader<TcpStream>);

impl SessionStream {
    pub(super) async fn open(server: &TestServer, headers: &[(&str, &str)]) -> Self {
        let opened = Self::try_open(server, headers).await;
        opened.unwrap_or_else(|said| panic!("{said}"))
    }

    /// Returns the stream, or the response if it was refused.
    async fn try_open(server: &TestServer, headers: &[(&str, &str)]) -> Result<Self, String> {
        let mut stream = open(server.address(), "GET", headers, "").await;
        let (status, headers) = head(&mut stream).await;
        if status != 200 {
            return Err(format!("{status} {headers}"));
        }
        assert!(
            headers.contains("content-type: text/event-stream"),
            "{headers}"
        );
        Ok(Self(stream))
    }

    /// Returns the number of the next event with this method.
    pub(super) async fn next_of(&mut self, wanted: &str) -> Option<String> {
        loop {
            let (id, method) = self.next().await?;
            if method == wanted {
                return Some(id);
            }
        }
    }

    /// Returns the number and method of the next event, or `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        loop {
            let line = next_line(&mut self.0).await?;
            if let Some(said) = line.strip_prefix("id: ") {
                id = said.to_owned();
            }
            if let Some(said) = line.strip_prefix("data: ") {
                let message: Value = serde_json::from_str(said).unwrap();
                return Some((id, message["method"].clone()));
            }
        }
    }
}

#[tokio::test]
async fn older_era_host_is_notified_on_session_stream() {
    let server = TestServer::open(in_mode(ListMode::Progressive)).await;
    let host = server.host(WAYS[2], json!({})).await;
    let session = host.session();
    let version = ("MCP-Protocol-Version", "2025-11-25");
    let headers = [
        ("Accept", "text/event-stream"),
        version,
        ("Mcp-Session-Id", &session),
    ];
    let mut stream = SessionStream::open(&server, &headers).await;
    server.change().await;
    let changed = "notifications/tools/list_changed";
    let id = stream.next_of(changed).await.unwrap();
    // The stream breaks, and the host misses a change.
    drop(stream);
    server.describe("echo", &json!({"name": "echo", "groups": ["again"]}));
    server.renew().await;
    let again = [&headers[..], &[("Last-Event-ID", id.as_str())]].concat();
    let mut stream = SessionStream::open(&server, &again).await;
    let later = stream.next_of(changed).await.unwrap();
    assert_ne!(later, id);
    // A host that has seen neither event gets both.
    let again = [&headers[..], &[("Last-Event-ID", "0")]].concat();
    let mut newer = SessionStream::open(&server, &again).await;
    for number in [id, later] {
        assert_eq!(newer.next_of(changed).await.unwrap(), number);
    }
    assert!(
        stream.next_of("nothing").await.is_none(),
        "a newer stream replaces the first one"
    );
    let ended = fetch(server.address(), "DELETE", &headers, "").await;
    assert_eq!(ended.status, 204);
    let more = newer.next_of("nothing").await;
    assert!(more.is_none(), "the session has ended");
}

#[tokio::test]
async fn session_stream_ends_at_shutdown() {
    let server = TestServer::open(settings()).await;
    let host = server.host(WAYS[2], json!({})).await;
    let session = host.session();
    let headers = [
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let mut stream = SessionStream::open(&server, &headers).await;
    server.end();
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn session_stream_is_private_and_needs_valid_request() {
    let server = TestServer::open(settings()).await;
    let host = server.host(WAYS[2], json!({})).await;
    let session = host.session();
    let accept = ("Accept", "text/event-stream");
    let id = ("Mcp-Session-Id", session.as_str());
    for (headers, status) in [
        (vec![accept], 405),
        (vec![accept, ("Mcp-Session-Id", "forged")], 404),
        (vec![("Accept", "application/json"), id], 406),
        (vec![id], 406),
        (vec![accept, id, ("Last-Event-ID", "x")], 400),
        (
            vec![accept, id, ("MCP-Protocol-Version", "2026-07-28")],
            405,
        ),
        (vec![accept, id, ("Origin", "https://evil.example")], 403),
    ] {
        let page = fetch(server.address(), "GET", &headers, "").await;
        assert_eq!(page.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn long_listening_session_stays_valid() {
    // On a busy machine, the host may return only after a short idle limit, so longer limits are
    // tried.
    let mut came_back = Ok(());
    for idle in [1, 10, 60] {
        came_back = come_back(Duration::from_secs(idle)).await;
        if came_back.is_ok() {
            break;
        }
    }
    came_back.unwrap();
}

/// Listens for longer than the idle limit, disconnects, and listens again.
async fn come_back(idle: Duration) -> Result<(), String> {
    let settings = ServeSettings {
        session_idle: idle,
        ..settings()
    };
    let server = TestServer::open(settings).await;
    let host = server.host(WAYS[2], json!({})).await;
    let session = host.session();
    let headers = [
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let stream = SessionStream::try_open(&server, &headers).await?;
    tokio::time::sleep(idle + idle / 5).await;
    drop(stream);
    // Gives the server time to notice the disconnect.
    tokio::time::sleep(idle / 10).await;
    let again = [&headers[..], &[("Last-Event-ID", "0")]].concat();
    SessionStream::try_open(&server, &again).await.map(drop)
}
