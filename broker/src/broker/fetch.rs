//! What servers have besides tools, for hosts that are offered it. No run is about
//! it: nothing of it is decided by rules, and nothing stands in a journal. What it
//! reads counts as read where anything is watched.

use airlock_core::flow::Labels;
use airlock_core::id::{ServerName, ToolId, ToolName};

use super::Broker;
use crate::upstream::fetch::{Fetch, Fetched, Unfetched};
use crate::upstream::wall::Wall;

impl Broker {
    /// Asks a server, which is connected to first when it is not.
    pub(crate) async fn fetch(
        &self,
        server: &ServerName,
        fetch: Fetch,
        wall: &Wall,
    ) -> Result<Fetched, Unfetched> {
        let mut fetched = self.0.servers.fetch(server, fetch, wall).await;
        let secrets = &self.0.secrets;
        match &mut fetched {
            // Whoever shows it keeps no member whose name is not the protocol's.
            Ok(fetched) => secrets.strike_value(&mut fetched.value),
            Err(Unfetched::Refused { message, .. }) => secrets.strike_text(message),
            Err(Unfetched::Failed(why) | Unfetched::Ended(why)) => secrets.strike_text(why),
        }
        fetched
    }

    /// What a session carries that has heard something of a server: what is said of the
    /// server itself, and the worst where nothing is said.
    pub(crate) fn labels_of(&self, server: &ServerName) -> Option<Labels> {
        self.0.flow.as_ref()?;
        let nothing_of_its = ToolId {
            server: server.clone(),
            tool: ToolName("".into()),
        };
        Some(self.0.sayings.labelling(&nothing_of_its).reads)
    }
}
