//! The life of a run as a state machine: events in, effects out. It performs
//! nothing and knows no clock; whoever drives it hands in what happened with
//! the host's time, and performs what comes out, in order.
//!
//! Hand in several events that are there at once with [`Run::handle_all`]:
//! their outcomes reach the guest in one resume, and their entries share a write.

mod asks;
mod batch;
mod calls;
mod clock;
mod console;
mod ending;
mod entries;
mod grants;
mod inquiries;
mod replies;
mod start;
mod steps;

use sandbox_protocol::CallOutcome;
use serde::{Deserialize, Serialize};

use crate::decide::Standing;
use crate::effect::{Effect, Event, GuestUsage, Whereabouts};
use crate::flow::{FlowSpec, Watch};
use crate::grant::{GrantSpec, Grants};
use crate::id::{CallId, Digest, RunId};
use crate::journal::{Body, Entry};
use crate::limits::{Limit, Limits};
use crate::report::{ReportedError, ReportedFinding};

use batch::Batch;
use calls::Calls;
use clock::Clock;
use console::Console;
use ending::Ending;
use inquiries::Inquiries;

/// Everything that is fixed before a run starts.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub run: RunId,
    pub script_name: String,
    pub script: String,
    /// What was found out about the script beforehand.
    pub check: ScriptCheck,
    /// JSON text of the global `input`; empty means `undefined`.
    pub input: Vec<u8>,
    pub seed: u64,
    pub standing: Standing,
    pub limits: Limits,
    /// Present when rules may ask for facts, or a session wants to know what was read.
    pub flow: Option<FlowSpec>,
    pub fsync: Fsync,
    pub guest: GuestIdentity,
    pub grants: GrantSpec,
}

/// What the check before a run says of its script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptCheck {
    /// What the guest is given when it is not the script itself: the script without types.
    pub blanked: Option<String>,
    pub findings: Vec<ReportedFinding>,
    /// Why nothing is started at all.
    pub rejection: Option<ReportedError>,
    /// What the check has computed in the sandbox. It counts as the run's own.
    pub guest_cpu_us: u64,
}

/// Which engine runs the script, for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestIdentity {
    pub name: String,
    pub digest: Digest,
}

/// Which entries survive the machine's death, and not only the process's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fsync {
    Always,
    /// The decision before each call of a tool that is not known to be
    /// read-only, and the end of a run that made such a call.
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
    /// Values that are read by a host that is away.
    in_hand: u32,
    watch: Option<Watch>,
    console: Console,
    /// What the guest has not been told yet, in the order in which it happened.
    outcomes: Vec<(CallId, CallOutcome)>,
    denials: u32,
    /// The host's time.
    latest_answer_ms: u64,
    /// A question has expired, and none was answered since.
    nobody_is_there: bool,
    wrote: bool,
    /// A grant was given that may cover calls which are still asked about.
    lift: bool,
    /// Times that the guest went on.
    steps: u64,
    /// Calls beyond all limits, of which only their number is kept.
    calls_not_recorded: u32,
    journal_bytes: u64,
    out: Batch,
    /// Where the script was when it met a limit.
    whereabouts: Option<Whereabouts>,
    /// Set once, by whatever ends the run first.
    ending: Option<Ending>,
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
    /// The report is out, and the entries before it may still fail.
    Finished,
    /// They failed, and a second report said so.
    FinishedUnwritten,
}

impl Run {
    pub fn handle(&mut self, now_ms: u64, event: Event) -> Vec<Effect> {
        self.handle_all(now_ms, vec![event])
    }

    /// All events that are there at this moment, in the order in which they happened.
    pub fn handle_all(&mut self, now_ms: u64, events: Vec<Event>) -> Vec<Effect> {
        self.clock.tick(now_ms);
        self.grants.tick(self.clock.host_ms());
        // What follows a failed append in its batch was not done; that is to be known first.
        let (failed, others): (Vec<_>, Vec<_>) = events
            .into_iter()
            .partition(|event| matches!(event, Event::AppendFailed { .. }));
        failed
            .into_iter()
            .chain(others)
            .for_each(|event| self.hear(event));
        self.advance()
    }

    /// The host's time at which the run is stopped, for bounding a guest that
    /// computes and hears nothing. It moves while a human is asked.
    #[must_use]
    pub fn deadline_at_ms(&self) -> u64 {
        self.clock.deadline_at_ms()
    }

    /// What the check of the script has computed.
    #[must_use]
    pub fn check_cpu_us(&self) -> u64 {
        self.spec.check.guest_cpu_us
    }

    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.life != Life::Running
    }

    fn hear(&mut self, event: Event) {
        if let Event::AppendFailed { why } = event {
            return self.append_failed(why);
        }
        if self.is_finished() {
            return;
        }
        match event {
            Event::Resolved { paths } => self.resolved(paths),
            Event::Located(whereabouts) => self.whereabouts = Some(whereabouts),
            Event::Stepped { step, usage } => self.stepped(step, usage),
            Event::GuestStopped { stop, usage } => self.guest_stopped(stop, usage),
            Event::Replied { call, reply } => self.replied(call, reply),
            Event::Disclosed { tools } => self.disclosed(&tools),
            Event::Answered { call, answer } => self.answered(call, answer),
            Event::Cancelled { why } => self.end(Ending::Cancelled { why }),
            Event::Inquired(inquiry) => self.inquired(&inquiry),
            Event::InquiryEnded { inquiry, end } => self.inquiry_ended(inquiry, end),
            Event::Claimed { call, used } => self.claimed(call, used),
            Event::InHand { calls } => self.in_hand = calls,
            Event::Woke => self.clock.forget_alarm(),
            Event::AppendFailed { .. } => {}
        }
    }

    /// What follows from all that was heard: calls leave, the guest goes on, or the run ends.
    fn advance(&mut self) -> Vec<Effect> {
        if self.is_finished() {
            return self.out.flush();
        }
        if self.ending.is_none() {
            // A human's no to one call counts more than their yes to another: all of both
            // have been heard by now.
            self.lift_others();
            self.check_time();
            self.check_journal();
            self.ask_open();
            self.send_queued();
            // A grant may have lapsed while its call waited for room.
            self.ask_open();
            self.resume_guest();
        }
        if let Some(ending) = self.ending.take() {
            self.conclude(ending);
        } else {
            self.set_alarm();
        }
        self.out.flush()
    }

    /// Between turns, so that whatever a turn recorded is also done.
    fn check_journal(&mut self) {
        if self.journal_bytes > self.spec.limits.journal_bytes_max {
            self.end(Ending::Limit(Limit::Journal));
        }
    }

    /// The first ending is the one that counts.
    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    fn append(&mut self, mut body: Body, sync: bool) {
        if let Body::Decided(decided) = &mut body {
            let record = self.calls.get(decided.call);
            decided.warnings = record.map_or_else(Vec::new, |it| it.warnings.clone());
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
