//! A second look at a script that failed or met a limit, to say better where and why.
//!
//! A guest is a pure function of what it is told. So what it was told is kept,
//! up to a bound, and after certain failures a fresh guest hears it all again,
//! this time with a script that watches each place it reads from. Nothing leaves:
//! the second guest's calls are answered by the recording and its words are dropped.

use airlock_core::effect::{GuestStop, GuestUsage, Whereabouts};
use airlock_core::limits::Limit;
use codegen::message::{Frame, Look};
use sandbox_protocol::codec::{decode_start, encode_start};
use sandbox_protocol::{ConsoleLine, ScriptError, Start, StepState};

use super::bounds::{GuestBounds, GuestControl};
use super::checker::Checker;
use super::live::{Live, Turn};

/// Frames that are kept of one run.
const FRAMES_BYTES_MAX: usize = 1024 * 1024;
const FRAMES_MAX: usize = 10_000;

/// Computing time that a second look may take, and that a run may have taken to get one.
const CPU_MS_MAX: u64 = 500;

/// How far it may go beyond the deadline of a run that met a limit.
const BEHIND_DEADLINE_MS: u64 = 100;
/// How much slower a script is that says where it is, at most, and how long it may take.
const FOLLOWED_SLOWER: u64 = 6;
const CPU_MS_MIN: u64 = 100;
const WALL_MS_MAX: u64 = 2_000;

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
    pub(super) fn whole<'r>(&'r self, control: &'r GuestControl) -> Option<Told<'r>> {
        if self.is_cut {
            return None;
        }
        let (start, resumes) = self.frames.split_first()?;
        Some(Told {
            start: decode_start(start).ok()?,
            resumes,
            calls: self.calls,
            control,
        })
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

/// The bounds of a second look at a run that met a limit: it must be over soon after the
/// deadline, and take no longer than the first where the limit is one of time.
pub(super) fn bounds_after(
    bounds: GuestBounds,
    used: GuestUsage,
    limit: Limit,
    now_ms: u64,
) -> GuestBounds {
    let used_ms = used.guest_cpu_us / 1000;
    let (cpu_ms_max, wall_ms_max) = if is_about_time(limit) {
        let cpu_ms_max = used_ms.clamp(CPU_MS_MIN, CPU_MS_MAX);
        (cpu_ms_max, cpu_ms_max * 2)
    } else {
        let as_far = used_ms.saturating_mul(FOLLOWED_SLOWER);
        (as_far.clamp(CPU_MS_MAX, WALL_MS_MAX), WALL_MS_MAX)
    };
    let latest = bounds.deadline_at_ms.saturating_add(BEHIND_DEADLINE_MS);
    GuestBounds {
        cpu_ms_max,
        deadline_at_ms: latest.min(now_ms.saturating_add(wall_ms_max)),
        ..bounds
    }
}

/// What a guest was told, to be told again to another script.
pub(super) struct Told<'r> {
    start: Start,
    resumes: &'r [Vec<u8>],
    calls: usize,
    control: &'r GuestControl,
}

/// How a guest that was told everything again ended, in the same frame as the first.
struct Again {
    end: End,
    console: Vec<ConsoleLine>,
    calls: usize,
}

impl Again {
    fn printed(&self) -> Vec<&str> {
        self.console.iter().map(|line| line.text.as_str()).collect()
    }
}

enum End {
    Failed(ScriptError),
    Limit(Limit),
    Deadlocked,
}

impl Told<'_> {
    /// Takes over what a watched script finds out about the error. Where it does not come to the
    /// same end, nothing was found. Whether a closer look could find more.
    pub(super) fn improve(mut self, live: &mut Live, error: &mut ScriptError, look: Look) -> bool {
        let checker = Checker::embedded().ok();
        let instrumented =
            checker.and_then(|it| it.instrument(&self.start.script, look, self.control));
        let Some(mut instrumented) = instrumented else {
            return false;
        };
        self.start.script = std::mem::take(&mut instrumented.text);
        let Some(again) = self.again(live) else {
            return false;
        };
        match &again.end {
            End::Failed(found) if found.name == error.name && again.calls == self.calls => {}
            _ => return false,
        }
        let Some(found) = instrumented.failure(again.printed(), &error.name) else {
            return true;
        };
        if found.is_around && error.line != 0 {
            return true;
        }
        (error.line, error.column) = (found.line, found.column);
        if !found.is_around {
            error.stack = self.stack(&found.stack);
        }
        if let Some(message) = found.message {
            error.message = message;
        }
        if let Some(because) = found.because {
            let said = without_cause(&error.message, &because);
            error.message = format!("{said}; {because}");
        }
        !found.is_sure
    }

    /// What a script waits for that nothing can settle.
    pub(super) fn waits(mut self, live: &mut Live) -> Option<Whereabouts> {
        let checker = Checker::embedded().ok()?;
        let mut instrumented = checker.instrument(&self.start.script, Look::Waits, self.control)?;
        self.start.script = std::mem::take(&mut instrumented.text);
        let again = self.again(live)?;
        if !matches!(again.end, End::Deadlocked) || again.calls != self.calls {
            return None;
        }
        let found = instrumented.wait(again.printed())?;
        Some(Whereabouts {
            line: found.line,
            column: found.column,
            stack: self.stack(&found.stack),
            doing: found.message,
        })
    }

    /// Where a script is that says so when it meets the same limit; `from` is the pass from which
    /// on it says so at each. With that comes the pass that was heard of last, when an exact look
    /// would find a place that is nearer.
    pub(super) fn locate(
        mut self,
        live: &mut Live,
        limit: Limit,
        from: Option<u64>,
    ) -> Option<(Whereabouts, Option<u64>)> {
        let checker = Checker::embedded().ok()?;
        let mut followed = checker.follow(&self.start.script, from, self.control)?;
        self.start.script = std::mem::take(&mut followed.text);
        let again = self.again(live)?;
        let End::Limit(met) = again.end else {
            return None;
        };
        // Time and computing run out in the same place; the second look has less of both.
        let is_same = met == limit || [met, limit].iter().all(|it| is_about_time(*it));
        if !is_same {
            return None;
        }
        let found = followed.stop(again.printed(), limit == Limit::Stack)?;
        let whereabouts = Whereabouts {
            line: found.line,
            column: found.column,
            stack: self.stack(&found.stack),
            doing: found.message,
        };
        Some((whereabouts, found.exact_from))
    }

    fn stack(&self, frames: &[Frame]) -> String {
        let name = &self.start.script_name;
        let frame = |it: &Frame| {
            let Frame {
                function,
                line,
                column,
            } = it;
            format!("    at {function} ({name}:{line}:{column})")
        };
        let frames: Vec<_> = frames.iter().map(frame).collect();
        frames.join("\n")
    }

    fn again(&mut self, live: &mut Live) -> Option<Again> {
        self.start.limits.console_bytes_max = CONSOLE_BYTES_MAX;
        self.start.limits.console_flood_bytes_max = u64::from(CONSOLE_BYTES_MAX);
        let start = encode_start(&self.start).ok()?;
        let frames = std::iter::once(&start).chain(self.resumes);
        let turns = std::iter::once(Turn::Start).chain(std::iter::repeat(Turn::Resume));
        let last = self.resumes.len();
        let (mut console, mut calls) = (Vec::new(), 0);
        for (number, (frame, turn)) in frames.zip(turns).enumerate() {
            let end = match live.turn([frame, &[]], turn) {
                Ok(step) => {
                    console.extend(step.console);
                    calls += step.calls.len();
                    match step.state {
                        StepState::Waiting { .. } => continue,
                        StepState::Failed(error) => End::Failed(error),
                        StepState::StackExhausted => End::Limit(Limit::Stack),
                        StepState::Deadlocked => End::Deadlocked,
                        _ => return None,
                    }
                }
                Err(GuestStop::Limit {
                    limit,
                    console: lines,
                }) => {
                    console.extend(lines);
                    End::Limit(limit)
                }
                Err(_) => return None,
            };
            let again = Again {
                end,
                console,
                calls,
            };
            return (number == last).then_some(again);
        }
        None
    }
}

/// The message without the engine's words for its one cause, where better ones follow.
fn without_cause<'m>(message: &'m str, because: &str) -> &'m str {
    const CAUSE: &str = " (cause: ";
    match message.split_once(CAUSE) {
        Some((said, cause))
            if cause.ends_with(')') && !cause.contains(CAUSE) && because.contains(": ") =>
        {
            said
        }
        _ => message,
    }
}

fn is_about_time(limit: Limit) -> bool {
    matches!(limit, Limit::Cpu | Limit::Time)
}

/// Whether a limit has a place in the script.
pub(super) fn has_a_place(limit: Limit) -> bool {
    is_about_time(limit) || matches!(limit, Limit::Memory | Limit::Stack)
}
