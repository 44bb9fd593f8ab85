//! The checker: a guest that reads the text of scripts, so that no parser of the broker does. What
//! a hostile script makes of it, too deep a recursion, too much memory or too much time, ends the
//! guest and becomes one finding.
//!
//! A guest lives for one request and for the questions about a script that it instrumented. What
//! it answers is bounded and compared with the script before anything uses it.

use airlock_core::effect::{GuestStop, GuestUsage};
use airlock_core::limits::Limits;
use codegen::check::{Checked, FINDINGS_MAX, Finding, FindingCode, Severity, Surface};
use codegen::message::{About, Failure, Frame, Look, Question, Reply, Request, Secret, Stop, Wait};
use codegen::text::{clip, is_invisible};
use codegen::uses::Uses;
use sandbox_protocol::codec::CodecError;

use super::bounds::{GuestBounds, GuestControl, StopHandle};
use super::large_stack;
use super::live::{Live, Turn};
use super::{Sandbox, SandboxError};
use crate::budget::Share;

/// Memory that a checker guest may have besides what grows with the script: the shadow stack, the
/// parser's own data, the names of the tools.
const MEMORY_BYTES_BASE: u64 = 24 * 1024 * 1024;
/// Memory for each byte of the request: the densest scripts take 200 times their size.
const MEMORY_PER_BYTE: u64 = 240;
/// Computing time of one request. An ordinary script of 1 MiB takes a twentieth of it.
const CPU_MS_MAX: u64 = 1_000;
/// Characters of one message of the checker.
const MESSAGE_CHARS_MAX: usize = 4_000;
const FRAMES_MAX: usize = 64;

/// Why the checker has no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    /// The script made it meet a limit.
    #[error("checking it takes more than the limit of {0}")]
    Limit(&'static str),
    #[error("the check was cancelled")]
    Cancelled,
    #[error("the checker failed: {0}")]
    Failed(String),
}

impl From<CodecError> for NoAnswer {
    fn from(error: CodecError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What the check of one script may take, and what may stop it.
#[derive(Debug, Clone)]
pub struct CheckLimits {
    cpu_ms_max: u64,
    deadline_at_ms: u64,
    control: GuestControl,
}

impl Default for CheckLimits {
    fn default() -> Self {
        Self::of(&Limits::default())
    }
}

impl CheckLimits {
    /// Those of a run with these limits.
    #[must_use]
    pub fn of(limits: &Limits) -> Self {
        Self {
            cpu_ms_max: limits.guest_cpu_ms_max.min(CPU_MS_MAX),
            deadline_at_ms: u64::MAX,
            control: GuestControl::default(),
        }
    }

    /// The same, with what stops the run.
    #[must_use]
    pub fn stopped_by(mut self, stop: StopHandle) -> Self {
        self.control.stop = stop;
        self
    }

    /// The same, with memory and turns from the run's share.
    #[must_use]
    pub(crate) fn within(mut self, share: Share) -> Self {
        self.control.share = Some(share);
        self
    }

    fn bounds(&self, request: &[u8]) -> GuestBounds {
        let share = self.control.share.as_ref();
        let memory_bytes_max = memory_bytes_max(request.len());
        GuestBounds {
            cpu_ms_max: self.cpu_ms_max,
            memory_bytes_max: share.map_or(memory_bytes_max, |share| {
                memory_bytes_max.min(share.bytes_max())
            }),
            deadline_at_ms: self.deadline_at_ms,
        }
    }
}

/// Memory that the checker may have for a request of so many bytes.
pub(crate) fn memory_bytes_max(request_bytes: usize) -> u64 {
    MEMORY_BYTES_BASE + MEMORY_PER_BYTE.saturating_mul(request_bytes as u64)
}

/// Makes checker guests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Checker {
    sandbox: Sandbox,
}

impl Checker {
    /// The checker that this program carries. It is loaded when it is first needed.
    pub fn embedded() -> Result<Self, SandboxError> {
        let sandbox = Sandbox::checker()?;
        Ok(Self { sandbox })
    }

    /// Loads the checker now instead of at the first check. It computes.
    pub(crate) fn load(&self) -> Result<(), SandboxError> {
        self.sandbox.loaded()
    }

    /// See [`Sandbox::return_memory`].
    pub(crate) fn return_memory(&self) {
        self.sandbox.return_memory();
    }

    /// Checks a script against tools. A script that defeats the checker has one finding.
    pub async fn check(
        &self,
        name: &str,
        script: &str,
        surface: &Surface<'_>,
        limits: &CheckLimits,
    ) -> (Checked, GuestUsage) {
        let mut exchange = surface.exchange(name, script);
        let mut usage = GuestUsage::default();
        loop {
            let request = match exchange.request() {
                Ok(request) => request,
                Err(error) => {
                    let why = error.into();
                    return (self.defeated(script, &why, limits).await, usage);
                }
            };
            let (reply, used) = self.ask(request, limits.clone()).await;
            usage.guest_cpu_us += used.guest_cpu_us;
            usage.memory_bytes_peak = usage.memory_bytes_peak.max(used.memory_bytes_peak);
            let checked = reply.and_then(|reply| Ok(exchange.reply(reply)?));
            match checked {
                Ok(None) => {}
                Ok(Some(checked)) if is_plausible(&checked, script) => {
                    return (presentable(checked), usage);
                }
                Ok(Some(_)) => {
                    let why = NoAnswer::Failed("its answer does not fit the script".to_owned());
                    return (self.defeated(script, &why, limits).await, usage);
                }
                // Whoever cancelled the run is told so by the run.
                Err(NoAnswer::Cancelled) => return (unread(), usage),
                Err(why) => return (self.defeated(script, &why, limits).await, usage),
            }
        }
    }

    /// Which globals and members a script uses; none where that cannot be found out. Each call is
    /// held to what the session may use all the same.
    pub async fn uses(&self, script: &str, limits: CheckLimits) -> Uses {
        let Ok(request) = (Request::Uses { script }).encode() else {
            return Uses::default();
        };
        match self.ask(request, limits).await.0 {
            Ok(Reply::Uses(uses)) => uses,
            _ => Uses::default(),
        }
    }

    /// The script with code that reports what fails in it, and the guest that understands the
    /// reports.
    pub(super) fn instrument(
        &self,
        script: &str,
        look: Look,
        control: &GuestControl,
    ) -> Option<Instrumented> {
        let secret = secret()?;
        let request = Request::Instrument {
            script,
            look,
            secret,
        };
        self.instrumented(&request.encode().ok()?, control)
    }

    /// The script with code that reports where it is, from a step on at each step.
    pub(super) fn follow(
        &self,
        script: &str,
        from: Option<u64>,
        control: &GuestControl,
    ) -> Option<Instrumented> {
        let secret = secret()?;
        let request = Request::Follow {
            script,
            from,
            secret,
        };
        self.instrumented(&request.encode().ok()?, control)
    }

    fn instrumented(&self, request: &[u8], control: &GuestControl) -> Option<Instrumented> {
        let limits = CheckLimits {
            control: control.clone(),
            ..CheckLimits::default()
        };
        let bounds = limits.bounds(request);
        let started = large_stack::run(|| {
            let mut live = Live::new(&self.sandbox, bounds, control, &[]).ok()?;
            let reply = exchange(&mut live, request, Turn::Start).ok()?;
            Some((live, reply))
        });
        match started?? {
            (live, Reply::Instrumented(Some(text))) => Some(Instrumented { text, live }),
            _ => None,
        }
    }

    /// One request to a guest of its own.
    async fn ask(
        &self,
        request: Vec<u8>,
        limits: CheckLimits,
    ) -> (Result<Reply, NoAnswer>, GuestUsage) {
        let sandbox = self.sandbox.clone();
        let answered = large_stack::run_aside(move || {
            let bounds = limits.bounds(&request);
            let mut live = match Live::new(&sandbox, bounds, &limits.control, &[]) {
                Ok(live) => live,
                Err(stop) => return (Err(no_answer(&stop)), GuestUsage::default()),
            };
            let reply = exchange(&mut live, &request, Turn::Start);
            (reply, live.usage())
        });
        answered.await.unwrap_or_else(|| {
            let why = "no thread can be started for it".to_owned();
            (Err(NoAnswer::Failed(why)), GuestUsage::default())
        })
    }

    /// The one finding about a script that the checker could not read to its end: where it is
    /// nested too deeply, if that is the reason.
    async fn defeated(&self, script: &str, why: &NoAnswer, limits: &CheckLimits) -> Checked {
        let nesting = match (why, (Request::Nesting { script }).encode()) {
            (NoAnswer::Limit(_), Ok(request)) => {
                let limits = CheckLimits {
                    control: limits.control.clone(),
                    ..CheckLimits::default()
                };
                match self.ask(request, limits).await.0 {
                    Ok(Reply::Nesting(place)) => place,
                    _ => None,
                }
            }
            _ => None,
        };
        let (code, message, suggestion) = match (why, nesting) {
            (_, Some(_)) => (
                FindingCode::TooDeep,
                "the script is nested too deeply".to_owned(),
                "Give inner parts names of their own.",
            ),
            (NoAnswer::Limit(_), None) => (
                FindingCode::TooComplex,
                format!("the script is too complex to check: {why}"),
                "Split it into smaller statements or shorter scripts.",
            ),
            (NoAnswer::Cancelled | NoAnswer::Failed(_), None) => (
                FindingCode::TooComplex,
                why.to_string(),
                "Run it again when the machine has room.",
            ),
        };
        let (line, column) = nesting.unwrap_or((1, 1));
        let finding = Finding {
            severity: Severity::Error,
            code,
            line,
            column,
            message,
            suggestion: Some(suggestion.to_owned()),
        };
        Checked {
            findings: vec![finding],
            ..unread()
        }
    }
}

/// Of a script that was not read.
fn unread() -> Checked {
    Checked {
        form: None,
        blanked: None,
        findings: Vec::new(),
        findings_dropped: 0,
    }
}

/// A script that reports on itself, with the guest that made it and understands what it prints.
#[derive(Debug)]
pub(super) struct Instrumented {
    pub(super) text: String,
    live: Live,
}

impl Instrumented {
    pub(super) fn failure(&mut self, console: Vec<&str>, name: &str) -> Option<Failure> {
        match self.ask(About::Error { name }, console)? {
            Reply::Failure(failure) => failure.map(presentable_failure),
            _ => None,
        }
    }

    pub(super) fn wait(&mut self, console: Vec<&str>) -> Option<Wait> {
        let Reply::Wait(wait) = self.ask(About::Waits, console)? else {
            return None;
        };
        wait.map(|it| Wait {
            message: presentable_text(&it.message),
            stack: presentable_stack(it.stack),
            ..it
        })
    }

    pub(super) fn stop(&mut self, console: Vec<&str>, is_recursion: bool) -> Option<Stop> {
        let Reply::Stop(stop) = self.ask(About::Stop { is_recursion }, console)? else {
            return None;
        };
        stop.map(|it| Stop {
            message: presentable_text(&it.message),
            stack: presentable_stack(it.stack),
            ..it
        })
    }

    fn ask(&mut self, about: About<'_>, console: Vec<&str>) -> Option<Reply> {
        let question = Question { about, console }.encode().ok()?;
        let live = &mut self.live;
        large_stack::run(|| exchange(live, &question, Turn::Resume).ok())?
    }
}

/// What a script that prints on the same console cannot know.
fn secret() -> Option<Secret> {
    getrandom::u64().map(Secret).ok()
}

/// One request and its reply. The stack of this thread is large.
fn exchange(live: &mut Live, frame: &[u8], turn: Turn) -> Result<Reply, NoAnswer> {
    let reply = live
        .exchange(frame, turn)
        .map_err(|stop| no_answer(&stop))?;
    Ok(Reply::decode(&reply)?)
}

fn no_answer(stop: &GuestStop) -> NoAnswer {
    use airlock_core::limits::Limit;
    match stop {
        GuestStop::Limit { limit, .. } => NoAnswer::Limit(match limit {
            Limit::Cpu | Limit::Time => "computing time",
            Limit::Memory => "memory",
            _ => "nested calls",
        }),
        GuestStop::Interrupted { .. } => NoAnswer::Cancelled,
        GuestStop::Busy { why, .. } => NoAnswer::Failed(why.clone()),
        GuestStop::EngineFault { why, .. } => NoAnswer::Failed(clip(why, 200)),
    }
}

/// Whether an answer can be one about this script: a script without its types has every character
/// of the script in its place, or a blank or a single mark instead.
fn is_plausible(checked: &Checked, script: &str) -> bool {
    let is_erased = |blanked: &String| {
        let mut own = script.chars();
        let mut marks = blanked.chars();
        loop {
            match (own.next(), marks.next()) {
                (None, None) => return true,
                (Some(own), Some(mark)) if own == mark || is_mark(mark) => {}
                _ => return false,
            }
        }
    };
    checked.findings.len() <= FINDINGS_MAX && checked.blanked.as_ref().is_none_or(is_erased)
}

/// What the eraser of types writes instead of a character.
fn is_mark(c: char) -> bool {
    matches!(c, ' ' | ';' | '(' | ')')
}

fn presentable(mut checked: Checked) -> Checked {
    for finding in &mut checked.findings {
        finding.message = presentable_text(&finding.message);
        finding.suggestion = finding.suggestion.as_deref().map(presentable_text);
    }
    checked
}

fn presentable_failure(failure: Failure) -> Failure {
    Failure {
        message: failure.message.as_deref().map(presentable_text),
        because: failure.because.as_deref().map(presentable_text),
        stack: presentable_stack(failure.stack),
        ..failure
    }
}

fn presentable_stack(stack: Vec<Frame>) -> Vec<Frame> {
    let presentable = |frame: Frame| Frame {
        function: presentable_text(&frame.function),
        ..frame
    };
    stack
        .into_iter()
        .take(FRAMES_MAX)
        .map(presentable)
        .collect()
}

/// Bounded, and without what nobody can see. Line breaks and tabs stay.
fn presentable_text(text: &str) -> String {
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c));
    clip(
        &text.chars().filter(is_shown).collect::<String>(),
        MESSAGE_CHARS_MAX,
    )
}

#[cfg(test)]
mod tests;
