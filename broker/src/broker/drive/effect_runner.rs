//! Performs the effects of a run, in order.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::time::Duration;

use airlock_core::catalog::ToolOwner;
use airlock_core::decide::{Answer, AuthorizedCall, CallParts, Question};
use airlock_core::effect::{Effect, Event, GuestStop};
use airlock_core::grant::Use;
use airlock_core::id::{CallId, GrantId, RunId};
use airlock_core::journal::Body;
use airlock_core::limits::Limits;
use airlock_core::outcome::{LostCause, Reply};
use airlock_core::report::Report;
use airlock_core::run::Run;
use futures_util::future::{AbortHandle, Abortable, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use sandbox_protocol::Step;
use tokio::time::Sleep;

use super::JournalWriter;
use super::inquiries::Inquiries;
use super::journal_writer::JournalWriteError;
use super::redact::{self, ReadSources};
use crate::approver::{Approver, SettledCall};
use crate::broker::{
    CallContext, Cancel, IdleFlag, Inner, ReachedLabels, RunSharing, SuspendedFlag, ToolDiscovery,
    tool_discovery,
};
use crate::client_bridge::{AnswerDeadline, ClientBridge};
use crate::deadline::{Deadline, DeadlinePause};
use crate::extract::{self, Extractor};
use crate::run_event::RunEvent;
use crate::secrets::Secrets;
use crate::telemetry::TraceIds;
use airlock_sandbox::budget::RunShare;
use airlock_sandbox::{Guest, GuestBounds};

pub(super) type OpenTasks<'a, T> = FuturesUnordered<Abortable<LocalBoxFuture<'a, (CallId, T)>>>;

pub(crate) struct EffectRunner<'a> {
    pub(super) broker: &'a Inner,
    pub(super) cancel: &'a Cancel,
    limits: Limits,
    share: Option<RunShare>,
    approver: Option<&'a dyn Approver>,
    discovery: Option<&'a dyn ToolDiscovery>,
    extractor: Option<&'a dyn Extractor>,
    trace: Option<TraceIds>,
    /// The state that grants are kept in.
    shares: RunSharing,
    reached: ReachedLabels,
    pub(super) rest: IdleFlag,
    suspended: SuspendedFlag,
    journal: JournalWriter,
    watch: &'a mut dyn FnMut(RunEvent),
    guest: Option<Guest>,
    pub(super) calls: OpenTasks<'a, Reply>,
    pub(super) asks: OpenTasks<'a, Answer>,
    pub(super) claims: OpenTasks<'a, Result<Use, String>>,
    pub(super) inquiries: Inquiries<'a>,
    /// The deadline of each open extraction, and a guard while this deadline is paused.
    pub(super) extractions: HashMap<CallId, (Deadline, Option<DeadlinePause>)>,
    /// Handles of open calls and questions. Aborting one withdraws the call or question by dropping
    /// its future.
    pub(super) aborts: HashMap<CallId, AbortHandle>,
    /// The number of extractions that were handed to a host and wait for its next request.
    held_by_host: u32,
    pub(super) alarm: Option<Pin<Box<Sleep>>>,
    /// Events that were received and not yet passed to the run.
    pub(super) heard: Vec<Event>,
    pub(super) is_cancelled: bool,
    /// Whether timers and servers must not be polled any more.
    pub(super) is_runtime_ended: bool,
    /// The servers from which the run got data.
    sources: ReadSources,
    /// Calls that a person was asked about and that have not ended.
    asked: HashSet<CallId>,
    run: Option<RunId>,
}

impl<'a> EffectRunner<'a> {
    pub(crate) fn new(
        broker: &'a Inner,
        journal: JournalWriter,
        cancel: &'a Cancel,
        watch: &'a mut dyn FnMut(RunEvent),
    ) -> Self {
        Self {
            broker,
            cancel,
            limits: broker.limits,
            share: None,
            approver: None,
            discovery: None,
            extractor: None,
            trace: None,
            shares: RunSharing::default(),
            reached: ReachedLabels::default(),
            rest: IdleFlag::default(),
            suspended: SuspendedFlag::default(),
            journal,
            watch,
            guest: None,
            calls: FuturesUnordered::new(),
            asks: FuturesUnordered::new(),
            claims: FuturesUnordered::new(),
            inquiries: Inquiries::new(None),
            extractions: HashMap::new(),
            aborts: HashMap::new(),
            held_by_host: 0,
            alarm: None,
            heard: Vec::new(),
            is_cancelled: false,
            is_runtime_ended: false,
            sources: ReadSources::default(),
            asked: HashSet::new(),
            run: None,
        }
    }

    /// Sets the limits of this run.
    pub(crate) fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the share of the budget that this run may use.
    pub(crate) fn with_share(self, share: RunShare) -> Self {
        Self {
            share: Some(share),
            ..self
        }
    }

    /// Sets an approver that is asked instead of the broker's.
    pub(crate) fn with_approver(self, approver: Option<&'a dyn Approver>) -> Self {
        Self { approver, ..self }
    }

    /// Sets the implementation of airlock's own search tools.
    pub(crate) fn with_discovery(self, discovery: Option<&'a dyn ToolDiscovery>) -> Self {
        Self { discovery, ..self }
    }

    /// Sets the bridge that passes requests of servers on to the host.
    pub(crate) fn with_client_bridge(self, client_bridge: Option<&'a dyn ClientBridge>) -> Self {
        Self {
            inquiries: Inquiries::new(client_bridge),
            ..self
        }
    }

    /// Sets the extractor that reads values for the script.
    pub(crate) fn with_extractor(self, extractor: Option<&'a dyn Extractor>) -> Self {
        Self { extractor, ..self }
    }

    /// Sets the state that grants are kept in.
    pub(crate) fn with_shares(self, shares: RunSharing) -> Self {
        Self { shares, ..self }
    }

    /// Sets the receiver of the labels that have reached the run.
    pub(crate) fn with_reached(self, reached: ReachedLabels) -> Self {
        Self { reached, ..self }
    }

    /// Sets the flag that reports whether the run only waits.
    pub(crate) fn with_rest(self, rest: IdleFlag) -> Self {
        Self { rest, ..self }
    }

    /// Sets the flag that reports whether the run is suspended.
    pub(crate) fn with_suspended(self, suspended: SuspendedFlag) -> Self {
        Self { suspended, ..self }
    }

    /// Reports the labels that have reached the run. Called before every effect that could reveal
    /// data outside.
    pub(super) fn note_reached(&self, run: &Run) {
        if let Some(labels) = run.reached() {
            self.reached.note(labels);
        }
    }

    /// Sets the trace that requests belong to.
    pub(crate) fn with_trace(self, trace: Option<TraceIds>) -> Self {
        Self { trace, ..self }
    }

    pub(super) fn into_journal(self) -> JournalWriter {
        self.journal
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.broker.clock.now_ms()
    }

    /// Performs effects in order, and returns the report when the run is over. If a journal entry
    /// cannot be written, no effect after it is performed.
    pub(super) async fn perform(&mut self, effects: Vec<Effect>, run: &Run) -> Option<Report> {
        if run.is_ending() {
            self.inquiries.begin_ending();
        }
        match self.try_perform(effects, run).await {
            Ok(report) => report,
            Err(error) => {
                self.heard.push(Event::AppendFailed {
                    why: error.to_string(),
                });
                None
            }
        }
    }

    async fn try_perform(
        &mut self,
        effects: Vec<Effect>,
        run: &Run,
    ) -> Result<Option<Report>, JournalWriteError> {
        for effect in effects {
            // Consecutive entries share one write.
            if !matches!(effect, Effect::Append { .. }) {
                self.flush()?;
            }
            match effect {
                Effect::Append { entry, sync } => self.journal.add(entry, sync)?,
                Effect::StartGuest(start) => {
                    self.let_calls_leave().await;
                    let bounds = GuestBounds {
                        deadline_at_ms: run.deadline_at_ms(),
                        ..GuestBounds::from_limits(&self.limits).after(run.check_cpu_us())
                    };
                    let mut guest = self.broker.sandbox.guest(bounds, self.cancel.stop_handle());
                    if let Some(share) = &self.share {
                        guest = guest.within(share.clone());
                    }
                    let came = guest.start(&start);
                    self.came(came, &guest, run);
                    self.guest = Some(guest);
                }
                Effect::Resume(resume) => {
                    self.let_calls_leave().await;
                    if let Some(mut guest) = self.guest.take() {
                        guest.stop_at_ms(run.deadline_at_ms());
                        let came = guest.resume(&resume);
                        self.came(came, &guest, run);
                        self.guest = Some(guest);
                    }
                }
                Effect::StopGuest => self.guest = None,
                // A grant that cannot be stored allows nothing, because claiming a use of it fails.
                Effect::KeepGrant(grant) => {
                    drop(self.broker.keep(self.shares.clone(), *grant).await);
                }
                Effect::Claim { call, grant } => self.claim(call, grant),
                Effect::Call(call) => self.call(call, run),
                Effect::Ask(question) => self.ask(*question),
                Effect::ForwardInquiry(inquiry) => {
                    let within = Duration::from_millis(self.limits.ask_wall_ms_max);
                    self.inquiries.carry(inquiry, within);
                }
                Effect::EndInquiry { inquiry, end } => self.inquiries.end(inquiry, end),
                Effect::CancelCall(call) | Effect::WithdrawAsk(call) => self.withdraw(call),
                Effect::Console(lines) => {
                    lines.into_iter().for_each(|line| (self.watch)(line.into()))
                }
                Effect::WakeAt { at_ms } => {
                    let wait = Duration::from_millis(at_ms.saturating_sub(self.now_ms()));
                    self.alarm = Some(Box::pin(tokio::time::sleep(wait)));
                }
                Effect::Finish(mut report) => {
                    redact::calls(&self.broker.secrets, &mut report.calls);
                    return Ok(Some(*report));
                }
            }
        }
        self.flush()?;
        Ok(None)
    }

    fn flush(&mut self) -> Result<(), JournalWriteError> {
        let written = self.journal.flush()?;
        if written.iter().any(|it| matches!(it, Body::Suspended(_))) {
            self.suspended.set();
        }
        for mut event in written.into_iter().filter_map(RunEvent::from_body) {
            redact::event(&self.broker.secrets, &mut event);
            self.tell_approver(&event);
            (self.watch)(event);
        }
        Ok(())
    }

    /// Reports the end of a call to the approver that was asked about it.
    fn tell_approver(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { run } => self.run = Some(run.clone()),
            RunEvent::Asked { call, .. } => {
                self.asked.insert(*call);
            }
            RunEvent::CallSettled { call, outcome, .. } if self.asked.remove(call) => {
                let approver = self.approver.or_else(|| self.broker.approver());
                if let (Some(approver), Some(run)) = (approver, &self.run) {
                    approver.settled(&SettledCall {
                        run,
                        call: *call,
                        outcome: *outcome,
                    });
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, call: AuthorizedCall, run: &Run) {
        let is_unmasked = self.broker.is_unmasked(&call.tool().server);
        self.sources.add(is_unmasked);
        match call.catalog_tool().owner {
            ToolOwner::Other => {}
            ToolOwner::OwnLocal => return self.call_own(call, run),
            ToolOwner::OwnForwarding => return self.extract(call),
        }
        let id = call.id();
        let deadline = Deadline::new(Duration::from_millis(self.limits.call_wall_ms_max));
        let server = call.tool().server.clone();
        let secrets = self.broker.secrets_in_results(&server);
        let call_context = CallContext {
            trace: self.trace.as_ref().map(|ids| ids.traceparent(id)),
            origin: self.inquiries.origin(server, id, deadline.clone()),
        };
        let reply = self.broker.call(call, call_context);
        let late = || Reply::Lost {
            why: "no reply in time".into(),
            cause: LostCause::TimedOut,
        };
        self.begin((id, secrets), deadline, reply, late);
    }

    /// Starts an extraction. Its input leaves the broker, and it may take as long as any call.
    fn extract(&mut self, call: AuthorizedCall) {
        let (extractor, limits) = (self.extractor, self.limits);
        let deadline = Deadline::new(Duration::from_millis(limits.call_wall_ms_max));
        let in_hand_max = Duration::from_millis(limits.ask_wall_ms_max);
        let time = AnswerDeadline::with_deadline(deadline.clone(), in_hand_max);
        let CallParts { id, args, .. } = call.into_parts();
        let reply = async move { extract::reply(extractor, args.value(), &limits, time).await };
        self.extractions.insert(id, (deadline.clone(), None));
        let secrets = self.broker.secrets.clone();
        self.begin((id, secrets), deadline, Box::pin(reply), extract::late);
    }

    fn begin(
        &mut self,
        (id, secrets): (CallId, Secrets),
        deadline: Deadline,
        reply: LocalBoxFuture<'a, Reply>,
        late: impl FnOnce() -> Reply + 'a,
    ) {
        let bounded = async move {
            let reply = deadline.limit(reply).await.unwrap_or_else(|_| late());
            (id, redact::reply_in_background(secrets, reply).await)
        };
        let (abort, registration) = AbortHandle::new_pair();
        self.aborts.insert(id, abort);
        self.calls
            .push(Abortable::new(Box::pin(bounded), registration));
    }

    /// Answers a call of one of airlock's own tools. A call computes briefly and never waits. Many
    /// such calls together can take long, so each one begins only while the run may continue.
    fn call_own(&mut self, call: AuthorizedCall, run: &Run) {
        let CallParts { id, tool, args, .. } = call.into_parts();
        let is_over = self.cancel.is_cancelled() || self.now_ms() >= run.deadline_at_ms();
        let not_sent = |why: &str| (Reply::NotSent { why: why.into() }, Vec::new());
        let (mut reply, disclosed) = match self.discovery {
            _ if is_over => not_sent("the run is ending"),
            Some(discovery) => tool_discovery::ask(discovery, &tool, args.value()),
            None => not_sent("this run has no search tools"),
        };
        redact::reply(&self.broker.secrets, &mut reply);
        if !disclosed.is_empty() {
            self.heard.push(Event::Disclosed { tools: disclosed });
        }
        self.heard.push(Event::Replied { call: id, reply });
    }

    fn ask(&mut self, question: Question) {
        let id = question.call;
        let answer = match self.approver {
            Some(approver) => approver.ask(question),
            None => self.broker.ask(question),
        };
        let (abort, registration) = AbortHandle::new_pair();
        self.aborts.insert(id, abort);
        self.asks.push(Abortable::new(
            Box::pin(async move { (id, answer.await) }),
            registration,
        ));
    }

    fn claim(&mut self, call: CallId, grant: GrantId) {
        let claimed = self.broker.claim(self.shares.clone(), grant);
        let (_, registration) = AbortHandle::new_pair();
        self.claims.push(Abortable::new(
            Box::pin(async move { (call, claimed.await) }),
            registration,
        ));
    }

    /// Pauses the deadlines of extractions while a person is asked. The same host may have to
    /// extract a value and ask its person, and it returns both answers together.
    pub(super) fn hold_extractions(&mut self) {
        let is_asking = !self.asks.is_empty() || self.inquiries.is_any_open();
        for (deadline, held) in self.extractions.values_mut() {
            if is_asking && held.is_none() {
                *held = Some(deadline.hold());
            } else if !is_asking {
                *held = None;
            }
        }
        let is_held_by_host = |(deadline, held): &&(Deadline, Option<DeadlinePause>)| {
            deadline.holds() > u32::from(held.is_some())
        };
        let held_by_host = self.extractions.values().filter(is_held_by_host).count();
        let held_by_host = u32::try_from(held_by_host).unwrap_or(u32::MAX);
        if held_by_host != self.held_by_host {
            self.held_by_host = held_by_host;
            self.heard.push(Event::HeldByHost {
                calls: held_by_host,
            });
        }
    }

    fn withdraw(&mut self, call: CallId) {
        self.extractions.remove(&call);
        if let Some(abort) = self.aborts.remove(&call) {
            abort.abort();
        }
    }

    fn came(&mut self, came: Result<Step, GuestStop>, guest: &Guest, run: &Run) {
        let secrets = &self.broker.secrets;
        let in_output = self.sources.secrets_in_output(secrets);
        let usage = guest.usage();
        let mut whereabouts = guest.whereabouts().cloned();
        if let Some(place) = &mut whereabouts {
            redact::whereabouts(secrets, place);
        }
        self.heard.push(match came {
            Ok(mut step) => {
                let paths = self.broker.resolver.resolve(run.paths_of(&step));
                redact::step(&in_output, &mut step);
                Event::Stepped {
                    step,
                    usage,
                    paths,
                    whereabouts,
                }
            }
            Err(mut stop) => {
                redact::stop(&in_output, &mut stop);
                Event::GuestStopped {
                    stop,
                    usage,
                    whereabouts,
                }
            }
        });
    }
}
