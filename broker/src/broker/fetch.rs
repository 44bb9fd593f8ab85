//! Fetches prompts and resources of servers for hosts to which airlock offers them. This happens
//! outside of runs, so no rule applies and no journal records it. If data flow is tracked, the
//! fetched data counts as read by the session.

use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::labels::Labels;

use tokio::sync::broadcast;

use super::Broker;
use crate::deadline::Deadline;
use crate::secrets::Secrets;
use crate::upstream::fetch::{Fetch, FetchError, FetchResponse};
use crate::upstream::notifications::ServerNotification;
use crate::upstream::subscriptions::ResourceSubscription;

impl Broker {
    /// Fetches from a server, which is connected first if necessary.
    pub(crate) async fn fetch(
        &self,
        server: &ServerName,
        fetch: Fetch,
        deadline: &Deadline,
    ) -> Result<FetchResponse, FetchError> {
        let fetched = self.0.servers.fetch(server, fetch, deadline).await;
        let secrets = self.0.secrets_in_results(server);
        let mut fetched = fetched.map_err(|it| redacted(&secrets, it))?;
        // Member names are not masked here, because the code that shows the value drops every
        // member that the protocol does not define. A long value takes time.
        let masking = tokio::task::spawn_blocking(move || {
            secrets.redact_value(&mut fetched.value);
            fetched
        });
        let why = || FetchError::Failed("credentials in the answer could not be masked".into());
        masking.await.map_err(|_| why())
    }

    /// Subscribes to changes of one resource of a server, until the result is dropped.
    pub(crate) async fn watch(
        &self,
        server: &ServerName,
        uri: &str,
        deadline: &Deadline,
    ) -> Result<ResourceSubscription, FetchError> {
        let watched = self.0.servers.watch(server, uri, deadline).await;
        watched.map_err(|it| redacted(&self.0.secrets_in_results(server), it))
    }

    /// Returns a receiver of all later notifications of servers that do not concern tools.
    pub(crate) fn news(&self) -> broadcast::Receiver<(ServerName, ServerNotification)> {
        self.0.servers.upstream().news()
    }

    /// Asks a server for notifications when its list of prompts or resources changes.
    pub(crate) fn want_lists(&self, server: &str) {
        let upstream = self.0.servers.upstream();
        if let Some(server) = upstream.server(&ServerName(server.into())) {
            server.want_lists();
        }
    }

    pub(crate) fn secrets(&self) -> Secrets {
        self.0.secrets.clone()
    }

    /// Returns the labels that a session gets by reading something from this server outside of tool
    /// calls. They are the labels of the server itself, or the worst labels if none are configured.
    /// Returns `None` if data flow is not tracked.
    pub(crate) fn labels_of(&self, server: &ServerName) -> Option<Labels> {
        self.0.flow.as_ref()?;
        let nothing_of_its = ToolId {
            server: server.clone(),
            tool: ToolName("".into()),
        };
        Some(self.0.label_config.labelling(&nothing_of_its).reads)
    }
}

fn redacted(secrets: &Secrets, mut unfetched: FetchError) -> FetchError {
    match &mut unfetched {
        FetchError::Refused { message: text, .. }
        | FetchError::Failed(text)
        | FetchError::Ended(text) => secrets.redact_text(text),
    }
    unfetched
}
