//! The servers whose prompts or resources are offered to hosts.

use airlock_core::id::ServerName;

use crate::broker::tool_index::ToolIndex;
use crate::config::{OfferKind, Offers};

impl Offers {
    /// Returns the configured servers whose prompts or resources (`what`) are offered, in
    /// configuration order.
    pub(super) fn of(&self, tool_index: &ToolIndex, what: OfferKind) -> Vec<ServerName> {
        let servers = tool_index.known.servers.iter();
        let offered = servers.filter(|it| self.has(&it.name, what));
        offered
            .map(|it| ServerName(it.name.as_str().into()))
            .collect()
    }
}
