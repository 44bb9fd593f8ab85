//! Servers of the newer era, which tell of a changed list to whoever listens.

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};

use super::fake::{Connected, Fake, Say, error, result, text, tool};

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

/// A server that says that it tells of changes, and answers those who listen as it is said here.
fn telling(listen: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> Fake {
    Fake::new(move |_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({"tools": {"listChanged": true}});
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            vec![Say::Json(result(message, about))]
        }
        Some("subscriptions/listen") => listen(message),
        Some("tools/list") => vec![Say::Json(result(message, json!({"tools": [tool("t")]})))],
        Some("tools/call") => vec![Say::Json(changed()), Say::Json(text(message, "done"))],
        _ if message.get("id").is_some() => vec![Say::Json(error(message, -32_601))],
        _ => vec![],
    })
}

async fn is_outdated(connected: &Connected) -> bool {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    connected.upstream.is_outdated(&ServerName("fake".into()))
}

async fn listed_again(connected: &Connected) {
    let server = ServerName("fake".into());
    assert_eq!(
        connected.upstream.list(&server).await.unwrap().failure,
        None
    );
}

/// The methods that a server has heard, without `notifications/`.
fn heard(connected: &Connected) -> Vec<String> {
    let heard = connected.heard.lock().unwrap();
    let methods = heard.iter().filter_map(|it| it["method"].as_str());
    methods
        .filter(|it| !it.starts_with("notifications/"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_is_listened_to_before_its_list_is_read_and_a_change_is_heard() {
    let fake = telling(|_| vec![Say::Json(acknowledged())]);
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
    // As long as nothing ends, it is asked once.
    tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_say_that_it_tells_is_not_asked_to() {
    let fake = Fake::new(|_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
            vec![Say::Json(result(message, about))]
        }
        Some("tools/list") => vec![Say::Json(result(message, json!({"tools": [tool("t")]})))],
        _ => vec![],
    });
    let (connected, listed) = fake.connect().await;
    assert_eq!(listed.failure, None);
    assert_eq!(heard(&connected), ["server/discover", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_to_tell_is_asked_once_and_nobody_waits_for_it() {
    let since = tokio::time::Instant::now();
    let fake = telling(|message| vec![Say::Json(error(message, -32_601))]);
    let (connected, listed) = fake.connect().await;
    assert_eq!((listed.failure, listed.tools.len()), (None, 1));
    assert_eq!(since.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_promises_to_tell_late_is_listed_once_more_then() {
    let later = Duration::from_secs(5);
    let fake = telling(move |_| vec![Say::After(later, acknowledged())]);
    let (connected, listed) = fake.connect().await;
    assert_eq!(listed.tools.len(), 1);
    assert!(!is_outdated(&connected).await);
    tokio::time::sleep(later).await;
    assert!(is_outdated(&connected).await, "it may have changed before");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_telling_is_asked_again_later_and_later() {
    let ending = |message: &Value| {
        let ended = result(message, json!({"resultType": "complete"}));
        vec![Say::Json(acknowledged()), Say::Json(ended)]
    };
    let (connected, _) = telling(ending).connect().await;
    assert!(!is_outdated(&connected).await);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 2);
    assert!(is_outdated(&connected).await, "it was not listened to");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let asked = connected.heard("subscriptions/listen").len();
    assert!((10..30).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn nobody_listens_to_a_server_that_is_left() {
    let fake = telling(|_| vec![Say::Json(acknowledged())]);
    let (connected, _) = fake.connect().await;
    connected
        .upstream
        .disconnect(&ServerName("fake".into()))
        .await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(connected.heard("subscriptions/listen").len(), 1);
}
