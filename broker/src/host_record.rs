//! The records of hosts' sessions and of their callers in the state directory. Each caller has a
//! folder with a file of its own and one file per session. They hold the labels, disclosures and
//! grants that later decisions depend on.
//!
//! Labels are written to the file of the session and to the file of the caller. A new session
//! starts with the labels of its caller. If one file is lost, the other one, the folder, or the
//! sealed id of the session shows that the file existed. The session and its caller then get the
//! worst labels: airlock assumes that they have read data of every kind. The same happens after a
//! run that was killed before it recorded what it had read.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use airlock_core::flow::{Declassification, SessionFlow};
use airlock_core::grant::Scope;
use airlock_core::id::{Digest, RunId, ToolId};
use airlock_core::labels::Labels;
use airlock_core::shared_state::SharedState;

use crate::private_file::{StateDir, make_private};
use crate::shared_file::{SUFFIX, SharedEntry, SharedError, SharedFile, failed};

/// Maximum number of sessions of one caller that are stored.
const SESSIONS_OF_ONE_MAX: usize = 250;
/// Maximum number of stored sessions of all hosts that use the shared token.
const SESSIONS_OF_TOKEN_MAX: usize = 1_000;
/// Maximum number of callers without authentication that are distinguished. A client can choose any
/// name, so further names together count as one caller.
const CLIENTS_MAX: usize = 1_000;
/// Minimum time between two writes of a last use. Stored times are exact to this time.
const TOUCH_MS_MAX: u64 = 60_000;
const CALLER: &str = "caller";
const KEY_DIGITS: usize = 24;
const WHO_CHARS_MAX: usize = 200;

/// The identity of a caller: a token, an OAuth subject, or the name of a client.
#[derive(Debug, Clone)]
pub(crate) struct CallerKey {
    key: Arc<str>,
    /// Who the caller is, in words for people. `None` if only the key is known.
    who: Option<Arc<str>>,
}

impl PartialEq for CallerKey {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for CallerKey {}

impl Hash for CallerKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl CallerKey {
    const CLIENT: char = 'c';
    const TOKEN: char = 't';
    const SUBJECT: char = 's';

    /// Returns the key of a caller without authentication, which names itself in `clientInfo`.
    pub(crate) fn of_client(name: &str) -> Self {
        Self::new(Self::CLIENT, name).named(&format!("client {name}"))
    }

    /// Returns the key of all hosts that use the shared token.
    pub(crate) fn of_token() -> Self {
        Self::new(Self::TOKEN, "").named("hosts with the shared token")
    }

    /// Returns the key of a caller that an authorization server identifies.
    pub(crate) fn of_subject(subject: &str) -> Self {
        Self::new(Self::SUBJECT, subject).named(&format!("subject {subject}"))
    }

    pub(crate) fn is_token(&self) -> bool {
        self.key.starts_with(Self::TOKEN)
    }

    fn new(kind: char, name: &str) -> Self {
        let digest = Digest::sha256(name.as_bytes()).to_string();
        let digits = digest.chars().skip("sha256:".len()).take(KEY_DIGITS);
        Self::of_key(std::iter::once(kind).chain(digits).collect())
    }

    fn of_key(key: String) -> Self {
        Self {
            key: key.into(),
            who: None,
        }
    }

    fn named(self, who: &str) -> Self {
        let who = codegen::text::clip(&codegen::text::neutralise(who), WHO_CHARS_MAX);
        Self {
            who: Some(who.into()),
            ..self
        }
    }

    /// Returns the key that all callers without authentication share after the maximum number of
    /// names.
    fn of_other_clients() -> Self {
        Self::of_key(format!("{}{}", Self::CLIENT, "0".repeat(KEY_DIGITS))).named("other clients")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix([Self::CLIENT, Self::TOKEN, Self::SUBJECT])?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let fits = digits.len() == KEY_DIGITS && digits.bytes().all(is_digit);
        fits.then(|| Self::of_key(text.to_owned()))
    }

    /// Whether the caller only named itself.
    pub(crate) fn is_client(&self) -> bool {
        self.key.starts_with(Self::CLIENT)
    }
}

impl fmt::Display for CallerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

/// The id of a session: its caller, and a name that is unique for the caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HostSessionId {
    pub(crate) caller: CallerKey,
    name: Arc<str>,
}

impl HostSessionId {
    const SHARED: &'static str = "shared";

    pub(crate) fn new(caller: CallerKey, name: &str) -> Self {
        let name = name.into();
        Self { caller, name }
    }

    /// Returns the session of all requests of a caller that name no session.
    pub(crate) fn shared(caller: CallerKey) -> Self {
        Self::new(caller, Self::SHARED)
    }

    pub(crate) fn is_shared(&self) -> bool {
        *self.name == *Self::SHARED
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (caller, name) = text.split_once('-')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let caller = CallerKey::parse(caller).filter(|_| is_name && name != CALLER)?;
        Some(Self::new(caller, name))
    }
}

impl fmt::Display for HostSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.caller, self.name)
    }
}

/// How long records are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordTimes {
    /// The time without a request after which a session is over.
    pub(crate) idle: Duration,
    /// The time without a request after which the labels of a caller are forgotten.
    pub(crate) labels_keep: Duration,
}

impl RecordTimes {
    fn idle_ms(&self) -> u64 {
        millis(self.idle)
    }

    fn keep_ms(&self) -> u64 {
        millis(self.labels_keep)
    }

    fn touch_ms(&self) -> u64 {
        (self.idle_ms() / 10).min(TOUCH_MS_MAX)
    }

    fn is_idle(&self, used_at_ms: u64, now_ms: u64) -> bool {
        let ms_max = self.idle_ms().saturating_add(self.touch_ms());
        now_ms.saturating_sub(used_at_ms) > ms_max
    }

    /// Whether the labels of a caller are forgotten: all its sessions are over, and the time to
    /// keep their labels has passed.
    fn is_forgotten(&self, caller: &SharedState, now_ms: u64) -> bool {
        let ms_max = self.keep_ms().saturating_add(self.touch_ms());
        let mut sessions = caller.sessions.values();
        caller.running.is_empty()
            && sessions.all(|used_at_ms| self.is_idle(*used_at_ms, now_ms))
            && now_ms.saturating_sub(caller.used_at_ms) > ms_max
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The records of all hosts' sessions in one state directory.
#[derive(Debug)]
pub(crate) struct HostRecords {
    state: StateDir,
    times: RecordTimes,
    /// The callers without authentication that have a folder.
    clients: Mutex<HashSet<CallerKey>>,
}

/// A caller and its sessions with their states. A state is `None` if its file is lost.
#[derive(Debug)]
pub(crate) struct CallerStates {
    pub(crate) caller: CallerKey,
    pub(crate) state: Option<SharedState>,
    pub(crate) sessions: Vec<(HostSessionId, Option<SharedState>)>,
}

/// The record of one session and of its caller. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostRecord {
    id: HostSessionId,
    session: SharedFile,
    caller: SharedFile,
    state: StateDir,
}

/// The files of a session and of its caller, read under their lock.
struct Both {
    session: SharedState,
    caller: SharedState,
    /// Which of the files existed.
    had_session: bool,
    had_caller: bool,
    /// Whether the file of the caller was lost: something showed that it existed.
    lost_caller: bool,
    remove: BTreeSet<String>,
    /// Other sessions of the caller that are changed too.
    others: Vec<(SharedFile, SharedState)>,
}

impl Both {
    fn lists(&self, id: &HostSessionId) -> bool {
        self.caller.sessions.contains_key(&*id.name)
    }

    /// Restarts the session with the labels and disclosures of its caller. Runs that are still
    /// in progress add to it.
    fn begin(&mut self) {
        let before = std::mem::replace(&mut self.session, SharedState::new(Scope::Session, ""));
        self.session.name = before.name;
        self.session.running = before.running;
        self.session.inherit(&self.caller);
    }

    /// Restarts the session with the labels that it had.
    fn begin_again(&mut self) {
        let before = std::mem::replace(&mut self.session, SharedState::new(Scope::Session, ""));
        self.session.name = before.name.clone();
        self.session.running = before.running.clone();
        self.session.capabilities = before.capabilities.clone();
        let of_labels = SharedState {
            disclosed: BTreeMap::new(),
            ..before
        };
        self.session.inherit(&of_labels);
        self.caller.inherit(&of_labels);
    }

    /// Adds the worst labels for runs whose process was killed. Such a run is the latest use of the
    /// caller.
    fn end_gone(&mut self, is_gone: &dyn Fn(&RunId) -> bool, now_ms: u64) {
        self.session.end_gone(is_gone);
        if self.caller.end_gone(is_gone) {
            self.caller.used_at_ms = now_ms;
        }
    }

    /// Records a use of the session.
    fn touch(&mut self, id: &HostSessionId, now_ms: u64, touch_ms: u64) {
        let is_due = |then: u64| now_ms.saturating_sub(then) >= touch_ms.max(1);
        let used = self.caller.sessions.entry(id.name.to_string());
        let used = used.or_default();
        if is_due(*used) {
            *used = now_ms;
        }
        if is_due(self.caller.used_at_ms) {
            self.caller.used_at_ms = now_ms;
        }
    }

    /// Ends the sessions that were not used for the longest time, if there are too many.
    fn end_surplus(&mut self, own: &HostSessionId) {
        let sessions = &mut self.caller.sessions;
        let max = match own.caller.is_token() {
            true => SESSIONS_OF_TOKEN_MAX,
            false => SESSIONS_OF_ONE_MAX,
        };
        while sessions.len() > max {
            let others = sessions.iter().filter(|(name, _)| ***name != *own.name);
            let Some((name, _)) = others.min_by_key(|(_, used_at_ms)| **used_at_ms) else {
                return;
            };
            let name = name.clone();
            sessions.remove(&name);
            self.remove.insert(name);
        }
    }
}

impl HostRecords {
    pub(crate) fn new(state: StateDir, times: RecordTimes) -> Self {
        let records = Self {
            state,
            times,
            clients: Mutex::default(),
        };
        let callers = records.callers().unwrap_or_default();
        let clients = callers.into_iter().filter(CallerKey::is_client);
        *records.clients() = clients.collect();
        records
    }

    /// Returns the files of all hosts' sessions, including those that cannot be read.
    pub(crate) fn all(state_dir: &Path) -> Result<Vec<SharedEntry>, SharedError> {
        let mut found = Vec::new();
        for caller in callers(state_dir)? {
            let lock = lock_path(state_dir, &caller);
            let new = |name, path| SharedFile::of_host(name, path, lock.clone());
            let files = SharedFile::all_in(&folder(state_dir, &caller), new)?;
            let of_sessions = |it: &SharedEntry| *it.0.name() != *caller.key;
            found.extend(files.into_iter().filter(of_sessions));
        }
        Ok(found)
    }

    /// Returns the caller. If there are too many callers, returns the caller whose record it
    /// shares.
    pub(crate) fn admit(&self, caller: CallerKey) -> CallerKey {
        if !caller.is_client() {
            return caller;
        }
        let mut clients = self.clients();
        if clients.len() >= CLIENTS_MAX && !clients.contains(&caller) {
            return CallerKey::of_other_clients();
        }
        clients.insert(caller.clone());
        caller
    }

    pub(crate) fn record(&self, id: HostSessionId) -> HostRecord {
        HostRecord::new(&self.state, id)
    }

    /// Opens the session of a request that does not prove that it belongs to an earlier session. A
    /// session begins, unless the caller already has this session.
    pub(crate) fn open(
        &self,
        record: &HostRecord,
        now_ms: u64,
    ) -> Result<SharedState, SharedError> {
        record.change_any(false, |both, is_gone| {
            let times = &self.times;
            both.end_gone(is_gone, now_ms);
            let used_at_ms = both.caller.sessions.get(&*record.id.name).copied();
            let is_open = used_at_ms.is_some_and(|then| !times.is_idle(then, now_ms));
            if !both.lost_caller && times.is_forgotten(&both.caller, now_ms) {
                let ended = std::mem::take(&mut both.caller.sessions).into_keys();
                both.remove
                    .extend(ended.filter(|name| **name != *record.id.name));
                let name = std::mem::take(&mut both.caller.name);
                both.caller = SharedState::new(Scope::Session, name);
            }
            if !is_open {
                both.begin();
            }
            if let Some(who) = &record.id.caller.who {
                both.caller.who = Some(who.to_string());
            }
            both.touch(&record.id, now_ms, times.touch_ms());
            both.end_surplus(&record.id);
            both.session.clone()
        })
    }

    /// Opens the session that a sealed id names. Returns `None` if the session is over and
    /// `can_end` is set. Otherwise a session that is over begins again, with the labels that it
    /// had.
    pub(crate) fn reopen(
        &self,
        record: &HostRecord,
        can_end: bool,
        now_ms: u64,
    ) -> Result<Option<SharedState>, SharedError> {
        record.change(|both, is_gone| {
            let times = &self.times;
            both.end_gone(is_gone, now_ms);
            let used_at_ms = both.caller.sessions.get(&*record.id.name).copied();
            let is_over = used_at_ms.is_none_or(|then| times.is_idle(then, now_ms));
            if can_end && is_over && both.had_caller {
                return None;
            }
            if is_over && !both.had_session {
                both.begin();
                both.session.assume_worst();
            } else if is_over && both.had_caller {
                both.begin_again();
            }
            both.touch(&record.id, now_ms, times.touch_ms());
            both.end_surplus(&record.id);
            Some(both.session.clone())
        })
    }

    /// Adds labels and disclosures to a session and its caller, and records a use of the session.
    pub(crate) fn save(
        &self,
        record: &HostRecord,
        added: &SessionChange,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        record.change(|both, _| {
            for state in both.kept(&record.id) {
                state.carried.labels.join(&added.labels);
                state.disclosed.extend(added.disclosed.clone());
            }
            if both.lists(&record.id) {
                if let Some(capabilities) = &added.capabilities {
                    both.session.capabilities = Some(capabilities.clone());
                }
                both.touch(&record.id, now_ms, self.times.touch_ms());
            }
        })
    }

    /// Ends a session. Its labels stay with its caller.
    pub(crate) fn end(&self, record: &HostRecord, now_ms: u64) -> Result<(), SharedError> {
        record.change(|both, _| {
            both.caller.sessions.remove(&*record.id.name);
            both.remove.insert(record.id.name.to_string());
            both.caller.used_at_ms = now_ms;
        })
    }

    /// Returns the time after which a use of a session must be saved again.
    pub(crate) fn touch_ms(&self) -> u64 {
        self.times.touch_ms()
    }

    /// Removes the records of sessions that are over, and of callers whose labels are forgotten.
    pub(crate) fn clean_up(&self, now_ms: u64) -> Result<(), SharedError> {
        let callers = self.callers()?.into_iter();
        let cleaned = callers.map(|caller| self.clean_up_caller(&caller, now_ms));
        // One caller whose files cannot be changed does not stop the others.
        let cleaned: Vec<_> = cleaned.collect();
        let has_folder = |it: &CallerKey| folder(self.state.path(), it).exists();
        self.clients().retain(has_folder);
        cleaned.into_iter().collect()
    }

    fn clean_up_caller(&self, caller: &CallerKey, now_ms: u64) -> Result<(), SharedError> {
        let record = self.record(HostSessionId::shared(caller.clone()));
        let _lock = record.lock()?;
        let folder = record.caller.folder();
        let Some(before) = record.caller.load_intact()? else {
            // The next request of the caller finds the folder without the file.
            return Ok(());
        };
        let mut state = before.clone();
        if state.end_gone(record.is_gone()) {
            state.used_at_ms = now_ms;
        }
        if self.times.is_forgotten(&state, now_ms) {
            return std::fs::remove_dir_all(folder).map_err(failed(folder, "removed"));
        }
        if state.running.is_empty() {
            let times = &self.times;
            state
                .sessions
                .retain(|_, used_at_ms| !times.is_idle(*used_at_ms, now_ms));
        }
        if state != before {
            record.caller.replace(&state)?;
        }
        for (name, path) in sessions_in(folder)? {
            if !state.sessions.contains_key(&name) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn callers(&self) -> Result<Vec<CallerKey>, SharedError> {
        callers(self.state.path())
    }

    /// Returns the record of this caller or session, if it exists.
    pub(crate) fn existing(state: &StateDir, id: HostSessionId) -> Option<HostRecord> {
        let record = HostRecord::new(state, id);
        record.caller.folder().exists().then_some(record)
    }

    /// Returns all callers in the state directory, with their states and those of their sessions.
    pub(crate) fn states(state: &StateDir) -> Result<Vec<CallerStates>, SharedError> {
        let states = |caller: CallerKey| -> Result<CallerStates, SharedError> {
            let record = HostRecord::new(state, HostSessionId::shared(caller.clone()));
            let caller_state = record.caller.load_intact()?;
            let listed = caller_state
                .iter()
                .flat_map(|it| it.sessions.keys().cloned());
            let names: BTreeSet<String> = sessions_in(record.caller.folder())?
                .into_iter()
                .map(|(name, _)| name)
                .chain(listed)
                .collect();
            let mut sessions = Vec::new();
            for name in names {
                let id = HostSessionId::new(caller.clone(), &name);
                let state = HostRecord::new(state, id.clone()).session.load_intact()?;
                sessions.push((id, state));
            }
            Ok(CallerStates {
                sessions,
                state: caller_state,
                caller,
            })
        };
        let mut callers = callers(state.path())?;
        callers.sort_by(|a, b| a.key.cmp(&b.key));
        callers.into_iter().map(states).collect()
    }

    fn clients(&self) -> MutexGuard<'_, HashSet<CallerKey>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The labels and disclosures that a request adds to its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionChange {
    pub(crate) labels: Labels,
    pub(crate) disclosed: BTreeMap<ToolId, Digest>,
    pub(crate) capabilities: Option<String>,
}

impl SessionChange {
    /// Adds a change that could not be written.
    pub(crate) fn join(&mut self, earlier: Self) {
        self.labels.join(&earlier.labels);
        for (tool, digest) in earlier.disclosed {
            self.disclosed.entry(tool).or_insert(digest);
        }
        self.capabilities = self.capabilities.take().or(earlier.capabilities);
    }
}

impl Both {
    /// Returns the states that get the labels of the session. A session that has ended has no file.
    fn kept(&mut self, id: &HostSessionId) -> Vec<&mut SharedState> {
        let is_listed = self.lists(id);
        let mut kept = vec![&mut self.caller];
        if is_listed {
            kept.push(&mut self.session);
        }
        kept
    }
}

impl HostRecord {
    fn new(state: &StateDir, id: HostSessionId) -> Self {
        let folder = folder(state.path(), &id.caller);
        let lock = lock_path(state.path(), &id.caller);
        let path = |file: &str| folder.join(format!("{file}{SUFFIX}"));
        Self {
            session: SharedFile::of_host(id.to_string(), path(&id.name), lock.clone()),
            caller: SharedFile::of_host(id.caller.to_string(), path(CALLER), lock),
            state: state.clone(),
            id,
        }
    }

    pub(crate) fn id(&self) -> &HostSessionId {
        &self.id
    }

    /// The file with the grants of the session.
    pub(crate) fn session(&self) -> &SharedFile {
        &self.session
    }

    /// Registers a run in both files, and returns the state from which it starts. Its counts are
    /// those of the caller: a further session does not begin at zero.
    pub(crate) fn begin_run(&self, run: &RunId, now_ms: u64) -> Result<SharedState, SharedError> {
        self.change(|both, is_gone| {
            let is_listed = both.lists(&self.id);
            if !both.had_session || !is_listed {
                both.session.assume_worst();
            }
            both.caller.begin(run.clone(), now_ms, is_gone);
            both.session.begin(run.clone(), now_ms, is_gone);
            both.caller.used_at_ms = now_ms;
            let used_at_ms = both.caller.sessions.entry(self.id.name.to_string());
            *used_at_ms.or_default() = now_ms;
            let mut state = both.session.clone();
            state.carried.take_counts(&both.caller.carried);
            state
        })
    }

    /// Records the end of a run.
    pub(crate) fn end_run(
        &self,
        run: &RunId,
        carried: &SessionFlow,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        self.change(|both, _| {
            both.caller.used_at_ms = now_ms;
            both.caller.finish(run, carried);
            if let Some(used_at_ms) = both.caller.sessions.get_mut(&*self.id.name) {
                *used_at_ms = now_ms;
                both.session.finish(run, carried);
            }
        })
    }

    /// Changes the grants of the session.
    pub(crate) fn change_session<T>(
        &self,
        change: impl FnOnce(&mut SharedState) -> T,
    ) -> Result<T, SharedError> {
        self.change(|both, _| change(&mut both.session))
    }

    /// Records that a run reads data without being tracked.
    pub(crate) fn assume_worst(&self, now_ms: u64) -> Result<SharedState, SharedError> {
        self.change(|both, _| {
            if !both.caller.read_unknown {
                both.caller.used_at_ms = now_ms;
            }
            for state in both.kept(&self.id) {
                state.assume_worst();
            }
            both.session.clone()
        })
    }

    /// Whether the caller lists the session, or the session has a file.
    pub(crate) fn is_stored(&self) -> bool {
        let caller = self.caller.load_intact().ok().flatten();
        let is_listed = caller.is_some_and(|it| it.sessions.contains_key(&*self.id.name));
        is_listed || matches!(self.session.load_intact(), Ok(Some(_)))
    }

    /// Returns the state of the session. A lost one has read the worst.
    pub(crate) fn session_state(&self) -> Result<SharedState, SharedError> {
        Ok(found_or_worst(&self.session, self.session.load_intact()?))
    }

    /// Returns the state of the caller. A lost one has read the worst.
    pub(crate) fn caller_state(&self) -> Result<SharedState, SharedError> {
        Ok(found_or_worst(&self.caller, self.caller.load_intact()?))
    }

    /// Records that a person declassified what the session has read. Runs that died before count
    /// as read. Returns the state before and afterwards.
    pub(crate) fn declassify_session(
        &self,
        declassification: Declassification,
        now_ms: u64,
    ) -> Result<(SharedState, SharedState), SharedError> {
        self.change(|both, is_gone| {
            both.end_gone(is_gone, now_ms);
            let before = both.session.clone();
            both.session.declassify(declassification);
            (before, both.session.clone())
        })
    }

    /// Records that a person declassified what the caller has read, in all its sessions.
    pub(crate) fn declassify_caller(
        &self,
        declassification: &Declassification,
        now_ms: u64,
    ) -> Result<(SharedState, SharedState), SharedError> {
        type Changed = Result<(SharedState, SharedState), SharedError>;
        self.change_any(false, |both, is_gone| -> Changed {
            both.end_gone(is_gone, now_ms);
            let before = both.caller.clone();
            // A file that cannot be read fails the whole change, so nothing is changed before.
            let mut others = Vec::new();
            for name in both.caller.sessions.keys() {
                if **name == *self.id.name {
                    continue;
                }
                let id = HostSessionId::new(self.id.caller.clone(), name);
                let file = Self::new(&self.state, id).session;
                let mut session = match file.load_intact()? {
                    Some(session) => session,
                    // A session whose file was lost has read the worst, which is declassified too.
                    None => {
                        let mut lost = SharedState::new(Scope::Session, file.name());
                        lost.inherit(&both.caller);
                        lost.running = both.caller.running.clone();
                        lost.assume_worst();
                        lost
                    }
                };
                session.end_gone(is_gone);
                session.declassify(declassification.clone());
                others.push((file, session));
            }
            both.others.extend(others);
            both.caller.declassify(declassification.clone());
            if both.lists(&self.id) {
                both.session.declassify(declassification.clone());
            }
            Ok((before, both.caller.clone()))
        })?
    }

    fn is_gone(&self) -> impl Fn(&RunId) -> bool + Copy + use<'_> {
        |run| !self.state.is_running(run)
    }

    /// Changes the files of a session that existed before.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Both, &dyn Fn(&RunId) -> bool) -> T,
    ) -> Result<T, SharedError> {
        self.change_any(true, change)
    }

    /// Changes the files of the session and of its caller under their lock. Returns when the change
    /// would survive a crash of the machine. `existed` says that the session existed before, so
    /// that its files must exist.
    fn change_any<T>(
        &self,
        existed: bool,
        change: impl FnOnce(&mut Both, &dyn Fn(&RunId) -> bool) -> T,
    ) -> Result<T, SharedError> {
        let _lock = self.lock()?;
        let folder = self.caller.folder();
        let had_folder = folder.exists();
        let (session, caller) = (self.session.load_intact()?, self.caller.load_intact()?);
        let new = |file: &SharedFile| SharedState::new(Scope::Session, file.name());
        let mut both = Both {
            had_session: session.is_some(),
            had_caller: caller.is_some(),
            lost_caller: caller.is_none() && (had_folder || existed),
            session: session.clone().unwrap_or_else(|| new(&self.session)),
            caller: caller.clone().unwrap_or_else(|| new(&self.caller)),
            remove: BTreeSet::new(),
            others: Vec::new(),
        };
        if both.lost_caller {
            self.restore_caller(&mut both)?;
            if existed {
                let own = both.caller.sessions.entry(self.id.name.to_string());
                own.or_default();
            }
        }
        if both.lists(&self.id) && !both.had_session {
            both.begin();
            both.session.assume_worst();
            both.session.running = both.caller.running.clone();
        }
        let is_gone = self.is_gone();
        let result = change(&mut both, &is_gone);
        make_private(folder).map_err(failed(folder, "created"))?;
        for (file, session) in &both.others {
            file.replace(session)?;
        }
        // The caller first: a session that its caller does not list is over.
        if caller.as_ref() != Some(&both.caller) {
            self.caller.replace(&both.caller)?;
        }
        if both.lists(&self.id) && session.as_ref() != Some(&both.session) {
            self.session.replace(&both.session)?;
        }
        for name in &both.remove {
            remove(&folder.join(format!("{name}{SUFFIX}")))?;
        }
        Ok(result)
    }

    /// Assumes the worst for a caller whose file was lost, and for this session. Lists the sessions
    /// that have files, and the runs in them.
    fn restore_caller(&self, both: &mut Both) -> Result<(), SharedError> {
        both.caller.assume_worst();
        both.session.assume_worst();
        for (name, path) in sessions_in(self.caller.folder())? {
            let changed = std::fs::metadata(path).and_then(|it| it.modified());
            let changed = changed
                .ok()
                .and_then(|it| it.duration_since(UNIX_EPOCH).ok());
            let used_at_ms = changed.map_or(0, millis);
            let session = HostSessionId::new(self.id.caller.clone(), &name);
            let session = Self::new(&self.state, session).session.load_intact()?;
            let runs = session.into_iter().flat_map(|it| it.running);
            both.caller.running.extend(runs);
            both.caller.sessions.insert(name, used_at_ms);
        }
        Ok(())
    }

    fn lock(&self) -> Result<File, SharedError> {
        let locks = self.state.path().join(FOLDER).join(LOCKS);
        if !locks.exists() {
            make_private(&locks).map_err(failed(&locks, "created"))?;
        }
        self.caller.lock()
    }
}

fn found_or_worst(file: &SharedFile, found: Option<SharedState>) -> SharedState {
    found.unwrap_or_else(|| {
        let mut worst = SharedState::new(Scope::Session, file.name());
        worst.assume_worst();
        worst
    })
}

/// Does work on files, away from the threads that answer requests.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SharedError> + Send + 'static,
) -> Result<T, SharedError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(failed(Path::new(FOLDER), "used")(io::Error::other(error))))
}

const FOLDER: &str = "serve";
const LOCKS: &str = "locks";
const CALLERS: &str = "callers";

fn folder(state_dir: &Path, caller: &CallerKey) -> PathBuf {
    state_dir.join(FOLDER).join(CALLERS).join(&*caller.key)
}

/// Callers share 256 locks, which are held only while a file is replaced. The locks are never
/// removed, so no two processes can hold different files.
fn lock_path(state_dir: &Path, caller: &CallerKey) -> PathBuf {
    let shard: String = caller.key.chars().skip(1).take(2).collect();
    let locks = state_dir.join(FOLDER).join(LOCKS);
    locks.join(format!("{shard}.lock"))
}

fn callers(state_dir: &Path) -> Result<Vec<CallerKey>, SharedError> {
    let folder = state_dir.join(FOLDER).join(CALLERS);
    let entries = match std::fs::read_dir(&folder) {
        Err(_) if !folder.exists() => return Ok(Vec::new()),
        other => other.map_err(failed(&folder, "read"))?,
    };
    let names = entries.filter_map(|it| it.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| CallerKey::parse(&name)).collect())
}

/// Returns the names and the files of the sessions in the folder of a caller.
fn sessions_in(folder: &Path) -> Result<Vec<(String, PathBuf)>, SharedError> {
    let entries = match std::fs::read_dir(folder) {
        Err(_) if !folder.exists() => return Ok(Vec::new()),
        other => other.map_err(failed(folder, "read"))?,
    };
    let session = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        (name != CALLER).then(|| (name.to_owned(), path.clone()))
    };
    let paths = entries.filter_map(|it| Some(it.ok()?.path()));
    Ok(paths.filter_map(session).collect())
}

fn remove(path: &Path) -> Result<(), SharedError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(path, "removed")(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
