//! One guest, from its start to its end.

use std::fmt;

use airlock_core::effect::{GuestStop, GuestUsage, Whereabouts};
use airlock_core::limits::Limit;
use codegen::message::Look;
use sandbox_protocol::codec::{encode_start, split_resume};
use sandbox_protocol::{Resume, ScriptError, Start, Step, StepState};

use super::Sandbox;
use super::bounds::{GuestBounds, GuestControl, StopHandle};
use super::live::{Live, Turn, fault};
use super::second_look::{self, Recording, Told};
use crate::budget::Share;

/// A guest of a sandbox. Dropping it frees everything it has.
pub struct Guest {
    sandbox: Sandbox,
    bounds: GuestBounds,
    control: GuestControl,
    live: Option<Live>,
    recording: Recording,
    /// How many tools each server has.
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

    /// The same guest, which takes its memory and its turns from its run's share.
    #[must_use]
    pub(crate) fn within(mut self, share: Share) -> Self {
        self.control.share = Some(share);
        self
    }

    /// Totals so far.
    pub fn usage(&self) -> GuestUsage {
        self.usage
    }

    /// Where the script was when it met a limit or could not go on, as far as that could be found
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

    /// Starts the script and runs it as far as it goes.
    pub fn start(&mut self, start: &Start) -> Result<Step, GuestStop> {
        let servers = start.stubs.iter();
        self.tools = servers.map(|server| server.tools.len()).collect();
        let live = Live::new(&self.sandbox, self.bounds, &self.control, &self.tools)?;
        self.live = Some(live);
        let frame = encode_start(start).map_err(fault)?;
        self.turn(frame, &[], Turn::Start)
    }

    /// Hands outcomes in and runs on.
    pub fn resume(&mut self, resume: &Resume) -> Result<Step, GuestStop> {
        let (frame, last) = split_resume(resume).map_err(fault)?;
        self.turn(frame, last, Turn::Resume)
    }

    /// A guest for a second look, which others need not wait for.
    fn fresh(&self, bounds: GuestBounds, control: &GuestControl) -> Option<Live> {
        Live::new(&self.sandbox, bounds, control, &self.tools).ok()
    }

    fn control_of_look(&self) -> GuestControl {
        GuestControl {
            never_waits: true,
            ..self.control.clone()
        }
    }

    /// One turn of the guest, which is told a frame in two pieces. Whatever ends it frees it.
    fn turn(&mut self, frame: Vec<u8>, last: &[u8], turn: Turn) -> Result<Step, GuestStop> {
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
        for look in [Look::First, Look::Closer] {
            let may_find_more = self.look(|told, live| told.improve(live, error, look));
            if may_find_more != Some(true) {
                return;
            }
        }
    }

    fn look_for_waits(&mut self) {
        self.whereabouts = self.look(|told, live| told.waits(live)).flatten();
    }

    /// A fresh guest, when there is room for one, with all that the first was told.
    fn look<T>(&mut self, look: impl FnOnce(Told<'_>, &mut Live) -> T) -> Option<T> {
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
