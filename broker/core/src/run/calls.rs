//! The calls of a run, from the guest's bytes until they are sent. Each call is parsed and decided
//! when the script makes it, and sent as soon as the limit of calls in flight permits.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use sandbox_protocol::{CallOutcome, CallTicket, Failure, OpenCall, Outcome};

use crate::call::{Args, BadArgs, Call, CallHistory, Site};
use crate::catalog::{Catalog, Tool, ToolOwner};
use crate::code::Code;
use crate::decide::{
    AuthorizedCall, CoveredCall, Decision, PendingCall, Refusal, cut, decide, decide_again,
};
use crate::id::{CallId, CallRef, Digest, ToolId};
use crate::journal::{Body, DecidedEntry, Verdict};
use crate::level::Level;
use crate::limits::{ARGS_OPEN_BYTES_MAX, DENIALS_MAX, Limit};
use crate::report::{ReportedDecision, ReportedOutcome};
use crate::resume::matching::{CallMatch, ReuseBlocker};

use super::Run;
use super::entries::{decided, undecided};
use super::run_end::RunEnd;

/// Maximum number of warnings reported per call.
const WARNINGS_MAX: usize = 4;

/// One call and its current stage.
#[derive(Debug)]
pub(super) struct CallRecord {
    pub(super) id: CallId,
    pub(super) ticket: CallTicket,
    args_bytes: usize,
    pub(super) tool: ToolId,
    pub(super) decision: ReportedDecision,
    pub(super) reasons: Vec<String>,
    pub(super) outcome: Option<ReportedOutcome>,
    pub(super) code: Option<Code>,
    pub(super) ms: u64,
    pub(super) warnings: Vec<String>,
    /// How the call relates to earlier runs of the chain.
    pub(super) origin: CallOrigin,
    pub(super) stage: CallStage,
}

/// How a call relates to earlier runs of its chain.
#[derive(Debug, Clone, Default)]
pub(super) enum CallOrigin {
    #[default]
    New,
    /// The outcome of this call was reused.
    Reused(CallRef),
    /// The call repeats an earlier one.
    Again {
        from: CallRef,
        earlier: Option<Digest>,
        /// Whether the result differs from the earlier one.
        changed: Option<bool>,
    },
    Doubtful(Vec<CallRef>),
}

#[derive(Debug)]
pub(super) enum CallStage {
    /// The call waits for a human. `open` is set once its question was sent.
    Asking {
        pending: PendingCall,
        since_ms: u64,
        open: bool,
    },
    /// The call is allowed and waits until fewer calls are in flight.
    Queued(AuthorizedCall),
    /// A shared grant covers the call. The call waits until fewer calls are in flight; then a use
    /// is claimed.
    Covered(CoveredCall),
    Claiming(CoveredCall),
    InFlight {
        tool: Arc<Tool>,
        args: Args,
        since_ms: u64,
        batch: u64,
    },
    Over,
}

/// All calls of a run, in the order in which the script made them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) records: Vec<CallRecord>,
    pub(super) queue: VecDeque<CallId>,
    /// Calls that wait for a human, whether their question was sent or not.
    pub(super) asking: BTreeSet<CallId>,
    /// Calls whose question was not sent yet, and some that no longer need a question.
    pub(super) to_ask: VecDeque<CallId>,
    pub(super) asks_open: usize,
    /// Number of calls of each tool that wait for a human.
    asking_of: HashMap<ToolId, u32>,
    /// Number of calls for which a use of a shared grant is being claimed.
    pub(super) claiming: u32,
    /// Size of the arguments of all unfinished calls.
    pub(super) args_open_bytes: usize,
    pub(super) in_flight: u32,
    /// Number of extraction requests among the calls in flight.
    extracting: u32,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_any_open(&self) -> bool {
        self.in_flight + self.claiming > 0 || !self.asking.is_empty() || !self.queue.is_empty()
    }

    /// Whether only a human's answer can advance the run. `inquiring` is the number of calls in
    /// flight that wait for the host, and `held_by_host` the number of extraction requests that were
    /// handed to a host. Extractions do not count as other work, because the same host may answer
    /// them together with the questions. Without a question, the run waits for a human only if all
    /// extractions were handed to a host.
    pub(super) fn is_only_asking(&self, inquiring: u32, held_by_host: u32) -> bool {
        let of_host = inquiring + self.extracting;
        let others = self.in_flight.saturating_sub(of_host) + self.claiming;
        let is_away = self.extracting > 0 && held_by_host >= self.extracting;
        (inquiring > 0 || !self.asking.is_empty() || is_away)
            && others == 0
            && self.queue.is_empty()
    }

    pub(super) fn asking_of(&self, tool: &ToolId) -> u32 {
        self.asking_of.get(tool).copied().unwrap_or(0)
    }

    pub(super) fn record(&mut self, call: CallId) -> Option<&mut CallRecord> {
        self.records.get_mut((call.0 as usize).checked_sub(1)?)
    }

    pub(super) fn get(&self, call: CallId) -> Option<&CallRecord> {
        self.records.get((call.0 as usize).checked_sub(1)?)
    }

    /// Returns the record of a ticket, the guest's number for a call. Tickets always increase.
    pub(super) fn by_ticket(&self, ticket: CallTicket) -> Option<&CallRecord> {
        let at = self
            .records
            .binary_search_by_key(&ticket, |record| record.ticket)
            .ok()?;
        self.records.get(at)
    }

    pub(super) fn enter(&mut self, open: &OpenCall, tool: &ToolId) -> CallId {
        let (ticket, args_bytes) = (open.ticket, open.args.len());
        let id = CallId(self.count().saturating_add(1));
        self.records.push(CallRecord {
            id,
            ticket,
            args_bytes,
            tool: tool.clone(),
            decision: ReportedDecision::Deny,
            reasons: Vec::new(),
            outcome: None,
            code: None,
            ms: 0,
            warnings: Vec::new(),
            origin: CallOrigin::New,
            stage: CallStage::Over,
        });
        id
    }

    /// Takes a call out of its stage; the caller must put it into the next one.
    pub(super) fn take(&mut self, call: CallId) -> CallStage {
        let Some(record) = self.record(call) else {
            return CallStage::Over;
        };
        let stage = std::mem::replace(&mut record.stage, CallStage::Over);
        if !matches!(stage, CallStage::Over) {
            self.args_open_bytes -= record.args_bytes;
        }
        match &stage {
            CallStage::Asking { open, pending, .. } => {
                self.asks_open -= usize::from(*open);
                self.asking.remove(&call);
                if let Some(count) = self.asking_of.get_mut(&pending.question().tool) {
                    *count = count.saturating_sub(1);
                }
            }
            CallStage::InFlight { tool, .. } => {
                self.in_flight -= 1;
                self.extracting -= u32::from(is_extraction(tool));
            }
            CallStage::Claiming(_) => self.claiming -= 1,
            CallStage::Queued(_) | CallStage::Covered(_) | CallStage::Over => {}
        }
        stage
    }

    pub(super) fn put(&mut self, call: CallId, stage: CallStage) {
        match &stage {
            CallStage::Asking { open, pending, .. } => {
                self.asking.insert(call);
                let tool = &pending.question().tool;
                match self.asking_of.get_mut(tool) {
                    Some(count) => *count += 1,
                    None => drop(self.asking_of.insert(tool.clone(), 1)),
                }
                if *open {
                    self.asks_open += 1;
                } else {
                    self.to_ask.push_back(call);
                }
            }
            CallStage::InFlight { tool, .. } => {
                self.in_flight += 1;
                self.extracting += u32::from(is_extraction(tool));
            }
            CallStage::Claiming(_) => self.claiming += 1,
            CallStage::Queued(_) | CallStage::Covered(_) => self.queue.push_back(call),
            CallStage::Over => {}
        }
        let is_open = !matches!(stage, CallStage::Over);
        let Some(record) = self.record(call) else {
            return;
        };
        record.stage = stage;
        let bytes = record.args_bytes;
        if is_open {
            self.args_open_bytes += bytes;
        }
    }
}

/// A call of a step with its parsed arguments.
pub(super) struct ParsedCall {
    open: OpenCall,
    pub(super) args: Result<Args, BadArgs>,
}

impl ParsedCall {
    pub(super) fn tool<'a>(&self, catalog: &'a Catalog) -> Option<&'a Arc<Tool>> {
        catalog.tool_of_call(&self.open)
    }
}

impl Run {
    /// Handles all calls that the script made in one step.
    pub(super) fn called_all(&mut self, calls: Vec<OpenCall>) {
        let parse = |open: OpenCall| ParsedCall {
            args: Args::parse(&open.args, &self.spec.limits),
            open,
        };
        let calls: Vec<_> = calls.into_iter().map(parse).collect();
        let mut matches = self.match_step(&calls).into_iter();
        for call in calls {
            let matched = matches.next().flatten();
            if self.ending.is_some() {
                self.not_started(&call.open);
            } else {
                self.called(call, matched);
            }
        }
    }

    /// Handles a call that the script made.
    fn called(&mut self, call: ParsedCall, matched: Option<CallMatch>) {
        let ParsedCall { open, args } = call;
        let latest = self.calls.records.last().map(|record| record.ticket);
        let Some(tool) = self
            .spec
            .decision_context
            .catalog
            .tool_of_call(&open)
            .map(Arc::clone)
        else {
            return self.end(RunEnd::EngineFault {
                why: "the guest called a tool that has no stub".into(),
            });
        };
        if latest.is_some_and(|latest| open.ticket <= latest) {
            return self.end(RunEnd::EngineFault {
                why: "the guest's call numbers do not increase".into(),
            });
        }
        let id = self.calls.enter(&open, &tool.id);
        if id.0 > self.spec.limits.calls_max {
            self.refuse_unparsed(id, &tool, &open, Code::LimitCalls, "too many calls".into());
            return self.end(RunEnd::Limit(Limit::Calls));
        }
        match args {
            Ok(args) => {
                let site = Site {
                    line: open.line,
                    column: open.column,
                };
                self.add_warnings(id, &tool, &args);
                let now_ms = self.clock.host_ms();
                let tracker = self.tracker.as_mut();
                let facts =
                    tracker.map(|tracker| Arc::new(tracker.facts(id, &tool, &args, now_ms)));
                let call = Call {
                    id,
                    tool: tool.id.clone(),
                    args,
                    site,
                    facts,
                    history: CallHistory::default(),
                };
                self.place(call, &tool, matched);
                if self.calls.args_open_bytes > ARGS_OPEN_BYTES_MAX {
                    self.end(RunEnd::Limit(Limit::Payload));
                }
            }
            Err(bad) => self.bad_args(id, &tool, &open, &bad),
        }
    }

    /// Adds warnings about arguments that are probably a mistake. They do not stop the call.
    fn add_warnings(&mut self, id: CallId, tool: &Tool, args: &Args) {
        let Some(doubts) = &tool.likely_mistakes else {
            return;
        };
        let found = doubts.findings(args.value());
        if let Some(record) = self.calls.record(id) {
            let shown = found.iter().take(WARNINGS_MAX);
            record.warnings = shown.map(|it| cut(it)).collect();
        }
    }

    /// Records a call that the script made in a step in which the run had already ended.
    pub(super) fn not_started(&mut self, open: &OpenCall) {
        let catalog = &self.spec.decision_context.catalog;
        let known = catalog.tool_of_call(open).map(Arc::clone);
        let latest = self.calls.records.last().map(|record| record.ticket);
        let room = self.calls.count() < self.spec.limits.calls_max;
        let Some(tool) = known.filter(|_| room && latest.is_none_or(|it| it < open.ticket)) else {
            self.calls_not_recorded = self.calls_not_recorded.saturating_add(1);
            return;
        };
        let id = self.calls.enter(open, &tool.id);
        let why = "the script made the call after the run had ended".to_owned();
        if let Some(record) = self.calls.record(id) {
            record.reasons = vec![why.clone()];
        }
        self.unsent(undecided(id, &tool, open, Verdict::Unsent, why));
    }

    fn bad_args(&mut self, id: CallId, tool: &Tool, open: &OpenCall, bad: &BadArgs) {
        let code = match bad.is_limit() {
            true => Code::LimitPayload,
            false => Code::InvalidArguments,
        };
        self.refuse_unparsed(id, tool, open, code, bad.to_string());
    }

    /// Refuses a call whose arguments could not be parsed, or that exceeds a limit.
    fn refuse_unparsed(
        &mut self,
        id: CallId,
        tool: &Tool,
        open: &OpenCall,
        code: Code,
        why: String,
    ) {
        let message = format!("the call to `{}` was not made: {why}", tool.id);
        let decided = DecidedEntry {
            code: Some(code),
            ..undecided(id, tool, open, Verdict::Deny, why)
        };
        self.deny(decided, message);
    }

    /// Applies a decision to the call: it is queued, waits for a human, or is finished.
    pub(super) fn apply(&mut self, id: CallId, decision: Decision) {
        match decision {
            Decision::Allow(call) => {
                self.goes_live(call.catalog_tool().owner);
                self.tracker_allowed(&call);
                if let Some(record) = self.calls.record(id) {
                    if record.decision != ReportedDecision::Ask {
                        record.decision = ReportedDecision::Allow;
                    }
                    record.reasons = call.reasons().to_vec();
                }
                self.calls.put(id, CallStage::Queued(call));
            }
            Decision::Claim(covered) => {
                self.goes_live(ToolOwner::Other);
                if let Some(record) = self.calls.record(id) {
                    record.reasons.clone_from(&covered.question().reasons);
                }
                self.calls.put(id, CallStage::Covered(covered));
            }
            Decision::Ask(pending) => {
                self.goes_live(ToolOwner::Other);
                if pending.question().level == Level::AskRun {
                    self.grants.note_asked(pending.call());
                }
                if let Some(record) = self.calls.record(id) {
                    record.decision = ReportedDecision::Ask;
                    record.reasons.clone_from(&pending.question().reasons);
                }
                // The waiting time starts when the question is sent.
                let since_ms = self.clock.host_ms();
                self.calls.put(
                    id,
                    CallStage::Asking {
                        pending,
                        since_ms,
                        open: false,
                    },
                );
            }
            Decision::Deny(refusal) => {
                let Refusal {
                    call,
                    code,
                    reasons,
                    message,
                } = refusal;
                let decided = DecidedEntry {
                    code: Some(code),
                    reasons,
                    ..self.entry_of(call)
                };
                self.deny(decided, message);
            }
        }
    }

    /// Decides on a call that no recorded outcome answers.
    pub(super) fn decide_call(&mut self, call: Call, tool: &Tool) {
        let id = call.id;
        if let Some(by) = self.blocker(tool, &call.args) {
            return self.ask_or_block(call, tool, by, ReuseBlocker::UnknownOutcome);
        }
        if let Some(by) = self.known_effect(tool, &call.args) {
            let entry = self.entry_of(call);
            return self.block(entry, by, ReuseBlocker::ResultNotKnown);
        }
        let decision = decide(call, &self.spec.decision_context, &mut self.grants);
        self.apply(id, decision);
    }

    /// Returns the entry of a call that is denied without a decision on it.
    pub(super) fn entry_of(&self, call: Call) -> DecidedEntry {
        DecidedEntry {
            call: call.id,
            description: self.description(&call.tool),
            tool: call.tool,
            args_digest: call.args.digest(),
            args: Some(call.args),
            facts: call.facts,
            site: call.site,
            decision: Verdict::Deny,
            code: None,
            reasons: Vec::new(),
            told: None,
            warnings: Vec::new(),
            grant: None,
            again: None,
            blocked_by: None,
            near: Vec::new(),
            masked: false,
        }
    }

    fn description(&self, tool: &ToolId) -> Option<Digest> {
        self.spec
            .decision_context
            .catalog
            .find(tool)
            .map(|tool| tool.description_digest)
    }

    /// Denies a call: nothing happened outside, and the script's promise rejects.
    pub(super) fn deny(&mut self, mut decided: DecidedEntry, message: String) {
        decided.told = Some(message.clone());
        let code = decided.code.unwrap_or(Code::Denied);
        let failure = Failure {
            code: code.as_str().into(),
            tool: decided.tool.to_string(),
            message,
            retryable: false,
            content: Vec::new(),
            structured_content: Vec::new(),
        };
        if let Some(record) = self.calls.record(decided.call) {
            record.reasons.clone_from(&decided.reasons);
            record.code = Some(code);
            record.outcome = Some(match code {
                Code::Refused | Code::Unanswered => ReportedOutcome::Refused,
                Code::OutcomeUnknown => ReportedOutcome::NotSent,
                _ => ReportedOutcome::Denied,
            });
        }
        self.tell(decided.call, Outcome::Failure(failure));
        self.append(Body::Decided(Box::new(decided)), false);
        self.denials += 1;
        if self.denials >= DENIALS_MAX {
            self.end(RunEnd::TooManyDenials);
        }
    }

    /// Stores an outcome until the guest is resumed.
    pub(super) fn tell(&mut self, call: CallId, outcome: Outcome) {
        if let Some(ticket) = self.calls.record(call).map(|record| record.ticket) {
            self.outcomes.push((call, CallOutcome { ticket, outcome }));
        }
    }

    /// Sends allowed calls in their order, up to the limit of calls in flight. Each call is
    /// recorded first.
    pub(super) fn send_queued(&mut self) {
        while self.ending.is_none() && self.is_room() {
            let Some(id) = self.calls.queue.pop_front() else {
                return;
            };
            match self.calls.take(id) {
                CallStage::Queued(call) if self.has_lapsed(&call) => {
                    let decision =
                        decide_again(call, &self.spec.decision_context, &mut self.grants);
                    self.apply(id, decision);
                }
                CallStage::Queued(call) => self.send(id, call),
                CallStage::Covered(covered) => self.claim(id, covered),
                _ => {}
            }
        }
    }

    fn is_room(&self) -> bool {
        self.calls.in_flight + self.calls.claiming < self.spec.limits.calls_in_flight_max
    }

    fn has_lapsed(&self, call: &AuthorizedCall) -> bool {
        call.used()
            .is_some_and(|used| used.expires_at_ms <= self.clock.host_ms())
    }

    pub(super) fn tracker_allowed(&mut self, call: &AuthorizedCall) {
        if let Some(tracker) = &mut self.tracker {
            tracker.count_allowed(call.catalog_tool(), call.args().len());
        }
    }

    pub(super) fn send(&mut self, id: CallId, call: AuthorizedCall) {
        if self.is_blocked(&call) {
            return;
        }
        let writes = !call.catalog_tool().effects.is_known_read_only();
        self.wrote |= writes;
        let entry = decided(&call, Verdict::Allow);
        self.append(Body::Decided(Box::new(entry)), writes);
        let tool = Arc::clone(call.catalog_tool());
        let args = call.canonical_args().clone();
        let (since_ms, batch) = (self.clock.host_ms(), self.out.number());
        self.calls.put(
            id,
            CallStage::InFlight {
                tool,
                args,
                since_ms,
                batch,
            },
        );
        self.out.call(call);
    }
}

fn is_extraction(tool: &Tool) -> bool {
    tool.owner == ToolOwner::OwnForwarding
}
