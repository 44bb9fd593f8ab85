//! The state that the requests of a caller use. All callers share one, or each caller has its own:
//! a server with its own broker, so that no connection, list or login is used for two callers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::problem::Problem;
use futures_util::future::join_all;
use tokio::task::AbortHandle;

use super::caller::Caller;
use super::{HttpState, stream};
use crate::serve::McpServer;
use crate::serve::context::ServeContext;

/// Maximum number of callers that have a server at the same time. A further caller takes the place
/// of the one that has sent nothing for the longest time.
const CALLERS_MAX: usize = 64;
/// The references to the state of a caller without a request in progress: that of the map, and that
/// of the task which sends changes.
const REFERENCES_AT_REST: usize = 2;

/// Makes the server of a caller, which begins to serve a broker later.
pub(crate) type MakeServer = dyn Fn(&str) -> Result<McpServer, Problem> + Send + Sync;

#[derive(Debug)]
pub(super) enum CallerStates {
    Shared(Arc<HttpState>),
    Own(OwnStates),
}

pub(super) struct OwnStates {
    /// Ends when the process ends. It has no broker.
    front: ServeContext,
    make: Arc<MakeServer>,
    states: Mutex<HashMap<String, OwnState>>,
}

struct OwnState {
    http: Arc<HttpState>,
    /// Keeps the broker.
    _server: McpServer,
    used_ms: u64,
    /// Sends changes to the sessions of the caller.
    telling: AbortHandle,
}

/// Why a caller gets no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoState {
    Ending,
    TooMany,
    /// The server of the caller could not be made.
    Failed,
}

impl fmt::Debug for OwnStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnStates({})", self.lock().len())
    }
}

impl Drop for OwnState {
    fn drop(&mut self) {
        self.telling.abort();
    }
}

impl OwnState {
    fn new(server: McpServer, now_ms: u64) -> Self {
        let context = server.context.clone();
        context.declare(context.settings().pass);
        let http = Arc::new(HttpState::new(context));
        let told = Arc::clone(&http);
        let telling = tokio::spawn(async move { stream::tell_changes(&told).await });
        Self {
            http,
            _server: server,
            used_ms: now_ms,
            telling: telling.abort_handle(),
        }
    }

    /// Whether the caller waits for nothing. Its sessions can be opened again from their records.
    fn is_at_rest(&self) -> bool {
        let sessions = self.http.sessions.all();
        Arc::strong_count(&self.http) == REFERENCES_AT_REST
            && sessions.iter().all(|it| it.is_at_rest())
    }
}

impl CallerStates {
    pub(super) fn shared(context: ServeContext) -> Self {
        Self::Shared(Arc::new(HttpState::new(context)))
    }

    pub(super) fn own(front: ServeContext, make: Arc<MakeServer>) -> Self {
        Self::Own(OwnStates {
            front,
            make,
            states: Mutex::default(),
        })
    }

    /// Returns the state for the requests of a caller.
    pub(super) fn of(&self, caller: &Caller) -> Result<Arc<HttpState>, NoState> {
        match self {
            Self::Shared(http) => Ok(Arc::clone(http)),
            Self::Own(own) => own.of(caller.name().unwrap_or_default()),
        }
    }

    fn all(&self) -> Vec<Arc<HttpState>> {
        match self {
            Self::Shared(http) => vec![Arc::clone(http)],
            Self::Own(own) => {
                let states = own.lock();
                states.values().map(|it| Arc::clone(&it.http)).collect()
            }
        }
    }

    pub(super) async fn clean_up(&self) {
        for http in self.all() {
            http.sessions.clean_up(&http.context).await;
        }
    }

    /// Sends changes to the sessions of the shared state. Never returns.
    pub(super) async fn tell_changes(&self) {
        match self {
            Self::Shared(http) => stream::tell_changes(http).await,
            Self::Own(_) => std::future::pending().await,
        }
    }

    /// Waits until shutdown is requested, and then until all runs have ended.
    pub(super) async fn runs_ended(&self) {
        if let Self::Own(own) = self {
            let why = own.front.ending().wanted().await;
            for http in self.all() {
                http.context.ending().begin(&why);
            }
        }
        let states = self.all();
        join_all(states.iter().map(|it| it.context.runs_ended())).await;
    }
}

impl OwnStates {
    fn of(&self, caller: &str) -> Result<Arc<HttpState>, NoState> {
        let now_ms = self.front.now_ms();
        let mut states = self.lock();
        if let Some(own) = states.get_mut(caller) {
            own.used_ms = now_ms;
            return Ok(Arc::clone(&own.http));
        }
        if self.front.ending().is_wanted() {
            return Err(NoState::Ending);
        }
        if states.len() >= CALLERS_MAX {
            let at_rest = states.iter().filter(|(_, it)| it.is_at_rest());
            let longest = at_rest.min_by_key(|(_, it)| it.used_ms);
            let longest = longest.map(|(name, _)| name.clone());
            states.remove(&longest.ok_or(NoState::TooMany)?);
        }
        let server = (self.make)(caller).map_err(|_| NoState::Failed)?;
        let own = OwnState::new(server, now_ms);
        let http = Arc::clone(&own.http);
        states.insert(caller.to_owned(), own);
        Ok(http)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OwnState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
