//! What a server tells of by itself, besides its tools: that its prompts or resources are
//! others now, that one of its resources has changed, that an address was done with. On its
//! way to whoever wants to hear it; whoever is too slow hears that something was missed.

use std::collections::BTreeSet;

use airlock_core::id::ServerName;
use airlock_core::json::{self, Bounds};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, oneshot};

/// News that wait for a slow reader.
const WAITING_MAX: usize = 256;
/// Of an address, or of a name that a server gave.
const TEXT_BYTES_MAX: usize = 4_096;
const BOUNDS: Bounds = Bounds {
    bytes_max: 16 * 1024,
    depth_max: 16,
    nodes_max: 500,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// The list of prompts is another one.
    Prompts,
    /// The list of resources is another one.
    Resources,
    /// The resource at this address, or one below it.
    Resource(String),
    /// Somebody is done with the address of this name.
    Opened(String),
}

/// Where the news of all servers go. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Newsroom(broadcast::Sender<(ServerName, News)>);

/// Where those of one server go.
#[derive(Debug, Clone)]
pub(crate) struct Newsdesk {
    server: ServerName,
    room: Newsroom,
}

impl Default for Newsroom {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Newsroom {
    pub(crate) fn of(&self, server: &ServerName) -> Newsdesk {
        Newsdesk {
            server: server.clone(),
            room: self.clone(),
        }
    }

    pub(crate) fn read(&self) -> broadcast::Receiver<(ServerName, News)> {
        self.0.subscribe()
    }
}

impl Newsdesk {
    /// Says when somebody is done with the address of this name, from now on, as long as it is
    /// listened to.
    pub(super) fn hand_on_opened(&self, id: &str, mut done: oneshot::Sender<()>) {
        let mut news = self.room.read();
        let wanted = (self.server.clone(), News::Opened(id.to_owned()));
        tokio::spawn(async move {
            let told = async {
                // What was missed may have been it.
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

    pub(crate) fn tell(&self, news: News) {
        // Where nobody reads, nobody wants to know.
        let _ = self.room.0.send((self.server.clone(), news));
    }
}

/// As many addresses as are watched.
const PROMISE: Bounds = Bounds {
    bytes_max: 5 * 1024 * 1024,
    depth_max: 16,
    nodes_max: 2_000,
};

/// What a notification tells of; none where it is about something else, or cannot be read.
pub(crate) fn of_notification(method: &str, params: Option<&RawValue>) -> Option<News> {
    let text = |key: &str| {
        let params = json::read(params?.get().as_bytes(), BOUNDS).ok()?;
        let text = params.get(key).and_then(Value::as_str)?;
        let fits = !text.is_empty() && text.len() <= TEXT_BYTES_MAX;
        fits.then(|| text.to_owned())
    };
    match method {
        "notifications/prompts/list_changed" => Some(News::Prompts),
        "notifications/resources/list_changed" => Some(News::Resources),
        "notifications/resources/updated" => text("uri").map(News::Resource),
        "notifications/elicitation/complete" => text("elicitationId").map(News::Opened),
        _ => None,
    }
}

/// What a server has said that it will tell of; it may be less than it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) tools: bool,
    /// Besides tools: these addresses, where the server has named them.
    pub(crate) uris: Option<BTreeSet<String>>,
}

/// A server that does not say of what has promised all of it.
pub(crate) fn promised(params: Option<&RawValue>) -> Promised {
    let params = params.and_then(|it| json::read(it.get().as_bytes(), PROMISE).ok());
    let honoured = params.as_ref().and_then(|it| it.get("notifications"));
    let Some(honoured) = honoured.and_then(Value::as_object) else {
        return Promised {
            tools: true,
            uris: None,
        };
    };
    let tools = honoured.contains_key("toolsListChanged");
    let uris = honoured
        .get("resourceSubscriptions")
        .and_then(Value::as_array);
    let named = uris.into_iter().flatten().filter_map(Value::as_str);
    Promised {
        tools: tools || honoured.is_empty(),
        uris: (!tools).then(|| named.map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_no_news() {
        let told = |method: &str, params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            of_notification(&format!("notifications/{method}"), Some(&params))
        };
        let long = format!(r#"{{"uri":"{}"}}"#, "x".repeat(5_000));
        for (method, params, expected) in [
            ("prompts/list_changed", "{}", Some(News::Prompts)),
            ("resources/list_changed", "[]", Some(News::Resources)),
            (
                "resources/updated",
                r#"{"uri":"a:1"}"#,
                Some(News::Resource("a:1".into())),
            ),
            ("resources/updated", r#"{"uri":1}"#, None),
            ("resources/updated", r#"{"uri":""}"#, None),
            ("resources/updated", &long, None),
            (
                "elicitation/complete",
                r#"{"elicitationId":"x"}"#,
                Some(News::Opened("x".into())),
            ),
            ("elicitation/complete", "{}", None),
            ("tools/list_changed", "{}", None),
        ] {
            assert_eq!(told(method, params), expected, "{method} {params}");
        }
    }

    #[test]
    fn a_promise_is_of_what_it_names() {
        let of = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            let Promised { tools, uris } = promised(Some(&params));
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
