//! One server that we have agreed with: what a request to it looks like.

use std::time::Duration;

use serde_json::{Map, Value};

use super::caps::Caps;
use super::era::Era;
use super::fetch::Fetch;
use super::handshake::{Agreed, modern_meta};
use super::inquiry::{Behind, Whose};
use super::jsonrpc::{Answer, quoted};
use super::link::{Link, LinkError, Outgoing};
use super::wall::Wall;
use crate::carrier::Abilities;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) agreed: Agreed,
    pub(crate) caps: Caps,
}

/// A call as a server gets it.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    pub(crate) tool: &'a str,
    /// The canonical JSON text of an object, sent byte for byte.
    pub(crate) arguments: &'a str,
    pub(crate) trace: Option<&'a str>,
    pub(crate) behind: Option<&'a Behind>,
}

/// What a server of the newer era has asked for, on the way back to it.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) responses: Map<String, Value>,
    pub(crate) state: Option<Value>,
}

impl Connection {
    pub(crate) async fn list_page(
        &self,
        cursor: Option<&str>,
        within: Duration,
    ) -> Result<Answer, LinkError> {
        let members = cursor.map(|cursor| format!(r#""cursor":{}"#, quoted(cursor)));
        let outgoing = Outgoing {
            method: "tools/list",
            params: self.params(members, None, Abilities::default()),
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
        let outgoing = Outgoing {
            method: "tools/call",
            params: self.params(Some(members), called.trace, abilities),
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
            params: self.params(members, None, Abilities::default()),
            name: fetch.name.clone(),
            cancellable: true,
            whose: Whose::Nobodys,
            ..Outgoing::default()
        };
        self.link.request(&outgoing, wall).await
    }

    fn params(&self, members: Option<String>, trace: Option<&str>, abilities: Abilities) -> String {
        let ours = (self.agreed.era == Era::Modern).then(|| modern_meta(abilities));
        let trace = trace.map(|trace| format!(r#""traceparent":{}"#, quoted(trace)));
        let meta: Vec<_> = ours.into_iter().chain(trace).collect();
        let meta = (!meta.is_empty()).then(|| format!(r#""_meta":{{{}}}"#, meta.join(",")));
        let members: Vec<_> = members.into_iter().chain(meta).collect();
        format!("{{{}}}", members.join(","))
    }
}
