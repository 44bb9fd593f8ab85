//! What servers have besides tools, for hosts that are offered it. No run is about
//! it: nothing of it is decided by rules, and nothing stands in a journal. What it
//! reads counts as read where anything is watched.

use airlock_core::flow::Labels;
use airlock_core::id::{ServerName, ToolId, ToolName};

use tokio::sync::broadcast;

use super::Broker;
use crate::config::Secrets;
use crate::upstream::fetch::{Fetch, Fetched, Unfetched};
use crate::upstream::news::News;
use crate::upstream::wall::Wall;
use crate::upstream::watching::Watched;

impl Broker {
    /// Asks a server, which is connected to first when it is not.
    pub(crate) async fn fetch(
        &self,
        server: &ServerName,
        fetch: Fetch,
        wall: &Wall,
    ) -> Result<Fetched, Unfetched> {
        let fetched = self.0.servers.fetch(server, fetch, wall).await;
        let mut fetched = fetched.map_err(|it| self.struck(it))?;
        // Whoever shows it keeps no member whose name is not the protocol's.
        self.0.secrets.strike_value(&mut fetched.value);
        Ok(fetched)
    }

    /// Has a server tell when one of its resources changes, until what comes back is dropped.
    pub(crate) async fn watch(
        &self,
        server: &ServerName,
        uri: &str,
        wall: &Wall,
    ) -> Result<Watched, Unfetched> {
        let watched = self.0.servers.watch(server, uri, wall).await;
        watched.map_err(|it| self.struck(it))
    }

    /// What servers tell of besides their tools, from now on.
    pub(crate) fn news(&self) -> broadcast::Receiver<(ServerName, News)> {
        self.0.servers.upstream().news()
    }

    /// A server is to say when its prompts or resources are others.
    pub(crate) fn want_lists(&self, server: &str) {
        self.0
            .servers
            .upstream()
            .want_lists(&ServerName(server.into()));
    }

    pub(crate) fn secrets(&self) -> Secrets {
        self.0.secrets.clone()
    }

    fn struck(&self, mut unfetched: Unfetched) -> Unfetched {
        match &mut unfetched {
            Unfetched::Refused { message: text, .. }
            | Unfetched::Failed(text)
            | Unfetched::Ended(text) => self.0.secrets.strike_text(text),
        }
        unfetched
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
