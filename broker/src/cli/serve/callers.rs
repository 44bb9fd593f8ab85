//! Serves callers that have logins of their own. Each caller gets a broker when it sends its first
//! request, so that no connection and no list of tools is used for two callers. All brokers share
//! the budget of runs and the approver.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airlock_core::problem::Problem;
use futures_util::future::join_all;

use super::{
    CLOSE_WALL, END_WALL, GrantSources, broken_off, configured, farewell, mcp_server, open,
    prune_in_background,
};
use crate::broker::{Broker, Cancel, SharedParts, WeakBroker};
use crate::cli::listen::Listen;
use crate::cli::options::usage;
use crate::cli::run::build_problem;
use crate::cli::screen::Screen;
use crate::cli::signals::{Signals, outlive_full_files};
use crate::cli::{Outcome, approvers, exit};
use crate::config::{Config, CredentialOwner};
use crate::serve::{McpServer, ServeSettings};

/// How long a server stays connected without a call, while the configuration is checked. No call is
/// made then.
const IDLE: Duration = Duration::from_secs(60);

/// What the brokers of callers are made of.
struct CallerBrokers {
    config: Config,
    settings: ServeSettings,
    sources: GrantSources,
    shared: SharedParts,
    screen: Screen,
    made: Mutex<Vec<WeakBroker>>,
}

pub(super) async fn serve(
    screen: &Screen,
    config: Config,
    settings: ServeSettings,
    door: Listen,
    sources: GrantSources,
) -> Outcome {
    let cancel = Cancel::new();
    let signals = Signals::cancel(&cancel, screen, Some(END_WALL));
    outlive_full_files();
    let front = mcp_server(&config, settings.clone())?;
    let (place, listening) = open(door).await?;
    let Some((listener, gate)) = listening else {
        let what = "`credentials = \"caller\"` works only over HTTP";
        return Err(usage(
            what,
            "airlock serves one host over stdio",
            "add `--http ADDRESS`",
        ));
    };
    prune_in_background(&config, screen)?;
    let shared = checked(&config, &front, &sources, screen).await?;
    let brokers = Arc::new(CallerBrokers {
        config,
        settings,
        sources,
        shared,
        screen: screen.clone(),
        made: Mutex::default(),
    });
    let making = Arc::clone(&brokers);
    let make = Arc::new(move |caller: &str| making.make(caller));
    signals.started();
    screen.remark(&format!(
        "serving on {place}; each caller has its own logins\n"
    ));
    let hosting = front.http_for_callers(listener, gate, make);
    tokio::pin!(hosting);
    let ended = tokio::select! {
        ended = &mut hosting => ended,
        why = cancel.cancelled() => {
            front.end(&why);
            farewell(hosting.as_mut(), || brokers.all()).await
        }
    };
    let closing = join_all(brokers.all().into_iter().map(Broker::close));
    let _ = tokio::time::timeout(CLOSE_WALL, closing).await;
    ended.map(|()| exit::DONE).map_err(broken_off)
}

/// Builds a broker that connects to no server, so that mistakes in the configuration are reported at
/// the start. Returns what the brokers of callers share.
async fn checked(
    config: &Config,
    front: &McpServer,
    sources: &GrantSources,
    screen: &Screen,
) -> Result<SharedParts, Problem> {
    let mut idle = config.clone();
    for server in &mut idle.servers {
        server.idle.get_or_insert(IDLE);
    }
    let builder = approvers::add_fallback_approver(Broker::builder(), config, screen)?;
    let builder = configured(builder, idle, front, sources, screen)?;
    let shared = builder.shared_parts().map_err(build_problem)?;
    let broker = builder.build().await.map_err(build_problem)?;
    for problem in broker.problems() {
        screen.warning(&problem);
    }
    broker.close().await;
    Ok(shared)
}

impl CallerBrokers {
    /// Makes the server of a caller, and builds its broker in the background.
    fn make(self: &Arc<Self>, caller: &str) -> Result<McpServer, Problem> {
        let server = mcp_server(&self.config, self.settings.clone())?;
        let mut config = self.config.clone();
        for server in &mut config.servers {
            if server.credentials == Some(CredentialOwner::Caller) {
                let login = server.spec.login.take();
                server.spec.login = login.map(|it| it.of_caller(caller));
            }
        }
        let builder = configured(
            Broker::builder(),
            config,
            &server,
            &self.sources,
            &self.screen,
        )?;
        let building = builder.sharing(self.shared.clone()).build();
        let (brokers, ready) = (Arc::clone(self), server.clone());
        tokio::spawn(async move {
            let built = async {
                let broker = building.await?;
                brokers.remember(&broker);
                ready.ready(broker.clone());
                broker.engine_loaded().await
            };
            if let Err(error) = built.await {
                brokers.screen.warning(&build_problem(error));
                ready.end("the broker could not be set up");
            }
        });
        Ok(server)
    }

    /// Remembers a broker, and forgets those of callers that have gone.
    fn remember(&self, broker: &Broker) {
        let mut made = self.lock();
        made.retain(|it| it.upgrade().is_some());
        made.push(broker.downgrade());
    }

    fn all(&self) -> Vec<Broker> {
        self.lock().iter().filter_map(WeakBroker::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WeakBroker>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
