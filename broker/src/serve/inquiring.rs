//! What a server asks in the middle of a call, as a host gets it: always with the
//! server's name in front, and with no text that could pass for one of ours.

mod fields;
mod keys;

use std::sync::Arc;

use serde_json::{Value, json};

use keys::Keys;

use super::asking;
use super::request::Request;
use super::rpc::put;
use super::sampling;
use super::seal;
use super::session::HostSession;
use super::wish::{Clock, Wishes};
use crate::broker::Broker;
use crate::carrier::{Abilities, Carrier, Carrying, Inquiry, Remarks, Time, Wants};
use crate::render::escape;
use crate::upstream::Era;
use crate::upstream::inquiry::unfit;

/// The name of an address.
const ID: &str = "elicitationId";
/// Which server asks, for programs.
pub(super) const SERVER_KEY: &str = "dev.airlock/server";

/// Inquiries of one run go to its host.
#[derive(Debug)]
pub(super) struct ToHost {
    wishes: Wishes,
    broker: Broker,
    abilities: Abilities,
    session: Arc<HostSession>,
    host: Arc<str>,
    era: Era,
    remarks: Option<Remarks>,
    keys: Keys,
}

impl ToHost {
    pub(super) fn new(
        wishes: Wishes,
        broker: &Broker,
        (request, abilities): (&Request, Abilities),
        remarks: Option<Remarks>,
    ) -> Self {
        Self {
            wishes,
            broker: broker.clone(),
            abilities,
            session: Arc::clone(&request.session),
            host: request.session.id.as_str().into(),
            era: request.era,
            remarks,
            keys: Keys::default(),
        }
    }
}

impl ToHost {
    /// In the older era an address to open has a name, which the newer has not: a server of the
    /// one may be behind a host of the other.
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

impl ToHost {
    /// In the older era a server may say when somebody is done with the address.
    fn note_to_open(&self, inquiry: &Inquiry, params: &Value) {
        let id = |of: &Value| of.get(ID).and_then(Value::as_str).map(str::to_owned);
        if let (Some(theirs), Some(ours)) = (id(&inquiry.params), id(params)) {
            let whose = (inquiry.server.clone(), theirs);
            self.session.note_to_open(whose, &ours);
        }
    }
}

impl Carrier for ToHost {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn host(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.host))
    }

    fn remarks(&self) -> Option<Remarks> {
        self.remarks.clone()
    }

    fn carry(&self, inquiry: Inquiry, time: Time) -> Carrying<'_> {
        Box::pin(async move {
            let key = self.keys.next(inquiry.key.as_deref());
            match request(&inquiry) {
                Ok((method, mut params)) => {
                    if inquiry.wants == Wants::Address {
                        self.identify(&mut params, key.as_str());
                        self.note_to_open(&inquiry, &params);
                    }
                    // Whoever is asked has heard it, whatever comes of the run.
                    self.session.hear_from(&self.broker, &inquiry.server);
                    let clock = Clock::InTurn(time.stand_still());
                    let text = key.as_str().to_owned();
                    self.wishes.want_by(text, (method, params), clock).await
                }
                Err(why) => unfit(why),
            }
        })
    }
}

/// The method and params of the request to the host; or why it cannot be shown to a person.
fn request(inquiry: &Inquiry) -> Result<(&'static str, Value), &'static str> {
    let server = &*inquiry.server.0;
    let mut params = inquiry.params.clone();
    let method = match inquiry.wants {
        Wants::Form => {
            put(&mut params, "message", message(server, &inquiry.params));
            if let Some(schema) = params.get_mut("requestedSchema") {
                fields::make_plain(schema)?;
            }
            asking::METHOD
        }
        Wants::Address => {
            put(&mut params, "message", message(server, &inquiry.params));
            asking::METHOD
        }
        Wants::Sampling => {
            let about = format!("The server `{server}` behind airlock asks for this text.");
            let theirs = params.get("systemPrompt").and_then(Value::as_str);
            let prompt = theirs.map_or_else(|| about.clone(), |it| format!("{about}\n\n{it}"));
            put(&mut params, "systemPrompt", prompt);
            "sampling/createMessage"
        }
        Wants::Roots => "roots/list",
    };
    put(&mut params, "_meta", json!({ SERVER_KEY: server }));
    Ok((method, params))
}

/// Nothing in it is hidden, and each line of the server's stands behind a mark.
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

    fn asked(wants: Wants, params: Value) -> Value {
        let server = ServerName("files".into());
        request(&Inquiry {
            server,
            wants,
            params,
            key: None,
        })
        .unwrap()
        .1
    }

    #[test]
    fn the_servers_name_stands_in_front_and_its_text_hides_nothing() {
        let theirs = "Allow call 1 of `bank.pay`?\n\u{202e}Yes\u{1b}[2J";
        let field = json!({"type": "string", "title": "A\u{200b}B", "enum": ["a"]});
        let schema = json!({"type": "object", "properties": {"x": field}});
        let params = json!({"mode": "form", "message": theirs, "requestedSchema": schema});
        let form = asked(Wants::Form, params);
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
            Wants::Sampling,
            json!({"messages": [], "systemPrompt": "Be short."}),
        );
        let prompt = sampling["systemPrompt"].as_str().unwrap();
        assert!(
            prompt.contains("`files`") && prompt.ends_with("Be short."),
            "{prompt}"
        );
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let params = json!({"mode": "url", "message": "x".repeat(5_000), "url": "https://a.b/"});
        let asked = asked(Wants::Address, params);
        assert!(
            asked["message"]
                .as_str()
                .unwrap()
                .contains("1000 more characters")
        );
        assert_eq!(asked["url"], "https://a.b/");
    }
}
