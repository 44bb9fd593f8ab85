//! One guest from its start to its end.

use std::fmt;

use airlock_core::effect::{GuestStop, GuestUsage, Whereabouts};
use airlock_core::limits::Limit;
use codegen::message::InstrumentPass;
use sandbox_protocol::codec::{encode_start, split_resume};
use sandbox_protocol::{Resume, ScriptError, Start, Step, StepState};

use super::Sandbox;
use super::bounds::{GuestBounds, GuestControl};
use super::instance::{GuestInstance, GuestTurn, fault};
use super::second_look::{self, RecordedTurns, Recording};
use crate::budget::RunShare;
use crate::stop_handle::StopHandle;

/// A guest of a sandbox. Dropping it frees all its resources.
pub struct Guest {
    sandbox: Sandbox,
    bounds: GuestBounds,
    control: GuestControl,
    live: Option<GuestInstance>,
    recording: Recording,
    /// The number of tools of each server.
    tools: Vec<usize>,
    usage: GuestUsage,
    whereabouts: Option<Whereabouts>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest")
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

impl Guest {
    pub(super) fn new(sandbox: Sandbox, bounds: GuestBounds, stop: StopHandle) -> Self {
        Self {
            sandbox,
            bounds,
            control: GuestControl {
                stop,
                ..GuestControl::default()
            },
            live: None,
            recording: Recording::default(),
            tools: Vec::new(),
            usage: GuestUsage::default(),
            whereabouts: None,
        }
    }

    /// Takes memory and turns from the run's share of the budget.
    #[must_use]
    pub fn within(mut self, share: RunShare) -> Self {
        self.control.share = Some(share);
        self
    }

    /// Returns the total usage so far.
    pub fn usage(&self) -> GuestUsage {
        self.usage
    }

    /// Returns where the script was when it reached a limit or deadlocked, if that could be found
    /// out.
    pub fn whereabouts(&self) -> Option<&Whereabouts> {
        self.whereabouts.as_ref()
    }

    /// Moves the deadline, in milliseconds since the epoch.
    pub fn stop_at_ms(&mut self, deadline_at_ms: u64) {
        self.bounds.deadline_at_ms = deadline_at_ms;
        if let Some(live) = &mut self.live {
            live.set_deadline(deadline_at_ms);
        }
    }

    /// Starts the script and runs it until it waits or ends.
    pub fn start(&mut self, start: &Start) -> Result<Step, GuestStop> {
        let servers = start.stubs.iter();
        self.tools = servers.map(|server| server.tools.len()).collect();
        let live = GuestInstance::new(&self.sandbox, self.bounds, &self.control, &self.tools)?;
        self.live = Some(live);
        let frame = encode_start(start).map_err(fault)?;
        self.turn(frame, &[], GuestTurn::Start)
    }

    /// Passes the outcomes of calls to the script and runs it until it waits or ends.
    pub fn resume(&mut self, resume: &Resume) -> Result<Step, GuestStop> {
        let (frame, last) = split_resume(resume).map_err(fault)?;
        self.turn(frame, last, GuestTurn::Resume)
    }

    /// Creates a guest for a second look. It does not wait for memory.
    fn fresh(&self, bounds: GuestBounds, control: &GuestControl) -> Option<GuestInstance> {
        GuestInstance::new(&self.sandbox, bounds, control, &self.tools).ok()
    }

    fn control_of_look(&self) -> GuestControl {
        GuestControl {
            never_waits: true,
            ..self.control.clone()
        }
    }

    /// Runs one turn of the guest with a frame in two pieces. If the turn ends the guest, its
    /// resources are freed.
    fn turn(&mut self, frame: Vec<u8>, last: &[u8], turn: GuestTurn) -> Result<Step, GuestStop> {
        let Some(mut live) = self.live.take() else {
            return Err(fault("the guest was resumed after its end"));
        };
        let step = live.turn([&frame, last], turn);
        self.usage = live.usage();
        self.recording.keep(frame, last);
        match step {
            Ok(mut step) => {
                self.recording.calls += step.calls.len();
                match &mut step.state {
                    StepState::Waiting { .. } => self.live = Some(live),
                    StepState::Failed(error) if second_look::could_help(error) => {
                        drop(live);
                        self.look_again(error);
                    }
                    StepState::StackExhausted => {
                        drop(live);
                        self.locate(Limit::Stack);
                    }
                    StepState::Deadlocked => {
                        drop(live);
                        self.look_for_waits();
                    }
                    _ => {}
                }
                Ok(step)
            }
            Err(stop) => {
                drop(live);
                if let GuestStop::Limit { limit, .. } = &stop {
                    self.locate(*limit);
                }
                Err(stop)
            }
        }
    }

    fn look_again(&mut self, error: &mut ScriptError) {
        for look in [InstrumentPass::Calls, InstrumentPass::Operators] {
            let may_find_more = self.look(|told, live| told.improve(live, error, look));
            if may_find_more != Some(true) {
                return;
            }
        }
    }

    fn look_for_waits(&mut self) {
        self.whereabouts = self.look(|told, live| told.waits(live)).flatten();
    }

    /// Creates a fresh guest, if there is room for one, and lets `look` repeat the recorded turns
    /// in it.
    fn look<T>(
        &mut self,
        look: impl FnOnce(RecordedTurns<'_>, &mut GuestInstance) -> T,
    ) -> Option<T> {
        let bounds = second_look::bounds(self.bounds, self.usage)?;
        let control = self.control_of_look();
        let told = self.recording.whole(&control)?;
        let mut live = self.fresh(bounds, &control)?;
        let found = look(told, &mut live);
        self.usage.guest_cpu_us += live.usage().guest_cpu_us;
        Some(found)
    }

    fn locate(&mut self, limit: Limit) {
        if !second_look::has_a_place(limit) {
            return;
        }
        let Some((found, near)) = self.follow(limit, None) else {
            return;
        };
        self.whereabouts = Some(found);
        if near.is_some()
            && let Some((exact, _)) = self.follow(limit, near)
        {
            self.whereabouts = Some(exact);
        }
    }

    fn follow(&self, limit: Limit, from: Option<u64>) -> Option<(Whereabouts, Option<u64>)> {
        let now_ms = self.sandbox.clock().now_ms();
        let bounds = second_look::bounds_after(self.bounds, self.usage, limit, now_ms);
        let control = self.control_of_look();
        let told = self.recording.whole(&control)?;
        let mut live = self.fresh(bounds, &control)?;
        told.locate(&mut live, limit, from)
    }
}
