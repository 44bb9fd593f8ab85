//! Timers, which are part of the guest; the host only learns when the next one is due.

use std::collections::BTreeMap;

/// Maximum number of active timers.
const TIMERS_MAX: usize = 10_000;

/// Maximum delay, about 24 days; as in other environments, a longer delay counts as 1 ms.
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

#[derive(Debug)]
struct Timer<T> {
    turn: T,
    /// Interval after which the timer is set again; `None` for a timeout.
    every_ms: Option<u64>,
    id: u32,
}

/// The active timers, each with its callback.
#[derive(Debug)]
pub struct Timers<T> {
    /// Timers by due time, then in the order in which they were set.
    set: BTreeMap<(u64, u64), Timer<T>>,
    /// The key of each timer by its number, so that clearing a timer needs no search.
    by_id: BTreeMap<u32, (u64, u64)>,
    turns: u64,
    last_id: u32,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            set: BTreeMap::new(),
            by_id: BTreeMap::new(),
            turns: 0,
            last_id: 0,
        }
    }
}

impl<T: Clone> Timers<T> {
    pub fn next_due_ms(&self) -> Option<u64> {
        self.set.first_key_value().map(|(&(due, _), _)| due)
    }

    /// Sets a timer and returns its number, or an error message if there are too many.
    pub fn set(&mut self, now_ms: u64, delay: f64, repeats: bool, turn: T) -> Result<u32, String> {
        if self.set.len() >= TIMERS_MAX {
            return Err(format!("more than {TIMERS_MAX} timers are set at once"));
        }
        // A delay below one millisecond counts as one; otherwise the time would never advance.
        let delay_ms = if (1.0..=DELAY_MS_MAX).contains(&delay) {
            delay as u64
        } else {
            1
        };
        self.last_id = self.last_id.wrapping_add(1).max(1);
        let timer = Timer {
            turn,
            every_ms: repeats.then_some(delay_ms),
            id: self.last_id,
        };
        self.insert(now_ms.saturating_add(delay_ms), timer);
        Ok(self.last_id)
    }

    /// Removes the earliest timer that is due. An interval is set again.
    pub fn take_due(&mut self, now_ms: u64) -> Option<T> {
        let entry = self
            .set
            .first_entry()
            .filter(|entry| entry.key().0 <= now_ms)?;
        let timer = entry.remove();
        self.by_id.remove(&timer.id);
        let Some(every_ms) = timer.every_ms else {
            return Some(timer.turn);
        };
        let turn = timer.turn.clone();
        self.insert(now_ms.saturating_add(every_ms), timer);
        Some(turn)
    }

    fn insert(&mut self, due_ms: u64, timer: Timer<T>) {
        let key = (due_ms, self.turns);
        self.turns += 1;
        self.by_id.insert(timer.id, key);
        self.set.insert(key, timer);
    }

    pub fn clear(&mut self, id: u32) {
        if let Some(key) = self.by_id.remove(&id) {
            self.set.remove(&key);
        }
    }
}

/// Returns the error message for a timer without a function.
pub fn without_function(repeats: bool) -> String {
    let name = if repeats { "setInterval" } else { "setTimeout" };
    format!("{name} needs a function to call")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_by_their_time_and_then_as_they_were_set() {
        let mut timers = Timers::default();
        for (delay, turn) in [(5.0, 'c'), (1.0, 'a'), (5.0, 'd'), (2.5, 'b')] {
            timers.set(10, delay, false, turn).unwrap();
        }
        assert_eq!(timers.next_due_ms(), Some(11));
        assert_eq!(timers.take_due(10), None);
        let turns: String = std::iter::from_fn(|| timers.take_due(15)).collect();
        assert_eq!(turns, "abcd");
        assert_eq!(timers.next_due_ms(), None);
    }

    #[test]
    fn a_delay_that_is_none_is_a_millisecond() {
        for delay in [0.0, -1.0, 0.9, f64::NAN, f64::INFINITY, 2_147_483_648.0] {
            let mut timers = Timers::default();
            timers.set(7, delay, false, ()).unwrap();
            assert_eq!(timers.next_due_ms(), Some(8), "{delay}");
        }
    }

    #[test]
    fn an_interval_goes_on_until_it_is_cleared() {
        let mut timers = Timers::default();
        let id = timers.set(0, 3.0, true, ()).unwrap();
        assert_eq!(timers.take_due(8), Some(()));
        assert_eq!(timers.next_due_ms(), Some(11));
        timers.clear(id);
        timers.clear(id);
        assert_eq!(timers.next_due_ms(), None);
    }

    #[test]
    fn there_is_a_bound_on_timers() {
        let mut timers = Timers::default();
        for id in 1..=TIMERS_MAX {
            assert_eq!(timers.set(0, 1.0, false, ()), Ok(id as u32));
        }
        let refused = timers.set(0, 1.0, false, ()).unwrap_err();
        assert_eq!(refused, "more than 10000 timers are set at once");
        timers.clear(1);
        assert!(timers.set(0, 1.0, false, ()).is_ok());
    }
}
