//! Runs one script natively, for debugging: prints every step, and answers each call with a text
//! that contains the call's name.

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
    let mut words = std::env::args().skip(1);
    let Some(path) = words.next() else {
        eprintln!("usage: guest-boa SCRIPT [--input FILE] [SERVER.TOOL…]");
        return ExitCode::from(2);
    };
    let mut input = Vec::new();
    let mut stubs = Vec::new();
    while let Some(word) = words.next() {
        if word == "--input" {
            match read(&words.next().unwrap_or_default()) {
                Ok(text) => input = text.into_bytes(),
                Err(code) => return code,
            }
        } else {
            stubs.extend(stub(&word));
        }
    }
    let script = match read(&path) {
        Ok(script) => script,
        Err(code) => return code,
    };
    let start = Start {
        script,
        script_name: "script.js".to_owned(),
        stubs,
        input,
        seed: 1,
        now_ms: 0,
        limits: LIMITS,
    };
    run(start)
}

fn read(path: &str) -> Result<String, ExitCode> {
    std::fs::read_to_string(path).map_err(|error| {
        eprintln!("{path}: {error}");
        ExitCode::from(2)
    })
}

fn stub(name: &str) -> Option<ServerStubs> {
    let (server, tool) = name.split_once('.')?;
    let flat = format!("{server}_{tool}");
    let tools = vec![ToolStub {
        member: tool.to_owned(),
        flat,
        short: String::new(),
        order: Vec::new(),
        hidden: false,
    }];
    Some(ServerStubs {
        name: server.to_owned(),
        tools,
    })
}

fn run(start: Start) -> ExitCode {
    let now_ms = start.now_ms;
    let ended = Guest::new().map(|mut guest| {
        let step = guest.start(start);
        drive(guest, step, now_ms)
    });
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Answers calls and advances the clock until the script ends. Returns whether the script returned
/// a value.
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
