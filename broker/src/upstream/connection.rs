//! A connection to one server after the handshake, and the requests sent over it.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Map, Value};

use super::diagnostics::lock;
use super::era::Era;
use super::fetch::Fetch;
use super::handshake::{Negotiated, modern_meta};
use super::jsonrpc::{Answer, quoted};
use super::link::Link;
use super::message_limits::MessageLimits;
use super::notifications::NotificationSender;
use super::outgoing::{LinkError, OutgoingRequest};
use super::server_request::{CallOrigin, RequestOwner};
use super::subscriptions::WantedSubscriptions;
use crate::client_bridge::{ClientCapabilities, LogLevel};
use crate::deadline::Deadline;
use crate::login::ServerLogin;

/// Time limit of a subscription. It is longer than any connection lasts.
const LISTENING: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Maximum time for a server to confirm a log level.
const LEVEL_WALL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) negotiated: Negotiated,
    pub(crate) message_limits: MessageLimits,
    /// The last log level that was sent to a server of the older era.
    told_level: Mutex<Option<LogLevel>>,
}

/// A call as it is sent to a server.
#[derive(Debug)]
pub(crate) struct CallRequest<'a> {
    pub(crate) tool: &'a str,
    /// The canonical JSON text of an object, sent unchanged.
    pub(crate) arguments: &'a str,
    pub(crate) trace: Option<&'a str>,
    pub(crate) origin: Option<&'a CallOrigin>,
    /// The login of the server.
    pub(crate) login: Option<&'a ServerLogin>,
    /// The source of notifications about completed URL elicitations.
    pub(crate) notifier: Option<&'a NotificationSender>,
}

/// The answers to the inquiries of a server of the newer era, returned with the repeated call.
#[derive(Debug, Default)]
pub(crate) struct InputResponses {
    pub(crate) responses: Map<String, Value>,
    pub(crate) state: Option<Value>,
}

/// The members of `_meta` that depend on the origin of a request.
#[derive(Debug, Default)]
struct RequestMeta<'a> {
    trace: Option<&'a str>,
    abilities: ClientCapabilities,
    /// The lowest log level that the origin wants.
    level: Option<LogLevel>,
    /// Set if the origin wants reports of progress.
    progress_token: Option<String>,
}

const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

impl Connection {
    pub(crate) fn new(link: Link, negotiated: Negotiated, message_limits: MessageLimits) -> Self {
        Self {
            link,
            negotiated,
            message_limits,
            told_level: Mutex::default(),
        }
    }

    pub(crate) async fn list_page(
        &self,
        cursor: Option<&str>,
        within: Duration,
    ) -> Result<Answer, LinkError> {
        let members = cursor.map(|cursor| format!(r#""cursor":{}"#, quoted(cursor)));
        let outgoing = OutgoingRequest {
            method: "tools/list",
            params: self.params(members, &RequestMeta::default()),
            cancellable: true,
            ..OutgoingRequest::default()
        };
        self.link.request(&outgoing, &Deadline::new(within)).await
    }

    /// Subscribes to changes of the list of tools, and of the lists of groups and tags if the server
    /// has them. The request stays open; its answer means that no more notifications follow.
    pub(crate) async fn listen(&self) -> Result<Answer, LinkError> {
        let lists: &[&str] = match self.negotiated.has.filtering {
            true => &["toolsListChanged", "groupsListChanged", "tagsListChanged"],
            false => &["toolsListChanged"],
        };
        let wanted = lists
            .iter()
            .map(|list| ((*list).to_owned(), Value::Bool(true)));
        let wanted = Value::Object(wanted.collect());
        self.listen_to(&wanted).await
    }

    /// Subscribes to every wanted kind of change except changes of the list of tools. The request
    /// stays open.
    pub(super) async fn listen_besides(
        &self,
        wanted: &WantedSubscriptions,
    ) -> Result<Answer, LinkError> {
        let has = &self.negotiated.has;
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
        let outgoing = OutgoingRequest {
            method: "subscriptions/listen",
            params: self.params(Some(members), &RequestMeta::default()),
            cancellable: true,
            ..OutgoingRequest::default()
        };
        self.link
            .request(&outgoing, &Deadline::new(LISTENING))
            .await
    }

    /// Subscribes to changes of a resource, or unsubscribes from them, in the older era.
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
        let outgoing = OutgoingRequest {
            method,
            params: self.params(
                Some(format!(r#""uri":{}"#, quoted(uri))),
                &RequestMeta::default(),
            ),
            cancellable: true,
            ..OutgoingRequest::default()
        };
        self.link.request(&outgoing, &Deadline::new(within)).await
    }

    pub(crate) async fn call(
        &self,
        called: &CallRequest<'_>,
        given: Option<&InputResponses>,
        headers: Vec<(String, String)>,
        deadline: &Deadline,
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
        let abilities = called.origin.map(CallOrigin::abilities).unwrap_or_default();
        let level = called.origin.and_then(CallOrigin::log_level);
        if let Some(level) = level {
            self.tell_level(level).await;
        }
        let besides = RequestMeta {
            trace: called.trace,
            abilities,
            level,
            progress_token: called.origin.and_then(CallOrigin::progress_token),
        };
        let outgoing = OutgoingRequest {
            method: "tools/call",
            params: self.params(Some(members), &besides),
            name: Some(called.tool.to_owned()),
            headers,
            cancellable: true,
            owner: called
                .origin
                .cloned()
                .map_or(RequestOwner::NoHost, RequestOwner::Call),
        };
        self.link.request(&outgoing, deadline).await
    }

    pub(crate) async fn fetch(
        &self,
        fetch: &Fetch,
        deadline: &Deadline,
    ) -> Result<Answer, LinkError> {
        let members = Value::from(fetch.params.clone()).to_string();
        let members = members
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'));
        let members = members.filter(|it| !it.is_empty()).map(str::to_owned);
        let outgoing = OutgoingRequest {
            method: fetch.method,
            params: self.params(members, &RequestMeta::default()),
            name: fetch.name.clone(),
            cancellable: true,
            owner: RequestOwner::NoHost,
            ..OutgoingRequest::default()
        };
        self.link.request(&outgoing, deadline).await
    }

    /// Sets the log level of a server of the older era. The level applies to all runs, so airlock
    /// sends the most detailed level that any run wants, and each run filters its messages. A level
    /// is sent only if it is new. A server that does not answer delays a call only briefly.
    async fn tell_level(&self, level: LogLevel) {
        if self.negotiated.era == Era::Modern || !self.negotiated.has.logging {
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
        let outgoing = OutgoingRequest {
            method: "logging/setLevel",
            params: format!(r#"{{"level":{}}}"#, quoted(level.word())),
            cancellable: true,
            ..OutgoingRequest::default()
        };
        // If the server refuses, it keeps its previous level.
        let _ = self
            .link
            .request(&outgoing, &Deadline::new(LEVEL_WALL))
            .await;
    }

    fn params(&self, members: Option<String>, besides: &RequestMeta<'_>) -> String {
        let is_modern = self.negotiated.era == Era::Modern;
        let ours = is_modern.then(|| modern_meta(besides.abilities));
        let level = besides.level.filter(|_| is_modern);
        let level = level.map(|it| format!(r#""{LEVEL_KEY}":{}"#, quoted(it.word())));
        let trace = besides.trace;
        let trace = trace.map(|trace| format!(r#""traceparent":{}"#, quoted(trace)));
        let token = besides.progress_token.as_ref();
        let token = token.map(|token| format!(r#""progressToken":{}"#, quoted(token)));
        let ours = ours.into_iter().chain(level).chain(trace);
        let meta: Vec<_> = ours.chain(token).collect();
        let meta = (!meta.is_empty()).then(|| format!(r#""_meta":{{{}}}"#, meta.join(",")));
        let members: Vec<_> = members.into_iter().chain(meta).collect();
        format!("{{{}}}", members.join(","))
    }
}
