//! Drives one guest: answers its calls, advances its clock, and records its output.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use airlock_core::effect::{GuestStop, GuestUsage};
use airlock_sandbox::{Guest, GuestBounds, JsEngine, Sandbox, StopHandle};
use sandbox_protocol::{
    CallOutcome, Failure, GuestLimits, OpenCall, Outcome, Resume, ScriptError, ServerStubs, Start,
    StepState, ToolStub,
};

/// The tested engine, from `AIRLOCK_ENGINE`.
pub static ENGINE: LazyLock<JsEngine> = LazyLock::new(|| {
    std::env::var("AIRLOCK_ENGINE").map_or(JsEngine::default(), |name| {
        JsEngine::of_name(&name).expect("AIRLOCK_ENGINE names an engine")
    })
});

/// Returns the expectation for the tested engine. `docs/design/0022` lists the differences.
pub fn by_engine<T>(boa: T, quickjs: T) -> T {
    match *ENGINE {
        JsEngine::Boa => boa,
        JsEngine::QuickJs => quickjs,
    }
}

pub static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::load_embedded(*ENGINE).expect("the embedded guest loads"));

pub const LIMITS: GuestLimits = GuestLimits {
    console_bytes_max: 256 * 1024,
    console_flood_bytes_max: 16 * 1024 * 1024,
    args_bytes_max: 1024 * 1024,
    value_bytes_max: 1024 * 1024,
    json_depth_max: 256,
    recursion_max: 2_000,
};

/// Enough time for every script that is not stopped, also on a slow machine.
pub const BOUNDS: GuestBounds = GuestBounds {
    cpu_ms_max: 20_000,
    memory_bytes_max: 64 * 1024 * 1024,
    deadline_at_ms: u64::MAX,
};

pub const NOW_MS: u64 = 1_700_000_000_000;

/// Returns the stubs of two servers.
pub fn stubs() -> Vec<ServerStubs> {
    let server = |name: &str, tools: &[&str]| ServerStubs {
        name: name.to_owned(),
        tools: tools
            .iter()
            .map(|tool| ToolStub {
                member: (*tool).to_owned(),
                flat: format!("{name}_{tool}"),
                short: String::new(),
                order: Vec::new(),
                hidden: false,
            })
            .collect(),
    };
    vec![
        server("logs", &["search", "tail", "then"]),
        server("tracker", &["createIssue", "listIssues"]),
    ]
}

pub fn start(script: &str) -> Start {
    Start {
        script: script.to_owned(),
        script_name: "script.js".to_owned(),
        stubs: stubs(),
        input: Vec::new(),
        seed: 7,
        now_ms: NOW_MS,
        limits: LIMITS,
    }
}

/// Fails unless `attempt` ends within `most`. Allows for a busy or slow machine: it tries five
/// times, the last two times with a multiple of `most`.
#[track_caller]
pub fn soon(most: Duration, attempt: impl Fn()) {
    let mut walls = Vec::new();
    for slower in [1, 1, 1, 4, 20] {
        let begun = Instant::now();
        attempt();
        let wall = begun.elapsed();
        walls.push(wall);
        if wall < most * slower {
            return;
        }
    }
    panic!("not within {most:?}: {walls:?}");
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    State(StepState),
    Stopped(GuestStop),
}

pub struct RunResult {
    pub end: RunEnd,
    pub console: Vec<String>,
    pub calls: Vec<OpenCall>,
    pub usage: GuestUsage,
    /// The time that passed on the guest's clock.
    pub elapsed_ms: u64,
}

impl RunResult {
    /// Returns the value as JSON text.
    #[track_caller]
    pub fn value(&self) -> String {
        match &self.end {
            RunEnd::State(StepState::Done { value }) => String::from_utf8(value.clone()).unwrap(),
            other => panic!("not done: {other:?}\nconsole: {:?}", self.console),
        }
    }

    #[track_caller]
    pub fn error(&self) -> &ScriptError {
        match &self.end {
            RunEnd::State(StepState::Failed(error)) => error,
            other => panic!("not failed: {other:?}"),
        }
    }

    pub fn args(&self) -> Vec<String> {
        self.calls
            .iter()
            .map(|call| String::from_utf8(call.args.clone()).unwrap())
            .collect()
    }
}

/// Answers a call with its own tool and arguments, `{"tool":…,"args":…}`.
pub fn echo(call: &OpenCall) -> Option<Outcome> {
    let tool = &stubs()[usize::from(call.server)].tools[usize::from(call.tool)].member;
    let args = std::str::from_utf8(&call.args).unwrap();
    Some(Outcome::Value(
        format!("{{\"tool\":\"{tool}\",\"args\":{args}}}").into_bytes(),
    ))
}

pub fn failure(code: &str, message: &str) -> Outcome {
    Outcome::Failure(Failure {
        code: code.to_owned(),
        tool: "logs.search".to_owned(),
        message: message.to_owned(),
        retryable: false,
        content: br#"[{"type":"text","text":"no such index"}]"#.to_vec(),
        structured_content: Vec::new(),
    })
}

pub fn run(script: &str) -> RunResult {
    drive(&start(script), BOUNDS, echo)
}

pub fn run_with(script: &str, answer: impl FnMut(&OpenCall) -> Option<Outcome>) -> RunResult {
    drive(&start(script), BOUNDS, answer)
}

/// Drives a run to its end. Calls for which `answer` returns `None` stay open.
pub fn drive(
    start: &Start,
    bounds: GuestBounds,
    mut answer: impl FnMut(&OpenCall) -> Option<Outcome>,
) -> RunResult {
    let mut guest: Guest = SANDBOX.guest(bounds, &StopHandle::default());
    let mut now_ms = start.now_ms;
    let mut console = Vec::new();
    let mut calls = Vec::new();
    let mut turn = guest.start(start);
    let end = loop {
        let step = match turn {
            Ok(step) => step,
            Err(stop) => {
                let (GuestStop::EngineFault { console: lines, .. }
                | GuestStop::Limit { console: lines, .. }
                | GuestStop::Busy { console: lines, .. }
                | GuestStop::Interrupted { console: lines }) = &stop;
                console.extend(lines.iter().map(|line| line.text.clone()));
                break RunEnd::Stopped(stop);
            }
        };
        console.extend(step.console.into_iter().map(|line| line.text));
        let outcomes: Vec<_> = step
            .calls
            .iter()
            .filter_map(|call| {
                answer(call).map(|outcome| CallOutcome {
                    ticket: call.ticket,
                    outcome,
                })
            })
            .collect();
        calls.extend(step.calls);
        match step.state {
            StepState::Waiting { wake_at_ms } => {
                if outcomes.is_empty() {
                    match wake_at_ms {
                        Some(at_ms) => now_ms = now_ms.max(at_ms),
                        None => break RunEnd::State(step.state),
                    }
                }
                turn = guest.resume(&Resume { now_ms, outcomes });
            }
            state => break RunEnd::State(state),
        }
    };
    RunResult {
        end,
        console,
        calls,
        usage: guest.usage(),
        elapsed_ms: now_ms - start.now_ms,
    }
}
