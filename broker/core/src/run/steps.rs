//! Handles the guest's steps, and resumes the guest.

use std::collections::BTreeSet;

use sandbox_protocol::{Resume, Step, StepState};

use crate::effect::{GuestStop, GuestUsage, Whereabouts};
use crate::flow::{FlowTracker, NamedPath, ResolvedPath, named};
use crate::journal::{Body, ResumedEntry};
use crate::labels::Labels;
use crate::limits::Limit;

use super::run_end::RunEnd;
use super::{Guest, Run};

impl Run {
    /// Returns the paths in the arguments of a step's calls. The shell must resolve them and send
    /// the targets with [`Event::Stepped`](crate::effect::Event::Stepped). Empty if the run
    /// computes no facts.
    #[must_use]
    pub fn paths_of(&self, step: &Step) -> BTreeSet<NamedPath> {
        if self.tracker.is_none() {
            return BTreeSet::new();
        }
        let catalog = &self.spec.decision_context.catalog;
        named(catalog, &step.calls, &self.spec.limits)
    }

    /// Returns the labels that have reached the script so far, or `None` if the run computes no
    /// facts.
    #[must_use]
    pub fn reached(&self) -> Option<&Labels> {
        self.tracker.as_ref().map(FlowTracker::labels_so_far)
    }

    /// Records the guest's usage and its place in the script. Returns false if the guest was not
    /// running; the caller then ignores the rest of the event.
    pub(super) fn returned(&mut self, usage: GuestUsage, whereabouts: Option<Whereabouts>) -> bool {
        if self.guest != Guest::Computing {
            return false;
        }
        self.usage = usage;
        self.whereabouts = whereabouts.or(self.whereabouts.take());
        true
    }

    /// Handles a step.
    pub(super) fn stepped(&mut self, step: Step, paths: Vec<ResolvedPath>) {
        self.guest = Guest::Waiting { wake_at_ms: None };
        if let Some(tracker) = &mut self.tracker {
            tracker.add_resolved_paths(paths);
        }
        let shown = self.console.take(step.console, step.console_dropped_bytes);
        self.out.show(shown);
        if self.console.is_flooded() {
            self.end(RunEnd::Limit(Limit::Output));
        }
        self.called_all(step.calls);
        if let Some(tracker) = &mut self.tracker {
            tracker.forget_paths();
        }
        let is_over = !matches!(step.state, StepState::Waiting { .. });
        if is_over && self.is_replaying() {
            let why = "the script ended before the end of the recording";
            return self.end(RunEnd::Diverged { why: why.into() });
        }
        match step.state {
            StepState::Waiting { wake_at_ms } => self.guest = Guest::Waiting { wake_at_ms },
            StepState::Done { value } => {
                let ending = RunEnd::of_value(value, &self.spec.limits);
                self.end(ending);
            }
            StepState::Failed(error) => self.end(RunEnd::Threw(Box::new(error))),
            StepState::Deadlocked => self.end(RunEnd::Deadlock),
            StepState::StackExhausted => self.end(RunEnd::Limit(Limit::Stack)),
            StepState::OutputFlood => self.end(RunEnd::Limit(Limit::Output)),
            StepState::ValueTooLarge => self.end(RunEnd::Limit(Limit::Payload)),
        }
    }

    pub(super) fn guest_stopped(&mut self, stop: GuestStop) {
        self.guest = Guest::Gone;
        let (ending, console) = match stop {
            GuestStop::Limit { limit, console } => (RunEnd::Limit(limit), console),
            GuestStop::EngineFault { why, console } => (RunEnd::EngineFault { why }, console),
            GuestStop::Interrupted { console } => {
                let why = "the guest was interrupted".into();
                let may_wait = true;
                (RunEnd::Cancelled { why, may_wait }, console)
            }
            GuestStop::Busy {
                why,
                retry_after_ms,
                console,
            } => (
                RunEnd::Busy {
                    why,
                    retry_after_ms,
                },
                console,
            ),
        };
        let shown = self.console.take(console, 0);
        self.out.show(shown);
        self.end(ending);
    }

    pub(super) fn check_time(&mut self) {
        if self.clock.is_over() {
            return self.end(RunEnd::Limit(Limit::Time));
        }
        self.expire_asks();
        self.check_rest();
    }

    /// Resumes the guest if there are outcomes for it, or its timer is due. Before the first call a
    /// timer is always due.
    pub(super) fn resume_guest(&mut self) {
        let Guest::Waiting { wake_at_ms } = self.guest else {
            return;
        };
        if self.ending.is_some() {
            return;
        }
        if self.is_replaying() {
            return self.replay_step(wake_at_ms);
        }
        if !self.outcomes.is_empty() {
            return self.resume(true);
        }
        if self.take_reused(wake_at_ms) {
            return self.resume(true);
        }
        let is_recorded = self.clock.is_recorded() && !self.calls.is_any_open();
        match wake_at_ms {
            Some(at_ms) if at_ms <= self.clock.run_ms() => self.resume(true),
            Some(at_ms) if self.calls.is_empty() || is_recorded => {
                self.clock.jump_to(at_ms);
                if self.clock.is_over() {
                    self.end(RunEnd::Limit(Limit::Time));
                } else {
                    self.resume(false);
                }
            }
            Some(_) => {}
            None if self.calls.is_any_open() => {}
            None => self.end(RunEnd::Deadlock),
        }
    }

    pub(super) fn resume(&mut self, recorded: bool) {
        let (calls, outcomes) = std::mem::take(&mut self.outcomes).into_iter().unzip();
        let now_ms = self.clock.run_ms();
        self.steps += 1;
        if recorded {
            let step = self.steps;
            self.append(
                Body::Resumed(ResumedEntry {
                    step,
                    now_ms,
                    calls,
                }),
                false,
            );
        }
        self.out.resume(Resume { now_ms, outcomes });
        self.guest = Guest::Computing;
    }

    /// Sets the alarm for the earliest of the run's deadline, the guest's timer and the end of a
    /// question.
    pub(super) fn set_alarm(&mut self) {
        let Guest::Waiting { wake_at_ms } = self.guest else {
            return self.clock.wait_for_human(false);
        };
        let inquiring = self.inquiries.calls();
        self.clock
            .wait_for_human(self.calls.is_only_asking(inquiring, self.held_by_host));
        let deadline = if self.clock.is_waiting_for_human() {
            self.clock.latest_deadline_at_ms()
        } else {
            self.clock.deadline_at_ms()
        };
        let timer = wake_at_ms.map(|at_ms| self.clock.to_host_ms(at_ms));
        self.note_rest();
        let earliest = [
            Some(deadline),
            timer,
            self.asks_expire_at_ms(),
            self.suspend_at_ms(),
        ]
        .into_iter()
        .flatten()
        .min();
        if let Some(at_ms) = earliest.and_then(|at_ms| self.clock.new_alarm(at_ms)) {
            self.out.wake_at(at_ms);
        }
    }
}
