//! State that all connections share and that request handlers need: settings, clock, seal, the
//! current tools, and notifications for hosts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use airlock_core::id::Digest;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::list_reads::ListReads;
use super::notifications::HostNotifications;
use super::paused_runs::PausedRuns;
use super::resumed_runs::ResumedRuns;
use super::rpc::{self, RpcErrorResponse};
use super::seal::{Seal, SealKeyError};
use super::session::ListedTools;
use super::settings::ServeSettings;
use super::shown_list::{self, FirstShown, ShownTools};
use super::shutdown::Shutdown;
use crate::broker::tool_index::{ToolIndex, filter};
use crate::broker::{ServerState, ServerStatus};
use crate::client_bridge::{ClientCapabilities, DeclaredCapabilities};
use crate::host_record::HostRecords;
use crate::private_file::StateDir;
use airlock_sandbox::clock::Clock;

/// Maximum number of hosts that listen for changes at the same time. Further hosts get an error and
/// have to poll the lists.
const LISTENERS_MAX: usize = 1_000;

/// The shared state. Cheap to clone; all clones share it.
#[derive(Debug, Clone)]
pub(super) struct ServeContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tools: watch::Receiver<Option<Arc<ServedTools>>>,
    settings: ServeSettings,
    clock: Clock,
    seal: Seal,
    records: Arc<HostRecords>,
    ending: Shutdown,
    listeners: Arc<Semaphore>,
    /// The tools of the list that was last shown to any host.
    latest_list: Mutex<Option<ListedTools>>,
    first_shown: FirstShown,
    list_reads: ListReads,
    notifications: HostNotifications,
    resumed_runs: ResumedRuns,
    paused_runs: PausedRuns,
    /// The client capabilities declared to servers of the older era.
    declared: watch::Sender<Option<ClientCapabilities>>,
    /// Until this moment, requests wait for servers whose tools are not known yet.
    start_ends: Instant,
    /// Whether the servers that were missing at `start_ends` have been recorded.
    missed_noted: AtomicBool,
}

/// The tools as hosts see them.
#[derive(Debug)]
pub(super) struct ServedTools {
    pub(super) index: Arc<ToolIndex>,
    list_digest: Digest,
    /// Digests of the lists of groups and tags; computed when the lists are first compared.
    filter_digests: OnceLock<[Digest; 2]>,
}

impl ServedTools {
    /// `list` is the part of the list of `tools/list` that can change.
    pub(super) fn new(index: ToolIndex, list: Vec<Value>) -> Self {
        Self {
            index: Arc::new(index),
            list_digest: digest(Value::Array(list)),
            filter_digests: OnceLock::new(),
        }
    }

    /// Replaces the index after a change of servers that did not change their tools.
    pub(super) fn with_index(&self, index: ToolIndex) -> Self {
        Self {
            index: Arc::new(index),
            list_digest: self.list_digest,
            filter_digests: self.filter_digests.clone(),
        }
    }

    /// Returns the digests of the lists of tools, groups and tags.
    pub(super) fn list_digests(&self) -> [Digest; 3] {
        let filters = || {
            let index = &self.index;
            [digest(filter::groups(index)), digest(filter::tags(index))]
        };
        let [groups, tags] = *self.filter_digests.get_or_init(filters);
        [self.list_digest, groups, tags]
    }
}

fn digest(list: Value) -> Digest {
    Digest::sha256(list.to_string().as_bytes())
}

impl ServeContext {
    pub(super) fn new(
        tools: watch::Receiver<Option<Arc<ServedTools>>>,
        settings: ServeSettings,
        state: StateDir,
    ) -> Result<Self, SealKeyError> {
        let seal = Seal::open(&state)?;
        let records = HostRecords::new(state, settings.record_times());
        let start_ends = Instant::now() + settings.start_wait;
        Ok(Self(Arc::new(Inner {
            start_ends,
            missed_noted: AtomicBool::new(false),
            tools,
            settings,
            clock: Clock::start(),
            seal,
            records: Arc::new(records),
            ending: Shutdown::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            latest_list: Mutex::default(),
            first_shown: FirstShown::default(),
            list_reads: ListReads::default(),
            notifications: HostNotifications::default(),
            resumed_runs: ResumedRuns::default(),
            paused_runs: PausedRuns::default(),
            declared: watch::Sender::new(None),
        })))
    }

    pub(super) fn settings(&self) -> &ServeSettings {
        &self.0.settings
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }

    pub(super) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub(super) fn records(&self) -> &Arc<HostRecords> {
        &self.0.records
    }

    pub(super) fn ending(&self) -> &Shutdown {
        &self.0.ending
    }

    pub(super) fn listeners(&self) -> &Arc<Semaphore> {
        &self.0.listeners
    }

    pub(super) fn list_reads(&self) -> &ListReads {
        &self.0.list_reads
    }

    /// Notifications from offered servers.
    pub(super) fn notifications(&self) -> &HostNotifications {
        &self.0.notifications
    }

    /// Returns what the list of tools shows of the tools of servers.
    pub(super) fn shown_tools(&self, tool_index: &ToolIndex) -> Arc<ShownTools> {
        shown_list::shown_now(&self.0.first_shown, self.settings(), tool_index)
    }

    /// Results of runs that hosts resumed by their id.
    pub(super) fn resumed_runs(&self) -> &ResumedRuns {
        &self.0.resumed_runs
    }

    /// The paused runs of hosts, by caller, script and input.
    pub(super) fn paused_runs(&self) -> &PausedRuns {
        &self.0.paused_runs
    }

    pub(super) fn latest_list(&self) -> Option<ListedTools> {
        let latest = self.0.latest_list.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_latest_list(&self, shown: ListedTools) {
        let latest = self.0.latest_list.lock();
        *latest.unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }

    /// Returns a receiver of the tools and their changes.
    pub(super) fn tools(&self) -> watch::Receiver<Option<Arc<ServedTools>>> {
        self.0.tools.clone()
    }

    /// Returns the current tools, or `None` while there is no broker.
    pub(super) fn tool_index_now(&self) -> Option<Arc<ToolIndex>> {
        let tools = self.0.tools.borrow();
        tools.as_ref().map(|it| Arc::clone(&it.index))
    }

    /// Returns the current tools. Shortly after the start, waits for the tools of all servers, up
    /// to the configured time.
    pub(super) async fn tool_index(&self) -> Result<Arc<ToolIndex>, RpcErrorResponse> {
        let filled = |tools: &Option<Arc<ServedTools>>| {
            tools.as_ref().is_some_and(|it| !it.index.is_waited_for())
        };
        let mut tools = self.tools();
        let there = async {
            let in_time = timeout_at(self.0.start_ends, tools.wait_for(filled));
            let is_late = in_time.await.is_err();
            let there = tools.wait_for(Option::is_some).await;
            let there = there.ok()?.as_ref().map(|it| Arc::clone(&it.index))?;
            if is_late {
                self.note_missed(&there).await;
            }
            Some(there)
        };
        let there = tokio::select! {
            there = there => there,
            refusal = self.0.ending.refusal() => return Err(refusal),
        };
        there.ok_or_else(|| RpcErrorResponse::new(rpc::INTERNAL, "the broker could not be set up"))
    }

    /// Records which servers are still missing, so that later starts do not wait for them.
    async fn note_missed(&self, tool_index: &ToolIndex) {
        let was_waited = !self.settings().start_wait.is_zero();
        if !was_waited || self.0.missed_noted.swap(true, Ordering::Relaxed) {
            return;
        }
        let broker = tool_index.broker.clone();
        let _ = tokio::task::spawn_blocking(move || broker.note_missed()).await;
    }

    /// Waits until these servers have listed their tools or have failed to do so.
    pub(super) async fn seen(
        &self,
        servers: &[String],
    ) -> Result<Arc<ToolIndex>, RpcErrorResponse> {
        let seen = |tools: &Option<Arc<ServedTools>>| {
            let status = |name: &String| {
                let known = tools.as_ref().map(|it| &it.index.known.servers);
                known?.iter().find(|it| it.name == *name)
            };
            let settled = |it: &ServerStatus| {
                it.tools.is_some() || matches!(it.state, ServerState::Unavailable(_))
            };
            servers.iter().all(|name| status(name).is_some_and(settled))
        };
        let mut tools = self.tools();
        let there = tokio::select! {
            there = tools.wait_for(seen) => {
                there.ok().and_then(|it| Some(Arc::clone(&it.as_ref()?.index)))
            },
            refusal = self.0.ending.refusal() => return Err(refusal),
        };
        there.ok_or_else(|| RpcErrorResponse::new(rpc::INTERNAL, "the broker has shut down"))
    }

    pub(super) fn declared(&self) -> DeclaredCapabilities {
        self.0.declared.subscribe()
    }

    /// Declares the capabilities of hosts to servers. Only the first declaration counts, because
    /// airlock connects to each server once, for all hosts.
    pub(super) fn declare(&self, abilities: ClientCapabilities) {
        self.0.declared.send_if_modified(|declared| {
            let is_first = declared.is_none();
            declared.get_or_insert(abilities);
            is_first
        });
    }

    /// Waits until shutdown is requested, then ends all runs and waits until they have ended.
    pub(super) async fn runs_ended(&self) {
        let why = self.ending().wanted().await;
        if let Some(tool_index) = self.tool_index_now() {
            tool_index.broker.end_runs(&why).await;
        }
    }
}
