//! The session of one host: the tools that it was shown, its capabilities, its waiting runs, and
//! values that were too long for a result.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use airlock_core::catalog::Tool;
use airlock_core::flow::SessionFlow;
use airlock_core::id::{Digest, ServerName, ToolId};
use airlock_core::labels::Labels;
use airlock_core::session::{DisclosedTools, RateLimited, Session};
use airlock_core::shared_state::SharedState;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::followed_run::FollowedRun;
use super::host_limits;
use super::notifications::{
    GROUPS, HostSubscription, HostSubscriptions, NotificationBatch, SUBSCRIPTIONS_MAX, TAGS,
};
use super::peer::OpenRequests;
use super::replay_buffer::SseReplayBuffer;
use super::result_store::{ResultStore, SessionResults, StoredContent, read_call};
use super::settings::ServeSettings;
use crate::broker::{Broker, Cancel};
use crate::client_bridge::LogLevel;
use crate::host_record::{self, HostRecord, HostRecords, SessionChange};
use crate::shared_file::SharedError;

/// Maximum number of requests of one session that are open at the same time.
const REQUESTS_MAX: usize = 256;
/// Maximum number of runs of one session that wait for an answer at the same time.
const SUSPENDED_MAX: usize = 32;
/// Maximum number of URL elicitations whose completion a session can report.
const TO_OPEN_MAX: usize = 64;

/// Notifications about lists that the protocol itself does not have.
const OWN_LISTS: [&str; 2] = [GROUPS, TAGS];

/// Digests of the descriptions that a list of tools has shown.
pub(super) type ListedTools = Arc<HashMap<ToolId, Digest>>;

#[derive(Debug)]
pub(super) struct HostSession {
    pub(super) id: String,
    /// Where the session's labels, disclosures and grants are stored.
    record: OnceLock<HostRecord>,
    pub(super) open: Arc<OpenRequests>,
    /// Messages unrelated to requests, for a host of the older era over HTTP.
    pub(super) replay: SseReplayBuffer,
    /// One permit per call in progress.
    pub(super) call_slots: Arc<Semaphore>,
    /// Whether the host has closed its side and sends no more messages.
    silent: watch::Sender<bool>,
    state: Mutex<State>,
    settings: ServeSettings,
    /// Results of the session's runs that were too long.
    pub(super) stored_results: SessionResults,
}

#[derive(Debug)]
struct State {
    session: Session,
    /// The descriptions that lists of tools have shown in full; `None` before the first list.
    listed: Option<ListedTools>,
    /// Changes that are not in the record yet. The labels that are in the record are only there,
    /// because a person can declassify them while the session is open.
    unsaved: SessionChange,
    /// Labels that are being written to the record, and the number of writes.
    saving: (Labels, usize),
    /// Whether the session has had labels.
    has_labels: bool,
    saved_at_ms: u64,
    /// Whether this session itself has read labelled data.
    has_new_labels: bool,
    /// The host's capabilities from the handshake of the older era.
    capabilities: Value,
    /// The lowest log level that the host wants, if it has set one.
    log_level: Option<LogLevel>,
    attendance: Attendance,
    /// Servers that the model has disabled in this session.
    disabled: BTreeSet<String>,
    /// Descriptions of which the host got only a part, by their address.
    unread: HashMap<String, UnreadDescription>,
    /// The lists of SEP-1300 that the host has asked for, by the method of their notification.
    asked_lists: BTreeSet<&'static str>,
    /// Whether the host accepts notifications unrelated to its requests.
    is_listening: bool,
    requests: HashMap<String, Cancel>,
    suspended: HashMap<String, FollowedRun>,
    /// The forms that the host still shows about suspended runs, by the ids of the runs. Each task
    /// waits for one answer and records it.
    late_forms: HashMap<String, JoinSet<()>>,
    /// The resources that the host subscribed to, in the older era.
    subscriptions: HostSubscriptions,
    /// URL elicitations that the person was asked to complete: the server, its id, and the id that
    /// the host got.
    to_open: VecDeque<((ServerName, String), String)>,
}

/// Whether a person answers the questions at the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attendance {
    Unknown,
    /// The host refused a question sooner than a person can, and no person has answered one.
    Unattended,
    /// A person has answered a question.
    Attended,
}

/// A description that the host reads in parts.
#[derive(Debug)]
struct UnreadDescription {
    tool: Arc<Tool>,
    /// The number of bytes from the beginning that the host got.
    read_bytes: usize,
}

impl HostSession {
    pub(super) fn new(
        id: String,
        settings: &ServeSettings,
        result_store: &ResultStore,
        now_ms: u64,
    ) -> Self {
        Self {
            id,
            record: OnceLock::new(),
            open: Arc::default(),
            replay: SseReplayBuffer::default(),
            call_slots: Arc::new(Semaphore::new(settings.calls_in_flight_max)),
            silent: watch::Sender::new(false),
            state: Mutex::new(State {
                session: Session::new(settings.fetch_rate, now_ms),
                listed: None,
                unsaved: SessionChange::default(),
                saving: (Labels::default(), 0),
                has_labels: false,
                saved_at_ms: now_ms,
                has_new_labels: false,
                capabilities: json!({}),
                log_level: None,
                attendance: Attendance::Unknown,
                disabled: BTreeSet::new(),
                unread: HashMap::new(),
                asked_lists: BTreeSet::new(),
                is_listening: false,
                requests: HashMap::new(),
                suspended: HashMap::new(),
                late_forms: HashMap::new(),
                subscriptions: HostSubscriptions::new(),
                to_open: VecDeque::new(),
            }),
            settings: settings.clone(),
            stored_results: result_store.results(settings),
        }
    }

    /// Sets the record of the session, and continues from the state in it.
    pub(super) fn attach(&self, record: HostRecord, recorded: &SharedState, now_ms: u64) {
        if self.record.set(record).is_err() {
            return;
        }
        let mut state = self.lock();
        state.has_labels |= !recorded.carried.labels.is_empty();
        state.saved_at_ms = now_ms;
        state.session.restore(recorded.disclosed.clone());
        let capabilities = recorded.capabilities.as_deref();
        if let Some(capabilities) = capabilities.and_then(|it| serde_json::from_str(it).ok()) {
            state.capabilities = capabilities;
            state.is_listening = true;
        }
    }

    /// Whether all requests of the caller without a handle share the session.
    pub(super) fn is_shared(&self) -> bool {
        self.record.get().is_some_and(|it| it.id().is_shared())
    }

    pub(super) fn record(&self) -> Option<&HostRecord> {
        self.record.get()
    }

    /// Writes new labels and disclosures to the record, before data that depends on them is sent.
    pub(super) async fn save(
        &self,
        records: &Arc<HostRecords>,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        let Some(record) = self.record.get().cloned() else {
            return Ok(());
        };
        let unsaved = {
            let mut state = self.lock();
            let is_recent = now_ms.saturating_sub(state.saved_at_ms) < records.touch_ms();
            if is_recent && state.unsaved == SessionChange::default() {
                return Ok(());
            }
            state.saved_at_ms = now_ms;
            let unsaved = std::mem::take(&mut state.unsaved);
            state.saving.0.join(&unsaved.labels);
            state.saving.1 += 1;
            unsaved
        };
        let (change, records) = (unsaved.clone(), Arc::clone(records));
        let saved = host_record::blocking(move || records.save(&record, &change, now_ms)).await;
        let mut state = self.lock();
        if saved.is_err() {
            state.unsaved.join(unsaved);
        }
        state.saving.1 -= 1;
        if state.saving.1 == 0 {
            state.saving.0 = Labels::default();
        }
        saved
    }

    pub(super) fn disclose<'a>(&self, tools: impl IntoIterator<Item = &'a Arc<Tool>>) {
        let mut state = self.lock();
        for tool in tools {
            state.session.disclose(tool);
            let disclosed = &mut state.unsaved.disclosed;
            disclosed.insert(tool.id.clone(), tool.description_digest);
            if let Some(listed) = &mut state.listed {
                Arc::make_mut(listed).insert(tool.id.clone(), tool.description_digest);
            }
        }
    }

    /// Records that a list of tools was shown, with the descriptions of these tools.
    pub(super) fn note_list(&self, shown: Option<&ListedTools>) {
        let mut state = self.lock();
        let listed = state.listed.get_or_insert_default();
        let Some(shown) = shown else { return };
        Arc::make_mut(listed).extend(shown.iter().map(|(tool, digest)| (tool.clone(), *digest)));
    }

    pub(super) fn was_shown_list(&self) -> bool {
        self.lock().listed.is_some()
    }

    /// If no list was shown in this session, treats this list as shown. Descriptions that were read
    /// replace those in the list.
    pub(super) fn assume_list(&self, mut listed: ListedTools) {
        let mut state = self.lock();
        if state.listed.is_some() {
            return;
        }
        if let DisclosedTools::Only(read) = state.session.disclosed() {
            let read = read.iter().map(|(tool, digest)| (tool.clone(), *digest));
            Arc::make_mut(&mut listed).extend(read);
        }
        state.listed = Some(listed);
    }

    /// Keeps a description that is too long for the host. Returns its beginning, and the call that
    /// reads the rest.
    pub(super) fn keep_description(
        &self,
        uri: String,
        text: &str,
        tool: &Arc<Tool>,
        encoded_bytes_max: usize,
    ) -> String {
        let read_bytes = host_limits::encoded_prefix(text, encoded_bytes_max);
        let head = text.get(..read_bytes).unwrap_or_default();
        let shown = format!(
            "{head}\n… cut after {read_bytes} of {} bytes; `{}` can be called after the rest was \
             read with {}",
            text.len(),
            tool.id,
            read_call(&uri, read_bytes)
        );
        let kept = StoredContent::Text(text.into());
        self.stored_results.keep(uri.clone(), kept);
        let tool = Arc::clone(tool);
        let unread = UnreadDescription { tool, read_bytes };
        self.lock().unread.insert(uri, unread);
        shown
    }

    /// Records that the host got a part of a kept text. A tool is disclosed when the host has got
    /// its whole description.
    pub(super) fn note_part(&self, uri: &str, part: Range<usize>, bytes: usize) {
        let mut state = self.lock();
        let Some(unread) = state.unread.get_mut(uri) else {
            return;
        };
        if part.start <= unread.read_bytes {
            unread.read_bytes = unread.read_bytes.max(part.end);
        }
        if unread.read_bytes >= bytes {
            let read = state.unread.remove(uri);
            drop(state);
            self.disclose(read.iter().map(|it| &it.tool));
        }
    }

    /// Returns the labels with which a run starts and that may not be in the record yet. All others,
    /// and the counts of earlier runs, are in the record.
    pub(super) fn carried(&self) -> SessionFlow {
        let state = self.lock();
        SessionFlow {
            labels: state.unsaved.labels.clone().joined(&state.saving.0),
            ..SessionFlow::default()
        }
    }

    /// Adds labels of data that the host receives.
    pub(super) fn add_labels(&self, labels: &Labels) {
        let mut state = self.lock();
        state.has_new_labels |= !labels.is_empty();
        state.has_labels |= !labels.is_empty();
        state.unsaved.labels.join(labels);
    }

    /// Notes the labels of a run that has ended. They are in the record already, if there is one.
    pub(super) fn note_ended_run(&self, labels: &Labels) {
        if self.record().is_none() {
            return self.add_labels(labels);
        }
        let mut state = self.lock();
        state.has_new_labels |= !labels.is_empty();
        state.has_labels |= !labels.is_empty();
    }

    /// Adds the labels of data that a server has sent to the host.
    pub(super) fn hear_from(&self, broker: &Broker, server: &ServerName) {
        if let Some(labels) = broker.labels_of(server) {
            self.add_labels(&labels);
        }
    }

    /// Whether this session itself has read labelled data. Inherited labels do not count.
    pub(super) fn has_new_labels(&self) -> bool {
        self.lock().has_new_labels
    }

    /// Returns the tools whose descriptions were read or shown in a list.
    pub(super) fn disclosed(&self) -> DisclosedTools {
        let state = self.lock();
        let mut disclosed = state.session.disclosed();
        if let Some(listed) = state.listed.as_ref().filter(|it| !it.is_empty()) {
            let listed = listed.iter().map(|(tool, digest)| (tool.clone(), *digest));
            disclosed.add(&listed.collect::<Vec<_>>());
        }
        disclosed
    }

    /// Whether the session has state that later requests need: a disclosed tool, a waiting run, a
    /// stored value, or labels.
    pub(super) fn has_state_to_keep(&self) -> bool {
        let state = self.lock();
        state.session.has_disclosed()
            || !state.suspended.is_empty()
            || !self.stored_results.is_empty()
            || state.has_labels
            || !state.disabled.is_empty()
    }

    pub(super) fn fetch(&self, now_ms: u64) -> Result<(), RateLimited> {
        self.lock().session.fetch(self.settings.fetch_rate, now_ms)
    }

    pub(super) fn touch(&self, now_ms: u64) {
        self.lock().session.touch(now_ms);
    }

    /// Whether the session is idle and has received no message for longer than the limit.
    pub(super) fn is_stale(&self, now_ms: u64) -> bool {
        let idle_ms_max = u64::try_from(self.settings.session_idle.as_millis()).unwrap_or(u64::MAX);
        self.is_at_rest() && self.lock().session.is_stale(now_ms, idle_ms_max)
    }

    /// Whether the session is idle: it has no listener, no open request and no waiting run.
    pub(super) fn is_at_rest(&self) -> bool {
        let state = self.lock();
        !self.replay.is_read()
            && state.requests.is_empty()
            && state.suspended.values().all(FollowedRun::is_over)
    }

    pub(super) fn set_capabilities(&self, capabilities: Value) {
        let mut state = self.lock();
        state.unsaved.capabilities = Some(capabilities.to_string());
        state.capabilities = capabilities;
    }

    /// Records that the handshake of the older era is complete.
    pub(super) fn listens(&self) {
        self.lock().is_listening = true;
    }

    /// Whether the host accepts this notification, which is unrelated to its requests.
    pub(super) fn wants(&self, notification: &str) -> bool {
        let state = self.lock();
        let is_own = OWN_LISTS.contains(&notification);
        state.is_listening && (!is_own || state.asked_lists.contains(notification))
    }

    /// Records that the host knows a list that the protocol itself does not have. Hosts that never
    /// asked for it may fail on a notification about it.
    pub(super) fn note_asked_list(&self, notification: &'static str) {
        self.lock().asked_lists.insert(notification);
    }

    /// Records a reply to a question.
    pub(super) fn note_reply(&self, is_by_person: bool) {
        let mut state = self.lock();
        if is_by_person {
            state.attendance = Attendance::Attended;
        } else if state.attendance == Attendance::Unknown {
            state.attendance = Attendance::Unattended;
        }
    }

    /// Whether a person has answered a question.
    pub(super) fn is_attended(&self) -> bool {
        self.lock().attendance == Attendance::Attended
    }

    /// Whether the host has refused a question itself, and no person has answered one.
    pub(super) fn is_unattended(&self) -> bool {
        self.lock().attendance == Attendance::Unattended
    }

    pub(super) fn disabled_servers(&self) -> BTreeSet<String> {
        self.lock().disabled.clone()
    }

    pub(super) fn disable_server(&self, server: &str) {
        self.lock().disabled.insert(server.to_owned());
    }

    pub(super) fn enable_server(&self, server: &str) {
        self.lock().disabled.remove(server);
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.lock().log_level = Some(level);
    }

    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.lock().log_level
    }

    pub(super) fn capabilities(&self) -> Value {
        self.lock().capabilities.clone()
    }

    pub(super) fn subscribes_to(&self, uri: &str) -> bool {
        self.lock().subscriptions.contains_key(uri)
    }

    /// Adds a subscription. Returns `false` if the session has no room for another.
    pub(super) fn note_subscription(&self, uri: &str, subscription: HostSubscription) -> bool {
        let mut state = self.lock();
        let has_room = state.subscriptions.len() < SUBSCRIPTIONS_MAX;
        if has_room {
            state.subscriptions.insert(uri.to_owned(), subscription);
        }
        has_room
    }

    pub(super) fn forget_subscription(&self, uri: &str) {
        let subscription = self.lock().subscriptions.remove(uri);
        drop(subscription);
    }

    /// Returns the updated resources in this batch that the session subscribed to.
    pub(super) fn updates(&self, batch: &NotificationBatch) -> BTreeSet<(ServerName, String)> {
        batch.of(&self.lock().subscriptions)
    }

    /// Records that the person was asked to open a URL. The oldest entries are dropped at the
    /// limit.
    pub(super) fn note_to_open(&self, whose: (ServerName, String), ours: &str) {
        let mut state = self.lock();
        state.to_open.retain(|(it, _)| *it != whose);
        state.to_open.push_back((whose, ours.to_owned()));
        if state.to_open.len() > TO_OPEN_MAX {
            state.to_open.pop_front();
        }
    }

    /// Removes the completed URL elicitations and returns the ids that the host got.
    pub(super) fn take_opened(&self, batch: &NotificationBatch) -> Vec<String> {
        let mut state = self.lock();
        let all = std::mem::take(&mut state.to_open).into_iter();
        let (opened, left) = all.partition::<VecDeque<_>, _>(|(whose, _)| batch.is_opened(whose));
        state.to_open = left;
        opened.into_iter().map(|(_, ours)| ours).collect()
    }

    /// Registers a request under its id, in the spelling that the host used.
    pub(super) fn begin(self: &Arc<Self>, id: &str) -> Result<RequestGuard, String> {
        let cancel = Cancel::new();
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return Err("a request with this id is in progress".into());
        }
        if state.requests.len() >= REQUESTS_MAX {
            return Err(format!(
                "too many requests in progress; the maximum is {REQUESTS_MAX}"
            ));
        }
        state.requests.insert(id.to_owned(), cancel.clone());
        Ok(RequestGuard {
            session: Arc::clone(self),
            id: id.to_owned(),
            cancel,
        })
    }

    /// Cancels a request whose answer the host no longer wants.
    pub(super) fn cancel(&self, id: &str, why: &str) {
        if let Some(cancel) = self.lock().requests.remove(id) {
            cancel.cancel(why);
        }
    }

    /// Records that the host sends no more messages. Open `subscriptions/listen` requests then end.
    pub(super) fn fall_silent(&self) {
        self.silent.send_replace(true);
    }

    /// Waits until the host sends no more messages.
    pub(super) async fn silent(&self) {
        // Cannot fail, because the sender is a field of `self`.
        let _ = self.silent.subscribe().wait_for(|it| *it).await;
    }

    /// Cancels all requests, because the host is gone. Each request is still answered. Runs that only
    /// wait for people are suspended.
    pub(super) fn end_all(&self, why: &str) {
        let state = self.lock();
        state
            .requests
            .values()
            .for_each(|cancel| cancel.abandon(why));
    }

    /// Cancels all requests like [`Self::end_all`], and drops waiting runs and subscriptions, because
    /// the session has ended.
    pub(super) fn cancel_all(&self, why: &str) {
        let mut state = self.lock();
        state
            .requests
            .drain()
            .for_each(|(_, cancel)| cancel.abandon(why));
        state.suspended.clear();
        state.late_forms.clear();
        state.subscriptions.clear();
        self.replay.end();
    }

    /// Stores a waiting run. Returns the run if the session has no room for another.
    pub(super) fn suspend(&self, key: String, run: FollowedRun) -> Result<(), Box<FollowedRun>> {
        let mut state = self.lock();
        if state.suspended.len() >= SUSPENDED_MAX {
            state.suspended.retain(|_, it| !it.is_over());
        }
        if state.suspended.len() >= SUSPENDED_MAX {
            return Err(Box::new(run));
        }
        state.suspended.insert(key, run);
        Ok(())
    }

    /// Whether a run of this session was paused, and no request has continued it.
    pub(super) fn has_paused(&self, run: &str) -> bool {
        let state = self.lock();
        state.suspended.values().any(|it| it.run() == run)
    }

    /// Keeps the forms that the host still shows about a suspended run.
    pub(super) fn keep_forms(&self, run: &str, forms: JoinSet<()>) {
        if !forms.is_empty() {
            self.lock().late_forms.insert(run.to_owned(), forms);
        }
    }

    /// Whether the host still shows a form about a suspended run.
    pub(super) fn has_forms(&self, run: &str) -> bool {
        self.lock().late_forms.contains_key(run)
    }

    /// Takes the forms that the host still shows about a suspended run. Dropping them withdraws them.
    pub(super) fn take_forms(&self, run: &str) -> Option<JoinSet<()>> {
        self.lock().late_forms.remove(run)
    }

    /// Takes a waiting run by its key. Only one caller can take it and continue it.
    pub(super) fn take_suspended(&self, key: &str) -> Option<FollowedRun> {
        self.lock().suspended.remove(key)
    }

    /// Takes a waiting run by the id of the run.
    pub(super) fn take_run(&self, run: &str) -> Option<FollowedRun> {
        let mut state = self.lock();
        let found = state.suspended.iter().find(|(_, it)| it.run() == run);
        let key = found.map(|(key, _)| key.clone())?;
        state.suspended.remove(&key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered request; removed on drop.
#[derive(Debug)]
pub(super) struct RequestGuard {
    session: Arc<HostSession>,
    id: String,
    pub(super) cancel: Cancel,
}

impl RequestGuard {
    /// Whether the request was cancelled, so that no one waits for its answer.
    pub(super) fn is_cancelled(&self) -> bool {
        !self.session.lock().requests.contains_key(&self.id)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.session.lock().requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(settings: &ServeSettings) -> Arc<HostSession> {
        Arc::new(HostSession::new(
            "s".into(),
            settings,
            &ResultStore::default(),
            0,
        ))
    }

    #[test]
    fn request_id_is_free_after_request_ends() {
        let session = session(&ServeSettings::default());
        let begun = session.begin("1").unwrap();
        assert!(session.begin("1").is_err() && session.begin("\"1\"").is_ok());
        assert!(!begun.is_cancelled());
        session.cancel("1", "enough");
        assert!(begun.is_cancelled());
        drop(begun);
        assert!(session.begin("1").is_ok());
    }

    #[test]
    fn session_with_request_in_flight_is_never_stale() {
        let session = session(&ServeSettings::default());
        let begun = session.begin("1");
        assert!(!session.is_stale(u64::MAX));
        drop(begun);
        assert!(session.is_stale(u64::MAX) && !session.is_stale(1));
    }
}
