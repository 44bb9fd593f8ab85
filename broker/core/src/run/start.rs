//! How a run begins: its header on disk, then the guest.

use sandbox_protocol::{GuestLimits, Start};

use crate::catalog::{Server, Tool};
use crate::effect::{Effect, GuestUsage};
use crate::flow::Watch;
use crate::grant::{Binding, Grants};
use crate::id::Digest;
use crate::journal::{Body, RunStarted, StartedServer, StartedTool};
use crate::json::{self, Bounds};
use crate::limits::{Limit, Limits};

use super::batch::Batch;
use super::calls::Calls;
use super::clock::Clock;
use super::console::Console;
use super::ending::Ending;
use super::inquiries::Inquiries;
use super::{Guest, Life, Run, RunSpec};

impl Run {
    /// `now_ms`: the host's time, in milliseconds since the epoch.
    #[must_use]
    pub fn start(mut spec: RunSpec, now_ms: u64) -> (Self, Vec<Effect>) {
        let flow = spec.flow.take();
        let binding = Binding {
            run: spec.run.clone(),
            script: Digest::of(spec.script.as_bytes()),
            policy: spec.standing.rules.digest(),
            approver: spec.grants.approver.clone(),
            scopes: spec.grants.scopes.clone(),
        };
        let mut run = Self {
            clock: Clock::new(now_ms, &spec.limits),
            guest: Guest::Computing,
            usage: GuestUsage::default(),
            calls: Calls::default(),
            grants: Grants::new(binding, now_ms),
            inquiries: Inquiries::default(),
            in_hand: 0,
            watch: flow.map(|flow| Watch::new(flow, spec.standing.disclosed.clone(), &spec.script)),
            console: Console::new(&spec.limits),
            outcomes: Vec::new(),
            denials: 0,
            latest_answer_ms: 0,
            nobody_is_there: false,
            wrote: false,
            lift: false,
            steps: 0,
            calls_not_recorded: 0,
            journal_bytes: 0,
            out: Batch::default(),
            whereabouts: None,
            ending: None,
            life: Life::Running,
            spec,
        };
        let header = header(&run.spec);
        run.append(Body::RunStarted(Box::new(header)), false);
        run.admit_grants();
        match unfit(&run.spec) {
            Some(ending) => {
                run.guest = Guest::Gone;
                run.end(ending);
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

/// Why a run ends before its guest is started. Nothing else holds limits to their bounds,
/// and within them everything after this may rely on them.
fn unfit(spec: &RunSpec) -> Option<Ending> {
    let limits = &spec.limits;
    if let Err(bad) = limits.validate() {
        let why = bad.to_string();
        return Some(Ending::Unfit { why });
    }
    if spec.script.len() > limits.script_bytes_max as usize {
        return Some(Ending::Limit(Limit::Source));
    }
    if spec.input.is_empty() {
        return rejected(spec);
    }
    let bounds = Bounds {
        bytes_max: limits.input_bytes_max,
        depth_max: limits.json_depth_max,
        nodes_max: limits.json_nodes_max,
    };
    if json::measure(&spec.input, bounds).is_err() {
        return Some(Ending::Limit(Limit::Payload));
    }
    if !json::is_one_value(&spec.input) {
        let why = "the input is not JSON".into();
        return Some(Ending::Unfit { why });
    }
    rejected(spec)
}

/// A script that is certainly wrong: no guest hears of it.
fn rejected(spec: &RunSpec) -> Option<Ending> {
    let rejection = spec.check.rejection.clone()?;
    Some(Ending::Rejected(Box::new(rejection)))
}

fn header(spec: &RunSpec) -> RunStarted {
    let catalog = &spec.standing.catalog;
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
        servers: catalog.servers().iter().map(started_server).collect(),
        tools: catalog.tools().map(|tool| started_tool(tool)).collect(),
        guest_name: spec.guest.name.clone(),
        guest_digest: spec.guest.digest,
        findings: spec.check.findings.clone(),
    }
}

fn started_server(server: &Server) -> StartedServer {
    StartedServer {
        name: server.name.clone(),
        global: server.global.clone(),
    }
}

fn started_tool(tool: &Tool) -> StartedTool {
    StartedTool {
        tool: tool.id.clone(),
        member: tool.member.clone(),
        flat: tool.flat.clone(),
        unwrap: tool.unwrap,
        read_only: tool.effects.read_only,
        description: tool.description_digest,
    }
}

fn start_message(spec: &RunSpec, now_ms: u64) -> Start {
    Start {
        script: spec.check.blanked.as_ref().unwrap_or(&spec.script).clone(),
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
