//! What servers ask of the host in the middle of a call: recorded before it is
//! carried, and its end recorded before the server hears of it.

use std::collections::BTreeMap;

use crate::id::CallId;
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId};
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

#[derive(Debug, Clone, Copy)]
struct Open {
    call: CallId,
    since_ms: u64,
}

impl Inquiries {
    /// Calls that wait for an answer.
    pub(super) fn calls(&self) -> u32 {
        let mut calls: Vec<_> = self.open.values().map(|open| open.call).collect();
        calls.sort_unstable();
        calls.dedup();
        u32::try_from(calls.len()).unwrap_or(u32::MAX)
    }
}

impl Run {
    pub(super) fn inquired(&mut self, inquiry: &Inquiry) {
        let call = self.calls.get(inquiry.call);
        let waits = call.is_some_and(|it| matches!(it.stage, Stage::InFlight { .. }));
        if !waits || self.ending.is_some() || self.inquiries.open.contains_key(&inquiry.id) {
            return self.out.end_inquiry(inquiry.id, InquiryEnd::Withdrawn);
        }
        self.inquiries.total = self.inquiries.total.saturating_add(1);
        if self.inquiries.total > INQUIRIES_MAX {
            return self.out.end_inquiry(inquiry.id, InquiryEnd::TooMany);
        }
        let open = Open {
            call: inquiry.call,
            since_ms: self.clock.host_ms(),
        };
        self.inquiries.open.insert(inquiry.id, open);
        let inquired = Inquired {
            call: inquiry.call,
            inquiry: inquiry.id,
            wants: inquiry.wants,
            asked_digest: inquiry.digest,
        };
        self.append(Body::Inquired(inquired), false);
        self.out.carry(inquiry.id);
    }

    /// The end of an inquiry that is not open (unknown, ended, withdrawn) is ignored.
    pub(super) fn inquiry_ended(&mut self, inquiry: InquiryId, end: InquiryEnd) {
        let Some(open) = self.inquiries.open.remove(&inquiry) else {
            return;
        };
        let ended = InquiryEnded {
            call: open.call,
            inquiry,
            end,
            ms: self.clock.host_ms().saturating_sub(open.since_ms),
        };
        self.append(Body::InquiryEnded(ended), false);
        self.out.end_inquiry(inquiry, end);
    }

    /// The call is over: nobody waits for what its server asked.
    pub(super) fn withdraw_inquiries(&mut self, call: CallId) {
        let of_call = |(id, open): (&InquiryId, &Open)| (open.call == call).then_some(*id);
        let open: Vec<_> = self.inquiries.open.iter().filter_map(of_call).collect();
        for inquiry in open {
            self.inquiry_ended(inquiry, InquiryEnd::Withdrawn);
        }
    }
}
