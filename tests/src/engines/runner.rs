//! Runs one script in the sandbox of one engine and records its output.

use airlock::core::effect::GuestStop;
use airlock::sandbox::{GuestBounds, JsEngine, Sandbox, SandboxError, StopHandle};
use sandbox_protocol::{
    CallOutcome, ConsoleLine, GuestLimits, OpenCall, Resume, ScriptError, Start, Step, StepState,
};

use super::tools;

const LIMITS: GuestLimits = GuestLimits {
    console_bytes_max: 4 * 1024 * 1024,
    console_flood_bytes_max: 16 * 1024 * 1024,
    args_bytes_max: 1024 * 1024,
    value_bytes_max: 1024 * 1024,
    json_depth_max: 256,
    recursion_max: 2_000,
};

const BOUNDS: GuestBounds = GuestBounds {
    cpu_ms_max: 1_000,
    memory_bytes_max: 64 * 1024 * 1024,
    deadline_at_ms: u64::MAX,
};

/// The time of the clock when a script starts, and its advance per turn while a reply is pending.
const NOW_MS: u64 = 1_700_000_000_123;
const TURN_MS: u64 = 7;
/// Maximum number of turns of a script. A script that needs more is abandoned.
const STEPS_MAX: usize = 400;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Done(String),
    Failed(ScriptError),
    /// The name of any other end, such as a deadlock or too much output.
    Other(String),
    /// A limit of the host, which the engines reach at different places.
    Limit(String),
    Fault(String),
}

/// The output of one script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOutput {
    /// Console lines and calls, in their order.
    pub lines: Vec<String>,
    pub end: End,
}

/// The sandbox of one engine. Each script gets a new guest.
#[derive(Debug)]
pub struct EngineRunner {
    pub engine: JsEngine,
    sandbox: Sandbox,
}

/// A reply that has not yet arrived.
struct DueReply {
    turns: usize,
    outcome: CallOutcome,
}

impl EngineRunner {
    /// # Errors
    /// Fails if the program does not contain the engine.
    pub fn new(engine: JsEngine) -> Result<Self, SandboxError> {
        let sandbox = Sandbox::load_embedded(engine)?;
        Ok(Self { engine, sandbox })
    }

    /// Runs a script to its end.
    #[must_use]
    pub fn run(&self, script: &str) -> ScriptOutput {
        let mut guest = self.sandbox.guest(BOUNDS, &StopHandle::default());
        let mut lines = Vec::new();
        let mut due: Vec<DueReply> = Vec::new();
        let mut now_ms = NOW_MS;
        let mut turn = guest.start(&start(script));
        for _ in 0..STEPS_MAX {
            let step = match turn {
                Ok(step) => step,
                Err(stop) => return stopped(stop, lines),
            };
            let Step {
                console,
                calls,
                state,
                ..
            } = step;
            lines.extend(console.into_iter().map(line_text));
            for call in calls {
                lines.push(called(&call));
                let (outcome, turns) = tools::reply(&call);
                let ticket = call.ticket;
                let outcome = CallOutcome { ticket, outcome };
                due.push(DueReply { turns, outcome });
            }
            let StepState::Waiting { wake_at_ms } = state else {
                return ScriptOutput {
                    lines,
                    end: ended(state),
                };
            };
            let outcomes = arriving(&mut due);
            now_ms = match (wake_at_ms, due.is_empty() && outcomes.is_empty()) {
                (Some(at_ms), true) => now_ms.max(at_ms),
                (Some(at_ms), false) if at_ms > now_ms => at_ms.min(now_ms + TURN_MS),
                _ => now_ms + TURN_MS,
            };
            turn = guest.resume(&Resume { now_ms, outcomes });
        }
        let end = End::Other("it never ends".to_owned());
        ScriptOutput { lines, end }
    }
}

fn start(script: &str) -> Start {
    Start {
        script: script.to_owned(),
        script_name: "script.js".to_owned(),
        stubs: tools::stubs(),
        input: br#"{"n":3,"list":["a","b"],"nested":{"x":null}}"#.to_vec(),
        seed: 7,
        now_ms: NOW_MS,
        limits: LIMITS,
    }
}

/// Returns the replies that arrive in this turn. The reply to the later call comes first, because
/// the order of replies is not guaranteed.
fn arriving(due: &mut Vec<DueReply>) -> Vec<CallOutcome> {
    let (now, later): (Vec<DueReply>, Vec<DueReply>) = std::mem::take(due)
        .into_iter()
        .partition(|it| it.turns == 0);
    *due = later;
    for it in due.iter_mut() {
        it.turns -= 1;
    }
    now.into_iter().rev().map(|it| it.outcome).collect()
}

fn line_text(line: ConsoleLine) -> String {
    let level = format!("{:?}", line.level).to_lowercase();
    format!("{level}: {}", line.text)
}

fn called(call: &OpenCall) -> String {
    let args = String::from_utf8_lossy(&call.args);
    format!(
        "call {} in line {}: {} {args}",
        call.ticket.0,
        call.line,
        tools::name(call)
    )
}

fn ended(state: StepState) -> End {
    match state {
        StepState::Done { value } => End::Done(String::from_utf8_lossy(&value).into_owned()),
        StepState::Failed(error) => End::Failed(error),
        other => End::Other(format!("{other:?}")),
    }
}

fn stopped(stop: GuestStop, mut lines: Vec<String>) -> ScriptOutput {
    let (console, end) = match stop {
        GuestStop::Limit { limit, console } => (console, End::Limit(format!("{limit:?}"))),
        GuestStop::EngineFault { why, console } => (console, End::Fault(why)),
        GuestStop::Interrupted { console } => (console, End::Limit("Interrupted".to_owned())),
        GuestStop::Busy { console, .. } => (console, End::Limit("Busy".to_owned())),
    };
    lines.extend(console.into_iter().map(line_text));
    ScriptOutput { lines, end }
}
