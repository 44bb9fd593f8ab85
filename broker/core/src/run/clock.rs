//! The run's clock: the host's time, plus what was jumped over.
//!
//! A sleep before the first call costs nothing, since nothing outside can have
//! changed: the clock jumps. Jumped time counts against the run's wall time all
//! the same. Time in which only a human is waited for does not count, up to a
//! limit of its own.

use crate::limits::Limits;

#[derive(Debug)]
pub(super) struct Clock {
    started_ms: u64,
    host_ms: u64,
    jumped_ms: u64,
    waited_for_human_ms: u64,
    waiting_for_human: bool,
    wall_ms_max: u64,
    human_wall_ms_max: u64,
    alarm_ms: Option<u64>,
}

impl Clock {
    pub(super) fn new(now_ms: u64, limits: &Limits) -> Self {
        Self {
            started_ms: now_ms,
            host_ms: now_ms,
            jumped_ms: 0,
            waited_for_human_ms: 0,
            waiting_for_human: false,
            wall_ms_max: limits.run_wall_ms_max,
            human_wall_ms_max: limits.human_wall_ms_max,
            alarm_ms: None,
        }
    }

    /// A host's clock that goes back stands still for the run.
    pub(super) fn tick(&mut self, now_ms: u64) {
        let passed_ms = now_ms.saturating_sub(self.host_ms);
        self.host_ms += passed_ms;
        if self.waiting_for_human {
            self.waited_for_human_ms += passed_ms;
        }
    }

    pub(super) fn host_ms(&self) -> u64 {
        self.host_ms
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        self.host_ms - self.started_ms
    }

    /// What the script sees.
    pub(super) fn run_ms(&self) -> u64 {
        self.host_ms.saturating_add(self.jumped_ms)
    }

    /// From a time of the run's clock to the host's.
    pub(super) fn to_host_ms(&self, run_ms: u64) -> u64 {
        run_ms.saturating_sub(self.jumped_ms)
    }

    pub(super) fn jump_to(&mut self, run_ms: u64) {
        self.jumped_ms = self
            .jumped_ms
            .saturating_add(run_ms.saturating_sub(self.run_ms()));
    }

    pub(super) fn deadline_at_ms(&self) -> u64 {
        self.deadline_after(self.waited_for_human_ms)
    }

    /// Where the deadline comes to stand if the human who is waited for says nothing.
    pub(super) fn latest_deadline_at_ms(&self) -> u64 {
        self.deadline_after(u64::MAX)
    }

    /// So long that the rest counts as the run's own time.
    pub(super) fn is_tired_of_humans(&self) -> bool {
        self.humans_left_ms() == 0
    }

    /// How long humans may still be waited for.
    pub(super) fn humans_left_ms(&self) -> u64 {
        self.human_wall_ms_max
            .saturating_sub(self.waited_for_human_ms)
    }

    /// When the patience with humans ends, if nothing else is waited for.
    pub(super) fn patience_ends_at_ms(&self) -> Option<u64> {
        self.waiting_for_human
            .then(|| self.host_ms.saturating_add(self.humans_left_ms()))
    }

    fn deadline_after(&self, waited_for_human_ms: u64) -> u64 {
        self.started_ms
            .saturating_add(self.wall_ms_max)
            .saturating_add(waited_for_human_ms.min(self.human_wall_ms_max))
            .saturating_sub(self.jumped_ms)
    }

    pub(super) fn is_over(&self) -> bool {
        self.host_ms >= self.deadline_at_ms()
    }

    /// From now on, until told otherwise.
    pub(super) fn wait_for_human(&mut self, waiting: bool) {
        self.waiting_for_human = waiting;
    }

    pub(super) fn is_waiting_for_human(&self) -> bool {
        self.waiting_for_human
    }

    /// It rang, perhaps before its time: the next one is to be arranged anew.
    pub(super) fn forget_alarm(&mut self) {
        self.alarm_ms = None;
    }

    /// The time to be woken at, unless it is already arranged.
    pub(super) fn new_alarm(&mut self, at_ms: u64) -> Option<u64> {
        let arranged = self.alarm_ms == Some(at_ms) && at_ms > self.host_ms;
        self.alarm_ms = Some(at_ms);
        (!arranged).then_some(at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let limits = Limits {
            run_wall_ms_max: 100,
            human_wall_ms_max: 5_000,
            ..Limits::default()
        };
        Clock::new(1_000, &limits)
    }

    #[test]
    fn jumped_time_counts_and_time_with_a_human_does_not() {
        let mut clock = clock();
        clock.jump_to(1_040);
        assert_eq!((clock.run_ms(), clock.deadline_at_ms()), (1_040, 1_060));
        clock.wait_for_human(true);
        clock.tick(5_000);
        clock.wait_for_human(false);
        assert_eq!((clock.run_ms(), clock.deadline_at_ms()), (5_040, 5_060));
        clock.tick(5_060);
        assert!(clock.is_over());
    }

    #[test]
    fn time_with_humans_counts_from_its_own_limit_on() {
        let mut clock = clock();
        clock.tick(1_010);
        clock.wait_for_human(true);
        clock.tick(6_000);
        assert_eq!(clock.deadline_at_ms(), 6_090);
        assert_eq!(clock.latest_deadline_at_ms(), 6_100);
        clock.tick(6_099);
        assert!(!clock.is_over());
        clock.tick(6_100);
        assert!(clock.is_over() && clock.is_tired_of_humans());
    }

    #[test]
    fn a_clock_that_goes_back_stands_still() {
        let mut clock = clock();
        clock.tick(1_050);
        clock.tick(900);
        assert_eq!(clock.run_ms(), 1_050);
    }

    #[test]
    fn an_alarm_that_is_arranged_is_not_arranged_again() {
        let mut clock = clock();
        assert_eq!(clock.new_alarm(1_100), Some(1_100));
        assert_eq!(clock.new_alarm(1_100), None);
        assert_eq!(clock.new_alarm(1_050), Some(1_050));
    }
}
