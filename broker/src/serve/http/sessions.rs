//! The sessions of all hosts: by the id that the older era carries in a header,
//! or by the handle that the newer one carries in `_meta`. A handle is sealed;
//! one that was not made here is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use airlock_core::flow::Carried;

use super::oauth::Caller;
use crate::serve::kept::Storeroom;
use crate::serve::seal::{self, Seal};
use crate::serve::session::HostSession;
use crate::serve::settings::Settings;
use crate::upstream::Era;

const PURPOSE: &str = "session";

/// An id is good in its own era: what is a part of a handle there opens nothing as a header.
type Key = (Caller, Era, String);
type ById = HashMap<Key, Arc<HostSession>>;

#[derive(Debug)]
pub(super) struct Sessions {
    settings: Settings,
    /// What is kept for all of them.
    room: Storeroom,
    /// By whose they are, and by their id: nobody finds another's.
    by_id: Mutex<ById>,
    /// What was read in sessions that there was no room for.
    read: Mutex<Carried>,
    /// Sessions that were begun and may not be entered yet: what they hear counts all the same.
    begun: Mutex<Vec<Weak<HostSession>>>,
}

impl Sessions {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            room: Storeroom::default(),
            by_id: Mutex::default(),
            read: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    /// A session that nobody finds before it was entered.
    pub(super) fn fresh(&self, now_ms: u64) -> Result<Arc<HostSession>, seal::NoKey> {
        let id = seal::token()?;
        let session = HostSession::new(id, &self.settings, &self.room, now_ms);
        // Whoever leaves a handle away gets a new session, and not a clean one.
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

    /// Where there is no room for one more, a session that rests makes it; false when none does.
    /// One caller of many has a share of the room, so that nobody takes it all, and whoever has
    /// all of it makes room in it.
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
        if self.room(&by_id, caller) != Room::Some {
            by_id.retain(|_, it| !it.is_stale(now_ms));
        }
        let has_room = match self.room(&by_id, caller) {
            Room::Some => true,
            Room::NoneForCaller => self.make_room(&mut by_id, |whose| whose == caller),
            Room::None => self.make_room(&mut by_id, |_| true),
        };
        if has_room {
            by_id.insert(key, Arc::clone(session));
        }
        has_room
    }

    /// Lets go of one of the sessions that rest: one in which nothing would be missed before one
    /// in which something would, and the one that has rested longest before all others. What was
    /// read in it counts in those that begin from now on.
    fn make_room(&self, by_id: &mut ById, may_go: impl Fn(&Caller) -> bool) -> bool {
        let resting = by_id
            .iter()
            .filter(|((whose, ..), it)| may_go(whose) && it.is_at_rest());
        let least = resting.min_by_key(|(_, it)| (it.is_worth_finding(), it.used_at_ms()));
        let Some(key) = least.map(|(key, _)| key.clone()) else {
            return false;
        };
        if let Some(gone) = by_id.remove(&key) {
            self.remember(&gone);
        }
        true
    }

    fn room(&self, by_id: &ById, caller: &Caller) -> Room {
        let own = || by_id.keys().filter(|(whose, ..)| whose == caller).count();
        if caller.is_somebody() && own() >= self.settings.sessions_of_one_max() {
            Room::NoneForCaller
        } else if by_id.len() >= self.settings.sessions_max {
            Room::None
        } else {
            Room::Some
        }
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

    fn lock(&self) -> MutexGuard<'_, ById> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Some,
    NoneForCaller,
    None,
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
    fn stale_sessions_are_not_found_any_more_and_cleaned_up() {
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
        assert!(
            sessions.find(&any, (Era::Legacy, &a.id), 9).is_some()
                && sessions.find(&any, (Era::Legacy, &a.id), 12).is_none()
        );
        sessions.clean_up(1_000);
        assert_eq!(sessions.count(), 0);
    }

    #[test]
    fn who_rests_longest_and_misses_least_makes_room_and_nobody_who_is_busy() {
        let settings = Settings {
            sessions_max: 3,
            ..Settings::default()
        };
        let sessions = Sessions::new(&settings);
        let any = Caller::default();
        let begin = |now_ms| {
            let session = sessions.fresh(now_ms).unwrap();
            let entered = sessions.enter((&any, Era::Legacy), &session, now_ms);
            entered.then_some(session)
        };
        let is_there = |it: &HostSession, now_ms| {
            let found = sessions.find(&any, (Era::Legacy, &it.id), now_ms);
            found.is_some()
        };
        let [read, first, second] = [0, 1, 2].map(|now_ms| begin(now_ms).unwrap());
        read.hear(&Labels::worst());
        first.touch(3);
        let third = begin(4).unwrap();
        assert!(is_there(&read, 4) && is_there(&first, 4) && !is_there(&second, 4));
        // Whoever works keeps its place.
        let work = |it: &Arc<HostSession>| it.begin("1").unwrap();
        let _busy = [work(&first), work(&third)];
        let fourth = begin(5).unwrap();
        assert!(!is_there(&read, 5) && is_there(&first, 5) && is_there(&third, 5));
        assert_eq!(
            fourth.carried().labels,
            Labels::worst(),
            "what it had read counts on"
        );
        let _busy_too = work(&fourth);
        assert!(begin(6).is_none());
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
    fn what_a_session_hears_counts_before_it_is_entered_and_beside_what_it_inherited() {
        let sessions = Sessions::new(&Settings::default());
        let (first, second) = (sessions.fresh(0).unwrap(), sessions.fresh(0).unwrap());
        first.hear(&Labels::worst());
        // Both are at work, and nobody has entered either.
        let third = sessions.fresh(1).unwrap();
        assert_eq!(third.carried().labels, Labels::worst());
        assert!(first.has_heard() && !second.has_heard() && !third.has_heard());
        // The same labels once more: it is another session that has them now.
        third.hear(&Labels::worst());
        assert!(third.has_heard());
        drop((first, third));
        assert!(sessions.fresh(2).unwrap().carried().labels.is_empty());
    }

    #[test]
    fn one_caller_of_many_does_not_take_all_the_room() {
        let settings = Settings {
            sessions_max: 8,
            session_idle: std::time::Duration::from_millis(10),
            ..Settings::default()
        };
        let sessions = Sessions::new(&settings);
        let enter = |caller: &Caller, now_ms| {
            let session = sessions.fresh(now_ms).unwrap();
            assert!(sessions.enter((caller, Era::Legacy), &session, now_ms));
            sessions.count()
        };
        let (ada, eve) = (Caller::of("ada"), Caller::of("eve"));
        assert_eq!([0, 0, 0, 0].map(|now_ms| enter(&eve, now_ms)), [1, 2, 2, 2]);
        assert_eq!(enter(&ada, 0), 3, "eve made room for herself alone");
        assert_eq!(enter(&eve, 100), 1, "those of before are stale");
        // Where nobody is told apart, they are all of one, who has all of it.
        let nobody = Caller::default();
        let most = (0..8).map(|_| enter(&nobody, 100)).max();
        assert_eq!(most, Some(8));
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
        let _busy = first.begin("1").unwrap();
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
