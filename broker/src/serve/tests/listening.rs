//! Hosts that are told when the list of tools is another one.

use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::TcpStream;

use super::host::House;
use super::wire::{fetch, head, next_line, open};
use super::*;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";

async fn listening(house: &House, way: Way, wanted: Value) -> (Host, u64) {
    let mut host = house.host(way, json!({})).await;
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
async fn a_host_of_the_newer_era_listens_and_is_told_until_serving_ends() {
    for way in [WAYS[1], WAYS[3]] {
        let house = House::open(in_mode(Mode::Progressive)).await;
        let both = json!({"toolsListChanged": true, "promptsListChanged": true});
        let (mut told, id) = listening(&house, way, both).await;
        let prompts = json!({"promptsListChanged": true});
        let (mut other, other_id) = listening(&house, way, prompts).await;
        house.change().await;
        let change = told.hear().await;
        assert_eq!(change["method"], "notifications/tools/list_changed");
        assert_eq!(change["params"]["_meta"][KEY], id, "{change}");
        house.end();
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
async fn whoever_does_not_listen_any_more_is_not_told() {
    let house = House::open(in_mode(Mode::Progressive)).await;
    let (mut host, id) = listening(&house, MODERN, json!({"toolsListChanged": true})).await;
    host.cancel(id).await;
    host.request("prompts/list", json!({})).await.unwrap();
    house.change().await;
    host.request("tools/list", json!({})).await.unwrap();
    assert!(host.told.is_empty(), "{:?}", host.told);
}

#[tokio::test]
async fn changes_are_promised_in_both_eras_over_both_transports() {
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
async fn a_host_of_the_older_era_is_told_over_stdio() {
    let house = House::open(in_mode(Mode::Progressive)).await;
    let mut host = house.host(LEGACY, json!({})).await;
    host.request("ping", json!({})).await.unwrap();
    house.change().await;
    let change = host.hear().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
}

/// The stream of a session of the older era, and what it says next.
pub(super) struct Listening(BufReader<TcpStream>);

impl Listening {
    pub(super) async fn open(house: &House, headers: &[(&str, &str)]) -> Self {
        let opened = Self::try_open(house, headers).await;
        opened.unwrap_or_else(|said| panic!("{said}"))
    }

    /// The stream, or what was said instead.
    async fn try_open(house: &House, headers: &[(&str, &str)]) -> Result<Self, String> {
        let mut stream = open(house.address(), "GET", headers, "").await;
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

    /// The number of the next event of this method.
    pub(super) async fn next_of(&mut self, wanted: &str) -> Option<String> {
        loop {
            let (id, method) = self.next().await?;
            if method == wanted {
                return Some(id);
            }
        }
    }

    /// The number and the method of the next event; none when the stream has ended.
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
async fn a_host_of_the_older_era_is_told_on_the_stream_of_its_session() {
    let house = House::open(in_mode(Mode::Progressive)).await;
    let host = house.host(WAYS[2], json!({})).await;
    let session = host.session();
    let version = ("MCP-Protocol-Version", "2025-11-25");
    let headers = [
        ("Accept", "text/event-stream"),
        version,
        ("Mcp-Session-Id", &session),
    ];
    let mut stream = Listening::open(&house, &headers).await;
    house.change().await;
    let changed = "notifications/tools/list_changed";
    let id = stream.next_of(changed).await.unwrap();
    // The stream breaks, and a change is missed.
    drop(stream);
    house.describe("echo", &json!({"name": "echo", "groups": ["again"]}));
    house.renew().await;
    let again = [&headers[..], &[("Last-Event-ID", id.as_str())]].concat();
    let mut stream = Listening::open(&house, &again).await;
    let later = stream.next_of(changed).await.unwrap();
    assert_ne!(later, id);
    // Seen from before both, both are told.
    let again = [&headers[..], &[("Last-Event-ID", "0")]].concat();
    let mut newer = Listening::open(&house, &again).await;
    for number in [id, later] {
        assert_eq!(newer.next_of(changed).await.unwrap(), number);
    }
    assert!(
        stream.next_of("nothing").await.is_none(),
        "a newer stream took its place"
    );
    let ended = fetch(house.address(), "DELETE", &headers, "").await;
    assert_eq!(ended.status, 204);
    let more = newer.next_of("nothing").await;
    assert!(more.is_none(), "the session is over");
}

#[tokio::test]
async fn a_stream_ends_when_serving_ends() {
    let house = House::open(settings()).await;
    let host = house.host(WAYS[2], json!({})).await;
    let session = host.session();
    let headers = [
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let mut stream = Listening::open(&house, &headers).await;
    house.end();
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_is_nobody_elses_and_wants_to_be_asked_for_rightly() {
    let house = House::open(settings()).await;
    let host = house.host(WAYS[2], json!({})).await;
    let session = host.session();
    let accept = ("Accept", "text/event-stream");
    let id = ("Mcp-Session-Id", session.as_str());
    for (headers, status) in [
        (vec![accept], 400),
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
        let page = fetch(house.address(), "GET", &headers, "").await;
        assert_eq!(page.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn a_host_that_has_only_listened_for_long_can_come_back() {
    // On a busy machine a host may take longer to come back than a short idle time is.
    let mut came_back = Ok(());
    for idle in [1, 10, 60] {
        came_back = come_back(Duration::from_secs(idle)).await;
        if came_back.is_ok() {
            break;
        }
    }
    came_back.unwrap();
}

/// Listens for longer than a session may be idle, leaves, and listens again.
async fn come_back(idle: Duration) -> Result<(), String> {
    let settings = Settings {
        session_idle: idle,
        ..settings()
    };
    let house = House::open(settings).await;
    let host = house.host(WAYS[2], json!({})).await;
    let session = host.session();
    let headers = [
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let stream = Listening::try_open(&house, &headers).await?;
    tokio::time::sleep(idle + idle / 5).await;
    drop(stream);
    // The other side notices.
    tokio::time::sleep(idle / 10).await;
    let again = [&headers[..], &[("Last-Event-ID", "0")]].concat();
    Listening::try_open(&house, &again).await.map(drop)
}
