//! Starts a run: first the header on disk, then the guest.

use std::collections::BTreeMap;

use sandbox_protocol::{GuestLimits, Start};

use crate::catalog::{Server, Tool};
use crate::effect::{Effect, GuestUsage};
use crate::flow::{FlowSpec, FlowTracker};
use crate::grant::{Binding, Grants};
use crate::id::Digest;
use crate::journal::{Body, RunStartedEntry, StartedServer, StartedTool};
use crate::json::{self, Bounds};
use crate::limits::{Limit, Limits};

use super::batch::Batch;
use super::calls::Calls;
use super::clock::Clock;
use super::console::Console;
use super::inquiries::Inquiries;
use super::run_end::RunEnd;
use super::{Guest, Life, Run, RunSpec};

impl Run {
    /// Starts a run. `now_ms`: the host's time, in milliseconds since the epoch.
    #[must_use]
    pub fn start(mut spec: RunSpec, now_ms: u64) -> (Self, Vec<Effect>) {
        let mut flow = spec.flow.take();
        if let (Some(flow), Some(resume)) = (&mut flow, &spec.resume) {
            flow.add_start_labels(&resume.labels);
        }
        let labels = flow.as_ref().map(FlowSpec::start_labels);
        let declassified = flow.as_ref().map(|flow| flow.carried.declassified.clone());
        let binding = Binding {
            run: spec.run.clone(),
            script: Digest::sha256(spec.script.as_bytes()),
            policy: spec.decision_context.rules.digest(),
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
            held_by_host: 0,
            tracker: flow.map(|flow| {
                FlowTracker::new(flow, spec.decision_context.disclosed.clone(), &spec.script)
            }),
            console: Console::new(&spec.limits),
            indeterminate: BTreeMap::new(),
            without_result: BTreeMap::new(),
            resuming: None,
            drain: None,
            resting_since_ms: None,
            outcomes: Vec::new(),
            denials: 0,
            latest_answer_ms: 0,
            is_approver_absent: false,
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
        if let Some(resume) = run.spec.resume.take() {
            run.begin_resuming(*resume);
        }
        let mut header = header(&run.spec);
        if let Some(resuming) = &run.resuming {
            header.chain = Some(resuming.position.clone());
            header.same_servers.clone_from(&resuming.same_servers);
        }
        header.declassified = declassified.unwrap_or_default();
        header.labels = labels;
        run.append(Body::RunStarted(Box::new(header)), false);
        run.admit_grants();
        match unfit(&run.spec) {
            Some(ending) => {
                run.guest = Guest::Gone;
                run.end(ending);
            }
            None => {
                let start = start_message(&run.spec, run.clock.run_ms());
                run.out.start_guest(start);
            }
        }
        let effects = run.advance();
        (run, effects)
    }
}

/// Returns why the run ends before its guest is started. Limits are only validated here, and all
/// later code relies on valid limits.
fn unfit(spec: &RunSpec) -> Option<RunEnd> {
    let limits = &spec.limits;
    if let Err(bad) = limits.validate() {
        let why = bad.to_string();
        return Some(RunEnd::Unfit { why });
    }
    if spec.script.len() > limits.script_bytes_max as usize {
        return Some(RunEnd::Limit(Limit::Source));
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
        return Some(RunEnd::Limit(Limit::Payload));
    }
    if !json::is_one_value(&spec.input) {
        let why = "the input is not JSON".into();
        return Some(RunEnd::Unfit { why });
    }
    rejected(spec)
}

/// Returns the ending for a script with a definite error; no guest is started for it.
fn rejected(spec: &RunSpec) -> Option<RunEnd> {
    let rejection = spec.check.rejection.clone()?;
    Some(RunEnd::Rejected(Box::new(rejection)))
}

fn header(spec: &RunSpec) -> RunStartedEntry {
    let catalog = &spec.decision_context.catalog;
    let short = spec.input.len() <= spec.limits.journal_payload_bytes_max as usize;
    // A script beyond the size limit is never parsed, so its digest is enough.
    let kept = spec.script.len() <= spec.limits.script_bytes_max as usize;
    RunStartedEntry {
        run: spec.run.clone(),
        script_name: spec.script_name.clone(),
        script_digest: Digest::sha256(spec.script.as_bytes()),
        script: kept.then(|| spec.script.clone()),
        input_digest: Digest::sha256(&spec.input),
        input: short.then(|| String::from_utf8_lossy(&spec.input).into_owned()),
        seed: spec.seed.to_string(),
        limits: spec.limits,
        rules: spec.decision_context.rules.to_lines(),
        servers: catalog.servers().iter().map(started_server).collect(),
        tools: catalog.tools().map(|tool| started_tool(tool)).collect(),
        guest_name: spec.guest.name.clone(),
        guest_digest: spec.guest.digest,
        findings: spec.check.findings.clone(),
        declassified: Vec::new(),
        labels: None,
        program: spec.origin.program.clone(),
        caller: spec.origin.caller.clone(),
        host: spec.origin.host.clone(),
        session: spec.origin.session.clone(),
        command: spec.origin.command.clone(),
        chain: None,
        same_servers: Vec::new(),
        masked: false,
    }
}

fn started_server(server: &Server) -> StartedServer {
    StartedServer {
        name: server.name.clone(),
        global: server.global.clone(),
        target: server.target.clone(),
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
        upstream: Some(tool.upstream_digest),
        repeatable: Some(tool.is_repeatable()),
    }
}

fn start_message(spec: &RunSpec, now_ms: u64) -> Start {
    Start {
        script: spec.check.blanked.as_ref().unwrap_or(&spec.script).clone(),
        script_name: spec.script_name.clone(),
        stubs: spec.decision_context.catalog.stubs(),
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
