//! Servers of the newer era that report a changed list to subscribers.

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};

use super::fake::{ConnectedFake, FakeReply, FakeServer, error, result, text, tool};
use crate::deadline::Deadline;
use crate::upstream::fetch::FetchError;
use crate::upstream::subscriptions::ResourceSubscription;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn says(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION: 2}}})
}

fn acknowledged() -> Value {
    says("notifications/subscriptions/acknowledged")
}

fn changed() -> Value {
    says("notifications/tools/list_changed")
}

/// Creates a server that declares change notifications, and answers subscriptions with `listen`.
fn telling(listen: impl Fn(&Value) -> Vec<FakeReply> + Send + Sync + 'static) -> FakeServer {
    FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({"tools": {"listChanged": true}});
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            vec![FakeReply::Json(result(message, about))]
        }
        Some("subscriptions/listen") => listen(message),
        Some("tools/list") => vec![FakeReply::Json(result(
            message,
            json!({"tools": [tool("t")]}),
        ))],
        Some("tools/call") => vec![
            FakeReply::Json(changed()),
            FakeReply::Json(text(message, "done")),
        ],
        _ if message.get("id").is_some() => vec![FakeReply::Json(error(message, -32_601))],
        _ => vec![],
    })
}

async fn is_outdated(connected: &ConnectedFake) -> bool {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    connected.server().is_outdated()
}

async fn listed_again(connected: &ConnectedFake) {
    let server = ServerName("fake".into());
    assert_eq!(
        connected.upstream.list(&server).await.unwrap().failure,
        None
    );
}

/// Returns the methods that a server has received, except notifications.
fn heard(connected: &ConnectedFake) -> Vec<String> {
    let heard = connected.heard.lock().unwrap();
    let methods = heard.iter().filter_map(|it| it["method"].as_str());
    methods
        .filter(|it| !it.starts_with("notifications/"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn subscription_starts_before_listing_and_reports_change() {
    let fake = telling(|_| vec![FakeReply::Json(acknowledged())]);
    let (connected, listed) = fake.connect().await;
    assert_eq!(listed.failure, None);
    let order = ["server/discover", "subscriptions/listen", "tools/list"];
    assert_eq!(heard(&connected), order);
    let asked = &connected.heard("subscriptions/listen")[0]["params"];
    assert_eq!(asked["notifications"], json!({"toolsListChanged": true}));
    let version = &asked["_meta"]["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(version, "2026-07-28");
    assert!(!is_outdated(&connected).await, "nothing has changed");
    connected.call("{}", 1_000).await;
    assert!(is_outdated(&connected).await);
    listed_again(&connected).await;
    assert!(!is_outdated(&connected).await);
    // While the request stays open, it is sent only once.
    tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn server_without_capability_is_not_subscribed_to() {
    let fake = FakeServer::new(|_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
            vec![FakeReply::Json(result(message, about))]
        }
        Some("tools/list") => vec![FakeReply::Json(result(
            message,
            json!({"tools": [tool("t")]}),
        ))],
        _ => vec![],
    });
    let (connected, listed) = fake.connect().await;
    assert_eq!(listed.failure, None);
    assert_eq!(heard(&connected), ["server/discover", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn refused_subscription_is_not_retried_or_awaited() {
    let since = tokio::time::Instant::now();
    let fake = telling(|message| vec![FakeReply::Json(error(message, -32_601))]);
    let (connected, listed) = fake.connect().await;
    assert_eq!((listed.failure, listed.tools.len()), (None, 1));
    assert_eq!(since.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_acknowledgement_triggers_one_relisting() {
    let later = Duration::from_secs(5);
    let fake = telling(move |_| vec![FakeReply::After(later, acknowledged())]);
    let (connected, listed) = fake.connect().await;
    assert_eq!(listed.tools.len(), 1);
    assert!(!is_outdated(&connected).await);
    tokio::time::sleep(later).await;
    assert!(
        is_outdated(&connected).await,
        "the list may have changed before the acknowledgement"
    );
}

#[tokio::test(start_paused = true)]
async fn ended_subscription_is_retried_with_backoff() {
    let ending = |message: &Value| {
        let ended = result(message, json!({"resultType": "complete"}));
        vec![FakeReply::Json(acknowledged()), FakeReply::Json(ended)]
    };
    let (connected, _) = telling(ending).connect().await;
    assert!(!is_outdated(&connected).await);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 2);
    assert!(
        is_outdated(&connected).await,
        "changes during the pause are not reported"
    );
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let asked = connected.heard("subscriptions/listen").len();
    assert!((10..30).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn disconnected_server_has_no_subscription() {
    let fake = telling(|_| vec![FakeReply::Json(acknowledged())]);
    let (connected, _) = fake.connect().await;
    connected.server().disconnect().await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn server_without_tool_notifications_is_relisted_on_ttl() {
    const HOLDS: Duration = Duration::from_secs(60);
    let fake = FakeServer::new(|_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({"tools": {"listChanged": true}});
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            vec![FakeReply::Json(result(message, about))]
        }
        Some("subscriptions/listen") => vec![FakeReply::Json(promising(json!({})))],
        Some("tools/list") => {
            let list = json!({"tools": [tool("t")], "ttlMs": HOLDS.as_millis() as u64});
            vec![FakeReply::Json(result(message, list))]
        }
        _ => vec![],
    });
    let (connected, listed) = fake.connect().await;
    assert_eq!((listed.failure, listed.tools.len()), (None, 1));
    for _ in 0..2 {
        tokio::time::sleep(HOLDS - Duration::from_secs(1)).await;
        assert!(!is_outdated(&connected).await);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(is_outdated(&connected).await);
        listed_again(&connected).await;
    }
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}

fn promising(notifications: Value) -> Value {
    let mut acknowledged = acknowledged();
    acknowledged["params"]["notifications"] = notifications;
    acknowledged
}

/// Connects to a server that reports changes of resources, and acknowledges subscriptions with
/// `promises`.
async fn watched(promises: fn(&Value) -> Option<Value>) -> ConnectedFake {
    let fake = FakeServer::new(move |_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            vec![FakeReply::Json(result(message, about))]
        }
        Some("subscriptions/listen") => {
            let wanted = &message["params"]["notifications"];
            let promised = promises(wanted).map(|it| FakeReply::Json(promising(it)));
            promised.into_iter().collect()
        }
        Some("tools/list") => vec![FakeReply::Json(result(
            message,
            json!({"tools": [tool("t")]}),
        ))],
        _ => vec![],
    });
    fake.connect().await.0
}

async fn watch(connected: &ConnectedFake, uri: &str) -> Result<ResourceSubscription, FetchError> {
    let deadline = Deadline::new(Duration::from_secs(60));
    connected.server().watch(uri, &deadline).await
}

#[tokio::test(start_paused = true)]
async fn unacknowledged_resource_is_not_reported_as_subscribed() {
    // The server promises all resources but this one.
    let connected = watched(|wanted| {
        let uris = wanted["resourceSubscriptions"].as_array()?;
        let told = uris.iter().filter(|it| *it != "a:silent");
        Some(json!({"resourceSubscriptions": told.collect::<Vec<_>>()}))
    })
    .await;
    let told = watch(&connected, "a:told").await;
    assert!(told.is_ok(), "{told:?}");
    let silent = watch(&connected, "a:silent").await;
    assert!(
        matches!(silent, Err(FetchError::Refused { .. })),
        "{silent:?}"
    );
    // The others are still watched, and more can be added.
    let more = watch(&connected, "a:more").await;
    assert!(more.is_ok() && told.is_ok(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn empty_acknowledgement_covers_everything() {
    for promises in [|_: &Value| None, |_: &Value| Some(Value::Null)] {
        let connected = watched(promises).await;
        let watched = watch(&connected, "a:1").await;
        assert!(watched.is_ok(), "{watched:?}");
    }
}
