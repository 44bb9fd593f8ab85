//! Waits for calls in flight when a run has ended. A call that is not repeatable has probably had its
//! effect, so its outcome is worth recording: a later run can then reuse it.

use crate::id::CallId;
use crate::limits::{CANCEL_DRAIN_WALL_MS_MAX, DRAIN_WALL_MS_MAX};

use super::calls::CallStage;
use super::run_end::RunEnd;
use super::{Guest, Run};

/// The end of a run that still waits for outcomes.
#[derive(Debug)]
pub(super) struct Drain {
    ending: RunEnd,
    until_ms: u64,
}

impl Run {
    /// Ends the run, after the outcomes of the calls in flight that are not repeatable.
    pub(super) fn drain(&mut self, ending: RunEnd) {
        let wall_ms_max = match &ending {
            RunEnd::JournalUnwritable { .. }
            | RunEnd::Cancelled {
                may_wait: false, ..
            } => 0,
            RunEnd::Cancelled { .. } => CANCEL_DRAIN_WALL_MS_MAX,
            _ => DRAIN_WALL_MS_MAX,
        };
        if wall_ms_max == 0 || !self.is_draining_needed() {
            return self.conclude(ending);
        }
        let calls: Vec<_> = self.calls.records.iter().map(|record| record.id).collect();
        for call in calls {
            match self.is_awaited(call) {
                true => self.withdraw_inquiries(call),
                false => self.close(call),
            }
        }
        if self.guest != Guest::Gone {
            self.out.stop_guest();
            self.guest = Guest::Gone;
        }
        self.clock.wait_for_human(false);
        let until_ms = self.clock.host_ms().saturating_add(wall_ms_max);
        self.drain = Some(Drain { ending, until_ms });
        self.wake_at(until_ms);
    }

    /// Ends the run if all outcomes have come or the time is over.
    pub(super) fn go_on_draining(&mut self) {
        let Some(mut drain) = self.drain.take() else {
            return;
        };
        match self.ending.take() {
            Some(unwritable @ RunEnd::JournalUnwritable { .. }) => {
                return self.conclude(unwritable);
            }
            Some(RunEnd::Cancelled { may_wait, .. }) => {
                let wall_ms = if may_wait {
                    CANCEL_DRAIN_WALL_MS_MAX
                } else {
                    0
                };
                let until_ms = self.clock.host_ms().saturating_add(wall_ms);
                drain.until_ms = drain.until_ms.min(until_ms);
            }
            _ => {}
        }
        if drain.until_ms <= self.clock.host_ms() || !self.is_draining_needed() {
            return self.conclude(drain.ending);
        }
        self.wake_at(drain.until_ms);
        self.drain = Some(drain);
    }

    fn is_draining_needed(&self) -> bool {
        let mut records = self.calls.records.iter();
        self.calls.in_flight > 0 && records.any(|record| is_awaited(&record.stage))
    }

    fn is_awaited(&self, call: CallId) -> bool {
        let record = self.calls.get(call);
        record.is_some_and(|record| is_awaited(&record.stage))
    }

    fn wake_at(&mut self, at_ms: u64) {
        if let Some(at_ms) = self.clock.new_alarm(at_ms) {
            self.out.wake_at(at_ms);
        }
    }
}

fn is_awaited(stage: &CallStage) -> bool {
    matches!(stage, CallStage::InFlight { tool, .. } if !tool.is_repeatable())
}
