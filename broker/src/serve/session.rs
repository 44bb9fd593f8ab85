//! One host's connection: what it was shown, what it can do, the runs that wait
//! for an answer, and the values that were too long for a result.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::catalog::Tool;
use airlock_core::flow::{Carried, Labels};
use airlock_core::id::{Digest, ServerName, ToolId};
use airlock_core::session::{Disclosed, Session, TooOften};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::feed::Feed;
use super::kept::{Locker, Storeroom};
use super::news::{Batch, SUBSCRIPTIONS_MAX, Subscription, Subscriptions};
use super::peer::OpenRequests;
use super::settings::Settings;
use super::suspended::Suspended;
use crate::broker::{Broker, Cancel};
use crate::carrier::LogLevel;

/// Requests of one session that may be open at the same time.
const REQUESTS_MAX: usize = 256;
/// Runs of one session that may wait for an answer at the same time.
const SUSPENDED_MAX: usize = 32;
/// Addresses that a session is told of when they were done with.
const TO_OPEN_MAX: usize = 64;

/// The descriptions that a list of tools has shown.
pub(super) type Listed = Arc<HashMap<ToolId, Digest>>;

#[derive(Debug)]
pub(super) struct HostSession {
    pub(super) id: String,
    pub(super) open: OpenRequests,
    /// What a host of the older era over HTTP is told outside of its requests.
    pub(super) feed: Feed,
    /// Calls that are worked on.
    pub(super) room: Arc<Semaphore>,
    /// The host says nothing more.
    silent: watch::Sender<bool>,
    state: Mutex<State>,
    settings: Settings,
    /// What its runs answered that was too long for a result.
    pub(super) kept: Locker,
}

#[derive(Debug)]
struct State {
    session: Session,
    /// What was shown at once with the list of tools, as it was shown last; nothing before the
    /// first list.
    listed: Option<Listed>,
    /// What its runs have read and sent, and so what the model may have heard.
    carried: Carried,
    /// Something of that was heard in this very session.
    has_heard: bool,
    /// What the host can do, as it said at the handshake of the older era.
    capabilities: Value,
    /// From which level on it wants to hear what servers log, when it has said so.
    log_level: Option<LogLevel>,
    /// It may be told what it did not ask for.
    is_listening: bool,
    requests: HashMap<String, Cancel>,
    suspended: HashMap<String, Suspended>,
    /// The resources of which it is told when they change, in the older era.
    subscriptions: Subscriptions,
    /// Addresses that its person was asked to open, by their servers' names for them.
    to_open: VecDeque<((ServerName, String), String)>,
}

impl HostSession {
    pub(super) fn new(id: String, settings: &Settings, room: &Storeroom, now_ms: u64) -> Self {
        Self {
            id,
            open: OpenRequests::default(),
            feed: Feed::default(),
            room: Arc::new(Semaphore::new(settings.calls_in_flight_max)),
            silent: watch::Sender::new(false),
            state: Mutex::new(State {
                session: Session::new(settings.fetch_rate, now_ms),
                listed: None,
                carried: Carried::default(),
                has_heard: false,
                capabilities: json!({}),
                log_level: None,
                is_listening: false,
                requests: HashMap::new(),
                suspended: HashMap::new(),
                subscriptions: Subscriptions::new(),
                to_open: VecDeque::new(),
            }),
            settings: settings.clone(),
            kept: room.locker(settings),
        }
    }

    pub(super) fn disclose<'a>(&self, tools: impl IntoIterator<Item = &'a Arc<Tool>>) {
        let mut state = self.lock();
        for tool in tools {
            state.session.disclose(tool);
            if let Some(listed) = &mut state.listed {
                Arc::make_mut(listed).insert(tool.id.clone(), tool.description_digest);
            }
        }
    }

    /// A list of tools was shown, with the descriptions of these.
    pub(super) fn note_list(&self, shown: &Listed) {
        let mut state = self.lock();
        let listed = state.listed.get_or_insert_default();
        Arc::make_mut(listed).extend(shown.iter().map(|(tool, digest)| (tool.clone(), *digest)));
    }

    /// Where no list was shown in it, this one counts as shown before everything that was read.
    pub(super) fn assume_list(&self, shown: impl FnOnce() -> Listed) {
        let mut state = self.lock();
        if state.listed.is_some() {
            return;
        }
        let mut listed = shown();
        if let Disclosed::Only(read) = state.session.disclosed() {
            let read = read.iter().map(|(tool, digest)| (tool.clone(), *digest));
            Arc::make_mut(&mut listed).extend(read);
        }
        state.listed = Some(listed);
    }

    pub(super) fn carried(&self) -> Carried {
        self.lock().carried.clone()
    }

    /// A run has ended and its report goes to the host.
    pub(super) fn carry(&self, carried: &Carried) {
        let mut state = self.lock();
        state.has_heard |= !carried.labels.is_empty();
        state.carried.join(carried);
    }

    /// The host is told something with these labels before the end of a run, or without any.
    pub(super) fn hear(&self, labels: &Labels) {
        let mut state = self.lock();
        state.has_heard |= !labels.is_empty();
        state.carried.labels.join(labels);
    }

    /// The host is told something that a server says.
    pub(super) fn hear_from(&self, broker: &Broker, server: &ServerName) {
        if let Some(labels) = broker.labels_of(server) {
            self.hear(&labels);
        }
    }

    /// Of another session of the same server: its labels, and not its counts.
    pub(super) fn inherit(&self, other: &Carried) {
        self.lock().carried.labels.join(&other.labels);
    }

    /// Something with labels was heard in it, whatever it had inherited before.
    pub(super) fn has_heard(&self) -> bool {
        self.lock().has_heard
    }

    /// What was read in it, and what was shown at once.
    pub(super) fn disclosed(&self) -> Disclosed {
        let state = self.lock();
        let mut disclosed = state.session.disclosed();
        if let Some(listed) = state.listed.as_ref().filter(|it| !it.is_empty()) {
            let listed = listed.iter().map(|(tool, digest)| (tool.clone(), *digest));
            disclosed.add(&listed.collect::<Vec<_>>());
        }
        disclosed
    }

    /// Something in it would be missed: a disclosure, a run that waits, a value, or what its
    /// runs have read.
    pub(super) fn is_worth_finding(&self) -> bool {
        let state = self.lock();
        state.session.has_disclosed()
            || !state.suspended.is_empty()
            || !self.kept.is_empty()
            || !state.carried.labels.is_empty()
    }

    pub(super) fn fetch(&self, now_ms: u64) -> Result<(), TooOften> {
        self.lock().session.fetch(self.settings.fetch_rate, now_ms)
    }

    pub(super) fn touch(&self, now_ms: u64) {
        self.lock().session.touch(now_ms);
    }

    /// Nothing was said for long, nobody listens, and nothing is being worked on or waits.
    pub(super) fn is_stale(&self, now_ms: u64) -> bool {
        let idle_ms_max = u64::try_from(self.settings.session_idle.as_millis()).unwrap_or(u64::MAX);
        self.is_at_rest() && self.lock().session.is_stale(now_ms, idle_ms_max)
    }

    /// Nobody listens, and nothing is being worked on or waits.
    pub(super) fn is_at_rest(&self) -> bool {
        let state = self.lock();
        !self.feed.is_read()
            && state.requests.is_empty()
            && state.suspended.values().all(Suspended::is_over)
    }

    /// When something was last said in it.
    pub(super) fn used_at_ms(&self) -> u64 {
        self.lock().session.used_at_ms()
    }

    pub(super) fn set_capabilities(&self, capabilities: Value) {
        self.lock().capabilities = capabilities;
    }

    /// The handshake of the older era is over.
    pub(super) fn listens(&self) {
        self.lock().is_listening = true;
    }

    pub(super) fn is_listening(&self) -> bool {
        self.lock().is_listening
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

    /// False when there is no room for one more.
    pub(super) fn note_subscription(&self, uri: &str, subscription: Subscription) -> bool {
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

    /// What of this it is told.
    pub(super) fn updates(&self, batch: &Batch) -> BTreeSet<(ServerName, String)> {
        batch.of(&self.lock().subscriptions)
    }

    /// Its person is asked to open an address; older ones make room.
    pub(super) fn note_to_open(&self, whose: (ServerName, String), ours: &str) {
        let mut state = self.lock();
        state.to_open.retain(|(it, _)| *it != whose);
        state.to_open.push_back((whose, ours.to_owned()));
        if state.to_open.len() > TO_OPEN_MAX {
            state.to_open.pop_front();
        }
    }

    /// The names, as the host knows them, of those of its addresses that were done with.
    pub(super) fn take_opened(&self, batch: &Batch) -> Vec<String> {
        let mut state = self.lock();
        let all = std::mem::take(&mut state.to_open).into_iter();
        let (opened, left) = all.partition::<VecDeque<_>, _>(|(whose, _)| batch.is_opened(whose));
        state.to_open = left;
        opened.into_iter().map(|(_, ours)| ours).collect()
    }

    /// A request begins; its id is the text in which the host wrote it.
    pub(super) fn begin(self: &Arc<Self>, id: &str) -> Result<Begun, String> {
        let cancel = Cancel::new();
        let mut state = self.lock();
        if state.requests.contains_key(id) {
            return Err("a request with this id is being worked on".into());
        }
        if state.requests.len() >= REQUESTS_MAX {
            return Err(format!(
                "{REQUESTS_MAX} requests are being worked on already"
            ));
        }
        state.requests.insert(id.to_owned(), cancel.clone());
        Ok(Begun {
            session: Arc::clone(self),
            id: id.to_owned(),
            cancel,
        })
    }

    /// The host does not want the answer any more.
    pub(super) fn cancel(&self, id: &str, why: &str) {
        if let Some(cancel) = self.lock().requests.remove(id) {
            cancel.cancel(why);
        }
    }

    /// The host says nothing more: requests that would stay open end.
    pub(super) fn fall_silent(&self) {
        self.silent.send_replace(true);
    }

    /// Waits until the host says nothing more.
    pub(super) async fn silent(&self) {
        // The sender lives in `self`.
        let _ = self.silent.subscribe().wait_for(|it| *it).await;
    }

    /// What is worked on ends now, and is still answered.
    pub(super) fn end_all(&self, why: &str) {
        let state = self.lock();
        state
            .requests
            .values()
            .for_each(|cancel| cancel.cancel(why));
    }

    /// The host is gone.
    pub(super) fn cancel_all(&self, why: &str) {
        let mut state = self.lock();
        state
            .requests
            .drain()
            .for_each(|(_, cancel)| cancel.cancel(why));
        state.suspended.clear();
        state.subscriptions.clear();
        self.feed.end();
    }

    /// Keeps a run that waits; gives it back when there is no room for one more.
    pub(super) fn suspend(&self, key: String, run: Suspended) -> Result<(), Box<Suspended>> {
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

    /// Whoever takes a run that waits is the only one to go on with it.
    pub(super) fn take_suspended(&self, key: &str) -> Option<Suspended> {
        self.lock().suspended.remove(key)
    }

    /// The same by the id of the run.
    pub(super) fn take_run(&self, run: &str) -> Option<Suspended> {
        let mut state = self.lock();
        let found = state.suspended.iter().find(|(_, it)| it.run() == run);
        let key = found.map(|(key, _)| key.clone())?;
        state.suspended.remove(&key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being worked on, until this is dropped.
#[derive(Debug)]
pub(super) struct Begun {
    session: Arc<HostSession>,
    id: String,
    pub(super) cancel: Cancel,
}

impl Begun {
    /// An answer would be to nobody.
    pub(super) fn is_cancelled(&self) -> bool {
        !self.session.lock().requests.contains_key(&self.id)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.session.lock().requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(settings: &Settings) -> Arc<HostSession> {
        Arc::new(HostSession::new(
            "s".into(),
            settings,
            &Storeroom::default(),
            0,
        ))
    }

    #[test]
    fn an_id_is_free_again_when_its_request_is_over() {
        let session = session(&Settings::default());
        let begun = session.begin("1").unwrap();
        assert!(session.begin("1").is_err() && session.begin("\"1\"").is_ok());
        assert!(!begun.is_cancelled());
        session.cancel("1", "enough");
        assert!(begun.is_cancelled());
        drop(begun);
        assert!(session.begin("1").is_ok());
    }

    #[test]
    fn a_session_with_a_request_in_flight_is_never_stale() {
        let session = session(&Settings::default());
        let begun = session.begin("1");
        assert!(!session.is_stale(u64::MAX));
        drop(begun);
        assert!(session.is_stale(u64::MAX) && !session.is_stale(1));
    }
}
