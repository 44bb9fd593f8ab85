//! What servers ask of the host in the middle of a call: recorded before it is
//! carried, and its end recorded before the server hears of it.

use std::collections::BTreeMap;

use crate::id::CallId;
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId, Wants};
use crate::journal::{Body, Inquired, InquiryEnded};
use crate::limits::INQUIRIES_MAX;

use super::Run;
use super::calls::Stage;

/// Those that are not answered yet, and how many there were.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    open: BTreeMap<InquiryId, Open>,
    total: u32,
}

#[derive(Debug, Clone)]
struct Open {
    call: CallId,
    /// Those of the calls that it may be about that are still under way.
    waiting: Vec<CallId>,
    wants: Wants,
    since_ms: u64,
}

impl Inquiries {
    /// Calls that wait for an answer.
    pub(super) fn calls(&self) -> u32 {
        let waiting = |open: &Open| open.waiting.clone();
        let mut calls: Vec<_> = self.open.values().flat_map(waiting).collect();
        calls.sort_unstable();
        calls.dedup();
        u32::try_from(calls.len()).unwrap_or(u32::MAX)
    }

    /// Since when the person has the last of those in hand that they are to answer.
    pub(super) fn person_busy_since_ms(&self) -> Option<u64> {
        let in_hand = self.open.values().filter(|it| is_for_person(it.wants));
        in_hand.map(|it| it.since_ms).max()
    }
}

impl Run {
    pub(super) fn inquired(&mut self, inquiry: &Inquiry) {
        let is_under_way = |call: &CallId| {
            let call = self.calls.get(*call);
            call.is_some_and(|it| matches!(it.stage, Stage::InFlight { .. }))
        };
        let calls = [inquiry.call].into_iter().chain(inquiry.or.iter().copied());
        let waiting: Vec<_> = calls.filter(is_under_way).collect();
        let (Some(call), None, false) = (
            waiting.first().copied(),
            &self.ending,
            self.inquiries.open.contains_key(&inquiry.id),
        ) else {
            return self.out.end_inquiry(inquiry.id, InquiryEnd::Withdrawn);
        };
        self.inquiries.total = self.inquiries.total.saturating_add(1);
        if self.inquiries.total > INQUIRIES_MAX {
            return self.out.end_inquiry(inquiry.id, InquiryEnd::TooMany);
        }
        let or = waiting.iter().skip(1).copied().collect();
        let open = Open {
            call,
            waiting,
            wants: inquiry.wants,
            since_ms: self.clock.host_ms(),
        };
        self.inquiries.open.insert(inquiry.id, open);
        let inquired = Inquired {
            call,
            or,
            inquiry: inquiry.id,
            wants: inquiry.wants,
            asked_digest: inquiry.digest,
            again: inquiry.again,
        };
        self.append(Body::Inquired(inquired), false);
        self.out.carry(inquiry.id);
    }

    /// The end of an inquiry that is not open (unknown, ended, withdrawn) is ignored.
    pub(super) fn inquiry_ended(&mut self, inquiry: InquiryId, end: InquiryEnd) {
        let Some(open) = self.inquiries.open.remove(&inquiry) else {
            return;
        };
        // Whoever was busy with it has the whole time for what is asked beside it.
        let was_said = matches!(
            end,
            InquiryEnd::Answered | InquiryEnd::Declined | InquiryEnd::Dismissed
        );
        if was_said && is_for_person(open.wants) {
            self.latest_answer_ms = self.clock.host_ms();
        }
        let ended = InquiryEnded {
            call: open.call,
            inquiry,
            end,
            ms: self.clock.host_ms().saturating_sub(open.since_ms),
        };
        self.append(Body::InquiryEnded(ended), false);
        self.out.end_inquiry(inquiry, end);
    }

    /// The call is over. What its server asked is withdrawn, unless another call may wait for it.
    pub(super) fn withdraw_inquiries(&mut self, call: CallId) {
        let mut left = Vec::new();
        for (id, open) in &mut self.inquiries.open {
            open.waiting.retain(|it| *it != call);
            if open.waiting.is_empty() {
                left.push(*id);
            }
        }
        for inquiry in left {
            self.inquiry_ended(inquiry, InquiryEnd::Withdrawn);
        }
    }
}

fn is_for_person(wants: Wants) -> bool {
    matches!(wants, Wants::Form | Wants::Address)
}
