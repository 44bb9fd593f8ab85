//! The sessions of all hosts: by the id that the older era carries in a header,
//! or by the handle that the newer one carries in `_meta`. A handle is sealed;
//! one that was not made here is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlock_core::flow::Carried;

use super::oauth::Caller;
use crate::serve::seal::{self, Seal};
use crate::serve::session::HostSession;
use crate::serve::settings::Settings;
use crate::upstream::Era;

const PURPOSE: &str = "session";

/// An id is good in its own era: what is a part of a handle there opens nothing as a header.
type Key = (Caller, Era, String);

#[derive(Debug)]
pub(super) struct Sessions {
    settings: Settings,
    /// By whose they are, and by their id: nobody finds another's.
    by_id: Mutex<HashMap<Key, Arc<HostSession>>>,
    /// What was read in sessions that there was no room for.
    read: Mutex<Carried>,
}

impl Sessions {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            by_id: Mutex::default(),
            read: Mutex::default(),
        }
    }

    /// A session that nobody finds before it was entered.
    pub(super) fn fresh(&self, now_ms: u64) -> Result<Arc<HostSession>, seal::NoKey> {
        let id = seal::token()?;
        let session = HostSession::new(id, &self.settings, now_ms);
        // Whoever leaves a handle away gets a new session, and not a clean one.
        for other in self.lock().values() {
            session.carry_labels(&other.carried());
        }
        session.carry_labels(&self.read());
        Ok(Arc::new(session))
    }

    /// False when there is no room for one more.
    pub(super) fn enter(
        &self,
        (caller, era): (&Caller, Era),
        session: &Arc<HostSession>,
        now_ms: u64,
    ) -> bool {
        let key = (caller.clone(), era, session.id.clone());
        let mut by_id = self.lock();
        if by_id.contains_key(&key) {
            return true;
        }
        if by_id.len() >= self.settings.sessions_max {
            by_id.retain(|_, it| !it.is_stale(now_ms));
        }
        if by_id.len() >= self.settings.sessions_max {
            return false;
        }
        by_id.insert(key, Arc::clone(session));
        true
    }

    /// What a session has read that nobody will find again counts in all that begin after it.
    pub(super) fn remember(&self, session: &HostSession) {
        self.read().join(&session.carried());
    }

    pub(super) fn find(
        &self,
        caller: &Caller,
        (era, id): (Era, &str),
        now_ms: u64,
    ) -> Option<Arc<HostSession>> {
        let key = (caller.clone(), era, id.to_owned());
        let found = self.lock().get(&key).cloned();
        found.filter(|session| !session.is_stale(now_ms))
    }

    /// Of the older era; those of the newer one end by themselves.
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

    fn read(&self) -> MutexGuard<'_, Carried> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<HostSession>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle by which a host of the newer era finds its session again.
pub(super) fn handle(seal: &Seal, session: &HostSession) -> String {
    seal.seal(&session.id, PURPOSE)
}

/// The id of the session that a handle stands for.
pub(super) fn opened(seal: &Seal, handle: &str) -> Option<String> {
    seal.open(handle, PURPOSE).map(|it| it.token)
}

#[cfg(test)]
mod tests {
    use airlock_core::flow::Labels;

    use super::*;

    #[test]
    fn stale_sessions_make_room_and_are_not_found_any_more() {
        let settings = Settings {
            sessions_max: 2,
            session_idle: std::time::Duration::from_millis(10),
            ..Settings::default()
        };
        let sessions = Sessions::new(&settings);
        let any = Caller::default();
        let (a, b) = (sessions.fresh(0).unwrap(), sessions.fresh(5).unwrap());
        assert!(
            sessions.enter((&any, Era::Legacy), &a, 0)
                && sessions.enter((&any, Era::Legacy), &b, 5)
        );
        let c = sessions.fresh(9).unwrap();
        assert!(
            !sessions.enter((&any, Era::Legacy), &c, 9),
            "there is no room"
        );
        assert!(
            sessions.find(&any, (Era::Legacy, &a.id), 9).is_some()
                && sessions.find(&any, (Era::Legacy, &a.id), 12).is_none()
        );
        assert!(sessions.enter((&any, Era::Legacy), &c, 12));
        sessions.clean_up(1_000);
        assert_eq!(sessions.count(), 0);
    }

    #[test]
    fn a_session_that_begins_anew_is_no_cleaner_than_those_beside_it() {
        let sessions = Sessions::new(&Settings::default());
        let any = Caller::default();
        let read = sessions.fresh(0).unwrap();
        assert!(!read.is_worth_finding());
        read.carry(&Carried {
            labels: Labels::worst(),
            bytes: 7,
            ..Carried::default()
        });
        assert!(read.is_worth_finding() && sessions.enter((&any, Era::Legacy), &read, 0));
        let anew = sessions.fresh(1).unwrap().carried();
        assert_eq!((anew.labels, anew.bytes), (Labels::worst(), 0));
    }

    #[test]
    fn what_was_read_counts_where_there_is_no_room_for_its_session() {
        let settings = Settings {
            sessions_max: 1,
            ..Settings::default()
        };
        let sessions = Sessions::new(&settings);
        let any = Caller::default();
        let first = sessions.fresh(0).unwrap();
        assert!(sessions.enter((&any, Era::Legacy), &first, 0));
        let read = sessions.fresh(1).unwrap();
        read.carry(&Carried {
            labels: Labels::worst(),
            ..Carried::default()
        });
        assert!(!sessions.enter((&any, Era::Legacy), &read, 1));
        sessions.remember(&read);
        drop(read);
        assert_eq!(sessions.fresh(2).unwrap().carried().labels, Labels::worst());
    }

    #[test]
    fn a_handle_is_good_only_where_it_was_made() {
        let sessions = Sessions::new(&Settings::default());
        let session = sessions.fresh(0).unwrap();
        let (ours, theirs) = (Seal::new().unwrap(), Seal::new().unwrap());
        let given = handle(&ours, &session);
        assert_eq!(opened(&ours, &given), Some(session.id.clone()));
        assert_eq!(opened(&theirs, &given), None);
        assert_eq!(opened(&ours, &session.id), None);
    }
}
