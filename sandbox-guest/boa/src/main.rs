//! Runs one script natively, for debugging: prints every step, and answers each
//! call with a text that says which call it was.

use std::process::ExitCode;

use guest_boa::Guest;
use sandbox_protocol::{
    CallOutcome, GuestLimits, Outcome, Resume, ServerStubs, Start, Step, StepState, ToolStub,
};

const LIMITS: GuestLimits = GuestLimits {
    console_bytes_max: 256 * 1024,
    console_flood_bytes_max: 16 * 1024 * 1024,
    args_bytes_max: 4 * 1024 * 1024,
    value_bytes_max: 4 * 1024 * 1024,
    json_depth_max: 256,
    recursion_max: 500,
};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: guest-boa SCRIPT [SERVER.TOOL…]");
        return ExitCode::from(2);
    };
    let script = match std::fs::read_to_string(&path) {
        Ok(script) => script,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(2);
        }
    };
    let stubs = std::env::args().skip(2).filter_map(|name| {
        let (server, tool) = name.split_once('.')?;
        let flat = format!("{server}_{tool}");
        let tools = vec![ToolStub {
            member: tool.to_owned(),
            flat,
        }];
        Some(ServerStubs {
            name: server.to_owned(),
            tools,
        })
    });
    let start = Start {
        script,
        script_name: "script.js".to_owned(),
        stubs: stubs.collect(),
        input: Vec::new(),
        seed: 1,
        now_ms: 0,
        limits: LIMITS,
    };
    match (Guest::new(), Guest::new()) {
        (Ok(mut first), Ok(mut second)) => {
            let now_ms = start.now_ms;
            let step = first.start(start.clone());
            if drive(first, step, now_ms) {
                return ExitCode::SUCCESS;
            }
            println!("once more, watched:");
            let step = second.explain(start);
            drive(second, step, now_ms);
        }
        (Err(why), _) | (_, Err(why)) => eprintln!("{why}"),
    }
    ExitCode::FAILURE
}

/// Answers calls and lets the clock jump until the script ends; true when it returned.
fn drive(mut guest: Guest, mut step: Step, mut now_ms: u64) -> bool {
    loop {
        for line in &step.console {
            eprintln!("{:?} {}", line.level, line.text);
        }
        let mut outcomes = Vec::new();
        for call in &step.calls {
            let args = String::from_utf8_lossy(&call.args);
            println!(
                "call {} at {}:{}: {args}",
                call.ticket.0, call.line, call.column
            );
            let value = format!("{{\"call\":{},\"args\":{args}}}", call.ticket.0);
            outcomes.push(CallOutcome {
                ticket: call.ticket,
                outcome: Outcome::Value(value.into_bytes()),
            });
        }
        match step.state {
            StepState::Waiting { wake_at_ms } => {
                if outcomes.is_empty() {
                    now_ms = wake_at_ms.unwrap_or(now_ms + 1);
                }
                step = guest.resume(Resume { now_ms, outcomes });
            }
            StepState::Done { value } => {
                println!("{}", String::from_utf8_lossy(&value));
                return true;
            }
            other => {
                println!("{other:#?}");
                return false;
            }
        }
    }
}
