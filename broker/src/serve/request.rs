//! One request of a host while it is worked on.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::desk::Desk;
use super::peer::Peer;
use super::rpc::CAPABILITIES_KEY;
use super::session::HostSession;
use super::wish::Way;
use crate::broker::Cancel;
use crate::carrier::Abilities;
use crate::upstream::Era;

#[derive(Debug)]
pub(super) struct Request {
    pub(super) session: Arc<HostSession>,
    /// Whose runs it wants: callers have equal parts of what there is room for.
    pub(super) caller: Arc<str>,
    pub(super) peer: Peer,
    /// As the host wrote it.
    pub(super) id: Box<RawValue>,
    pub(super) era: Era,
    pub(super) params: Value,
    pub(super) cancel: Cancel,
    /// The handle of the session, where no transport carries one.
    pub(super) handle: Option<String>,
}

impl Request {
    pub(super) fn progress_token(&self) -> Option<&Value> {
        let token = self.params.get("_meta")?.get("progressToken")?;
        (token.is_string() || token.is_number()).then_some(token)
    }

    /// What the host can do: said with each request in the newer era, once in the older.
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

    /// What servers can ask of it in the middle of a call.
    pub(super) fn abilities(&self, desk: &Desk) -> Abilities {
        Abilities::of(&self.capabilities()).within(desk.settings().pass)
    }

    /// Whether a question of a run can reach the person at the host.
    pub(super) fn can_ask(&self) -> bool {
        match self.capabilities().get("elicitation") {
            Some(Value::Object(modes)) => modes.is_empty() || modes.contains_key("form"),
            _ => false,
        }
    }

    /// Whether the host's model can be asked.
    pub(super) fn can_sample(&self) -> bool {
        let capabilities = self.capabilities();
        capabilities.get("sampling").is_some_and(Value::is_object)
    }

    /// How the host hears what a run wants of it.
    pub(super) fn way(&self) -> Way {
        match self.era {
            Era::Legacy => Way::Request,
            Era::Modern => Way::Return,
        }
    }
}
