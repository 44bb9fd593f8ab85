//! The records of hosts' sessions and of their callers in the state directory. Each caller has a
//! folder with a file of its own and one file per session. They hold the labels, disclosures and
//! grants that later decisions depend on.
//!
//! Labels are written to the file of the session and to the file of the caller. A new session
//! starts with the labels of its caller. If one file is lost, the other one, the folder, or the
//! sealed id of the session shows that the file existed. The session and its caller then count as
//! having read the worst. So does a run that died before it recorded what it had read.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use airlock_core::flow::SessionFlow;
use airlock_core::grant::Scope;
use airlock_core::id::{Digest, RunId, ToolId};
use airlock_core::labels::Labels;
use airlock_core::shared_state::SharedState;

use crate::private_file::{StateDir, make_private};
use crate::shared_file::{SUFFIX, SharedEntry, SharedError, SharedFile, failed};

/// Maximum number of sessions of one caller that are stored.
const SESSIONS_OF_ONE_MAX: usize = 250;
/// The same for all hosts that use the shared token.
const SESSIONS_OF_TOKEN_MAX: usize = 1_000;
/// Maximum number of callers without authentication that are distinguished. Their names are free to
/// choose. The others are one caller together.
const CLIENTS_MAX: usize = 1_000;
/// The times of last use are written at most this often, and are exact to this time.
const TOUCH_MS_MAX: u64 = 60_000;
const CALLER: &str = "caller";
const KEY_DIGITS: usize = 24;

/// The identity of a caller: a token, an OAuth subject, or the name of a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallerKey(Arc<str>);

impl CallerKey {
    const CLIENT: char = 'c';
    const TOKEN: char = 't';
    const SUBJECT: char = 's';

    /// Returns the key of a caller without authentication, which names itself in `clientInfo`.
    pub(crate) fn of_client(name: &str) -> Self {
        Self::new(Self::CLIENT, name)
    }

    /// Returns the key of all hosts that use the shared token.
    pub(crate) fn of_token() -> Self {
        Self::new(Self::TOKEN, "")
    }

    /// Returns the key of a caller that an authorization server identifies.
    pub(crate) fn of_subject(subject: &str) -> Self {
        Self::new(Self::SUBJECT, subject)
    }

    pub(crate) fn is_token(&self) -> bool {
        self.0.starts_with(Self::TOKEN)
    }

    fn new(kind: char, name: &str) -> Self {
        let digest = Digest::sha256(name.as_bytes()).to_string();
        let digits = digest.chars().skip("sha256:".len()).take(KEY_DIGITS);
        Self(
            std::iter::once(kind)
                .chain(digits)
                .collect::<String>()
                .into(),
        )
    }

    /// All callers without authentication that found no room of their own.
    fn of_other_clients() -> Self {
        Self(format!("{}{}", Self::CLIENT, "0".repeat(KEY_DIGITS)).into())
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix([Self::CLIENT, Self::TOKEN, Self::SUBJECT])?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let fits = digits.len() == KEY_DIGITS && digits.bytes().all(is_digit);
        fits.then(|| Self(text.into()))
    }

    /// Whether the caller only named itself.
    pub(crate) fn is_client(&self) -> bool {
        self.0.starts_with(Self::CLIENT)
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

impl std::fmt::Display for HostSessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.caller.0, self.name)
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

    /// Assumes the worst for runs that died. Such a run counts as a use.
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
            let of_sessions = |it: &SharedEntry| *it.0.name() != *caller.0;
            found.extend(files.into_iter().filter(of_sessions));
        }
        Ok(found)
    }

    /// Returns the caller, or the one whose record it shares if there are too many callers.
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

    /// Opens the session of a request that proves nothing about an earlier one. A session begins,
    /// unless the caller has it already.
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

    /// Returns after how much time without a save a use of a session must be saved.
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

    fn clients(&self) -> MutexGuard<'_, HashSet<CallerKey>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a request adds to its session.
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
            caller: SharedFile::of_host(id.caller.0.to_string(), path(CALLER), lock),
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

    /// Registers a run in both files, and returns the state from which it starts.
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
            both.session.clone()
        })
    }

    /// Records the end of a run. Counts stay with the session.
    pub(crate) fn end_run(
        &self,
        run: &RunId,
        carried: &SessionFlow,
        now_ms: u64,
    ) -> Result<(), SharedError> {
        self.change(|both, _| {
            both.caller.used_at_ms = now_ms;
            let labels = SessionFlow {
                labels: carried.labels.clone(),
                ..SessionFlow::default()
            };
            both.caller.finish(run, &labels);
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
    state_dir.join(FOLDER).join(CALLERS).join(&*caller.0)
}

/// Callers share 256 locks, which are held only while a file is replaced. The locks are never
/// removed, so no two processes can hold different files.
fn lock_path(state_dir: &Path, caller: &CallerKey) -> PathBuf {
    let shard: String = caller.0.chars().skip(1).take(2).collect();
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
mod tests;
