//! Tests of the run machine: events in, effects out. Each effect is a short group of words, so that
//! a test reads like a log of the run.

mod asks;
mod calls;
mod drain;
mod ending;
mod inquiries;
mod property;
mod replay;
mod resume;
mod resuming;
mod statements;
mod time;

use std::sync::Arc;

use sandbox_protocol::{
    CallTicket, ConsoleLevel, ConsoleLine, OpenCall, Outcome, ScriptError, Step, StepState,
};

use super::*;
use crate::decide::{Answer, DecisionContext};
use crate::journal::Verdict;
use crate::outcome::{LostCause, Reply};
use crate::report::Report;
use crate::statement::Statement;
use crate::testing::{catalog_of, rules, tool};

/// The host's time at which every test run starts.
const T0: u64 = 1_000_000;
/// The tools of the tests, by their index in the catalog; the first is known to be read-only.
const TOOLS: [&str; 3] = ["fs.read", "fs.write", "fs.delete"];

fn spec(rule_lines: &[&str], limits: Limits) -> RunSpec {
    let mut tools: Vec<_> = TOOLS.iter().map(|id| tool(id)).collect();
    tools[0].effects.read_only = Some(true);
    RunSpec {
        run: RunId("r1".into()),
        script_name: "a.js".into(),
        script: "return 1".into(),
        check: ScriptCheck::default(),
        input: Vec::new(),
        seed: 7,
        decision_context: DecisionContext {
            catalog: Arc::new(catalog_of(tools)),
            rules: Arc::new(rules(rule_lines)),
            disclosed: crate::session::DisclosedTools::All,
            no_extractor: None,
        },
        limits,
        flow: None,
        fsync: Fsync::Writes,
        guest: GuestIdentity {
            name: "test".into(),
            digest: Digest::sha256(b"g"),
        },
        grants: GrantSpec::default(),
        origin: RunOrigin::default(),
        redact: Redact::nothing(),
        resume: None,
        reaches_person: false,
        suspend_after_ms: None,
    }
}

/// A run and its report.
struct RunStory {
    run: Run,
    report: Option<Report>,
}

impl RunStory {
    fn start(rule_lines: &[&str], limits: Limits) -> Self {
        Self::new(spec(rule_lines, limits))
    }

    fn new(spec: RunSpec) -> Self {
        let (run, effects) = Run::start(spec, T0);
        assert_eq!(
            effects.iter().map(describe).collect::<Vec<_>>(),
            ["append run-started", "start"]
        );
        Self { run, report: None }
    }

    /// Starts a run with rules that allow everything, and default limits.
    fn open() -> Self {
        Self::start(&["allow *"], Limits::default())
    }

    fn hear(&mut self, after_ms: u64, event: Event) -> Vec<String> {
        self.hear_all(after_ms, vec![event])
    }

    /// Handles events and returns the effects without wake-up times, which the tests about time
    /// check.
    fn hear_all(&mut self, after_ms: u64, events: Vec<Event>) -> Vec<String> {
        let effects = self.hear_raw(after_ms, events);
        effects
            .into_iter()
            .filter(|effect| !effect.starts_with("wake"))
            .collect()
    }

    fn hear_raw(&mut self, after_ms: u64, events: Vec<Event>) -> Vec<String> {
        let effects = self.run.handle_all(T0 + after_ms, events);
        let described = effects.iter().map(describe).collect();
        for effect in effects {
            if let Effect::Finish(report) = effect {
                self.report = Some(*report);
            }
        }
        described
    }

    fn report(&self) -> &Report {
        self.report.as_ref().expect("the run has finished")
    }

    /// Returns `outcome code` of each call in the report.
    fn outcomes(&self) -> Vec<String> {
        let words = |call: &crate::report::ReportedCall| {
            let outcome = serde_json::to_value(call.outcome).unwrap();
            let code = call.code.map_or("-", |code| code.as_str());
            format!("{} {code}", outcome.as_str().unwrap())
        };
        self.report().calls.iter().map(words).collect()
    }
}

fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Append { entry, sync } => {
            let sync = if *sync { " sync" } else { "" };
            format!("append {}{sync}", describe_entry(&entry.body))
        }
        Effect::StartGuest(_) => "start".into(),
        Effect::Resume(resume) => {
            let told = resume.outcomes.iter().map(|told| match &told.outcome {
                Outcome::Value(value) => {
                    format!(" {}={}", told.ticket.0, String::from_utf8_lossy(value))
                }
                Outcome::Failure(failure) => format!(" {}!{}", told.ticket.0, failure.code),
            });
            format!("resume @{}{}", resume.now_ms - T0, told.collect::<String>())
        }
        Effect::StopGuest => "stop".into(),
        Effect::Call(call) => format!("call {}", call.id().0),
        Effect::KeepGrant(grant) => format!("keep {}", grant.id),
        Effect::Claim { call, grant } => format!("claim {grant} for {}", call.0),
        Effect::CancelCall(call) => format!("cancel {}", call.0),
        Effect::Ask(question) => format!("ask {}", question.call.0),
        Effect::WithdrawAsk(call) => format!("withdraw {}", call.0),
        Effect::ForwardInquiry(inquiry) => format!("carry {}", inquiry.0),
        Effect::EndInquiry { inquiry, end } => format!("end {} {end:?}", inquiry.0),
        Effect::Console(lines) => lines
            .iter()
            .map(|line| format!("show {}", line.text))
            .collect::<Vec<_>>()
            .join(", "),
        Effect::WakeAt { at_ms } => format!("wake @{}", at_ms - T0),
        Effect::Finish(report) => {
            let status = serde_json::to_value(report.status).unwrap();
            let code = report.code.map_or("-", |code| code.as_str());
            format!("finish {} {code}", status.as_str().unwrap())
        }
    }
}

fn describe_entry(body: &Body) -> String {
    match body {
        Body::RunStarted(_) => "run-started".into(),
        Body::Asked(asked) => format!("asked {}", asked.call.0),
        Body::Stated(stated) => {
            let Statement { about, outcome, .. } = &stated.statement;
            format!("stated {about} {outcome:?}")
        }
        Body::Answered(answered) => format!("answered {} {:?}", answered.call.0, answered.answer),
        Body::GrantGiven(given) => format!("given {}", given.grant.id),
        Body::GrantVoided(voided) => format!("voided {}", voided.grant),
        Body::GrantClaimed(claimed) => format!("claims {} for {}", claimed.grant, claimed.call.0),
        Body::Decided(decided) => match decided.decision {
            Verdict::Allow => format!("allowed {}", decided.call.0),
            Verdict::Deny => format!("denied {}", decided.call.0),
            Verdict::Unsent => format!("unsent {}", decided.call.0),
        },
        Body::Inquired(inquired) => format!("inquired {}", inquired.inquiry.0),
        Body::InquiryEnded(ended) => {
            format!("inquiry-ended {} {:?}", ended.inquiry.0, ended.end)
        }
        Body::Settled(settled) => format!("settled {}", settled.call.0),
        Body::Reused(reused) => format!("reused {} from {}", reused.call.0, reused.from),
        Body::Resumed(_) => "resumed".into(),
        Body::Suspended(suspended) => format!("suspended {}", suspended.calls.len()),
        Body::Ended(_) => "ended".into(),
    }
}

/// Returns a call of the tool with this index in [`TOOLS`].
fn open_call(ticket: u32, tool: u16, args: &str) -> OpenCall {
    let ticket = CallTicket(ticket);
    OpenCall {
        ticket,
        server: 0,
        tool,
        args: args.into(),
        line: 1,
        column: 1,
    }
}

fn step(calls: Vec<OpenCall>, state: StepState) -> Event {
    let step = Step {
        console: Vec::new(),
        console_dropped_bytes: 0,
        calls,
        state,
    };
    Event::Stepped {
        step,
        usage: GuestUsage::default(),
        paths: Vec::new(),
        whereabouts: None,
    }
}

/// Returns the event of a guest that has called these tools with `{}` and now waits.
fn waits(calls: &[(u32, u16)]) -> Event {
    let calls = calls
        .iter()
        .map(|(ticket, tool)| open_call(*ticket, *tool, "{}"))
        .collect();
    step(calls, StepState::Waiting { wake_at_ms: None })
}

fn sleeps_until(after_ms: u64) -> Event {
    step(
        Vec::new(),
        StepState::Waiting {
            wake_at_ms: Some(T0 + after_ms),
        },
    )
}

fn returns(value: &str) -> Event {
    step(
        Vec::new(),
        StepState::Done {
            value: value.into(),
        },
    )
}

fn throws(code: &str, ticket: Option<u32>) -> Event {
    let error = ScriptError {
        name: "ToolError".into(),
        message: "no".into(),
        code: code.into(),
        line: 2,
        column: 5,
        stack: "at a.js:2:5".into(),
        ticket: ticket.map(CallTicket),
    };
    step(Vec::new(), StepState::Failed(error))
}

fn prints(text: &str, state: StepState) -> Event {
    let line = ConsoleLine {
        level: ConsoleLevel::Log,
        text: text.into(),
    };
    let step = Step {
        console: vec![line],
        console_dropped_bytes: 0,
        calls: Vec::new(),
        state,
    };
    Event::Stepped {
        step,
        usage: GuestUsage::default(),
        paths: Vec::new(),
        whereabouts: None,
    }
}

fn replies(call: u32, structured: &str) -> Event {
    let reply = Reply::Result {
        is_error: false,
        content: b"[]".to_vec(),
        structured_content: Some(structured.into()),
    };
    Event::Replied {
        call: CallId(call),
        reply,
    }
}

fn lost(call: u32) -> Event {
    let reply = Reply::Lost {
        why: "gone".into(),
        cause: LostCause::Disconnected,
    };
    Event::Replied {
        call: CallId(call),
        reply,
    }
}

fn answers(call: u32, answer: Answer) -> Event {
    Event::Answered {
        call: CallId(call),
        answer,
    }
}

fn append_fails() -> Event {
    Event::AppendFailed {
        why: "disk full".into(),
    }
}
