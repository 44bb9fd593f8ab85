//! Notifications of servers other than those about tools: changed lists of prompts or resources, a
//! changed resource, a completed URL elicitation. They are passed to subscribers. A subscriber that
//! reads too slowly learns that notifications were lost.

use std::collections::BTreeSet;

use airlock_core::id::ServerName;
use airlock_core::json::{self, Bounds};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, oneshot};

/// Maximum number of notifications that wait for a slow subscriber.
const WAITING_MAX: usize = 256;
/// Maximum length of an address or of an id that a server sent, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;
const BOUNDS: Bounds = Bounds {
    bytes_max: 16 * 1024,
    depth_max: 16,
    nodes_max: 500,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerNotification {
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// The resource at this address, or one below it, has changed.
    Resource(String),
    /// The URL elicitation with this id was completed.
    Opened(String),
}

/// Publishes the notifications of all servers to subscribers. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct NotificationHub(broadcast::Sender<(ServerName, ServerNotification)>);

/// Publishes the notifications of one server.
#[derive(Debug, Clone)]
pub(crate) struct NotificationSender {
    server: ServerName,
    hub: NotificationHub,
}

impl Default for NotificationHub {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl NotificationHub {
    pub(crate) fn of(&self, server: &ServerName) -> NotificationSender {
        NotificationSender {
            server: server.clone(),
            hub: self.clone(),
        }
    }

    pub(crate) fn read(&self) -> broadcast::Receiver<(ServerName, ServerNotification)> {
        self.0.subscribe()
    }
}

impl NotificationSender {
    /// Completes `done` when the URL elicitation with this id is completed, unless the receiver is
    /// dropped first.
    pub(super) fn hand_on_opened(&self, id: &str, mut done: oneshot::Sender<()>) {
        let mut news = self.hub.read();
        let wanted = (
            self.server.clone(),
            ServerNotification::Opened(id.to_owned()),
        );
        tokio::spawn(async move {
            let told = async {
                // If notifications were lost, the wanted one may be among them. The wait ends in
                // this case too.
                while news.recv().await.is_ok_and(|told| told != wanted) {}
            };
            let is_told = tokio::select! {
                () = told => true,
                () = done.closed() => false,
            };
            if is_told {
                let _ = done.send(());
            }
        });
    }

    pub(crate) fn tell(&self, news: ServerNotification) {
        // Sending fails only without subscribers, and then nothing is lost.
        let _ = self.hub.0.send((self.server.clone(), news));
    }
}

/// Bounds of an acknowledgement, which may name all watched addresses.
const PROMISE: Bounds = Bounds {
    bytes_max: 5 * 1024 * 1024,
    depth_max: 16,
    nodes_max: 2_000,
};

/// Parses a notification. Returns `None` if it has another method or is invalid.
pub(crate) fn of_notification(
    method: &str,
    params: Option<&RawValue>,
) -> Option<ServerNotification> {
    let text = |key: &str| {
        let params = json::read(params?.get().as_bytes(), BOUNDS).ok()?;
        let text = params.get(key).and_then(Value::as_str)?;
        let fits = !text.is_empty() && text.len() <= TEXT_BYTES_MAX;
        fits.then(|| text.to_owned())
    };
    match method {
        "notifications/prompts/list_changed" => Some(ServerNotification::Prompts),
        "notifications/resources/list_changed" => Some(ServerNotification::Resources),
        "notifications/resources/updated" => text("uri").map(ServerNotification::Resource),
        "notifications/elicitation/complete" => {
            text("elicitationId").map(ServerNotification::Opened)
        }
        _ => None,
    }
}

/// The notifications that a server has promised to send; they may be fewer than requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromisedNotifications {
    pub(crate) tools: bool,
    /// The addresses whose changes the server will report, if it listed them.
    pub(crate) uris: Option<BTreeSet<String>>,
}

/// Parses an acknowledgement. A server that lists no notifications has promised all of them.
pub(crate) fn promised(params: Option<&RawValue>) -> PromisedNotifications {
    let params = params.and_then(|it| json::read(it.get().as_bytes(), PROMISE).ok());
    let honoured = params.as_ref().and_then(|it| it.get("notifications"));
    let Some(honoured) = honoured.and_then(Value::as_object) else {
        return PromisedNotifications {
            tools: true,
            uris: None,
        };
    };
    let tools = honoured.contains_key("toolsListChanged");
    let uris = honoured
        .get("resourceSubscriptions")
        .and_then(Value::as_array);
    let named = uris.into_iter().flatten().filter_map(Value::as_str);
    PromisedNotifications {
        tools: tools || honoured.is_empty(),
        uris: (!tools).then(|| named.map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_notification_is_ignored() {
        let told = |method: &str, params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            of_notification(&format!("notifications/{method}"), Some(&params))
        };
        let long = format!(r#"{{"uri":"{}"}}"#, "x".repeat(5_000));
        for (method, params, expected) in [
            (
                "prompts/list_changed",
                "{}",
                Some(ServerNotification::Prompts),
            ),
            (
                "resources/list_changed",
                "[]",
                Some(ServerNotification::Resources),
            ),
            (
                "resources/updated",
                r#"{"uri":"a:1"}"#,
                Some(ServerNotification::Resource("a:1".into())),
            ),
            ("resources/updated", r#"{"uri":1}"#, None),
            ("resources/updated", r#"{"uri":""}"#, None),
            ("resources/updated", &long, None),
            (
                "elicitation/complete",
                r#"{"elicitationId":"x"}"#,
                Some(ServerNotification::Opened("x".into())),
            ),
            ("elicitation/complete", "{}", None),
            ("tools/list_changed", "{}", None),
        ] {
            assert_eq!(told(method, params), expected, "{method} {params}");
        }
    }

    #[test]
    fn subscription_acknowledgement_covers_what_it_names() {
        let of = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            let PromisedNotifications { tools, uris } = promised(Some(&params));
            (tools, uris.map(|it| it.into_iter().collect::<Vec<_>>()))
        };
        let named = |uris: &[&str]| Some(uris.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(of("{}"), (true, None));
        assert_eq!(of(r#"{"notifications":7}"#), (true, None));
        assert_eq!(of(r#"{"notifications":{}}"#), (true, named(&[])));
        assert_eq!(
            of(r#"{"notifications":{"toolsListChanged":true}}"#),
            (true, None)
        );
        let besides = r#"{"notifications":{"promptsListChanged":true}}"#;
        assert_eq!(of(besides), (false, named(&[])));
        let some = r#"{"notifications":{"resourceSubscriptions":["a:1",7]}}"#;
        assert_eq!(of(some), (false, named(&["a:1"])));
    }
}
