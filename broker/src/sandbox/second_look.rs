//! A second look at a script that failed, to say better where and why.
//!
//! A guest is a pure function of what it is told. So what it was told is kept,
//! up to a bound, and after certain failures a fresh guest hears it all again,
//! this time with a script that watches each place it reads from. Nothing leaves:
//! the second guest's calls are answered by the recording and its words are dropped.

use airlock_core::effect::GuestUsage;
use codegen::watch::{Frame, Watched};
use sandbox_protocol::codec::{decode_start, encode_start};
use sandbox_protocol::{ConsoleLine, ScriptError, StepState};

use super::bounds::GuestBounds;
use super::live::{Live, Turn};
use crate::deep_stack;

/// Frames that are kept of one run.
const FRAMES_BYTES_MAX: usize = 1024 * 1024;
const FRAMES_MAX: usize = 10_000;

/// Computing time that a second look may take, and that a run may have taken to get one.
const CPU_MS_MAX: u64 = 500;

/// What the second guest may print: it says on its console what it sees.
const CONSOLE_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// What a guest was told, from its start, and how often it called.
#[derive(Debug, Default)]
pub(super) struct Recording {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    is_cut: bool,
    pub(super) calls: usize,
}

impl Recording {
    /// Keeps a frame that was told in two pieces.
    pub(super) fn keep(&mut self, mut frame: Vec<u8>, last: &[u8]) {
        self.bytes = self.bytes.saturating_add(frame.len() + last.len());
        self.is_cut |= self.bytes > FRAMES_BYTES_MAX || self.frames.len() >= FRAMES_MAX;
        if self.is_cut {
            self.frames = Vec::new();
        } else {
            frame.extend_from_slice(last);
            self.frames.push(frame);
        }
    }

    /// Everything, or nothing when it became too much.
    pub(super) fn whole(&self) -> Option<Script<'_>> {
        if self.is_cut {
            return None;
        }
        let (start, resumes) = self.frames.split_first()?;
        Script::watched(start, resumes, self.calls)
    }
}

/// Whether a watched run could say more about an error than the first did: of one that a tool
/// or airlock made, all is known.
pub(super) fn could_help(error: &ScriptError) -> bool {
    error.code.is_empty()
}

/// The bounds of a second look, when the first left room for one.
pub(super) fn bounds(bounds: GuestBounds, used: GuestUsage) -> Option<GuestBounds> {
    let cpu_ms_max = bounds.cpu_ms_max.min(CPU_MS_MAX);
    (used.guest_cpu_us / 1000 < cpu_ms_max).then_some(GuestBounds {
        cpu_ms_max,
        ..bounds
    })
}

/// A script that is watched, with what it will be told.
pub(super) struct Script<'r> {
    watched: Watched,
    name: String,
    start: Vec<u8>,
    resumes: &'r [Vec<u8>],
    calls: usize,
}

impl<'r> Script<'r> {
    fn watched(start: &[u8], resumes: &'r [Vec<u8>], calls: usize) -> Option<Self> {
        let mut start = decode_start(start).ok()?;
        let mut watched = deep_stack::watch(&start.script)?;
        start.script = std::mem::take(&mut watched.text);
        start.limits.console_bytes_max = CONSOLE_BYTES_MAX;
        start.limits.console_flood_bytes_max = u64::from(CONSOLE_BYTES_MAX);
        Some(Self {
            watched,
            name: start.script_name.clone(),
            start: encode_start(&start).ok()?,
            resumes,
            calls,
        })
    }

    /// Tells a fresh guest everything again, and takes over what it finds out about the error.
    /// Where it does not come to the same end, nothing was found.
    pub(super) fn improve(&self, live: &mut Live, error: &mut ScriptError) {
        let mut console = Vec::new();
        let Some(again) = self.replay(live, &mut console) else {
            return;
        };
        if again.name != error.name {
            return;
        }
        let console = console.iter().map(|line| line.text.as_str());
        let Some(found) = self.watched.found(console, &error.name) else {
            return;
        };
        if found.is_around && error.line != 0 {
            return;
        }
        (error.line, error.column) = (found.line, found.column);
        if !found.is_around {
            error.stack = self.stack(&found.stack);
        }
        if let Some(message) = found.message {
            error.message = message;
        }
    }

    fn stack(&self, frames: &[Frame]) -> String {
        let frame = |it: &Frame| {
            let Frame {
                function,
                line,
                column,
            } = it;
            format!("    at {function} ({}:{line}:{column})", self.name)
        };
        let frames: Vec<_> = frames.iter().map(frame).collect();
        frames.join("\n")
    }

    /// The error that it ends with.
    fn replay(&self, live: &mut Live, console: &mut Vec<ConsoleLine>) -> Option<ScriptError> {
        let mut calls = 0;
        let frames = std::iter::once(&self.start).chain(self.resumes);
        let turns = std::iter::once(Turn::Start).chain(std::iter::repeat(Turn::Resume));
        let last = self.resumes.len();
        for (number, (frame, turn)) in frames.zip(turns).enumerate() {
            let step = live.turn([frame, &[]], turn).ok()?;
            console.extend(step.console);
            calls += step.calls.len();
            match step.state {
                StepState::Waiting { .. } => {}
                StepState::Failed(error) => {
                    return (number == last && calls == self.calls).then_some(error);
                }
                _ => return None,
            }
        }
        None
    }
}
