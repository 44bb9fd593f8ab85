//! The checker: a guest that parses scripts, so that the broker needs no parser of scripts. A
//! hostile script that exhausts recursion, memory or time ends the guest, and the check returns one
//! finding.
//!
//! A guest lives for one request, and for the questions about a script that it instrumented. Its
//! replies have limits, and are compared with the script before they are used.

use airlock_core::effect::{GuestStop, GuestUsage};
use airlock_core::limits::Limits;
use codegen::check::{CheckResult, FINDINGS_MAX, Finding, FindingCode, Severity, Surface};
use codegen::message::{
    About, Failure, Frame, InstrumentPass, Question, Reply, Request, Secret, Stop, Wait,
};
use codegen::text::{clip, is_invisible};
use codegen::uses::Uses;
use sandbox_protocol::codec::CodecError;

use super::bounds::{GuestBounds, GuestControl};
use super::instance::{GuestInstance, GuestTurn};
use super::large_stack;
use super::{Sandbox, SandboxError};
use crate::budget::RunShare;
use crate::stop_handle::StopHandle;

/// Memory in bytes that a checker guest may use independently of the script: the shadow stack, the
/// parser's own data, and the names of the tools.
const MEMORY_BYTES_BASE: u64 = 24 * 1024 * 1024;
/// Additional memory for each byte of the request. The densest scripts need 200 times their size.
const MEMORY_PER_BYTE: u64 = 240;
/// Maximum computing time of one request in milliseconds. An ordinary script of 1 MiB takes a
/// twentieth of this time.
const CPU_MS_MAX: u64 = 1_000;
/// Maximum computing time of the search for used tools, which comes in addition to the check. The
/// script may run if the search fails.
const USES_CPU_MS_MAX: u64 = 80;
/// Maximum computing time of the search for a deep nesting after the check has failed.
const NESTING_CPU_MS_MAX: u64 = 40;
/// Maximum length of one message of the checker, in characters.
const MESSAGE_CHARS_MAX: usize = 4_000;
const FRAMES_MAX: usize = 64;

/// The reason for which the checker gave no reply.
#[derive(Debug, thiserror::Error)]
enum CheckerFailure {
    /// The script made the checker reach a limit.
    #[error("the check exceeded the limit on {0}")]
    Limit(&'static str),
    #[error("the check was cancelled")]
    Cancelled,
    #[error("the checker failed: {0}")]
    Failed(String),
}

impl From<CodecError> for CheckerFailure {
    fn from(error: CodecError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The limits for the check of one script, and the handle that stops it.
#[derive(Debug, Clone)]
pub struct CheckLimits {
    cpu_ms_max: u64,
    deadline_at_ms: u64,
    control: GuestControl,
}

impl Default for CheckLimits {
    fn default() -> Self {
        Self::from_limits(&Limits::default())
    }
}

impl CheckLimits {
    /// Returns the limits for a run with these limits.
    #[must_use]
    pub fn from_limits(limits: &Limits) -> Self {
        Self {
            cpu_ms_max: limits.guest_cpu_ms_max.min(CPU_MS_MAX),
            deadline_at_ms: u64::MAX,
            control: GuestControl::default(),
        }
    }

    /// Makes `stop` stop the check, as it stops the run.
    #[must_use]
    pub fn stopped_by(mut self, stop: StopHandle) -> Self {
        self.control.stop = stop;
        self
    }

    /// Takes memory and turns from the run's share of the budget.
    #[must_use]
    pub fn within(mut self, share: RunShare) -> Self {
        self.control.share = Some(share);
        self
    }

    fn at_most(self, cpu_ms_max: u64) -> Self {
        Self {
            cpu_ms_max: self.cpu_ms_max.min(cpu_ms_max),
            ..self
        }
    }

    /// Returns the limits that are left after `cpu_us` of computing.
    fn after(self, cpu_us: u64) -> Self {
        let left_ms = self.cpu_ms_max.saturating_sub(cpu_us / 1_000);
        self.at_most(left_ms)
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

/// Returns the maximum memory of the checker for a request of this size.
pub fn memory_bytes_max(request_bytes: usize) -> u64 {
    MEMORY_BYTES_BASE + MEMORY_PER_BYTE.saturating_mul(request_bytes as u64)
}

/// Creates checker guests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Checker {
    sandbox: Sandbox,
}

impl Checker {
    /// Returns the checker that this program contains. It is loaded when it is first needed.
    pub fn embedded() -> Result<Self, SandboxError> {
        let sandbox = Sandbox::checker()?;
        Ok(Self { sandbox })
    }

    /// Loads the checker now instead of at the first check. Blocks the thread.
    pub fn load(&self) -> Result<(), SandboxError> {
        self.sandbox.loaded()
    }

    /// See [`Sandbox::return_memory`].
    pub fn return_memory(&self) {
        self.sandbox.return_memory();
    }

    /// Checks a script against tools. If the checker fails on the script, the result is one
    /// finding.
    pub async fn check(
        &self,
        name: &str,
        script: &str,
        surface: &Surface<'_>,
        limits: &CheckLimits,
    ) -> (CheckResult, GuestUsage) {
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
            let left = limits.clone().after(usage.guest_cpu_us);
            let (reply, used) = self.ask(request, left).await;
            usage.guest_cpu_us += used.guest_cpu_us;
            usage.memory_bytes_peak = usage.memory_bytes_peak.max(used.memory_bytes_peak);
            let checked = reply.and_then(|reply| Ok(exchange.reply(reply)?));
            match checked {
                Ok(None) => {}
                Ok(Some(checked)) if is_plausible(&checked, script) => {
                    return (presentable(checked), usage);
                }
                Ok(Some(_)) => {
                    let why =
                        CheckerFailure::Failed("its reply does not match the script".to_owned());
                    return (self.defeated(script, &why, limits).await, usage);
                }
                // The run itself reports its cancellation.
                Err(CheckerFailure::Cancelled) => return (unread(), usage),
                Err(why) => return (self.defeated(script, &why, limits).await, usage),
            }
        }
    }

    /// Returns which globals and members a script uses, or an empty result if that cannot be
    /// determined. Each call is still checked against the tools that the session may use.
    pub async fn uses(&self, script: &str, limits: CheckLimits) -> Uses {
        let Ok(request) = (Request::Uses { script }).encode() else {
            return Uses::default();
        };
        let limits = limits.at_most(USES_CPU_MS_MAX);
        match self.ask(request, limits).await.0 {
            Ok(Reply::Uses(uses)) => uses,
            _ => Uses::default(),
        }
    }

    /// Adds code to the script that reports what fails in it. Returns the script with the guest
    /// that understands the reports.
    pub(super) fn instrument(
        &self,
        script: &str,
        look: InstrumentPass,
        control: &GuestControl,
    ) -> Option<InstrumentedScript> {
        let secret = secret()?;
        let request = Request::Instrument {
            script,
            look,
            secret,
        };
        self.instrumented(&request.encode().ok()?, control)
    }

    /// Adds code to the script that reports its position at each step, beginning with step `from`.
    pub(super) fn follow(
        &self,
        script: &str,
        from: Option<u64>,
        control: &GuestControl,
    ) -> Option<InstrumentedScript> {
        let secret = secret()?;
        let request = Request::Follow {
            script,
            from,
            secret,
        };
        self.instrumented(&request.encode().ok()?, control)
    }

    fn instrumented(&self, request: &[u8], control: &GuestControl) -> Option<InstrumentedScript> {
        let limits = CheckLimits {
            control: control.clone(),
            ..CheckLimits::default()
        };
        let bounds = limits.bounds(request);
        let started = large_stack::run(|| {
            let mut live = GuestInstance::new(&self.sandbox, bounds, control, &[]).ok()?;
            let reply = exchange(&mut live, request, GuestTurn::Start).ok()?;
            Some((live, reply))
        });
        match started?? {
            (live, Reply::Instrumented(Some(text))) => Some(InstrumentedScript { text, live }),
            _ => None,
        }
    }

    /// Sends one request to a new guest.
    async fn ask(
        &self,
        request: Vec<u8>,
        limits: CheckLimits,
    ) -> (Result<Reply, CheckerFailure>, GuestUsage) {
        let sandbox = self.sandbox.clone();
        let answered = large_stack::run_aside(move || {
            let bounds = limits.bounds(&request);
            let mut live = match GuestInstance::new(&sandbox, bounds, &limits.control, &[]) {
                Ok(live) => live,
                Err(stop) => return (Err(no_answer(&stop)), GuestUsage::default()),
            };
            let reply = exchange(&mut live, &request, GuestTurn::Start);
            (reply, live.usage())
        });
        answered.await.unwrap_or_else(|| {
            let why = "airlock could not start a thread".to_owned();
            (Err(CheckerFailure::Failed(why)), GuestUsage::default())
        })
    }

    /// Returns the one finding about a script that the checker could not process. If the script is
    /// nested too deeply, the finding has the position of the nesting.
    async fn defeated(
        &self,
        script: &str,
        why: &CheckerFailure,
        limits: &CheckLimits,
    ) -> CheckResult {
        let nesting = match (why, (Request::Nesting { script }).encode()) {
            (CheckerFailure::Limit(_), Ok(request)) => {
                let limits = CheckLimits {
                    control: limits.control.clone(),
                    ..CheckLimits::default()
                };
                let limits = limits.at_most(NESTING_CPU_MS_MAX);
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
                "Move inner parts into variables.",
            ),
            (CheckerFailure::Limit(_), None) => (
                FindingCode::TooComplex,
                format!("the script is too complex to check: {why}"),
                "Split it into smaller statements or shorter scripts.",
            ),
            (CheckerFailure::Cancelled | CheckerFailure::Failed(_), None) => (
                FindingCode::TooComplex,
                why.to_string(),
                "Run the script again when the machine has more free memory.",
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
        CheckResult {
            findings: vec![finding],
            ..unread()
        }
    }
}

/// Returns the result for a script that was not read.
fn unread() -> CheckResult {
    CheckResult {
        form: None,
        blanked: None,
        findings: Vec::new(),
        findings_dropped: 0,
    }
}

/// A script that reports on itself, with the guest that instrumented it and understands its
/// reports.
#[derive(Debug)]
pub(super) struct InstrumentedScript {
    pub(super) text: String,
    live: GuestInstance,
}

impl InstrumentedScript {
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
        large_stack::run(|| exchange(live, &question, GuestTurn::Resume).ok())?
    }
}

/// Returns a secret that marks the reports. The script prints on the same console, and cannot know
/// the secret.
fn secret() -> Option<Secret> {
    getrandom::u64().map(Secret).ok()
}

/// Sends one request and returns the reply. The caller must be on a thread with a large stack.
fn exchange(
    live: &mut GuestInstance,
    frame: &[u8],
    turn: GuestTurn,
) -> Result<Reply, CheckerFailure> {
    let reply = live
        .exchange(frame, turn)
        .map_err(|stop| no_answer(&stop))?;
    Ok(Reply::decode(&reply)?)
}

fn no_answer(stop: &GuestStop) -> CheckerFailure {
    use airlock_core::limits::Limit;
    match stop {
        GuestStop::Limit { limit, .. } => CheckerFailure::Limit(match limit {
            Limit::Cpu | Limit::Time => "computing time",
            Limit::Memory => "memory",
            _ => "nested calls",
        }),
        GuestStop::Interrupted { .. } => CheckerFailure::Cancelled,
        GuestStop::Busy { why, .. } => CheckerFailure::Failed(why.clone()),
        GuestStop::EngineFault { why, .. } => CheckerFailure::Failed(clip(why, 200)),
    }
}

/// Returns whether a result can belong to this script. In the text without types, each character
/// must equal the script's character at the same position, or be a blank or a mark.
fn is_plausible(checked: &CheckResult, script: &str) -> bool {
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

/// Returns whether the removal of types writes this character in place of another.
fn is_mark(c: char) -> bool {
    matches!(c, ' ' | ';' | '(' | ')')
}

fn presentable(mut checked: CheckResult) -> CheckResult {
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

/// Limits the length of a text, and removes invisible characters except line breaks and tabs.
fn presentable_text(text: &str) -> String {
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c));
    clip(
        &text.chars().filter(is_shown).collect::<String>(),
        MESSAGE_CHARS_MAX,
    )
}

#[cfg(test)]
mod tests;
