//! What the loop acts with: it performs effects, in order.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use airlock_core::catalog::Whose;
use airlock_core::decide::{Answer, AuthorizedCall, CallParts, Question};
use airlock_core::effect::{Effect, Event, GuestStop};
use airlock_core::grant::Use;
use airlock_core::id::{CallId, GrantId};
use airlock_core::limits::Limits;
use airlock_core::outcome::{LostCause, Reply};
use airlock_core::report::Report;
use airlock_core::run::Run;
use futures_util::future::{AbortHandle, Abortable, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use sandbox_protocol::Step;
use tokio::time::Sleep;

use super::Record;
use super::inquiries::Inquiries;
use super::record::RecordError;
use super::strike;
use crate::approver::Approver;
use crate::broker::{Along, Cancel, Inner, Librarian, Reached, Rest, RunEvent, own};
use crate::budget::Share;
use crate::carrier::{Carrier, Time};
use crate::extract::{self, Extractor};
use crate::sandbox::{Guest, GuestBounds};
use crate::telemetry::TraceIds;
use crate::upstream::wall::{Held, Wall};

pub(super) type Open<'a, T> = FuturesUnordered<Abortable<LocalBoxFuture<'a, (CallId, T)>>>;

pub(crate) struct Hands<'a> {
    pub(super) broker: &'a Inner,
    pub(super) cancel: &'a Cancel,
    limits: Limits,
    share: Option<Share>,
    approver: Option<&'a dyn Approver>,
    librarian: Option<&'a dyn Librarian>,
    extractor: Option<&'a dyn Extractor>,
    trace: Option<TraceIds>,
    reached: Reached,
    pub(super) rest: Rest,
    record: Record,
    watch: &'a mut dyn FnMut(RunEvent),
    guest: Option<Guest>,
    pub(super) calls: Open<'a, Reply>,
    pub(super) asks: Open<'a, Answer>,
    pub(super) claims: Open<'a, Result<Use, String>>,
    pub(super) inquiries: Inquiries<'a>,
    /// The time of each extraction, which may stand still.
    pub(super) extractions: HashMap<CallId, (Wall, Option<Held>)>,
    /// A call or question is withdrawn by dropping its future.
    pub(super) aborts: HashMap<CallId, AbortHandle>,
    /// Extractions with which a host is away.
    in_hand: u32,
    pub(super) alarm: Option<Pin<Box<Sleep>>>,
    /// Heard and not yet handed on.
    pub(super) heard: Vec<Event>,
    pub(super) is_cancelled: bool,
}

impl<'a> Hands<'a> {
    pub(crate) fn new(
        broker: &'a Inner,
        record: Record,
        cancel: &'a Cancel,
        watch: &'a mut dyn FnMut(RunEvent),
    ) -> Self {
        Self {
            broker,
            cancel,
            limits: broker.limits,
            share: None,
            approver: None,
            librarian: None,
            extractor: None,
            trace: None,
            reached: Reached::default(),
            rest: Rest::default(),
            record,
            watch,
            guest: None,
            calls: FuturesUnordered::new(),
            asks: FuturesUnordered::new(),
            claims: FuturesUnordered::new(),
            inquiries: Inquiries::new(None),
            extractions: HashMap::new(),
            aborts: HashMap::new(),
            in_hand: 0,
            alarm: None,
            heard: Vec::new(),
            is_cancelled: false,
        }
    }

    /// The limits of this run.
    pub(crate) fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// What the run may take of what all runs share.
    pub(crate) fn with_share(self, share: Share) -> Self {
        Self {
            share: Some(share),
            ..self
        }
    }

    /// Who is asked instead of the broker's approver.
    pub(crate) fn with_approver(self, approver: Option<&'a dyn Approver>) -> Self {
        Self { approver, ..self }
    }

    /// Who answers airlock's own tools.
    pub(crate) fn with_librarian(self, librarian: Option<&'a dyn Librarian>) -> Self {
        Self { librarian, ..self }
    }

    /// Who carries what servers ask of the host.
    pub(crate) fn with_carrier(self, carrier: Option<&'a dyn Carrier>) -> Self {
        Self {
            inquiries: Inquiries::new(carrier),
            ..self
        }
    }

    /// Who reads values for the script.
    pub(crate) fn with_extractor(self, extractor: Option<&'a dyn Extractor>) -> Self {
        Self { extractor, ..self }
    }

    /// Who wants to know what has reached the run.
    pub(crate) fn with_reached(self, reached: Reached) -> Self {
        Self { reached, ..self }
    }

    /// Who wants to know when the run does nothing but wait.
    pub(crate) fn with_rest(self, rest: Rest) -> Self {
        Self { rest, ..self }
    }

    /// Said before anything is done that may tell somebody of it.
    pub(super) fn note_reached(&self, run: &Run) {
        if let Some(labels) = run.reached() {
            self.reached.note(labels);
        }
    }

    /// The trace that requests belong to.
    pub(crate) fn with_trace(self, trace: Option<TraceIds>) -> Self {
        Self { trace, ..self }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.broker.clock.now_ms()
    }

    /// Performs effects in order; the report, when the run is over. If an entry cannot be
    /// written, nothing that follows it is done.
    pub(super) async fn perform(&mut self, effects: Vec<Effect>, run: &Run) -> Option<Report> {
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
    ) -> Result<Option<Report>, RecordError> {
        for effect in effects {
            // Entries that follow each other share one write.
            if !matches!(effect, Effect::Append { .. }) {
                self.flush()?;
            }
            match effect {
                Effect::Append { entry, sync } => self.record.add(entry, sync)?,
                Effect::StartGuest(start) => {
                    self.let_calls_leave().await;
                    let bounds = GuestBounds {
                        deadline_at_ms: run.deadline_at_ms(),
                        ..GuestBounds::of(&self.limits).after(run.check_cpu_us())
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
                // What cannot be kept gives no use when one is claimed.
                Effect::Keep(grant) => drop(self.broker.keep(*grant).await),
                Effect::Claim { call, grant } => self.claim(call, grant),
                Effect::Call(call) => self.call(call, run),
                Effect::Ask(question) => self.ask(question),
                Effect::Carry(inquiry) => {
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
                    strike::calls(&self.broker.secrets, &mut report.calls);
                    return Ok(Some(*report));
                }
            }
        }
        self.flush()?;
        Ok(None)
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        let written = self.record.flush()?;
        for mut event in written.into_iter().filter_map(RunEvent::of) {
            strike::event(&self.broker.secrets, &mut event);
            (self.watch)(event);
        }
        Ok(())
    }

    fn call(&mut self, call: AuthorizedCall, run: &Run) {
        match call.catalog_tool().whose {
            Whose::Other => {}
            Whose::OwnWithin => return self.call_own(call, run),
            Whose::OwnBeyond => return self.extract(call),
        }
        let id = call.id();
        let wall = Wall::new(Duration::from_millis(self.limits.call_wall_ms_max));
        let server = call.tool().server.clone();
        let along = Along {
            trace: self.trace.as_ref().map(|ids| ids.traceparent(id)),
            behind: self.inquiries.behind(server, id, wall.clone()),
        };
        let reply = self.broker.call(call, along);
        let late = || Reply::Lost {
            why: "no reply in time".into(),
            cause: LostCause::TimedOut,
        };
        self.begin(id, wall, reply, late);
    }

    /// What it is given goes to somebody, and may take as long as any call.
    fn extract(&mut self, call: AuthorizedCall) {
        let (extractor, limits) = (self.extractor, self.limits);
        let wall = Wall::new(Duration::from_millis(limits.call_wall_ms_max));
        let in_hand_max = Duration::from_millis(limits.ask_wall_ms_max);
        let time = Time::of(wall.clone(), in_hand_max);
        let CallParts { id, args, .. } = call.into_parts();
        let reply = async move { extract::reply(extractor, args.value(), &limits, time).await };
        self.extractions.insert(id, (wall.clone(), None));
        self.begin(id, wall, Box::pin(reply), extract::late);
    }

    fn begin(
        &mut self,
        id: CallId,
        wall: Wall,
        reply: LocalBoxFuture<'a, Reply>,
        late: impl FnOnce() -> Reply + 'a,
    ) {
        let secrets = &self.broker.secrets;
        let bounded = async move {
            let mut reply = wall.limit(reply).await.unwrap_or_else(|_| late());
            strike::reply(secrets, &mut reply);
            (id, reply)
        };
        let (abort, registration) = AbortHandle::new_pair();
        self.aborts.insert(id, abort);
        self.calls
            .push(Abortable::new(Box::pin(bounded), registration));
    }

    /// It computes a little and waits for nobody. Many of them are a lot, so each begins only
    /// while the run may go on.
    fn call_own(&mut self, call: AuthorizedCall, run: &Run) {
        let CallParts { id, tool, args, .. } = call.into_parts();
        let is_over = self.cancel.is_cancelled() || self.now_ms() >= run.deadline_at_ms();
        let not_sent = |why: &str| (Reply::NotSent { why: why.into() }, Vec::new());
        let (mut reply, disclosed) = match self.librarian {
            _ if is_over => not_sent("the run ends"),
            Some(librarian) => own::ask(librarian, &tool, args.value()),
            None => not_sent("no one can answer it here"),
        };
        strike::reply(&self.broker.secrets, &mut reply);
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
        let claimed = self.broker.claim(grant);
        let (_, registration) = AbortHandle::new_pair();
        self.claims.push(Abortable::new(
            Box::pin(async move { (call, claimed.await) }),
            registration,
        ));
    }

    /// The same host may read a value and ask its person, and brings both back together: while
    /// somebody is asked, the time of what is read stands still.
    pub(super) fn hold_extractions(&mut self) {
        let is_asking = !self.asks.is_empty() || self.inquiries.is_any_open();
        for (wall, held) in self.extractions.values_mut() {
            if is_asking && held.is_none() {
                *held = Some(wall.hold());
            } else if !is_asking {
                *held = None;
            }
        }
        let is_in_hand =
            |(wall, held): &&(Wall, Option<Held>)| wall.holds() > u32::from(held.is_some());
        let in_hand = self.extractions.values().filter(is_in_hand).count();
        let in_hand = u32::try_from(in_hand).unwrap_or(u32::MAX);
        if in_hand != self.in_hand {
            self.in_hand = in_hand;
            self.heard.push(Event::InHand { calls: in_hand });
        }
    }

    fn withdraw(&mut self, call: CallId) {
        self.extractions.remove(&call);
        if let Some(abort) = self.aborts.remove(&call) {
            abort.abort();
        }
    }

    /// Where the paths lead that the calls of a step name, before they are decided.
    fn resolve(&mut self, step: &Step, run: &Run) {
        let named = run.paths_of(step);
        if !named.is_empty() {
            let paths = self.broker.resolver.resolve(named);
            self.heard.push(Event::Resolved { paths });
        }
    }

    fn came(&mut self, came: Result<Step, GuestStop>, guest: &Guest, run: &Run) {
        let secrets = &self.broker.secrets;
        let usage = guest.usage();
        if let Some(mut at) = guest.whereabouts().cloned() {
            strike::whereabouts(secrets, &mut at);
            self.heard.push(Event::Located(at));
        }
        if let Ok(step) = &came {
            self.resolve(step, run);
        }
        self.heard.push(match came {
            Ok(mut step) => {
                strike::step(secrets, &mut step);
                Event::Stepped { step, usage }
            }
            Err(mut stop) => {
                strike::stop(secrets, &mut stop);
                Event::GuestStopped { stop, usage }
            }
        });
    }
}
