//! How a run begins: its header on disk, then the guest.

use sandbox_protocol::{GuestLimits, Start};

use crate::effect::{Effect, GuestUsage};
use crate::grant::Grants;
use crate::id::Digest;
use crate::journal::{Body, RunStarted};
use crate::limits::{Limit, Limits};

use super::batch::Batch;
use super::calls::Calls;
use super::clock::Clock;
use super::console::Console;
use super::ending::Ending;
use super::{Guest, Life, Run, RunSpec};

impl Run {
    /// `now_ms`: the host's time, in milliseconds since the epoch.
    #[must_use]
    pub fn start(spec: RunSpec, now_ms: u64) -> (Self, Vec<Effect>) {
        let mut run = Self {
            clock: Clock::new(now_ms, spec.limits.run_wall_ms_max),
            guest: Guest::Computing,
            usage: GuestUsage::default(),
            calls: Calls::default(),
            grants: Grants::default(),
            console: Console::new(&spec.limits),
            outcomes: Vec::new(),
            denials: 0,
            latest_answer_ms: 0,
            wrote: false,
            out: Batch::default(),
            ending: None,
            life: Life::Running,
            spec,
        };
        let header = header(&run.spec);
        run.append(Body::RunStarted(Box::new(header)), false);
        match over_limit(&run.spec) {
            Some(limit) => {
                run.guest = Guest::Gone;
                run.end(Ending::Limit(limit));
            }
            None => {
                let start = start_message(&run.spec, now_ms);
                run.out.start_guest(start);
            }
        }
        let effects = run.advance();
        (run, effects)
    }
}

fn over_limit(spec: &RunSpec) -> Option<Limit> {
    if spec.script.len() > spec.limits.script_bytes_max as usize {
        return Some(Limit::Source);
    }
    (spec.input.len() > spec.limits.input_bytes_max as usize).then_some(Limit::Payload)
}

fn header(spec: &RunSpec) -> RunStarted {
    let tools = spec.standing.catalog.tools();
    let short = spec.input.len() <= spec.limits.journal_payload_bytes_max as usize;
    // A script beyond its limit is named by its digest and never parsed: no need to keep it.
    let kept = spec.script.len() <= spec.limits.script_bytes_max as usize;
    RunStarted {
        run: spec.run.clone(),
        script_name: spec.script_name.clone(),
        script_digest: Digest::of(spec.script.as_bytes()),
        script: if kept {
            spec.script.clone()
        } else {
            String::new()
        },
        input_digest: Digest::of(&spec.input),
        input: short.then(|| String::from_utf8_lossy(&spec.input).into_owned()),
        seed: spec.seed.to_string(),
        limits: spec.limits,
        rules: spec.standing.rules.to_lines(),
        tools: tools
            .map(|tool| (tool.id.to_string(), tool.description_digest))
            .collect(),
        guest_name: spec.guest.name.clone(),
        guest_digest: spec.guest.digest,
    }
}

fn start_message(spec: &RunSpec, now_ms: u64) -> Start {
    Start {
        script: spec.script.clone(),
        script_name: spec.script_name.clone(),
        stubs: spec.standing.catalog.stubs(),
        input: spec.input.clone(),
        seed: spec.seed,
        now_ms,
        limits: guest_limits(&spec.limits),
    }
}

fn guest_limits(limits: &Limits) -> GuestLimits {
    GuestLimits {
        console_bytes_max: limits.console_bytes_max,
        console_flood_bytes_max: limits.console_flood_bytes_max,
        args_bytes_max: limits.args_bytes_max,
        value_bytes_max: limits.value_bytes_max,
        json_depth_max: limits.json_depth_max,
        recursion_max: limits.recursion_max,
    }
}
