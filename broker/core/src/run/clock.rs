//! The run's clock: the host's time plus the jumped time.
//!
//! Before the first call, a sleep takes no real time: the clock jumps, since nothing outside can
//! have changed. Jumped time still counts against the run's time limit. Time in which the run only
//! waits for a human does not count, up to `human_wall_ms_max`.
//!
//! The clock of a run that resumes another one stands at recorded times, until the run does something
//! that is not recorded. From then on it shows the host's time.

use crate::limits::Limits;

#[derive(Debug)]
pub(super) struct Clock {
    started_ms: u64,
    host_ms: u64,
    jumped_ms: u64,
    /// The time that the script sees while only recorded outcomes are replayed.
    recorded_ms: Option<u64>,
    /// Total time of sleeps while only recorded outcomes were replayed.
    recorded_sleep_ms: u64,
    /// How far recorded times were ahead of the host's time.
    ahead_ms: u64,
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
            recorded_ms: None,
            recorded_sleep_ms: 0,
            ahead_ms: 0,
            waited_for_human_ms: 0,
            waiting_for_human: false,
            wall_ms_max: limits.run_wall_ms_max,
            human_wall_ms_max: limits.human_wall_ms_max,
            alarm_ms: None,
        }
    }

    /// Lets the script see recorded times, beginning with this one.
    pub(super) fn stand_at(&mut self, recorded_ms: u64) {
        self.recorded_ms = Some(recorded_ms);
    }

    /// Whether the script sees recorded times.
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded_ms.is_some()
    }

    /// Moves the recorded time forward, never back.
    pub(super) fn replay_to(&mut self, recorded_ms: u64) {
        if let Some(shown_ms) = &mut self.recorded_ms {
            *shown_ms = recorded_ms.max(*shown_ms);
        }
    }

    /// Lets the script see the host's time from now on, or the recorded time if that is later.
    pub(super) fn go_live(&mut self) {
        if let Some(shown_ms) = self.recorded_ms.take() {
            self.ahead_ms = shown_ms.saturating_sub(self.host_ms);
        }
    }

    /// Sets the host's time. If the host's clock goes back, the run's clock does not move.
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

    /// Returns the time that the script sees.
    pub(super) fn run_ms(&self) -> u64 {
        let live_ms = self.host_ms.saturating_add(self.jumped_ms);
        self.recorded_ms
            .unwrap_or_else(|| live_ms.saturating_add(self.ahead_ms))
    }

    /// Converts a time of the run's clock to the host's.
    pub(super) fn to_host_ms(&self, run_ms: u64) -> u64 {
        match self.recorded_ms {
            Some(shown_ms) => self.host_ms.saturating_add(run_ms.saturating_sub(shown_ms)),
            None => run_ms
                .saturating_sub(self.jumped_ms)
                .saturating_sub(self.ahead_ms),
        }
    }

    pub(super) fn jump_to(&mut self, run_ms: u64) {
        let jump_ms = run_ms.saturating_sub(self.run_ms());
        let total_ms = match self.recorded_ms {
            Some(_) => &mut self.recorded_sleep_ms,
            None => &mut self.jumped_ms,
        };
        *total_ms = total_ms.saturating_add(jump_ms);
        self.replay_to(run_ms);
    }

    pub(super) fn deadline_at_ms(&self) -> u64 {
        self.deadline_after(self.waited_for_human_ms)
    }

    /// Returns the deadline if the human never answers.
    pub(super) fn latest_deadline_at_ms(&self) -> u64 {
        self.deadline_after(u64::MAX)
    }

    /// Whether the run has used up its time for humans, so that waiting counts as run time.
    pub(super) fn is_human_time_used_up(&self) -> bool {
        self.humans_left_ms() == 0
    }

    /// Returns how long the run may still wait for humans.
    pub(super) fn humans_left_ms(&self) -> u64 {
        self.human_wall_ms_max
            .saturating_sub(self.waited_for_human_ms)
    }

    /// Returns when the time for humans ends, if the run only waits for humans.
    pub(super) fn human_time_ends_at_ms(&self) -> Option<u64> {
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
        self.host_ms >= self.deadline_at_ms() || self.recorded_sleep_ms > self.wall_ms_max
    }

    /// Sets whether the run only waits for humans from now on.
    pub(super) fn wait_for_human(&mut self, waiting: bool) {
        self.waiting_for_human = waiting;
    }

    pub(super) fn is_waiting_for_human(&self) -> bool {
        self.waiting_for_human
    }

    /// Forgets the alarm after it went off. If it was early, the same alarm is then set again.
    pub(super) fn forget_alarm(&mut self) {
        self.alarm_ms = None;
    }

    /// Returns the time to be woken at, unless this alarm is already set.
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
    fn jumped_time_counts_and_human_time_does_not() {
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
    fn human_time_beyond_its_limit_counts() {
        let mut clock = clock();
        clock.tick(1_010);
        clock.wait_for_human(true);
        clock.tick(6_000);
        assert_eq!(clock.deadline_at_ms(), 6_090);
        assert_eq!(clock.latest_deadline_at_ms(), 6_100);
        clock.tick(6_099);
        assert!(!clock.is_over());
        clock.tick(6_100);
        assert!(clock.is_over() && clock.is_human_time_used_up());
    }

    #[test]
    fn clock_never_goes_back() {
        let mut clock = clock();
        clock.tick(1_050);
        clock.tick(900);
        assert_eq!(clock.run_ms(), 1_050);
    }

    #[test]
    fn recorded_time_is_shown_until_run_goes_live() {
        let mut clock = clock();
        clock.stand_at(400);
        clock.tick(1_010);
        assert_eq!(clock.run_ms(), 400);
        clock.replay_to(450);
        clock.replay_to(430);
        clock.jump_to(460);
        assert_eq!((clock.run_ms(), clock.deadline_at_ms()), (460, 1_100));
        clock.go_live();
        assert_eq!((clock.run_ms(), clock.to_host_ms(1_015)), (1_010, 1_015));
    }

    #[test]
    fn clock_does_not_go_back_when_it_goes_live() {
        let mut clock = clock();
        clock.stand_at(2_000);
        clock.go_live();
        clock.tick(1_005);
        assert_eq!((clock.run_ms(), clock.to_host_ms(2_005)), (2_005, 1_005));
    }

    #[test]
    fn sleeps_in_recorded_time_are_limited() {
        let mut clock = clock();
        clock.stand_at(0);
        clock.jump_to(100);
        assert!(!clock.is_over());
        clock.jump_to(101);
        assert!(clock.is_over());
    }

    #[test]
    fn alarm_is_not_set_twice() {
        let mut clock = clock();
        assert_eq!(clock.new_alarm(1_100), Some(1_100));
        assert_eq!(clock.new_alarm(1_100), None);
        assert_eq!(clock.new_alarm(1_050), Some(1_050));
    }
}
