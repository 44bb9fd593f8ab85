//! Stores the sessions of all hosts. A request of the older era names its session by an id in a
//! header, a request of the newer era by a handle in `_meta`. A handle is sealed, so only handles
//! issued by this process are valid.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use airlock_core::flow::SessionFlow;

use super::caller::Caller;
use crate::serve::result_store::ResultStore;
use crate::serve::seal::{self, Seal};
use crate::serve::session::HostSession;
use crate::serve::settings::ServeSettings;
use crate::upstream::Era;

const PURPOSE: &str = "session";

/// An id is valid only in its own era: the id inside a handle of the newer era is not valid in a
/// session header.
type SessionKey = (Caller, Era, String);
type ById = HashMap<SessionKey, Arc<HostSession>>;

#[derive(Debug)]
pub(super) struct Sessions {
    settings: ServeSettings,
    /// The store of long results, shared by all sessions.
    results: ResultStore,
    /// Sessions by owner and id, so that no caller can find another caller's session.
    by_id: Mutex<ById>,
    /// The flow labels of sessions that were dropped for lack of room.
    read: Mutex<SessionFlow>,
    /// Sessions that were created but not entered yet. New sessions inherit their labels too.
    begun: Mutex<Vec<Weak<HostSession>>>,
}

impl Sessions {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            settings: settings.clone(),
            results: ResultStore::default(),
            by_id: Mutex::default(),
            read: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    /// Creates a session that cannot be found until it is entered.
    pub(super) fn fresh(&self, now_ms: u64) -> Result<Arc<HostSession>, seal::SealKeyError> {
        let id = seal::token()?;
        let session = HostSession::new(id, &self.settings, &self.results, now_ms);
        // A host that omits its handle gets a new session, but keeps the labels of earlier data.
        for other in self.lock().values() {
            session.inherit(&other.carried());
        }
        session.inherit(&self.read());
        let session = Arc::new(session);
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|it| it.strong_count() > 0);
        for other in begun.iter().filter_map(Weak::upgrade) {
            session.inherit(&other.carried());
        }
        begun.push(Arc::downgrade(&session));
        Ok(session)
    }

    /// Enters a session. If there is no room, drops an idle session; returns `false` if none is
    /// idle. Each caller has a maximum share, so that one caller cannot take all the room. A caller
    /// at that maximum displaces only its own sessions.
    pub(super) fn enter(
        &self,
        caller: &Caller,
        era: Era,
        session: &Arc<HostSession>,
        now_ms: u64,
    ) -> bool {
        let key = (caller.clone(), era, session.id.clone());
        let mut by_id = self.lock();
        if by_id.contains_key(&key) {
            return true;
        }
        if self.capacity(&by_id, caller) != Capacity::Some {
            by_id.retain(|_, it| !it.is_stale(now_ms));
        }
        let has_room = match self.capacity(&by_id, caller) {
            Capacity::Some => true,
            Capacity::NoneForCaller => self.make_room(&mut by_id, |whose| whose == caller),
            Capacity::None => self.make_room(&mut by_id, |_| true),
        };
        if has_room {
            by_id.insert(key, Arc::clone(session));
        }
        has_room
    }

    /// Drops the session that has been idle longest, and prefers sessions without state to keep.
    /// Sessions that begin later inherit the labels of the dropped session.
    fn make_room(&self, by_id: &mut ById, may_go: impl Fn(&Caller) -> bool) -> bool {
        let resting = by_id
            .iter()
            .filter(|((whose, ..), it)| may_go(whose) && it.is_at_rest());
        let least = resting.min_by_key(|(_, it)| (it.has_state_to_keep(), it.used_at_ms()));
        let Some(key) = least.map(|(key, _)| key.clone()) else {
            return false;
        };
        if let Some(gone) = by_id.remove(&key) {
            self.remember(&gone);
        }
        true
    }

    fn capacity(&self, by_id: &ById, caller: &Caller) -> Capacity {
        let own = || by_id.keys().filter(|(whose, ..)| whose == caller).count();
        if caller.is_somebody() && own() >= self.settings.sessions_of_one_max() {
            Capacity::NoneForCaller
        } else if by_id.len() >= self.settings.sessions_max {
            Capacity::None
        } else {
            Capacity::Some
        }
    }

    /// Stores the labels of a dropped session. Sessions that begin later inherit them.
    pub(super) fn remember(&self, session: &HostSession) {
        self.read().join(&session.carried());
    }

    pub(super) fn find(
        &self,
        caller: &Caller,
        era: Era,
        id: &str,
        now_ms: u64,
    ) -> Option<Arc<HostSession>> {
        let key = (caller.clone(), era, id.to_owned());
        let found = self.lock().get(&key).cloned();
        found.filter(|session| !session.is_stale(now_ms))
    }

    /// Ends a session of the older era. Sessions of the newer era expire.
    pub(super) fn end(&self, caller: &Caller, id: &str) -> bool {
        let key = (caller.clone(), Era::Legacy, id.to_owned());
        let ended = self.lock().remove(&key);
        if let Some(session) = &ended {
            session.cancel_all("the host ended the session");
        }
        ended.is_some()
    }

    pub(super) fn all(&self) -> Vec<Arc<HostSession>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn clean_up(&self, now_ms: u64) {
        self.lock().retain(|_, session| !session.is_stale(now_ms));
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn read(&self) -> MutexGuard<'_, SessionFlow> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, ById> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capacity {
    Some,
    NoneForCaller,
    None,
}

/// Returns the handle by which a host of the newer era refers to its session.
pub(super) fn handle(seal: &Seal, session: &HostSession) -> String {
    seal.seal(&session.id, PURPOSE)
}

/// Returns the session id that a handle contains, if the handle is valid.
pub(super) fn opened(seal: &Seal, handle: &str) -> Option<String> {
    seal.open(handle, PURPOSE).map(|it| it.token)
}

#[cfg(test)]
mod tests {
    use airlock_core::labels::Labels;

    use super::*;

    #[test]
    fn stale_sessions_are_not_found_and_removed() {
        let settings = ServeSettings {
            sessions_max: 2,
            session_idle: std::time::Duration::from_millis(10),
            ..ServeSettings::default()
        };
        let sessions = Sessions::new(&settings);
        let any = Caller::default();
        let (a, b) = (sessions.fresh(0).unwrap(), sessions.fresh(5).unwrap());
        assert!(
            sessions.enter(&any, Era::Legacy, &a, 0) && sessions.enter(&any, Era::Legacy, &b, 5)
        );
        assert!(
            sessions.find(&any, Era::Legacy, &a.id, 9).is_some()
                && sessions.find(&any, Era::Legacy, &a.id, 12).is_none()
        );
        sessions.clean_up(1_000);
        assert_eq!(sessions.count(), 0);
    }

    #[test]
    fn longest_idle_session_is_evicted_and_busy_one_is_not() {
        let settings = ServeSettings {
            sessions_max: 3,
            ..ServeSettings::default()
        };
        let sessions = Sessions::new(&settings);
        let any = Caller::default();
        let begin = |now_ms| {
            let session = sessions.fresh(now_ms).unwrap();
            let entered = sessions.enter(&any, Era::Legacy, &session, now_ms);
            entered.then_some(session)
        };
        let is_there = |it: &HostSession, now_ms| {
            let found = sessions.find(&any, Era::Legacy, &it.id, now_ms);
            found.is_some()
        };
        let [read, first, second] = [0, 1, 2].map(|now_ms| begin(now_ms).unwrap());
        read.add_labels(&Labels::worst());
        first.touch(3);
        let third = begin(4).unwrap();
        assert!(is_there(&read, 4) && is_there(&first, 4) && !is_there(&second, 4));
        // A session with open requests keeps its place.
        let work = |it: &Arc<HostSession>| it.begin("1").unwrap();
        let _busy = [work(&first), work(&third)];
        let fourth = begin(5).unwrap();
        assert!(!is_there(&read, 5) && is_there(&first, 5) && is_there(&third, 5));
        assert_eq!(
            fourth.carried().labels,
            Labels::worst(),
            "labels of the dropped session are inherited"
        );
        let _busy_too = work(&fourth);
        assert!(begin(6).is_none());
    }

    #[test]
    fn new_session_inherits_strictest_labels() {
        let sessions = Sessions::new(&ServeSettings::default());
        let any = Caller::default();
        let read = sessions.fresh(0).unwrap();
        assert!(!read.has_state_to_keep());
        read.carry(&SessionFlow {
            labels: Labels::worst(),
            bytes: 7,
            ..SessionFlow::default()
        });
        assert!(read.has_state_to_keep() && sessions.enter(&any, Era::Legacy, &read, 0));
        let anew = sessions.fresh(1).unwrap().carried();
        assert_eq!((anew.labels, anew.bytes), (Labels::worst(), 0));
    }

    #[test]
    fn labels_count_before_entry_and_with_inherited_ones() {
        let sessions = Sessions::new(&ServeSettings::default());
        let (first, second) = (sessions.fresh(0).unwrap(), sessions.fresh(0).unwrap());
        first.add_labels(&Labels::worst());
        // The first two sessions have open requests, and neither has been entered.
        let third = sessions.fresh(1).unwrap();
        assert_eq!(third.carried().labels, Labels::worst());
        assert!(first.has_new_labels() && !second.has_new_labels() && !third.has_new_labels());
        // The same labels again, now in another session.
        third.add_labels(&Labels::worst());
        assert!(third.has_new_labels());
        drop((first, third));
        assert!(sessions.fresh(2).unwrap().carried().labels.is_empty());
    }

    #[test]
    fn one_caller_cannot_take_all_sessions() {
        let settings = ServeSettings {
            sessions_max: 8,
            session_idle: std::time::Duration::from_millis(10),
            ..ServeSettings::default()
        };
        let sessions = Sessions::new(&settings);
        let enter = |caller: &Caller, now_ms| {
            let session = sessions.fresh(now_ms).unwrap();
            assert!(sessions.enter(caller, Era::Legacy, &session, now_ms));
            sessions.count()
        };
        let (ada, eve) = (Caller::named("ada"), Caller::named("eve"));
        assert_eq!([0, 0, 0, 0].map(|now_ms| enter(&eve, now_ms)), [1, 2, 2, 2]);
        assert_eq!(enter(&ada, 0), 3, "only sessions of eve were dropped");
        assert_eq!(enter(&eve, 100), 1, "earlier sessions are stale");
        // Without distinct callers, all sessions belong to one caller, who may use all the room.
        let nobody = Caller::default();
        let most = (0..8).map(|_| enter(&nobody, 100)).max();
        assert_eq!(most, Some(8));
    }

    #[test]
    fn labels_count_even_without_room_for_session() {
        let settings = ServeSettings {
            sessions_max: 1,
            ..ServeSettings::default()
        };
        let sessions = Sessions::new(&settings);
        let any = Caller::default();
        let first = sessions.fresh(0).unwrap();
        assert!(sessions.enter(&any, Era::Legacy, &first, 0));
        let _busy = first.begin("1").unwrap();
        let read = sessions.fresh(1).unwrap();
        read.carry(&SessionFlow {
            labels: Labels::worst(),
            ..SessionFlow::default()
        });
        assert!(!sessions.enter(&any, Era::Legacy, &read, 1));
        sessions.remember(&read);
        drop(read);
        assert_eq!(sessions.fresh(2).unwrap().carried().labels, Labels::worst());
    }

    #[test]
    fn handle_is_valid_only_in_its_session() {
        let sessions = Sessions::new(&ServeSettings::default());
        let session = sessions.fresh(0).unwrap();
        let (ours, theirs) = (Seal::new().unwrap(), Seal::new().unwrap());
        let given = handle(&ours, &session);
        assert_eq!(opened(&ours, &given), Some(session.id.clone()));
        assert_eq!(opened(&theirs, &given), None);
        assert_eq!(opened(&ours, &session.id), None);
    }
}
