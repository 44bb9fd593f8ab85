//! One server that we have agreed with: what a request to it looks like.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::caps::Caps;
use super::diagnostics::lock;
use super::era::Era;
use super::fetch::Fetch;
use super::handshake::{Agreed, modern_meta};
use super::inquiry::{Behind, Whose};
use super::jsonrpc::{Answer, quoted};
use super::link::{Link, LinkError, Outgoing};
use super::news::Newsdesk;
use super::wall::Wall;
use super::watching::Wanted;
use crate::carrier::{Abilities, LogLevel};

/// Longer than any connection lasts.
const LISTENING: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// For a server to say that it has heard how much it is to log.
const LEVEL_WALL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) agreed: Agreed,
    pub(crate) caps: Caps,
    /// From which level on a server of the older era was told to log; it is told once.
    told_level: Mutex<Option<LogLevel>>,
}

/// A call as a server gets it.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    pub(crate) tool: &'a str,
    /// The canonical JSON text of an object, sent byte for byte.
    pub(crate) arguments: &'a str,
    pub(crate) trace: Option<&'a str>,
    pub(crate) behind: Option<&'a Behind>,
    /// Where its server says that an address was done with.
    pub(crate) newsdesk: Option<&'a Newsdesk>,
}

/// What a server of the newer era has asked for, on the way back to it.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) responses: Map<String, Value>,
    pub(crate) state: Option<Value>,
}

/// What a request says of whoever stands behind it.
#[derive(Debug, Default)]
struct Besides<'a> {
    trace: Option<&'a str>,
    abilities: Abilities,
    /// From which level on they want to hear what is logged.
    level: Option<LogLevel>,
}

const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

impl Connection {
    pub(crate) fn new(link: Link, agreed: Agreed, caps: Caps) -> Self {
        Self {
            link,
            agreed,
            caps,
            told_level: Mutex::default(),
        }
    }

    pub(crate) async fn list_page(
        &self,
        cursor: Option<&str>,
        within: Duration,
    ) -> Result<Answer, LinkError> {
        let members = cursor.map(|cursor| format!(r#""cursor":{}"#, quoted(cursor)));
        let outgoing = Outgoing {
            method: "tools/list",
            params: self.params(members, &Besides::default()),
            cancellable: true,
            ..Outgoing::default()
        };
        self.link.request(&outgoing, &Wall::new(within)).await
    }

    /// Stays open: the answer says that nothing will be told any more.
    pub(crate) async fn listen(&self) -> Result<Answer, LinkError> {
        self.listen_to(&json!({"toolsListChanged": true})).await
    }

    /// The same for what is wanted besides tools.
    pub(super) async fn listen_besides(&self, wanted: &Wanted) -> Result<Answer, LinkError> {
        let has = &self.agreed.has;
        let lists = [
            ("promptsListChanged", wanted.lists && has.prompt_changes),
            ("resourcesListChanged", wanted.lists && has.resource_changes),
        ];
        let lists = lists.into_iter().filter(|(_, is_wanted)| *is_wanted);
        let mut told: Map<_, _> = lists
            .map(|(list, _)| (list.to_owned(), true.into()))
            .collect();
        if !wanted.uris.is_empty() {
            let uris = wanted.uris.iter().cloned().collect::<Vec<_>>();
            told.insert("resourceSubscriptions".into(), uris.into());
        }
        self.listen_to(&told.into()).await
    }

    async fn listen_to(&self, wanted: &Value) -> Result<Answer, LinkError> {
        let members = format!(r#""notifications":{wanted}"#);
        let outgoing = Outgoing {
            method: "subscriptions/listen",
            params: self.params(Some(members), &Besides::default()),
            cancellable: true,
            ..Outgoing::default()
        };
        self.link.request(&outgoing, &Wall::new(LISTENING)).await
    }

    /// In the older era: from now on it tells when a resource changes, or does not any more.
    pub(super) async fn subscribe(
        &self,
        uri: &str,
        tells: bool,
        within: Duration,
    ) -> Result<Answer, LinkError> {
        let method = match tells {
            true => "resources/subscribe",
            false => "resources/unsubscribe",
        };
        let outgoing = Outgoing {
            method,
            params: self.params(
                Some(format!(r#""uri":{}"#, quoted(uri))),
                &Besides::default(),
            ),
            cancellable: true,
            ..Outgoing::default()
        };
        self.link.request(&outgoing, &Wall::new(within)).await
    }

    pub(crate) async fn call(
        &self,
        called: &Called<'_>,
        given: Option<&Given>,
        headers: Vec<(String, String)>,
        wall: &Wall,
    ) -> Result<Answer, LinkError> {
        let (tool, arguments) = (quoted(called.tool), called.arguments);
        let mut members = format!(r#""name":{tool},"arguments":{arguments}"#);
        if let Some(given) = given {
            let responses = Value::from(given.responses.clone());
            members.push_str(&format!(r#","inputResponses":{responses}"#));
            if let Some(state) = &given.state {
                members.push_str(&format!(r#","requestState":{state}"#));
            }
        }
        let abilities = called.behind.map(Behind::abilities).unwrap_or_default();
        let level = called.behind.and_then(Behind::log_level);
        if let Some(level) = level {
            self.tell_level(level).await;
        }
        let besides = Besides {
            trace: called.trace,
            abilities,
            level,
        };
        let outgoing = Outgoing {
            method: "tools/call",
            params: self.params(Some(members), &besides),
            name: Some(called.tool.to_owned()),
            headers,
            cancellable: true,
            whose: called.behind.cloned().map_or(Whose::Nobodys, Whose::Call),
        };
        self.link.request(&outgoing, wall).await
    }

    pub(crate) async fn fetch(&self, fetch: &Fetch, wall: &Wall) -> Result<Answer, LinkError> {
        let members = Value::from(fetch.params.clone()).to_string();
        let members = members
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'));
        let members = members.filter(|it| !it.is_empty()).map(str::to_owned);
        let outgoing = Outgoing {
            method: fetch.method,
            params: self.params(members, &Besides::default()),
            name: fetch.name.clone(),
            cancellable: true,
            whose: Whose::Nobodys,
            ..Outgoing::default()
        };
        self.link.request(&outgoing, wall).await
    }

    /// A server of the older era logs to all alike: whoever wants most says how much, and what
    /// the others do not want is left out here.
    /// It is told once, and a server that does not answer holds up no call for long.
    async fn tell_level(&self, level: LogLevel) {
        if self.agreed.era == Era::Modern || !self.agreed.has.logging {
            return;
        }
        let is_new = |told: &mut Option<LogLevel>| match told {
            Some(told) if *told <= level => false,
            told => {
                *told = Some(level);
                true
            }
        };
        if !is_new(&mut lock(&self.told_level)) {
            return;
        }
        let outgoing = Outgoing {
            method: "logging/setLevel",
            params: format!(r#"{{"level":{}}}"#, quoted(level.word())),
            cancellable: true,
            ..Outgoing::default()
        };
        // A server that refuses logs as it likes.
        let _ = self.link.request(&outgoing, &Wall::new(LEVEL_WALL)).await;
    }

    fn params(&self, members: Option<String>, besides: &Besides<'_>) -> String {
        let is_modern = self.agreed.era == Era::Modern;
        let ours = is_modern.then(|| modern_meta(besides.abilities));
        let level = besides.level.filter(|_| is_modern);
        let level = level.map(|it| format!(r#""{LEVEL_KEY}":{}"#, quoted(it.word())));
        let trace = besides.trace;
        let trace = trace.map(|trace| format!(r#""traceparent":{}"#, quoted(trace)));
        let meta: Vec<_> = ours.into_iter().chain(level).chain(trace).collect();
        let meta = (!meta.is_empty()).then(|| format!(r#""_meta":{{{}}}"#, meta.join(",")));
        let members: Vec<_> = members.into_iter().chain(meta).collect();
        format!("{{{}}}", members.join(","))
    }
}
