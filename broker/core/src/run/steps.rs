//! What the guest says, and when it goes on.

use std::collections::BTreeSet;

use sandbox_protocol::{Resume, Step, StepState};

use crate::effect::{GuestStop, GuestUsage};
use crate::flow::{Labels, NamedPath, ResolvedPath, Watch, named};
use crate::journal::{Body, Resumed};
use crate::limits::Limit;

use super::ending::Ending;
use super::{Guest, Run};

impl Run {
    /// The paths that the calls of a step name; where they lead is to be said with
    /// [`Event::Resolved`](crate::effect::Event::Resolved) before the step. None when nobody
    /// asks for facts.
    #[must_use]
    pub fn paths_of(&self, step: &Step) -> BTreeSet<NamedPath> {
        if self.watch.is_none() {
            return BTreeSet::new();
        }
        let catalog = &self.spec.standing.catalog;
        named(catalog, &step.calls, &self.spec.limits)
    }

    /// What has reached the script so far; none where nobody watches.
    #[must_use]
    pub fn reached(&self) -> Option<&Labels> {
        self.watch.as_ref().map(Watch::reached)
    }

    pub(super) fn resolved(&mut self, paths: Vec<ResolvedPath>) {
        if let Some(watch) = &mut self.watch {
            watch.resolved(paths);
        }
    }

    /// A step that nobody waits for is ignored.
    pub(super) fn stepped(&mut self, step: Step, usage: GuestUsage) {
        if self.guest != Guest::Computing {
            return;
        }
        self.usage = usage;
        self.guest = Guest::Waiting { wake_at_ms: None };
        let shown = self.console.take(step.console, step.console_dropped_bytes);
        self.out.show(shown);
        if self.console.is_flooded() {
            self.end(Ending::Limit(Limit::Output));
        }
        for call in step.calls {
            if self.ending.is_some() {
                self.not_started(&call);
            } else {
                self.called(call);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.forget_paths();
        }
        match step.state {
            StepState::Waiting { wake_at_ms } => self.guest = Guest::Waiting { wake_at_ms },
            StepState::Done { value } => {
                let ending = Ending::of_value(value, &self.spec.limits);
                self.end(ending);
            }
            StepState::Failed(error) => self.end(Ending::Threw(Box::new(error))),
            StepState::Deadlocked => self.end(Ending::Deadlock),
            StepState::StackExhausted => self.end(Ending::Limit(Limit::Stack)),
            StepState::OutputFlood => self.end(Ending::Limit(Limit::Output)),
            StepState::ValueTooLarge => self.end(Ending::Limit(Limit::Payload)),
        }
    }

    pub(super) fn guest_stopped(&mut self, stop: GuestStop, usage: GuestUsage) {
        if self.guest != Guest::Computing {
            return;
        }
        self.usage = usage;
        self.guest = Guest::Gone;
        let (ending, console) = match stop {
            GuestStop::Limit { limit, console } => (Ending::Limit(limit), console),
            GuestStop::EngineFault { why, console } => (Ending::EngineFault { why }, console),
            GuestStop::Interrupted { console } => {
                let why = "the guest was interrupted".into();
                (Ending::Cancelled { why }, console)
            }
            GuestStop::Busy {
                why,
                retry_after_ms,
                console,
            } => (
                Ending::Busy {
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
            return self.end(Ending::Limit(Limit::Time));
        }
        self.expire_asks();
    }

    /// The guest goes on when there is something to tell it: outcomes, or that
    /// its timer is due. Before the first call a timer is always due.
    pub(super) fn resume_guest(&mut self) {
        let Guest::Waiting { wake_at_ms } = self.guest else {
            return;
        };
        if self.ending.is_some() {
            return;
        }
        if !self.outcomes.is_empty() {
            return self.resume(true);
        }
        match wake_at_ms {
            Some(at_ms) if at_ms <= self.clock.run_ms() => self.resume(true),
            Some(at_ms) if self.calls.is_empty() => {
                self.clock.jump_to(at_ms);
                if self.clock.is_over() {
                    self.end(Ending::Limit(Limit::Time));
                } else {
                    self.resume(false);
                }
            }
            Some(_) => {}
            None if self.calls.is_any_open() => {}
            None => self.end(Ending::Deadlock),
        }
    }

    fn resume(&mut self, recorded: bool) {
        let (calls, outcomes) = std::mem::take(&mut self.outcomes).into_iter().unzip();
        let now_ms = self.clock.run_ms();
        self.steps += 1;
        if recorded {
            let step = self.steps;
            self.append(
                Body::Resumed(Resumed {
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

    /// When nothing else happens, what happens next?
    pub(super) fn set_alarm(&mut self) {
        let Guest::Waiting { wake_at_ms } = self.guest else {
            return self.clock.wait_for_human(false);
        };
        let inquiring = self.inquiries.calls();
        self.clock
            .wait_for_human(self.calls.is_only_asking(inquiring, self.in_hand));
        let deadline = if self.clock.is_waiting_for_human() {
            self.clock.latest_deadline_at_ms()
        } else {
            self.clock.deadline_at_ms()
        };
        let timer = wake_at_ms.map(|at_ms| self.clock.to_host_ms(at_ms));
        let earliest = [Some(deadline), timer, self.asks_expire_at_ms()]
            .into_iter()
            .flatten()
            .min();
        if let Some(at_ms) = earliest.and_then(|at_ms| self.clock.new_alarm(at_ms)) {
            self.out.wake_at(at_ms);
        }
    }
}
