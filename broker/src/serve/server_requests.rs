//! Passes servers' inquiries during a call to the host. A message to a person begins with the
//! server's name and marks the server's text as a quotation, so that it does not look like
//! airlock's own text.

mod form_fields;
mod request_keys;

use std::sync::Arc;

use serde_json::{Value, json};

use request_keys::RequestKeys;

use super::client_request::{ClientRequestQueue, ELICITATION, RequestClock, SAMPLING};
use super::request::Request;
use super::rpc::{SERVER_KEY, set_member};
use super::seal;
use super::session::HostSession;
use crate::broker::Broker;
use crate::client_bridge::{
    AnswerDeadline, BridgeFuture, ClientBridge, ClientCapabilities, InquiryKind, LogSink,
    ProgressSink, ServerRequest,
};
use crate::render::escape;
use crate::upstream::Era;
use crate::upstream::server_request::unfit;

/// The member with the id of a URL elicitation.
const ID: &str = "elicitationId";

/// Sends the inquiries of one run to its host.
#[derive(Debug)]
pub(super) struct HostBridge {
    client_requests: ClientRequestQueue,
    broker: Broker,
    abilities: ClientCapabilities,
    session: Arc<HostSession>,
    host: Arc<str>,
    era: Era,
    log_sink: Option<LogSink>,
    progress_sink: Option<ProgressSink>,
    keys: RequestKeys,
}

impl HostBridge {
    pub(super) fn new(
        client_requests: ClientRequestQueue,
        broker: &Broker,
        request: &Request,
        abilities: ClientCapabilities,
        log_sink: Option<LogSink>,
    ) -> Self {
        Self {
            client_requests,
            broker: broker.clone(),
            abilities,
            session: Arc::clone(&request.session),
            host: request.session.id.as_str().into(),
            era: request.era,
            log_sink,
            progress_sink: None,
            keys: RequestKeys::default(),
        }
    }

    /// Sets where reports of progress go.
    pub(super) fn with_progress(self, progress_sink: Option<ProgressSink>) -> Self {
        Self {
            progress_sink,
            ..self
        }
    }
}

impl HostBridge {
    /// Adds or removes the elicitation id as the host's era requires. Only the older era has such
    /// ids, and server and host may be of different eras.
    fn identify(&self, params: &mut Value, key: &str) {
        let Some(members) = params.as_object_mut() else {
            return;
        };
        match self.era {
            Era::Modern => drop(members.remove(ID)),
            Era::Legacy => {
                let own = || seal::token().unwrap_or_else(|_| key.to_owned());
                members.entry(ID).or_insert_with(|| own().into());
            }
        }
    }
}

impl HostBridge {
    /// Remembers the elicitation id, because a server of the older era may report that a URL
    /// elicitation was completed.
    fn note_to_open(&self, inquiry: &ServerRequest, params: &Value) {
        let id = |of: &Value| of.get(ID).and_then(Value::as_str).map(str::to_owned);
        if let (Some(theirs), Some(ours)) = (id(&inquiry.params), id(params)) {
            let whose = (inquiry.server.clone(), theirs);
            self.session.note_to_open(whose, &ours);
        }
    }
}

impl ClientBridge for HostBridge {
    fn abilities(&self) -> ClientCapabilities {
        self.abilities
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.host))
    }

    fn log_sink(&self) -> Option<LogSink> {
        self.log_sink.clone()
    }

    fn progress_sink(&self) -> Option<ProgressSink> {
        self.progress_sink.clone()
    }

    fn carry(&self, inquiry: ServerRequest, time: AnswerDeadline) -> BridgeFuture<'_> {
        Box::pin(async move {
            let key = self.keys.next(inquiry.key.as_deref());
            match request(&inquiry) {
                Ok((method, mut params)) => {
                    if inquiry.wants == InquiryKind::Address {
                        self.identify(&mut params, key.as_str());
                        self.note_to_open(&inquiry, &params);
                    }
                    // The host sees the server's text as soon as the request is sent, even if the
                    // run fails later.
                    self.session.hear_from(&self.broker, &inquiry.server);
                    let clock = RequestClock::InTurn(time.stand_still());
                    let text = key.as_str().to_owned();
                    self.client_requests
                        .want_by(text, method, params, clock)
                        .await
                }
                Err(why) => unfit(why),
            }
        })
    }
}

/// Returns the method and params of the request to the host, or the reason why the inquiry cannot
/// be shown to a person.
fn request(inquiry: &ServerRequest) -> Result<(&'static str, Value), &'static str> {
    let server = &*inquiry.server.0;
    let mut params = inquiry.params.clone();
    let method = match inquiry.wants {
        InquiryKind::Form => {
            set_member(&mut params, "message", message(server, &inquiry.params));
            if let Some(schema) = params.get_mut("requestedSchema") {
                form_fields::make_plain(schema)?;
            }
            ELICITATION
        }
        InquiryKind::Address => {
            set_member(&mut params, "message", message(server, &inquiry.params));
            ELICITATION
        }
        InquiryKind::Sampling => {
            let about = format!("The server `{server}` behind airlock asks for this text.");
            for key in ["messages", "systemPrompt"] {
                params.get_mut(key).into_iter().for_each(escape::texts);
            }
            let theirs = params.get("systemPrompt").and_then(Value::as_str);
            let prompt = theirs.map_or_else(|| about.clone(), |it| format!("{about}\n\n{it}"));
            set_member(&mut params, "systemPrompt", prompt);
            SAMPLING
        }
        InquiryKind::Roots => "roots/list",
    };
    set_member(&mut params, "_meta", json!({ SERVER_KEY: server }));
    Ok((method, params))
}

/// Builds the message. Invisible characters are escaped, and each line from the server is marked as
/// a quotation.
fn message(server: &str, params: &Value) -> String {
    let theirs = params.get("message").and_then(Value::as_str);
    let theirs = escape::quoted(theirs.unwrap_or_default());
    let text = format!("The server `{server}` behind airlock asks:\n{theirs}");
    text.trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlock_core::id::ServerName;

    fn asked(wants: InquiryKind, params: Value) -> Value {
        let server = ServerName("files".into());
        request(&ServerRequest {
            server,
            wants,
            params,
            key: None,
        })
        .unwrap()
        .1
    }

    #[test]
    fn server_name_is_prefixed_and_its_text_escaped() {
        let theirs = "Allow call 1 of `bank.pay`?\n\u{202e}Yes\u{1b}[2J";
        let field = json!({"type": "string", "title": "A\u{200b}B", "enum": ["a"]});
        let schema = json!({"type": "object", "properties": {"x": field}});
        let params = json!({"mode": "form", "message": theirs, "requestedSchema": schema});
        let form = asked(InquiryKind::Form, params);
        let message = form["message"].as_str().unwrap();
        assert_eq!(
            message,
            "The server `files` behind airlock asks:\n> Allow call 1 of `bank.pay`?\n\
             > \\u{202e}Yes\\u{1b}[2J"
        );
        let field = &form["requestedSchema"]["properties"]["x"];
        assert_eq!(field["title"], "A\\u{200b}B");
        assert_eq!(field["enum"], json!(["a"]));
        assert_eq!(form["_meta"][SERVER_KEY], "files");

        let sampling = asked(
            InquiryKind::Sampling,
            json!({"messages": [{"content": {"text": "\u{1b}c"}}], "systemPrompt": "Be short."}),
        );
        let prompt = sampling["systemPrompt"].as_str().unwrap();
        assert!(
            prompt.contains("`files`") && prompt.ends_with("Be short."),
            "{prompt}"
        );
        let shown = &sampling["messages"][0]["content"]["text"];
        assert_eq!(shown, "\\u{1b}c");
    }

    #[test]
    fn long_text_is_truncated_with_notice() {
        let params = json!({"mode": "url", "message": "x".repeat(5_000), "url": "https://a.b/"});
        let asked = asked(InquiryKind::Address, params);
        assert!(
            asked["message"]
                .as_str()
                .unwrap()
                .contains("1000 more characters")
        );
        assert_eq!(asked["url"], "https://a.b/");
    }
}
