//! Servers of the newer era, which tell of a changed list to whoever listens.

use std::time::Duration;

use airlock_core::id::ServerName;
use serde_json::{Value, json};

use super::fake::{Connected, Fake, Say, error, result, text, tool};
use crate::upstream::fetch::Unfetched;
use crate::upstream::wall::Wall;
use crate::upstream::watching::Watched;

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

#[tokio::test(start_paused = true)]
async fn a_server_that_promises_everything_but_tools_is_listed_again_when_its_list_holds_no_longer()
{
    const HOLDS: Duration = Duration::from_secs(60);
    let fake = Fake::new(|_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({"tools": {"listChanged": true}});
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            vec![Say::Json(result(message, about))]
        }
        Some("subscriptions/listen") => vec![Say::Json(promising(json!({})))],
        Some("tools/list") => {
            let list = json!({"tools": [tool("t")], "ttlMs": HOLDS.as_millis() as u64});
            vec![Say::Json(result(message, list))]
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

/// A server that tells of resources, and promises what it is said here.
async fn watched(promises: fn(&Value) -> Option<Value>) -> Connected {
    let fake = Fake::new(move |_, message| match message["method"].as_str() {
        Some("server/discover") => {
            let capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities});
            vec![Say::Json(result(message, about))]
        }
        Some("subscriptions/listen") => {
            let wanted = &message["params"]["notifications"];
            let promised = promises(wanted).map(|it| Say::Json(promising(it)));
            promised.into_iter().collect()
        }
        Some("tools/list") => vec![Say::Json(result(message, json!({"tools": [tool("t")]})))],
        _ => vec![],
    });
    fake.connect().await.0
}

async fn watch(connected: &Connected, uri: &str) -> Result<Watched, Unfetched> {
    let server = ServerName("fake".into());
    let wall = Wall::new(Duration::from_secs(60));
    connected
        .upstream
        .watch(&server, uri.to_owned(), wall)
        .await
}

#[tokio::test(start_paused = true)]
async fn an_address_of_which_a_server_does_not_promise_to_tell_is_not_said_to_be_watched() {
    // As many as it likes, and not this one.
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
        matches!(silent, Err(Unfetched::Refused { .. })),
        "{silent:?}"
    );
    // The others are watched as before, and so are more of them.
    let more = watch(&connected, "a:more").await;
    assert!(more.is_ok() && told.is_ok(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_nothing_or_says_nothing_at_all_tells_of_everything() {
    for promises in [|_: &Value| None, |_: &Value| Some(Value::Null)] {
        let connected = watched(promises).await;
        let watched = watch(&connected, "a:1").await;
        assert!(watched.is_ok(), "{watched:?}");
    }
}
