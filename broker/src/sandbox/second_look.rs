//! A second look at a script that failed, to say better where and why.
//!
//! A guest is a pure function of what it is told. So what it was told is kept,
//! up to a bound, and after certain failures a fresh guest hears it all again,
//! this time watching each place that the script reads from. Nothing leaves: the
//! second guest's calls are answered by the recording and its words are dropped.

use airlock_core::effect::GuestUsage;
use sandbox_protocol::{ScriptError, StepState};

use super::bounds::GuestBounds;
use super::live::{Live, Turn};

/// Frames that are kept of one run.
const FRAMES_BYTES_MAX: usize = 1024 * 1024;
const FRAMES_MAX: usize = 10_000;

/// Computing time that a second look may take, and that a run may have taken to get one.
const CPU_MS_MAX: u64 = 500;

/// What a guest was told, from its start.
#[derive(Debug, Default)]
pub(super) struct Recording {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    is_cut: bool,
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
    pub(super) fn whole(&self) -> Option<&[Vec<u8>]> {
        (!self.is_cut).then_some(self.frames.as_slice())
    }
}

/// Whether a watched run could say more about an error than the first did.
pub(super) fn could_help(error: &ScriptError) -> bool {
    error.code.is_empty() && matches!(error.name.as_str(), "TypeError" | "ReferenceError")
}

/// The bounds of a second look, when the first left room for one.
pub(super) fn bounds(bounds: GuestBounds, used: GuestUsage) -> Option<GuestBounds> {
    let cpu_ms_max = bounds.cpu_ms_max.min(CPU_MS_MAX);
    (used.guest_cpu_us / 1000 < cpu_ms_max).then_some(GuestBounds {
        cpu_ms_max,
        ..bounds
    })
}

/// Tells a fresh guest everything again; the error that it ends with.
pub(super) fn replay(live: &mut Live, frames: &[Vec<u8>]) -> Option<ScriptError> {
    let turns = std::iter::once(Turn::Explain).chain(std::iter::repeat(Turn::Resume));
    for (frame, turn) in frames.iter().zip(turns) {
        match live.turn([frame, &[]], turn).ok()?.state {
            StepState::Waiting { .. } => {}
            StepState::Failed(error) => return Some(error),
            _ => return None,
        }
    }
    None
}

/// Takes over what was found. The stack stays the first run's: only its columns are the script's.
pub(super) fn improve(error: &mut ScriptError, found: ScriptError) {
    let says_more = found.message != error.message;
    if found.name != error.name || (error.line != 0 && found.line != error.line) {
        return;
    }
    if says_more {
        error.message = found.message;
    }
    if (says_more || error.line == 0) && found.line != 0 {
        (error.line, error.column) = (found.line, found.column);
    }
}
