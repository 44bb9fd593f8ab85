//! Decides which run may compute next.
//!
//! A run that has computed little comes before one that has computed for long, so short runs pass
//! endless loops. Among equal runs, the caller that has used least time comes first. One turn in
//! eight goes to a run of the caller that has used least time, even if that run has computed for
//! long. Long runs therefore finish even beside any number of short ones.
//!
//! A run of a caller whose last run failed comes after the short runs of other callers, and such
//! runs have at most half of the turns. A caller that sends only broken scripts therefore hardly
//! delays callers whose scripts work.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::ledger::RunNumber;

/// The upper bounds of the levels: computing time of a run in microseconds.
const LEVELS_US: [u64; 7] = [250, 1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000];

/// How long a run computes before a run of the same level gets its turn, in microseconds.
const QUANTUM_US: u64 = 10_000;

/// One of this many turns is chosen only by the time that the callers have used.
const BY_CALLER_EVERY: u64 = 8;

/// Minimum duration of a turn that was chosen in this way, in microseconds.
const ASSURED_US: u64 = 1_000;

/// The lowest level of a run whose caller's last run failed: the level of a run that has computed
/// for 4 ms.
const FAILING: Level = Level(3);

/// Maximum number of callers that are remembered because their last run failed.
const FAILING_MAX: usize = 10_000;

/// A rough measure of how much a run has computed. Lower levels come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    pub(super) fn of(computed_us: u64) -> Self {
        let passed = LEVELS_US.iter().filter(|it| computed_us >= **it);
        Self(passed.count() as u8)
    }

    /// Whether the thread of a run on this level gives way to others, while other runs wait.
    pub(super) fn gives_way(self) -> bool {
        self.0 >= 2
    }
}

/// A run that computes or wants to compute.
#[derive(Debug)]
pub(super) struct Turn<T> {
    pub(super) run: RunNumber,
    pub(super) caller: Arc<str>,
    pub(super) level: Level,
    /// Whether the caller's last run failed when this turn was wanted.
    pub(super) is_failing: bool,
    /// Whether the turn was chosen only by its caller's time. Such a turn has a minimum duration.
    pub(super) is_assured: bool,
    /// The attached data: how to wake a waiting run, or how to interrupt a computing run.
    pub(super) with: T,
}

/// The turns of all runs. Waiting runs carry data of type `W`, computing runs data of type `C`.
#[derive(Debug)]
pub(super) struct Turns<W, C> {
    computing_max: usize,
    computing: Vec<(Turn<C>, u64)>,
    /// The waiting runs, in the order of arrival.
    waiting: Vec<Turn<W>>,
    callers: HashMap<Arc<str>, Caller>,
    failing: FailingCallers,
    given: u64,
}

/// The callers whose last run failed.
#[derive(Debug, Default)]
struct FailingCallers {
    callers: HashSet<Arc<str>>,
    /// The same callers, in the order in which they began to fail. It may also contain callers that
    /// no longer fail.
    order: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct Caller {
    runs: usize,
    computed_us: u64,
}

impl<W, C> Turns<W, C> {
    pub(super) fn new(computing_max: usize) -> Self {
        Self {
            computing_max: computing_max.max(1),
            computing: Vec::new(),
            waiting: Vec::new(),
            callers: HashMap::new(),
            failing: FailingCallers::default(),
            given: 0,
        }
    }

    /// Adds a run of this caller. A caller without other runs starts with the least time that any
    /// caller has used, so it gains no priority by its absence.
    pub(super) fn enter(&mut self, caller: &Arc<str>) {
        if let Some(known) = self.callers.get_mut(caller) {
            known.runs += 1;
            return;
        }
        let least = self.callers.values().map(|it| it.computed_us).min();
        let newcomer = Caller {
            runs: 1,
            computed_us: least.unwrap_or(0),
        };
        self.callers.insert(Arc::clone(caller), newcomer);
    }

    pub(super) fn leave(&mut self, caller: &Arc<str>) {
        if let Some(known) = self.callers.get_mut(caller) {
            known.runs -= 1;
            if known.runs == 0 {
                self.callers.remove(caller);
            }
        }
    }

    pub(super) fn charge(&mut self, caller: &Arc<str>, computed_us: u64) {
        if let Some(known) = self.callers.get_mut(caller) {
            known.computed_us = known.computed_us.saturating_add(computed_us);
        }
    }

    /// Notes whether a run of this caller succeeded.
    pub(super) fn note_end(&mut self, caller: &Arc<str>, succeeded: bool) {
        self.failing.note(caller, succeeded);
    }

    /// Returns the level of a run of this caller that has computed so long.
    pub(super) fn level(&self, caller: &Arc<str>, computed_us: u64) -> Level {
        let level = Level::of(computed_us);
        if self.is_failing(caller) {
            return level.max(FAILING);
        }
        level
    }

    /// Whether this caller's last run failed.
    pub(super) fn is_failing(&self, caller: &Arc<str>) -> bool {
        self.failing.callers.contains(caller)
    }

    /// Whether a run of this caller may compute at once.
    pub(super) fn has_room(&self, caller: &Arc<str>) -> bool {
        self.waiting.is_empty()
            && self.computing.len() < self.computing_max
            && !(self.is_failing(caller) && self.failing_have_their_part())
    }

    /// Whether runs of failing callers have half of the turns.
    fn failing_have_their_part(&self) -> bool {
        let failing = self.computing.iter().filter(|(turn, _)| turn.is_failing);
        failing.count() >= (self.computing_max / 2).max(1)
    }

    pub(super) fn computing(&self) -> usize {
        self.computing.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a computing run. `computed_us` is the time that it had computed before this turn.
    pub(super) fn begin(&mut self, turn: Turn<C>, computed_us: u64) {
        self.computing.push((turn, computed_us));
    }

    pub(super) fn end(&mut self, run: RunNumber) -> Option<Turn<C>> {
        let place = self.computing.iter().position(|it| it.0.run == run)?;
        Some(self.computing.swap_remove(place).0)
    }

    /// Returns the run that a newcomer may displace. Among the computing runs, this run has
    /// computed longest.
    pub(super) fn displaced_by(&self, level: Level) -> Option<&Turn<C>> {
        let turns = self.computing.iter().map(|(turn, _)| turn);
        let lower = turns.filter(|it| it.level > level && !it.is_assured);
        lower.max_by_key(|it| it.level)
    }

    pub(super) fn wait(&mut self, turn: Turn<W>) {
        self.waiting.push(turn);
    }

    /// Removes a waiting run. Returns false if it already has its turn.
    pub(super) fn give_up(&mut self, run: RunNumber) -> bool {
        let place = self.waiting.iter().position(|it| it.run == run);
        place.is_some_and(|place| {
            self.waiting.remove(place);
            true
        })
    }

    /// Returns whether a computing run must yield to a waiting one.
    pub(super) fn makes_way(&mut self, run: RunNumber, computed_us: u64) -> bool {
        let turn = self.computing.iter().find(|it| it.0.run == run);
        let Some(level) = turn.map(|(turn, _)| self.level(&turn.caller, computed_us)) else {
            return false;
        };
        let Some((turn, since_us)) = self.computing.iter_mut().find(|it| it.0.run == run) else {
            return false;
        };
        turn.level = level;
        let took_us = computed_us.saturating_sub(*since_us);
        turn.is_assured &= took_us < ASSURED_US;
        if turn.is_assured {
            return false;
        }
        let has_had_its_turn = took_us >= QUANTUM_US;
        let others = self.waiting.iter().map(|it| it.level);
        others
            .min()
            .is_some_and(|other| other < level || (has_had_its_turn && other == level))
            || (has_had_its_turn && self.is_by_caller() && !self.waiting.is_empty())
    }

    /// Removes and returns the next waiting guest, if there is room.
    pub(super) fn next(&mut self) -> Option<Turn<W>> {
        if self.computing.len() >= self.computing_max || self.waiting.is_empty() {
            return None;
        }
        let by_caller = self.is_by_caller();
        let without_failing = self.failing_have_their_part();
        let had = |turn: &Turn<W>| {
            self.callers
                .get(&turn.caller)
                .map_or(0, |it| it.computed_us)
        };
        let rank = |(place, turn): (usize, &Turn<W>)| {
            let level = if by_caller {
                Level::default()
            } else {
                turn.level
            };
            (level, had(turn), place)
        };
        let waiting = self.waiting.iter().enumerate();
        let possible = waiting.filter(|(_, turn)| !(turn.is_failing && without_failing));
        let (_, _, place) = possible.map(rank).min()?;
        self.given += 1;
        let mut next = self.waiting.remove(place);
        next.is_assured = by_caller;
        Some(next)
    }

    fn is_by_caller(&self) -> bool {
        self.given % BY_CALLER_EVERY == BY_CALLER_EVERY - 1
    }
}

impl FailingCallers {
    fn note(&mut self, caller: &Arc<str>, succeeded: bool) {
        if succeeded {
            self.callers.remove(caller);
        } else if self.callers.insert(Arc::clone(caller)) {
            self.order.push_back(Arc::clone(caller));
        }
        while self.order.len() > FAILING_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.callers.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(run: RunNumber, caller: &str, computed_us: u64) -> Turn<()> {
        Turn {
            run,
            caller: caller.into(),
            level: Level::of(computed_us),
            is_failing: false,
            is_assured: false,
            with: (),
        }
    }

    fn turns(callers: &[&str]) -> Turns<(), ()> {
        let mut turns = Turns::new(1);
        for caller in callers {
            turns.enter(&(*caller).into());
        }
        turns
    }

    #[test]
    fn who_has_computed_little_goes_before_who_has_computed_long() {
        let mut turns = turns(&["a", "b"]);
        for (run, computed_us) in [(1, 5_000_000), (2, 50_000), (3, 500_000), (4, 100)] {
            turns.wait(turn(run, "a", computed_us));
        }
        let order = std::iter::from_fn(|| turns.next()).map(|it| it.run);
        assert_eq!(order.collect::<Vec<_>>(), [4, 2, 3, 1]);
    }

    #[test]
    fn among_equals_the_caller_that_has_had_least_goes_first() {
        let mut turns = turns(&["a", "b"]);
        turns.charge(&"a".into(), 9_000);
        turns.wait(turn(1, "a", 0));
        turns.wait(turn(2, "b", 0));
        assert_eq!(turns.next().map(|it| it.run), Some(2));
    }

    #[test]
    fn a_caller_that_was_away_has_nothing_to_catch_up_on() {
        let mut turns = turns(&["a"]);
        turns.charge(&"a".into(), 9_000_000);
        turns.enter(&"b".into());
        turns.charge(&"b".into(), 1);
        turns.wait(turn(1, "b", 0));
        turns.wait(turn(2, "a", 0));
        assert_eq!(turns.next().map(|it| it.run), Some(2));
    }

    /// Short runs of one caller never prevent a long run of another from finishing.
    #[test]
    fn a_long_run_goes_on_beside_any_number_of_short_ones() {
        let mut turns = turns(&["short", "long"]);
        turns.wait(turn(0, "long", 5_000_000));
        let mut had = 0;
        for run in 1..=80 {
            turns.wait(turn(run, "short", 0));
            let next = turns.next().unwrap();
            turns.charge(&next.caller, 1_000);
            if next.run == 0 {
                had += 1;
                turns.wait(next);
            }
        }
        assert_eq!(had, 10);
    }

    #[test]
    fn a_turn_by_the_caller_is_not_taken_away_at_once() {
        let mut turns = turns(&["short", "long"]);
        turns.given = BY_CALLER_EVERY - 1;
        turns.charge(&"short".into(), 1);
        turns.wait(turn(1, "short", 0));
        turns.wait(turn(2, "long", 5_000_000));
        let next = turns.next().unwrap();
        assert_eq!(next.run, 2);
        turns.begin(next, 5_000_000);
        assert!(turns.displaced_by(Level::of(0)).is_none());
        assert!(!turns.makes_way(2, 5_000_000 + ASSURED_US - 1));
        assert!(turns.makes_way(2, 5_000_000 + ASSURED_US));
    }

    #[test]
    fn a_run_makes_way_for_a_shorter_one_at_once_and_for_an_equal_one_after_its_turn() {
        let mut turns = turns(&["a", "b"]);
        turns.begin(turn(1, "a", 500_000), 500_000);
        assert!(!turns.makes_way(1, 900_000), "no guest waits");
        turns.wait(turn(2, "b", 500_000));
        assert!(!turns.makes_way(1, 501_000));
        assert!(turns.makes_way(1, 500_000 + QUANTUM_US));
        turns.wait(turn(3, "b", 0));
        assert!(turns.makes_way(1, 501_000));
        assert!(turns.displaced_by(Level::of(0)).is_some());
        assert!(turns.displaced_by(Level::of(500_000)).is_none());
        assert!(turns.next().is_none(), "there is no room");
        assert!(turns.end(1).is_some());
        assert_eq!(turns.next().map(|it| it.run), Some(3));
    }

    #[test]
    fn run_of_a_failing_caller_comes_after_short_runs_of_others() {
        let mut turns = turns(&["good", "broken"]);
        let [good, broken]: [Arc<str>; 2] = ["good".into(), "broken".into()];
        turns.note_end(&broken, false);
        assert!(turns.level(&broken, 0) > turns.level(&good, 3_000));
        assert!(turns.level(&broken, 0) < turns.level(&good, 20_000));
        assert_eq!(turns.level(&broken, 20_000), turns.level(&good, 20_000));
        turns.note_end(&broken, true);
        assert_eq!(turns.level(&broken, 0), turns.level(&good, 0));
    }

    #[test]
    fn failing_callers_have_at_most_half_of_the_turns() {
        let mut turns: Turns<(), ()> = Turns::new(4);
        let failing = |run| Turn {
            is_failing: true,
            ..turn(run, "broken", 0)
        };
        for run in 1..=4 {
            turns.wait(failing(run));
        }
        for _ in 0..2 {
            let next = turns.next().unwrap();
            turns.begin(next, 0);
        }
        assert!(turns.next().is_none());
        turns.wait(turn(5, "good", 0));
        assert_eq!(turns.next().map(|it| it.run), Some(5));
        turns.end(1);
        assert_eq!(turns.next().map(|it| it.run), Some(3));
        // If there is only one turn, failing callers get it too.
        let mut turns: Turns<(), ()> = Turns::new(1);
        turns.wait(failing(1));
        assert_eq!(turns.next().map(|it| it.run), Some(1));
    }

    #[test]
    fn failing_callers_are_remembered_up_to_a_maximum() {
        let mut failing = FailingCallers::default();
        for at in 0..2 * FAILING_MAX {
            let caller: Arc<str> = at.to_string().into();
            failing.note(&caller, false);
            failing.note(&caller, at % 2 == 0);
            failing.note(&caller, false);
        }
        assert!(failing.order.len() <= FAILING_MAX);
        assert!(failing.callers.len() <= FAILING_MAX);
    }

    #[test]
    fn who_gives_up_waiting_has_no_turn() {
        let mut turns = turns(&["a"]);
        turns.wait(turn(1, "a", 0));
        assert!(turns.give_up(1) && !turns.give_up(1));
        assert!(turns.next().is_none() && turns.has_room(&"a".into()));
    }
}
