//! What servers have besides tools, for hosts that are offered it. No run is about
//! it: nothing of it is decided by rules, and nothing stands in a journal. What it
//! reads counts as read where anything is watched.

use airlock_core::flow::Carried;
use airlock_core::id::{ServerName, ToolId, ToolName};
use serde_json::Value;

use super::Broker;
use crate::upstream::fetch::{Fetch, Unfetched};
use crate::upstream::wall::Wall;

impl Broker {
    /// Asks a server, which is connected to first when it is not.
    pub(crate) async fn fetch(
        &self,
        server: &ServerName,
        fetch: Fetch,
        wall: &Wall,
    ) -> Result<Value, Unfetched> {
        let late = |_| Unfetched::Failed("it took too long".to_owned());
        let joined = wall.limit(self.join(server)).await.map_err(late)?;
        joined.map_err(Unfetched::Failed)?;
        let fetched = self.0.servers.fetch(server, fetch, wall.clone()).await;
        fetched.map(|mut value| {
            self.0.secrets.strike_value(&mut value);
            value
        })
    }

    /// What a session carries that has read something of a server: what is said of the
    /// server itself, and the worst where nothing is said.
    pub(crate) fn carried_from(&self, server: &ServerName) -> Option<Carried> {
        self.0.flow.as_ref()?;
        let nothing_of_its = ToolId {
            server: server.clone(),
            tool: ToolName("".into()),
        };
        let labelling = self.0.sayings.labelling(&nothing_of_its);
        Some(Carried {
            labels: labelling.reads,
            ..Carried::default()
        })
    }
}
