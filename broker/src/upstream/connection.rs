//! One server that we have agreed with: what a request to it looks like.

use std::time::Duration;

use super::caps::Caps;
use super::era::Era;
use super::handshake::{Agreed, MODERN_META};
use super::jsonrpc::{Answer, quoted};
use super::link::{Link, LinkError, Outgoing};

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    pub(crate) agreed: Agreed,
    pub(crate) caps: Caps,
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
            params: self.params(members.unwrap_or_default()),
            cancellable: true,
            ..Outgoing::default()
        };
        self.link.request(&outgoing, within).await
    }

    /// `arguments` is the canonical JSON text of an object, and is sent byte for byte.
    pub(crate) async fn call(
        &self,
        (tool, arguments, trace): (&str, &str, Option<&str>),
        headers: Vec<(String, String)>,
        within: Duration,
    ) -> Result<Answer, LinkError> {
        let members = format!(r#""name":{},"arguments":{arguments}"#, quoted(tool));
        let outgoing = Outgoing {
            method: "tools/call",
            params: self.params_in_trace(members, trace),
            name: Some(tool.to_owned()),
            headers,
            cancellable: true,
        };
        self.link.request(&outgoing, within).await
    }

    fn params_in_trace(&self, members: String, trace: Option<&str>) -> String {
        let Some(trace) = trace else {
            return self.params(members);
        };
        let trace = format!(r#""traceparent":{}"#, quoted(trace));
        let ours = MODERN_META.strip_suffix('}').unwrap_or(MODERN_META);
        match self.agreed.era {
            Era::Legacy => format!(r#"{{{members},"_meta":{{{trace}}}}}"#),
            Era::Modern => format!("{{{members},{ours},{trace}}}}}"),
        }
    }

    fn params(&self, members: String) -> String {
        match self.agreed.era {
            Era::Legacy => format!("{{{members}}}"),
            Era::Modern if members.is_empty() => format!("{{{MODERN_META}}}"),
            Era::Modern => format!("{{{members},{MODERN_META}}}"),
        }
    }
}
