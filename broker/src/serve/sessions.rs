//! The sessions of all hosts. A request of the older era over HTTP names its session by an id in a
//! header. A request of the newer era may name one by a handle; all requests of a caller without a
//! handle share one session. Ids and handles are sealed, so only those that airlock issued are
//! valid.
//!
//! Sessions in use are held in memory. Their labels, disclosures and grants are in their records,
//! from which a session continues after a restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::shared_state::SharedState;
use serde_json::{Value, json};

use super::context::ServeContext;
use super::method::Method;
use super::own_tools;
use super::request::Request;
use super::result_store::ResultStore;
use super::rpc::{self, CLIENT_INFO_KEY, RpcErrorResponse, SESSION_KEY};
use super::seal::{self, Seal};
use super::session::HostSession;
use super::settings::ServeSettings;
use crate::host_record::{self, CallerKey, HostRecord, HostSessionId};
use crate::shared_file::SharedError;
use crate::upstream::Era;

/// Maximum number of busy sessions that are passed over when room is needed.
const BUSY_MAX: usize = 64;
/// The handle by which a host asks for a session of its own.
const NEW: &str = "new";

/// The owner of the sessions that a request may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionOwner {
    pub(super) key: CallerKey,
    /// Whether the caller was authenticated. If not, its name is only its own claim.
    pub(super) is_authenticated: bool,
}

impl SessionOwner {
    /// Returns the owner of a request without authentication.
    pub(super) fn of_client(params: &Value) -> Self {
        let meta = params.get("_meta").and_then(|it| it.get(CLIENT_INFO_KEY));
        let info = meta.or_else(|| params.get("clientInfo"));
        let name = info.and_then(|it| it.get("name")).and_then(Value::as_str);
        Self {
            key: CallerKey::of_client(name.unwrap_or_default()),
            is_authenticated: false,
        }
    }

    fn owns(&self, id: &HostSessionId) -> bool {
        match self.is_authenticated {
            true => id.caller == self.key,
            false => id.caller.is_client(),
        }
    }
}

/// The session that a request names.
#[derive(Debug, PartialEq, Eq)]
enum NamedSession {
    None,
    New,
    Known(HostSessionId),
}

#[derive(Debug)]
pub(super) struct Sessions {
    settings: ServeSettings,
    /// The store of long results, shared by all sessions.
    results: ResultStore,
    live: Mutex<LiveSessions>,
}

/// The sessions in memory, in the order of their last use.
#[derive(Debug, Default)]
struct LiveSessions {
    by_id: HashMap<HostSessionId, LiveSession>,
    order: BTreeMap<u64, HostSessionId>,
    of_caller: HashMap<CallerKey, BTreeMap<u64, HostSessionId>>,
    latest: u64,
}

#[derive(Debug)]
struct LiveSession {
    session: Arc<HostSession>,
    place: u64,
}

impl LiveSessions {
    /// Returns a session, which is then the last one that was used.
    fn find(&mut self, id: &HostSessionId) -> Option<Arc<HostSession>> {
        let found = self.remove(id)?;
        self.insert(id.clone(), Arc::clone(&found));
        Some(found)
    }

    fn insert(&mut self, id: HostSessionId, session: Arc<HostSession>) {
        self.latest += 1;
        let place = self.latest;
        self.order.insert(place, id.clone());
        let own = self.of_caller.entry(id.caller.clone()).or_default();
        own.insert(place, id.clone());
        self.by_id.insert(id, LiveSession { session, place });
    }

    fn remove(&mut self, id: &HostSessionId) -> Option<Arc<HostSession>> {
        let LiveSession { session, place } = self.by_id.remove(id)?;
        self.order.remove(&place);
        if let Some(own) = self.of_caller.get_mut(&id.caller) {
            own.remove(&place);
            if own.is_empty() {
                self.of_caller.remove(&id.caller);
            }
        }
        Some(session)
    }

    /// Removes from memory the idle session that was not used for the longest time: one of this
    /// caller, or of any caller. Returns false if none of the oldest sessions is idle.
    fn make_room(&mut self, caller: Option<&CallerKey>) -> bool {
        for _ in 0..BUSY_MAX {
            let order = match caller {
                Some(caller) => self.of_caller.get(caller),
                None => Some(&self.order),
            };
            let oldest = order.and_then(|it| it.first_key_value());
            let Some(id) = oldest.map(|(_, id)| id.clone()) else {
                return false;
            };
            let Some(session) = self.remove(&id) else {
                return false;
            };
            if session.is_at_rest() {
                return true;
            }
            self.insert(id, session);
        }
        false
    }
}

impl Sessions {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            settings: settings.clone(),
            results: ResultStore::default(),
            live: Mutex::default(),
        }
    }

    /// Begins a session with a new id.
    pub(super) async fn begin(
        &self,
        context: &ServeContext,
        owner: &SessionOwner,
    ) -> Result<Arc<HostSession>, RpcErrorResponse> {
        let name = seal::token().map_err(|error| internal(&error))?;
        let caller = context.records().admit(owner.key.clone());
        self.open(context, HostSessionId::new(caller, &name)).await
    }

    /// Returns the session of all requests of this caller that name no session.
    pub(super) async fn shared(
        &self,
        context: &ServeContext,
        owner: &SessionOwner,
    ) -> Result<Arc<HostSession>, RpcErrorResponse> {
        let caller = context.records().admit(owner.key.clone());
        let id = HostSessionId::shared(caller);
        match self.live(&id, context.now_ms()) {
            Some(session) => Ok(session),
            None => self.open(context, id).await,
        }
    }

    /// Returns the session that a request of the newer era names by a handle or by the state of a
    /// waiting run, or `None` if it names none.
    pub(super) async fn named(
        &self,
        context: &ServeContext,
        owner: &SessionOwner,
        params: &Value,
    ) -> Result<Option<Arc<HostSession>>, RpcErrorResponse> {
        let id = match named(context.seal(), params)? {
            NamedSession::None => return Ok(None),
            NamedSession::New => return self.begin(context, owner).await.map(Some),
            NamedSession::Known(id) => id,
        };
        if !owner.owns(&id) {
            return Err(not_opened());
        }
        self.reopen(context, id, false).await
    }

    /// Returns the session of the older era with this sealed id, or `None` if it is over.
    pub(super) async fn find(
        &self,
        context: &ServeContext,
        owner: &SessionOwner,
        id: &str,
    ) -> Result<Option<Arc<HostSession>>, RpcErrorResponse> {
        let id = opened(context.seal(), Era::Legacy, id);
        match id.filter(|id| owner.owns(id)) {
            Some(id) => self.reopen(context, id, true).await,
            None => Ok(None),
        }
    }

    /// Ends a session of the older era.
    pub(super) async fn end(
        &self,
        context: &ServeContext,
        session: &HostSession,
    ) -> Result<(), RpcErrorResponse> {
        session.cancel_all("the host ended the session");
        if let Some(record) = session.record() {
            self.lock().remove(record.id());
        }
        end(context, session).await
    }

    pub(super) fn all(&self) -> Vec<Arc<HostSession>> {
        let live = self.lock();
        live.by_id
            .values()
            .map(|it| Arc::clone(&it.session))
            .collect()
    }

    /// Removes stale sessions from memory. Records the use of sessions that are busy or listened
    /// to.
    pub(super) async fn clean_up(&self, context: &ServeContext) {
        let now_ms = context.now_ms();
        let mut in_use = Vec::new();
        for session in self.all() {
            match session.record() {
                Some(record) if session.is_stale(now_ms) => {
                    self.lock().remove(record.id());
                }
                _ if !session.is_at_rest() => in_use.push(session),
                _ => {}
            }
        }
        for session in in_use {
            // If saving fails, the next request of the session fails too, and reports the error.
            let _ = save(context, &session).await;
        }
    }

    async fn open(
        &self,
        context: &ServeContext,
        id: HostSessionId,
    ) -> Result<Arc<HostSession>, RpcErrorResponse> {
        let record = context.records().record(id);
        let (records, now_ms) = (Arc::clone(context.records()), context.now_ms());
        let opening = record.clone();
        let state = blocking(move || records.open(&opening, now_ms)).await?;
        self.enter(record, &state, now_ms)
    }

    async fn reopen(
        &self,
        context: &ServeContext,
        id: HostSessionId,
        can_end: bool,
    ) -> Result<Option<Arc<HostSession>>, RpcErrorResponse> {
        let now_ms = context.now_ms();
        if let Some(session) = self.live(&id, now_ms) {
            return Ok(Some(session));
        }
        let record = context.records().record(id);
        let (records, opening) = (Arc::clone(context.records()), record.clone());
        let reopened = blocking(move || records.reopen(&opening, can_end, now_ms)).await?;
        let entered = reopened.map(|state| self.enter(record, &state, now_ms));
        entered.transpose()
    }

    /// Returns a session from memory, unless it is stale.
    fn live(&self, id: &HostSessionId, now_ms: u64) -> Option<Arc<HostSession>> {
        let mut live = self.lock();
        let found = live.find(id)?;
        if found.is_stale(now_ms) {
            live.remove(id);
            return None;
        }
        Some(found)
    }

    /// Adds a session to memory, unless another request has already added it. If there is no room,
    /// an idle session is removed from memory, and its record stays. Each caller has a share of the
    /// room.
    fn enter(
        &self,
        record: HostRecord,
        state: &SharedState,
        now_ms: u64,
    ) -> Result<Arc<HostSession>, RpcErrorResponse> {
        let mut live = self.lock();
        let id = record.id().clone();
        if let Some(earlier) = live.find(&id) {
            return Ok(earlier);
        }
        let own = live.of_caller.get(&id.caller).map_or(0, BTreeMap::len);
        let own_max = self.settings.sessions_of_one_max(&id.caller);
        let has_room = if own >= own_max {
            live.make_room(Some(&id.caller))
        } else {
            live.by_id.len() < self.settings.sessions_max || live.make_room(None)
        };
        if !has_room {
            return Err(too_many());
        }
        let session = HostSession::new(id.to_string(), &self.settings, &self.results, now_ms);
        session.attach(record, state, now_ms);
        let session = Arc::new(session);
        live.insert(id, Arc::clone(&session));
        Ok(session)
    }

    fn lock(&self) -> MutexGuard<'_, LiveSessions> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a session without a record a new record of this caller. On stdio, the first request names
/// the caller.
pub(super) async fn attach(
    context: &ServeContext,
    session: &HostSession,
    owner: &SessionOwner,
) -> Result<(), RpcErrorResponse> {
    let name = seal::token().map_err(|error| internal(&error))?;
    let (records, now_ms) = (Arc::clone(context.records()), context.now_ms());
    let record = records.record(HostSessionId::new(records.admit(owner.key.clone()), &name));
    let opening = record.clone();
    let state = blocking(move || records.open(&opening, now_ms)).await?;
    session.attach(record, &state, now_ms);
    Ok(())
}

/// Ends a session in its record. The caller keeps the session's labels.
pub(super) async fn end(
    context: &ServeContext,
    session: &HostSession,
) -> Result<(), RpcErrorResponse> {
    save(context, session).await?;
    let Some(record) = session.record().cloned() else {
        return Ok(());
    };
    let (records, now_ms) = (Arc::clone(context.records()), context.now_ms());
    blocking(move || records.end(&record, now_ms)).await
}

/// Removes the records of sessions that are over.
pub(super) async fn clean_up_records(context: &ServeContext) {
    let (records, now_ms) = (Arc::clone(context.records()), context.now_ms());
    // If a record cannot be removed, the next round tries again.
    let _ = blocking(move || records.clean_up(now_ms)).await;
}

/// Writes what a session has read to its record, before an answer that depends on it is sent.
pub(super) async fn save(
    context: &ServeContext,
    session: &HostSession,
) -> Result<(), RpcErrorResponse> {
    let saved = session.save(context.records(), context.now_ms());
    saved.await.map_err(|_| unreadable())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SharedError> + Send + 'static,
) -> Result<T, RpcErrorResponse> {
    let done = host_record::blocking(work).await;
    done.map_err(|_| unreadable())
}

/// Adds the handle of a session of the newer era, if the session has state that later requests
/// need.
pub(super) fn with_handle(mut result: Value, request: &Request) -> Value {
    let session = &request.session;
    let changes = matches!(
        request.method,
        Method::CallTool | Method::ReadResource | Method::GetPrompt
    );
    let is_found = (changes || session.has_new_labels()) && session.has_state_to_keep();
    let handle = request.handle.as_ref();
    let handle = handle.filter(|_| is_found || request.is_own_session);
    if let (Some(handle), Some(meta)) = (handle, result.get_mut("_meta")) {
        rpc::set_member(meta, SESSION_KEY, handle.as_str());
    }
    result
}

/// Returns the sealed id of a session.
pub(super) fn sealed(seal: &Seal, era: Era, id: &str) -> String {
    seal.seal(id, purpose(era))
}

/// Returns the session id that a sealed id contains, if the seal is valid. An id of one era is not
/// valid in the other.
fn opened(seal: &Seal, era: Era, text: &str) -> Option<HostSessionId> {
    let opened = seal.unseal(text, purpose(era))?;
    HostSessionId::parse(&opened.token)
}

fn purpose(era: Era) -> &'static str {
    match era {
        Era::Legacy => "session id",
        Era::Modern => "session",
    }
}

fn named(seal: &Seal, params: &Value) -> Result<NamedSession, RpcErrorResponse> {
    let meta = params.get("_meta").and_then(|it| it.get(SESSION_KEY));
    // A tool of a server may have an argument with this name.
    let name = params.get("name").and_then(Value::as_str);
    let arguments = params.get("arguments");
    let arguments = arguments.filter(|_| name.is_some_and(own_tools::is_own));
    let argument = arguments.and_then(|it| it.get("session"));
    let handle = [meta, argument]
        .into_iter()
        .flatten()
        .find(|it| !it.is_null());
    if let Some(handle) = handle {
        let handle = handle.as_str().ok_or_else(not_opened)?;
        if handle == NEW {
            return Ok(NamedSession::New);
        }
        let id = opened(seal, Era::Modern, handle).ok_or_else(not_opened)?;
        return Ok(NamedSession::Known(id));
    }
    let Some(state) = params.get("requestState") else {
        return Ok(NamedSession::None);
    };
    let id = state
        .as_str()
        .and_then(|state| own_tools::session_of(seal, params, state));
    let id = id.as_deref().and_then(HostSessionId::parse);
    id.map(NamedSession::Known)
        .ok_or_else(own_tools::invalid_state)
}

fn not_opened() -> RpcErrorResponse {
    RpcErrorResponse::invalid(
        "the session handle was not issued to this caller, or its key was lost; leave it out, or \
         send `new` to begin a session",
    )
}

fn unreadable() -> RpcErrorResponse {
    RpcErrorResponse {
        data: Some(json!({"code": "state-unreadable"})),
        ..RpcErrorResponse::new(
            rpc::INTERNAL,
            "the record of the session cannot be read or written",
        )
    }
}

fn too_many() -> RpcErrorResponse {
    RpcErrorResponse {
        data: Some(json!({"retry": true})),
        ..RpcErrorResponse::new(rpc::INTERNAL, "too many sessions are open")
    }
}

fn internal(error: &impl ToString) -> RpcErrorResponse {
    RpcErrorResponse::new(rpc::INTERNAL, error.to_string())
}
