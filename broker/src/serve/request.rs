//! One request of a host, while it is being answered.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::client_request::DeliveryMode;
use super::host_limits::HostLimits;
use super::method::Method;
use super::peer::Peer;
use super::rpc::{CAPABILITIES_KEY, CLIENT_INFO_KEY};
use super::session::HostSession;
use super::settings::ServeSettings;
use crate::broker::Cancel;
use crate::client_bridge::{ClientCapabilities, LogLevel};
use crate::upstream::Era;

/// Lowest log level for a host of the older era that has not set one.
const LOG_LEVEL_DEFAULT: LogLevel = LogLevel::Info;
/// Maximum length of a client's name. The rest is ignored.
const CLIENT_CHARS_MAX: usize = 200;
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

#[derive(Debug)]
pub(super) struct Request {
    pub(super) session: Arc<HostSession>,
    /// The caller whose runs the request starts. Callers get equal shares of the capacity.
    pub(super) caller: Arc<str>,
    pub(super) peer: Peer,
    /// The request id, exactly as the host wrote it.
    pub(super) id: Box<RawValue>,
    pub(super) era: Era,
    pub(super) method: Method,
    pub(super) params: Value,
    pub(super) cancel: Cancel,
    /// The handle of the session, in the newer era.
    pub(super) handle: Option<String>,
    /// Whether the session is a separate one, and not the session that all requests without a
    /// handle share.
    pub(super) is_own_session: bool,
}

impl Request {
    /// Returns the handle if the model has to know it.
    pub(super) fn own_handle(&self) -> Option<&str> {
        self.handle.as_deref().filter(|_| self.is_own_session)
    }

    pub(super) fn progress_token(&self) -> Option<&Value> {
        let token = self.params.get("_meta")?.get("progressToken")?;
        (token.is_string() || token.is_number()).then_some(token)
    }

    /// Returns the host's capabilities: sent with each request in the newer era, once in the older.
    pub(super) fn capabilities(&self) -> Value {
        match self.era {
            Era::Modern => self
                .params
                .get("_meta")
                .and_then(|meta| meta.get(CAPABILITIES_KEY))
                .cloned()
                .unwrap_or_default(),
            Era::Legacy => self.session.capabilities(),
        }
    }

    /// Returns the limits of the host, by the name of its client.
    pub(super) fn limits(&self, settings: &ServeSettings) -> HostLimits {
        HostLimits::of_client(&self.client_name().unwrap_or_default(), settings)
    }

    /// Returns the name that the host's client gives itself.
    pub(super) fn client_name(&self) -> Option<String> {
        let name = match self.era {
            Era::Modern => {
                let meta = self.params.get("_meta");
                name_of(meta.and_then(|it| it.get(CLIENT_INFO_KEY))).to_owned()
            }
            Era::Legacy => name_of(self.capabilities().get(CLIENT_INFO_KEY)).to_owned(),
        };
        let name: String = name.chars().take(CLIENT_CHARS_MAX).collect();
        Some(name).filter(|name| !name.is_empty())
    }

    /// Returns the kinds of requests that servers may send to the host during a call.
    pub(super) fn abilities(&self, pass: ClientCapabilities) -> ClientCapabilities {
        ClientCapabilities::from_capabilities(&self.capabilities()).within(pass)
    }

    /// Returns the lowest log level that the host wants, or `None` if it wants no messages.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        match self.era {
            Era::Legacy => Some(self.session.log_level().unwrap_or(LOG_LEVEL_DEFAULT)),
            Era::Modern => {
                let level = self.params.get("_meta")?.get(LOG_LEVEL_KEY)?;
                LogLevel::from_word(level.as_str()?)
            }
        }
    }

    /// Whether the host can show a question to a person.
    pub(super) fn can_ask(&self) -> bool {
        match self.capabilities().get("elicitation") {
            Some(Value::Object(modes)) => modes.is_empty() || modes.contains_key("form"),
            _ => false,
        }
    }

    /// Whether a question at the host reaches a person, as far as the session knows: the host can
    /// show it, and does not refuse each one itself.
    pub(super) fn reaches_person(&self) -> bool {
        self.can_ask() && !self.session.is_unattended()
    }

    /// Whether the host offers its model for sampling.
    pub(super) fn can_sample(&self) -> bool {
        let capabilities = self.capabilities();
        capabilities.get("sampling").is_some_and(Value::is_object)
    }

    /// Returns how the requests of a run are delivered to the host.
    pub(super) fn way(&self) -> DeliveryMode {
        match self.era {
            Era::Legacy => DeliveryMode::Request,
            Era::Modern => DeliveryMode::Return,
        }
    }
}

/// Returns the name of a client.
fn name_of(info: Option<&Value>) -> &str {
    let name = info.and_then(|it| it.get("name"));
    name.and_then(Value::as_str).unwrap_or_default()
}
