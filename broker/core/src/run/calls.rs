//! The calls of a run, from the guest's bytes to leaving: each is parsed and
//! decided when the script makes it, and leaves when there is room for it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use sandbox_protocol::{CallOutcome, CallTicket, Failure, OpenCall, Outcome};

use crate::call::{Args, BadArgs, Call, Site};
use crate::catalog::{Tool, Whose};
use crate::code::Code;
use crate::decide::{AuthorizedCall, Covered, Decision, Pending, Refusal, again, cut, decide};
use crate::id::{CallId, Digest, ToolId};
use crate::journal::{Body, Decided, Verdict};
use crate::limits::{ARGS_OPEN_BYTES_MAX, DENIALS_MAX, Limit};
use crate::report::{ReportedDecision, ReportedOutcome};
use crate::rules::Level;

use super::Run;
use super::ending::Ending;
use super::entries::{decided, undecided};

/// Of one call; what is wrong beyond these is no more telling.
const WARNINGS_MAX: usize = 4;

/// One call and how far it has come.
#[derive(Debug)]
pub(super) struct Record {
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
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Waits for a human. `open`: the question is out.
    Asking {
        pending: Pending,
        since_ms: u64,
        open: bool,
    },
    /// Allowed; waits for room.
    Queued(AuthorizedCall),
    /// A shared grant covers it; waits for room, and then for its use.
    Covered(Covered),
    Claiming(Covered),
    InFlight {
        tool: Arc<Tool>,
        since_ms: u64,
        batch: u64,
    },
    Over,
}

/// All calls of a run, in the order in which the script made them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) records: Vec<Record>,
    pub(super) queue: VecDeque<CallId>,
    /// Calls that wait for a human, whether their question is out or not.
    pub(super) asking: BTreeSet<CallId>,
    /// Those whose question is not out yet, and some that need none any more.
    pub(super) to_ask: VecDeque<CallId>,
    pub(super) asks_open: usize,
    /// How many calls of each tool wait for a human.
    asking_of: HashMap<ToolId, u32>,
    /// Shared grants whose use is being counted.
    pub(super) claiming: u32,
    /// Of all calls that are not over.
    pub(super) args_open_bytes: usize,
    pub(super) in_flight: u32,
    /// Those of them that have a value read.
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

    /// Nothing but a human's answer can bring this run forward; so many calls in flight wait
    /// for the host. A value that is read beside a question may be read by the same host, which
    /// brings what it has in hand back together. Where all of those are in hand, nobody else is
    /// waited for either.
    pub(super) fn is_only_asking(&self, inquiring: u32, in_hand: u32) -> bool {
        let of_host = inquiring + self.extracting;
        let others = self.in_flight.saturating_sub(of_host) + self.claiming;
        let is_away = self.extracting > 0 && in_hand >= self.extracting;
        (inquiring > 0 || !self.asking.is_empty() || is_away)
            && others == 0
            && self.queue.is_empty()
    }

    pub(super) fn asking_of(&self, tool: &ToolId) -> u32 {
        self.asking_of.get(tool).copied().unwrap_or(0)
    }

    pub(super) fn record(&mut self, call: CallId) -> Option<&mut Record> {
        self.records.get_mut((call.0 as usize).checked_sub(1)?)
    }

    pub(super) fn get(&self, call: CallId) -> Option<&Record> {
        self.records.get((call.0 as usize).checked_sub(1)?)
    }

    /// The record of the guest's own number for a call; tickets only ever grow.
    pub(super) fn by_ticket(&self, ticket: CallTicket) -> Option<&Record> {
        let at = self
            .records
            .binary_search_by_key(&ticket, |record| record.ticket)
            .ok()?;
        self.records.get(at)
    }

    pub(super) fn enter(&mut self, open: &OpenCall, tool: &ToolId) -> CallId {
        let (ticket, args_bytes) = (open.ticket, open.args.len());
        let id = CallId(self.count().saturating_add(1));
        self.records.push(Record {
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
            stage: Stage::Over,
        });
        id
    }

    /// Takes a call out of its stage; the caller puts it into the next one.
    pub(super) fn take(&mut self, call: CallId) -> Stage {
        let Some(record) = self.record(call) else {
            return Stage::Over;
        };
        let stage = std::mem::replace(&mut record.stage, Stage::Over);
        if !matches!(stage, Stage::Over) {
            self.args_open_bytes -= record.args_bytes;
        }
        match &stage {
            Stage::Asking { open, pending, .. } => {
                self.asks_open -= usize::from(*open);
                self.asking.remove(&call);
                if let Some(count) = self.asking_of.get_mut(&pending.question().tool) {
                    *count = count.saturating_sub(1);
                }
            }
            Stage::InFlight { tool, .. } => {
                self.in_flight -= 1;
                self.extracting -= u32::from(is_extraction(tool));
            }
            Stage::Claiming(_) => self.claiming -= 1,
            Stage::Queued(_) | Stage::Covered(_) | Stage::Over => {}
        }
        stage
    }

    pub(super) fn put(&mut self, call: CallId, stage: Stage) {
        match &stage {
            Stage::Asking { open, pending, .. } => {
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
            Stage::InFlight { tool, .. } => {
                self.in_flight += 1;
                self.extracting += u32::from(is_extraction(tool));
            }
            Stage::Claiming(_) => self.claiming += 1,
            Stage::Queued(_) | Stage::Covered(_) => self.queue.push_back(call),
            Stage::Over => {}
        }
        let is_open = !matches!(stage, Stage::Over);
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

impl Run {
    /// The script made a call.
    pub(super) fn called(&mut self, open: OpenCall) {
        let latest = self.calls.records.last().map(|record| record.ticket);
        let Some(tool) = self.spec.standing.catalog.meant(&open).map(Arc::clone) else {
            return self.end(Ending::EngineFault {
                why: "a call of a tool that has no stub".into(),
            });
        };
        if latest.is_some_and(|latest| open.ticket <= latest) {
            return self.end(Ending::EngineFault {
                why: "a call's number was used before".into(),
            });
        }
        let id = self.calls.enter(&open, &tool.id);
        if id.0 > self.spec.limits.calls_max {
            self.turn_away(id, &tool, &open, Code::LimitCalls, "too many calls".into());
            return self.end(Ending::Limit(Limit::Calls));
        }
        match Args::parse(&open.args, &self.spec.limits) {
            Ok(args) => {
                let site = Site {
                    line: open.line,
                    column: open.column,
                };
                self.doubt(id, &tool, &args);
                let now_ms = self.clock.host_ms();
                let watch = self.watch.as_mut();
                let facts = watch.map(|watch| Arc::new(watch.facts(id, &tool, &args, now_ms)));
                let call = Call {
                    id,
                    tool: tool.id.clone(),
                    args,
                    site,
                    facts,
                };
                let decision = decide(call, &self.spec.standing, &mut self.grants);
                self.apply(id, decision);
                if self.calls.args_open_bytes > ARGS_OPEN_BYTES_MAX {
                    self.end(Ending::Limit(Limit::Payload));
                }
            }
            Err(bad) => self.bad_args(id, &tool, &open, &bad),
        }
    }

    /// What is probably not meant stands in the report; it stops nothing.
    fn doubt(&mut self, id: CallId, tool: &Tool, args: &Args) {
        let Some(doubts) = &tool.doubts else {
            return;
        };
        let found = doubts.findings(args.value());
        if let Some(record) = self.calls.record(id) {
            let shown = found.iter().take(WARNINGS_MAX);
            record.warnings = shown.map(|it| cut(it)).collect();
        }
    }

    /// The script made a call in the step in which something else had ended the run.
    pub(super) fn not_started(&mut self, open: &OpenCall) {
        let catalog = &self.spec.standing.catalog;
        let known = catalog.meant(open).map(Arc::clone);
        let latest = self.calls.records.last().map(|record| record.ticket);
        let room = self.calls.count() < self.spec.limits.calls_max;
        let Some(tool) = known.filter(|_| room && latest.is_none_or(|it| it < open.ticket)) else {
            self.calls_not_recorded = self.calls_not_recorded.saturating_add(1);
            return;
        };
        let id = self.calls.enter(open, &tool.id);
        let why = "the run had ended when the call was made".to_owned();
        if let Some(record) = self.calls.record(id) {
            record.reasons = vec![why.clone()];
        }
        self.unsent(undecided(id, &tool, open, Verdict::Unsent, why));
    }

    fn bad_args(&mut self, id: CallId, tool: &Tool, open: &OpenCall, bad: &BadArgs) {
        if bad.is_limit() {
            self.turn_away(id, tool, open, Code::LimitPayload, bad.to_string());
            self.end(Ending::Limit(Limit::Payload));
        } else {
            self.turn_away(id, tool, open, Code::InvalidArguments, bad.to_string());
        }
    }

    /// Refuses a call whose arguments were never read.
    fn turn_away(&mut self, id: CallId, tool: &Tool, open: &OpenCall, code: Code, why: String) {
        let message = format!("the call to `{}` was not made: {why}", tool.id);
        let decided = Decided {
            code: Some(code),
            ..undecided(id, tool, open, Verdict::Deny, why)
        };
        self.deny(decided, message);
    }

    /// What a decision means for the call: it queues, waits for a human, or is over.
    pub(super) fn apply(&mut self, id: CallId, decision: Decision) {
        match decision {
            Decision::Allow(call) => {
                self.watch_allowed(&call);
                if let Some(record) = self.calls.record(id) {
                    if record.decision != ReportedDecision::Ask {
                        record.decision = ReportedDecision::Allow;
                    }
                    record.reasons = call.reasons().to_vec();
                }
                self.calls.put(id, Stage::Queued(call));
            }
            Decision::Claim(covered) => {
                if let Some(record) = self.calls.record(id) {
                    record.reasons.clone_from(&covered.question().reasons);
                }
                self.calls.put(id, Stage::Covered(covered));
            }
            Decision::Ask(pending) => {
                if pending.question().level == Level::AskRun {
                    self.grants.note_asked(pending.call());
                }
                if let Some(record) = self.calls.record(id) {
                    record.decision = ReportedDecision::Ask;
                    record.reasons.clone_from(&pending.question().reasons);
                }
                // Its time begins when the question is put.
                let since_ms = self.clock.host_ms();
                self.calls.put(
                    id,
                    Stage::Asking {
                        pending,
                        since_ms,
                        open: false,
                    },
                );
            }
            Decision::Deny(refusal) => {
                let description = self.description(&refusal.call.tool);
                let Refusal {
                    call,
                    code,
                    reasons,
                    message,
                } = refusal;
                let decided = Decided {
                    call: id,
                    tool: call.tool,
                    description,
                    args_digest: call.args.digest(),
                    args: Some(call.args),
                    facts: call.facts,
                    site: call.site,
                    decision: Verdict::Deny,
                    code: Some(code),
                    reasons,
                    told: None,
                    warnings: Vec::new(),
                    grant: None,
                };
                self.deny(decided, message);
            }
        }
    }

    fn description(&self, tool: &ToolId) -> Option<Digest> {
        self.spec
            .standing
            .catalog
            .find(tool)
            .map(|tool| tool.description_digest)
    }

    /// Nothing happened outside; the script's promise rejects.
    fn deny(&mut self, mut decided: Decided, message: String) {
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
                _ => ReportedOutcome::Denied,
            });
        }
        self.tell(decided.call, Outcome::Failure(failure));
        self.append(Body::Decided(Box::new(decided)), false);
        self.denials += 1;
        if self.denials >= DENIALS_MAX {
            self.end(Ending::TooManyDenials);
        }
    }

    /// Keeps an outcome for the next time the guest goes on.
    pub(super) fn tell(&mut self, call: CallId, outcome: Outcome) {
        if let Some(ticket) = self.calls.record(call).map(|record| record.ticket) {
            self.outcomes.push((call, CallOutcome { ticket, outcome }));
        }
    }

    /// Allowed calls leave in their order, as many as there is room for, each recorded first.
    pub(super) fn send_queued(&mut self) {
        while self.ending.is_none() && self.is_room() {
            let Some(id) = self.calls.queue.pop_front() else {
                return;
            };
            match self.calls.take(id) {
                Stage::Queued(call) if self.has_lapsed(&call) => {
                    let decision = again(call, &self.spec.standing, &mut self.grants);
                    self.apply(id, decision);
                }
                Stage::Queued(call) => self.send(id, call),
                Stage::Covered(covered) => self.claim(id, covered),
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

    pub(super) fn watch_allowed(&mut self, call: &AuthorizedCall) {
        if let Some(watch) = &mut self.watch {
            watch.allowed(call.catalog_tool(), call.args().len());
        }
    }

    pub(super) fn send(&mut self, id: CallId, call: AuthorizedCall) {
        let writes = !call.catalog_tool().effects.is_known_read_only();
        self.wrote |= writes;
        self.append(
            Body::Decided(Box::new(decided(&call, Verdict::Allow))),
            writes,
        );
        let tool = Arc::clone(call.catalog_tool());
        let (since_ms, batch) = (self.clock.host_ms(), self.out.number());
        self.calls.put(
            id,
            Stage::InFlight {
                tool,
                since_ms,
                batch,
            },
        );
        self.out.call(call);
    }
}

fn is_extraction(tool: &Tool) -> bool {
    tool.whose == Whose::OwnBeyond
}
