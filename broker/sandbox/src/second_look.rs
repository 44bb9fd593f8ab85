//! A second look at a script that failed or reached a limit, for a better report of where and why.
//!
//! A guest is a pure function of its input. The input is recorded, up to a limit. After certain
//! failures a fresh guest gets the same input with an instrumented script. No call leaves: recorded
//! outcomes answer the calls of the second guest, and its output is dropped.

use airlock_core::effect::{GuestStop, GuestUsage, Whereabouts};
use airlock_core::limits::Limit;
use codegen::message::{Frame, InstrumentPass};
use sandbox_protocol::codec::{decode_start, encode_start};
use sandbox_protocol::{ConsoleLine, ScriptError, Start, StepState};

use super::bounds::{GuestBounds, GuestControl};
use super::checker::Checker;
use super::instance::{GuestInstance, GuestTurn};

/// Limits on the recorded frames of one run: their size in bytes and their number.
const FRAMES_BYTES_MAX: usize = 1024 * 1024;
const FRAMES_MAX: usize = 10_000;

/// Maximum computing time in milliseconds of a second look at a failed script. A run that computed
/// longer before its failure gets no second look.
const CPU_MS_MAX: u64 = 500;

/// Milliseconds by which a run and its second look together may exceed the run's limit on computing
/// time.
const BEYOND_CPU_MS: u64 = 200;

/// Milliseconds by which a second look may exceed the deadline of a run that reached a limit.
const BEHIND_DEADLINE_MS: u64 = 100;
/// The maximum slowdown factor of a script that reports its position.
const FOLLOWED_SLOWER: u64 = 6;
/// The minimum and maximum computing time in milliseconds of a second look at such a script.
const CPU_MS_MIN: u64 = 100;
const WALL_MS_MAX: u64 = 2_000;

/// Maximum size of the second guest's console output, which contains its reports.
const CONSOLE_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// The input of a guest since its start, and the number of its calls.
#[derive(Debug, Default)]
pub(super) struct Recording {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    is_cut: bool,
    pub(super) calls: usize,
}

impl Recording {
    /// Records a frame that was passed in two pieces.
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

    /// Returns the whole recording, or `None` if it became too large.
    pub(super) fn whole<'r>(&'r self, control: &'r GuestControl) -> Option<RecordedTurns<'r>> {
        if self.is_cut {
            return None;
        }
        let (start, resumes) = self.frames.split_first()?;
        Some(RecordedTurns {
            start: decode_start(start).ok()?,
            resumes,
            calls: self.calls,
            control,
        })
    }
}

/// Returns whether an instrumented run could find out more about an error. Errors from a tool or
/// from airlock are already complete.
pub(super) fn could_help(error: &ScriptError) -> bool {
    error.code.is_empty()
}

/// Returns the bounds of a second look, or `None` if the first run used too much.
pub(super) fn bounds(bounds: GuestBounds, used: GuestUsage) -> Option<GuestBounds> {
    let used_ms = used.guest_cpu_us / 1000;
    (used_ms < bounds.cpu_ms_max.min(CPU_MS_MAX)).then(|| GuestBounds {
        cpu_ms_max: CPU_MS_MAX.min(left_ms(&bounds, used_ms)),
        ..bounds
    })
}

/// Returns how long a second look may compute after a run that computed this long.
fn left_ms(bounds: &GuestBounds, used_ms: u64) -> u64 {
    bounds.cpu_ms_max.saturating_sub(used_ms) + BEYOND_CPU_MS
}

/// Returns the bounds of a second look at a run that reached a limit. The second look must end soon
/// after the run's deadline. After a limit on time, it may compute about as long as the first run.
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
        cpu_ms_max: cpu_ms_max.min(left_ms(&bounds, used_ms)),
        deadline_at_ms: latest.min(now_ms.saturating_add(wall_ms_max)),
        ..bounds
    }
}

/// The recorded input of a guest, to be repeated with another script.
pub(super) struct RecordedTurns<'r> {
    start: Start,
    resumes: &'r [Vec<u8>],
    calls: usize,
    control: &'r GuestControl,
}

/// How the repetition ended, if it ended in the same frame as the first run.
struct RerunOutcome {
    end: RerunEnd,
    console: Vec<ConsoleLine>,
    calls: usize,
}

impl RerunOutcome {
    fn printed(&self) -> Vec<&str> {
        self.console.iter().map(|line| line.text.as_str()).collect()
    }
}

enum RerunEnd {
    Failed(ScriptError),
    Limit(Limit),
    Deadlocked,
}

impl RecordedTurns<'_> {
    /// Improves an error with the findings of an instrumented run. If that run does not end in the
    /// same way, the error stays unchanged. Returns whether a more detailed pass could find more.
    pub(super) fn improve(
        mut self,
        live: &mut GuestInstance,
        error: &mut ScriptError,
        look: InstrumentPass,
    ) -> bool {
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
            RerunEnd::Failed(found) if found.name == error.name && again.calls == self.calls => {}
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

    /// Returns the position at which a deadlocked script waits.
    pub(super) fn waits(mut self, live: &mut GuestInstance) -> Option<Whereabouts> {
        let checker = Checker::embedded().ok()?;
        let mut instrumented =
            checker.instrument(&self.start.script, InstrumentPass::Awaits, self.control)?;
        self.start.script = std::mem::take(&mut instrumented.text);
        let again = self.again(live)?;
        if !matches!(again.end, RerunEnd::Deadlocked) || again.calls != self.calls {
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

    /// Returns where a script is when it reaches the same limit. From step `from` on, the script
    /// reports its position at each step. The second result is the step from which another pass
    /// would find the exact position, if there is one.
    pub(super) fn locate(
        mut self,
        live: &mut GuestInstance,
        limit: Limit,
        from: Option<u64>,
    ) -> Option<(Whereabouts, Option<u64>)> {
        let checker = Checker::embedded().ok()?;
        let mut followed = checker.follow(&self.start.script, from, self.control)?;
        self.start.script = std::mem::take(&mut followed.text);
        let again = self.again(live)?;
        let RerunEnd::Limit(met) = again.end else {
            return None;
        };
        // A limit on wall time and one on computing time are reached in the same place.
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

    fn again(&mut self, live: &mut GuestInstance) -> Option<RerunOutcome> {
        self.start.limits.console_bytes_max = CONSOLE_BYTES_MAX;
        self.start.limits.console_flood_bytes_max = u64::from(CONSOLE_BYTES_MAX);
        let start = encode_start(&self.start).ok()?;
        let frames = std::iter::once(&start).chain(self.resumes);
        let turns = std::iter::once(GuestTurn::Start).chain(std::iter::repeat(GuestTurn::Resume));
        let last = self.resumes.len();
        let (mut console, mut calls) = (Vec::new(), 0);
        for (number, (frame, turn)) in frames.zip(turns).enumerate() {
            let end = match live.turn([frame, &[]], turn) {
                Ok(step) => {
                    console.extend(step.console);
                    calls += step.calls.len();
                    match step.state {
                        StepState::Waiting { .. } => continue,
                        StepState::Failed(error) => RerunEnd::Failed(error),
                        StepState::StackExhausted => RerunEnd::Limit(Limit::Stack),
                        StepState::Deadlocked => RerunEnd::Deadlocked,
                        _ => return None,
                    }
                }
                Err(GuestStop::Limit {
                    limit,
                    console: lines,
                }) => {
                    console.extend(lines);
                    RerunEnd::Limit(limit)
                }
                Err(_) => return None,
            };
            let again = RerunOutcome {
                end,
                console,
                calls,
            };
            return (number == last).then_some(again);
        }
        None
    }
}

/// Removes the engine's ` (cause: …)` from a message with one cause, if `because` is more exact.
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

/// Returns whether the script has a position at which it reaches this limit.
pub(super) fn has_a_place(limit: Limit) -> bool {
    is_about_time(limit) || matches!(limit, Limit::Memory | Limit::Stack)
}
