//! Whose turn on the processor it is.
//!
//! A run that has computed little goes before one that has computed long, so that short runs pass
//! endless loops. Among equals the caller that has had least goes first. One turn in eight goes by
//! the caller alone, so that long runs come to their end however many short ones there are.

use std::collections::HashMap;
use std::sync::Arc;

use super::ledger::RunNumber;

/// Where levels end, in microseconds that a run has computed.
const LEVELS_US: [u64; 3] = [10_000, 100_000, 1_000_000];

/// How long a run computes before an equal one has its turn.
const QUANTUM_US: u64 = 10_000;

/// One turn in so many goes by the caller alone.
const BY_CALLER_EVERY: u64 = 8;

/// How long a turn by the caller lasts at least.
const ASSURED_US: u64 = 1_000;

/// How much a run has computed, roughly. Less comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    pub(super) fn of(computed_us: u64) -> Self {
        let passed = LEVELS_US.iter().filter(|it| computed_us >= **it);
        Self(passed.count() as u8)
    }

    /// Long enough that everything else may go before it.
    pub(super) fn is_long(self) -> bool {
        usize::from(self.0) >= LEVELS_US.len() - 1
    }
}

/// A run that computes or wants to.
#[derive(Debug)]
pub(super) struct Turn<T> {
    pub(super) run: RunNumber,
    pub(super) caller: Arc<str>,
    pub(super) level: Level,
    /// It was given by the caller alone, and is not taken away at once.
    pub(super) is_assured: bool,
    /// What comes with it: how to wake it, or how to make it look up.
    pub(super) with: T,
}

/// `W`: with those that wait. `C`: with those that compute.
#[derive(Debug)]
pub(super) struct Turns<W, C> {
    computing_max: usize,
    computing: Vec<(Turn<C>, u64)>,
    /// In the order in which they came.
    waiting: Vec<Turn<W>>,
    callers: HashMap<Arc<str>, Caller>,
    given: u64,
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
            given: 0,
        }
    }

    /// A run of this caller begins. One that was away has no more to catch up on than others.
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

    pub(super) fn has_room(&self) -> bool {
        self.computing.len() < self.computing_max && self.waiting.is_empty()
    }

    pub(super) fn computing(&self) -> usize {
        self.computing.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// `computed_us`: what the run has computed before this turn.
    pub(super) fn begin(&mut self, turn: Turn<C>, computed_us: u64) {
        self.computing.push((turn, computed_us));
    }

    pub(super) fn end(&mut self, run: RunNumber) -> Option<Turn<C>> {
        let place = self.computing.iter().position(|it| it.0.run == run)?;
        Some(self.computing.swap_remove(place).0)
    }

    /// The one that a newcomer may push aside, which has computed longest.
    pub(super) fn pushed_aside_by(&self, level: Level) -> Option<&Turn<C>> {
        let turns = self.computing.iter().map(|(turn, _)| turn);
        let lower = turns.filter(|it| it.level > level && !it.is_assured);
        lower.max_by_key(|it| it.level)
    }

    pub(super) fn wait(&mut self, turn: Turn<W>) {
        self.waiting.push(turn);
    }

    /// False if it has its turn already.
    pub(super) fn give_up(&mut self, run: RunNumber) -> bool {
        let place = self.waiting.iter().position(|it| it.run == run);
        place.is_some_and(|place| {
            self.waiting.remove(place);
            true
        })
    }

    /// Whether a run that computes makes way for one that waits.
    pub(super) fn makes_way(&mut self, run: RunNumber, computed_us: u64) -> bool {
        let level = Level::of(computed_us);
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

    /// The next waiting guest, while there is room.
    pub(super) fn next(&mut self) -> Option<Turn<W>> {
        if self.computing.len() >= self.computing_max || self.waiting.is_empty() {
            return None;
        }
        let by_caller = self.is_by_caller();
        self.given += 1;
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
        let (_, _, place) = self.waiting.iter().enumerate().map(rank).min()?;
        let mut next = self.waiting.remove(place);
        next.is_assured = by_caller;
        Some(next)
    }

    fn is_by_caller(&self) -> bool {
        self.given % BY_CALLER_EVERY == BY_CALLER_EVERY - 1
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

    /// Short runs of one caller never keep a long run of another from its end.
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
        assert!(turns.pushed_aside_by(Level::of(0)).is_none());
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
        assert!(turns.pushed_aside_by(Level::of(0)).is_some());
        assert!(turns.pushed_aside_by(Level::of(500_000)).is_none());
        assert!(turns.next().is_none(), "there is no room");
        assert!(turns.end(1).is_some());
        assert_eq!(turns.next().map(|it| it.run), Some(3));
    }

    #[test]
    fn who_gives_up_waiting_has_no_turn() {
        let mut turns = turns(&["a"]);
        turns.wait(turn(1, "a", 0));
        assert!(turns.give_up(1) && !turns.give_up(1));
        assert!(turns.next().is_none() && turns.has_room());
    }
}
