//! The state machine of a run: events in, effects out. It performs no I/O and has no clock. The
//! driver passes in events with the host's time, and performs the effects in order.
//!
//! Pass several simultaneous events to [`Run::handle_all`]: their outcomes reach the guest in one
//! resume, and their entries share a write.

mod asks;
mod batch;
mod blocking;
mod calls;
mod clock;
mod conclude;
mod console;
mod drain;
mod entries;
mod grants;
mod inquiries;
mod replies;
mod resuming;
mod run_end;
mod start;
mod statements;
mod steps;

use std::collections::BTreeMap;

use sandbox_protocol::CallOutcome;
use serde::{Deserialize, Serialize};

use crate::decide::DecisionContext;
use crate::effect::{Effect, Event, GuestUsage, Whereabouts};
use crate::flow::{FlowSpec, FlowTracker};
use crate::grant::{GrantSpec, Grants};
use crate::id::{CallId, CallRef, Digest, RunId};
use crate::journal::{Body, Entry, Redact, StartedCommand};
use crate::limits::{Limit, Limits};
use crate::report::{ReportedError, ReportedFinding};
use crate::resume::ResumeSpec;
use crate::resume::ledger::CallKey;

use batch::Batch;
use calls::{CallOrigin, Calls};
use clock::Clock;
use console::Console;
use drain::Drain;
use inquiries::Inquiries;
use resuming::Resuming;
use run_end::RunEnd;

/// Everything that is fixed before a run starts.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub run: RunId,
    pub script_name: String,
    pub script: String,
    /// The result of the check before the run.
    pub check: ScriptCheck,
    /// JSON text of the global `input`; empty means `undefined`.
    pub input: Vec<u8>,
    pub seed: u64,
    pub decision_context: DecisionContext,
    pub limits: Limits,
    /// Present if rules need facts, or if the session tracks what its runs read.
    pub flow: Option<FlowSpec>,
    pub fsync: Fsync,
    pub guest: GuestIdentity,
    pub grants: GrantSpec,
    /// Whether the approver can ask a person.
    pub reaches_person: bool,
    pub origin: RunOrigin,
    /// The masking of secrets in the journal. A resumed run compares its calls with recorded ones.
    pub redact: Redact,
    /// The earlier runs, if this run resumes one.
    pub resume: Option<Box<ResumeSpec>>,
    /// How long the run waits for people only, before it is suspended. `None`: never.
    pub suspend_after_ms: Option<u64>,
}

/// Where a run comes from, as named in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// The version of the program.
    pub program: Option<String>,
    /// Who started the run.
    pub caller: Option<String>,
    /// The name of the host's client.
    pub host: Option<String>,
    /// The session of the run.
    pub session: Option<String>,
    /// The command that started the run.
    pub command: Option<StartedCommand>,
}

/// The result of the check before a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptCheck {
    /// The script without its type annotations, if it has any. The guest gets this text instead of
    /// the script.
    pub blanked: Option<String>,
    pub findings: Vec<ReportedFinding>,
    /// Why nothing is started, if the check found a definite error.
    pub rejection: Option<ReportedError>,
    /// Computing time of the check in the sandbox, in microseconds. It counts as the run's own.
    pub guest_cpu_us: u64,
}

/// The engine that runs the script, as named in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestIdentity {
    pub name: String,
    pub digest: Digest,
}

/// Which entries are synced to disk, so that they also survive a crash of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fsync {
    Always,
    /// The decision before each call of a tool that is not known to be read-only, and the end of a
    /// run that made such a call.
    #[default]
    Writes,
    Never,
}

#[derive(Debug)]
pub struct Run {
    spec: RunSpec,
    clock: Clock,
    guest: Guest,
    usage: GuestUsage,
    calls: Calls,
    grants: Grants,
    inquiries: Inquiries,
    /// Number of extraction requests that were handed to a host and wait for its next request.
    held_by_host: u32,
    tracker: Option<FlowTracker>,
    console: Console,
    /// The calls whose outcome is unknown and that are not repeatable. No equal call leaves.
    indeterminate: BTreeMap<CallKey, Vec<CallRef>>,
    /// The calls that happened according to a person, who did not know their result. No equal call
    /// leaves.
    without_result: BTreeMap<CallKey, CallRef>,
    /// Present if the run resumes another one.
    resuming: Option<Resuming>,
    /// Present while the run has ended and still waits for outcomes.
    drain: Option<Drain>,
    /// Since when the run has only been waiting for people, on the host's clock.
    resting_since_ms: Option<u64>,
    /// Outcomes that the guest has not received yet, in the order in which they came.
    outcomes: Vec<(CallId, CallOutcome)>,
    denials: u32,
    /// Time of the latest answer, on the host's clock.
    latest_answer_ms: u64,
    /// Whether a question has expired and none was answered since.
    is_approver_absent: bool,
    wrote: bool,
    /// Whether a new grant may cover calls that are still being asked about.
    lift: bool,
    /// Number of times that the guest was resumed.
    steps: u64,
    /// Number of calls after the end of the run of which only this count is kept.
    calls_not_recorded: u32,
    journal_bytes: u64,
    out: Batch,
    /// The place where the script reached a limit.
    whereabouts: Option<Whereabouts>,
    /// The reason for the end; only the first one is kept.
    ending: Option<RunEnd>,
    life: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guest {
    Computing,
    Waiting { wake_at_ms: Option<u64> },
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    /// The report was emitted, but the entries before it may still fail.
    Finished,
    /// The last entries failed, and a second report contains the failure.
    FinishedUnwritten,
}

impl Run {
    pub fn handle(&mut self, now_ms: u64, event: Event) -> Vec<Effect> {
        self.handle_all(now_ms, vec![event])
    }

    /// Handles all events of this moment, in the order in which they happened.
    pub fn handle_all(&mut self, now_ms: u64, mut events: Vec<Event>) -> Vec<Effect> {
        self.clock.tick(now_ms);
        self.grants.tick(self.clock.host_ms());
        // Effects after a failed append were not performed, so the failure is handled first.
        // A run that is left while it waits for people is suspended, and stores the answers of the
        // same moment for the run that resumes it.
        events.sort_by_key(|event| match event {
            Event::AppendFailed { .. } => 0,
            Event::Abandoned { .. } => 1,
            _ => 2,
        });
        for event in events {
            self.handle_event(event);
        }
        self.advance()
    }

    /// Returns the host's time at which the run is stopped. The driver uses it to bound a guest
    /// that computes without waiting. The time moves forward while a human is asked.
    #[must_use]
    pub fn deadline_at_ms(&self) -> u64 {
        self.clock.deadline_at_ms()
    }

    /// Returns the computing time of the script's check, in microseconds.
    #[must_use]
    pub fn check_cpu_us(&self) -> u64 {
        self.spec.check.guest_cpu_us
    }

    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.life != Life::Running
    }

    /// Whether the run is over, or only waits for the outcomes of calls that were sent.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.drain.is_some() || self.is_finished()
    }

    fn handle_event(&mut self, event: Event) {
        if let Event::AppendFailed { why } = event {
            return self.append_failed(why);
        }
        if self.is_finished() {
            return;
        }
        match event {
            Event::Stepped {
                step,
                usage,
                paths,
                whereabouts,
            } => {
                if self.returned(usage, whereabouts) {
                    self.stepped(step, paths);
                }
            }
            Event::GuestStopped {
                stop,
                usage,
                whereabouts,
            } => {
                if self.returned(usage, whereabouts) {
                    self.guest_stopped(stop);
                }
            }
            Event::Replied { call, reply } => self.replied(call, reply),
            Event::Disclosed { tools } => self.disclosed(&tools),
            Event::Answered { call, answer } => self.answered(call, answer),
            Event::Cancelled { why, may_wait } => self.end(RunEnd::Cancelled { why, may_wait }),
            Event::Abandoned { why, may_wait } => self.end(match self.suspend_at_ms() {
                Some(_) => RunEnd::Suspended,
                None => RunEnd::Cancelled { why, may_wait },
            }),
            Event::Inquired(inquiry) => self.inquired(&inquiry),
            Event::InquiryEnded {
                inquiry,
                end,
                login,
            } => self.inquiry_ended(inquiry, end, login),
            Event::Claimed { call, used } => self.claimed(call, used),
            Event::HeldByHost { calls } => self.held_by_host = calls,
            Event::Woke => self.clock.forget_alarm(),
            Event::AppendFailed { .. } => {}
        }
    }

    /// Takes the next steps: calls leave, the guest is resumed, or the run ends.
    fn advance(&mut self) -> Vec<Effect> {
        if self.is_finished() {
            return self.out.flush();
        }
        if self.drain.is_some() {
            self.go_on_draining();
            return self.out.flush();
        }
        if self.ending.is_none() {
            // All answers of this turn have already been handled. So a refusal of a call takes
            // effect before a grant for another call can cover it.
            self.lift_others();
            self.check_time();
            self.check_journal();
            self.end_replay();
            self.ask_open();
            self.send_queued();
            // A grant may have expired while its call waited to be sent.
            self.ask_open();
            self.resume_guest();
        }
        if let Some(ending) = self.ending.take() {
            self.drain(ending);
        } else {
            self.set_alarm();
        }
        self.out.flush()
    }

    /// Checks the journal's size between turns, so that all recorded effects of a turn are still
    /// performed.
    fn check_journal(&mut self) {
        if self.journal_bytes > self.spec.limits.journal_bytes_max {
            self.end(RunEnd::Limit(Limit::Journal));
        }
    }

    /// Sets the reason for the end, unless there is one already.
    fn end(&mut self, ending: RunEnd) {
        self.ending.get_or_insert(ending);
    }

    fn append(&mut self, mut body: Body, sync: bool) {
        if let Body::Decided(decided) = &mut body {
            let record = self.calls.get(decided.call);
            decided.warnings = record.map_or_else(Vec::new, |it| it.warnings.clone());
            match record.map(|it| &it.origin) {
                Some(CallOrigin::Again { from, .. }) => decided.again = Some(from.clone()),
                Some(CallOrigin::Doubtful(near)) => decided.near.clone_from(near),
                _ => {}
            }
        }
        self.journal_bytes = self.journal_bytes.saturating_add(body.bytes());
        let sync = match self.spec.fsync {
            Fsync::Always => true,
            Fsync::Writes => sync,
            Fsync::Never => false,
        };
        self.out.append(
            Entry {
                at_ms: self.clock.host_ms(),
                body,
            },
            sync,
        );
    }
}

#[cfg(test)]
mod tests;
