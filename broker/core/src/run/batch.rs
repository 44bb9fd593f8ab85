//! The effects of one turn of the machine, in the only safe order: all journal entries come before
//! all effects that are visible outside. If an append fails, the shell drops the effects after it,
//! so no unrecorded call is sent.

use sandbox_protocol::{ConsoleLine, Resume};

use crate::decide::{AuthorizedCall, Question};
use crate::effect::Effect;
use crate::grant::Grant;
use crate::id::{CallId, GrantId};
use crate::inquiry::{InquiryEnd, InquiryId};
use crate::journal::Entry;

#[derive(Debug, Default)]
pub(super) struct Batch {
    number: u64,
    console: Vec<ConsoleLine>,
    stops: Vec<Effect>,
    appends: Vec<Effect>,
    keeps: Vec<Effect>,
    asks: Vec<Effect>,
    calls: Vec<Effect>,
    guest: Option<Effect>,
    alarm: Option<Effect>,
    finish: Option<Effect>,
}

impl Batch {
    /// Returns the number of the turn, which identifies the batch in which a call was sent.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn append(&mut self, entry: Entry, sync: bool) {
        self.appends.push(Effect::Append { entry, sync });
    }

    pub(super) fn show(&mut self, lines: Vec<ConsoleLine>) {
        self.console.extend(lines);
    }

    pub(super) fn ask(&mut self, question: Question) {
        self.asks.push(Effect::Ask(Box::new(question)));
    }

    pub(super) fn keep(&mut self, grant: Grant) {
        self.keeps.push(Effect::KeepGrant(Box::new(grant)));
    }

    pub(super) fn claim(&mut self, call: CallId, grant: GrantId) {
        self.calls.push(Effect::Claim { call, grant });
    }

    pub(super) fn withdraw_ask(&mut self, call: CallId) {
        self.stops.push(Effect::WithdrawAsk(call));
    }

    pub(super) fn carry(&mut self, inquiry: InquiryId) {
        self.asks.push(Effect::ForwardInquiry(inquiry));
    }

    /// Adds the end of an inquiry. The server receives it after the journal entry is written.
    pub(super) fn end_inquiry(&mut self, inquiry: InquiryId, end: InquiryEnd) {
        self.asks.push(Effect::EndInquiry { inquiry, end });
    }

    pub(super) fn call(&mut self, call: AuthorizedCall) {
        self.calls.push(Effect::Call(call));
    }

    pub(super) fn cancel_call(&mut self, call: CallId) {
        self.stops.push(Effect::CancelCall(call));
    }

    pub(super) fn start_guest(&mut self, start: sandbox_protocol::Start) {
        self.guest = Some(Effect::StartGuest(Box::new(start)));
    }

    pub(super) fn resume(&mut self, resume: Resume) {
        self.guest = Some(Effect::Resume(resume));
    }

    pub(super) fn stop_guest(&mut self) {
        self.stops.push(Effect::StopGuest);
    }

    pub(super) fn wake_at(&mut self, at_ms: u64) {
        self.alarm = Some(Effect::WakeAt { at_ms });
    }

    pub(super) fn finish(&mut self, report: crate::report::Report) {
        self.finish = Some(Effect::Finish(Box::new(report)));
    }

    /// Drops all entries, since the journal cannot be written any more.
    pub(super) fn drop_appends(&mut self) {
        self.appends.clear();
    }

    pub(super) fn flush(&mut self) -> Vec<Effect> {
        let number = self.number + 1;
        let batch = std::mem::replace(
            self,
            Self {
                number,
                ..Self::default()
            },
        );
        let console = (!batch.console.is_empty()).then_some(Effect::Console(batch.console));
        console
            .into_iter()
            .chain(batch.stops)
            .chain(batch.appends)
            .chain(batch.keeps)
            .chain(batch.asks)
            .chain(batch.calls)
            .chain(batch.guest)
            .chain(batch.alarm)
            .chain(batch.finish)
            .collect()
    }
}
