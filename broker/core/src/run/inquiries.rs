//! Inquiries: requests of servers to the host during a call. An inquiry is recorded before it is
//! passed on, and its end is recorded before the server receives the reply.

use std::collections::BTreeMap;

use crate::id::CallId;
use crate::inquiry::{Inquiry, InquiryEnd, InquiryId, InquiryKind, InquiryLogin};
use crate::journal::{Body, InquiredEntry, InquiryEndedEntry};
use crate::limits::INQUIRIES_MAX;

use super::Run;
use super::calls::CallStage;

/// The open inquiries, and the number of all inquiries so far.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    open: BTreeMap<InquiryId, OpenInquiry>,
    total: u32,
}

#[derive(Debug, Clone)]
struct OpenInquiry {
    call: CallId,
    /// The calls that the inquiry may belong to and that are still under way.
    waiting: Vec<CallId>,
    wants: InquiryKind,
    since_ms: u64,
}

impl Inquiries {
    /// Returns the number of calls that wait for an answer.
    pub(super) fn calls(&self) -> u32 {
        let waiting = |open: &OpenInquiry| open.waiting.clone();
        let mut calls: Vec<_> = self.open.values().flat_map(waiting).collect();
        calls.sort_unstable();
        calls.dedup();
        u32::try_from(calls.len()).unwrap_or(u32::MAX)
    }

    /// Returns when the latest form or address that is still open was sent to the person.
    pub(super) fn person_busy_since_ms(&self) -> Option<u64> {
        let held_by_host = self.open.values().filter(|it| is_for_person(it.wants));
        held_by_host.map(|it| it.since_ms).max()
    }
}

impl Run {
    pub(super) fn inquired(&mut self, inquiry: &Inquiry) {
        let is_under_way = |call: &CallId| {
            let call = self.calls.get(*call);
            call.is_some_and(|it| matches!(it.stage, CallStage::InFlight { .. }))
        };
        let calls = [inquiry.call].into_iter().chain(inquiry.or.iter().copied());
        let waiting: Vec<_> = calls.filter(is_under_way).collect();
        let is_over = self.ending.is_some() || self.drain.is_some();
        let (Some(call), false, false) = (
            waiting.first().copied(),
            is_over,
            self.inquiries.open.contains_key(&inquiry.id),
        ) else {
            return self.out.end_inquiry(inquiry.id, InquiryEnd::Withdrawn);
        };
        self.inquiries.total = self.inquiries.total.saturating_add(1);
        if self.inquiries.total > INQUIRIES_MAX {
            return self.out.end_inquiry(inquiry.id, InquiryEnd::TooMany);
        }
        let or = waiting.iter().skip(1).copied().collect();
        let open = OpenInquiry {
            call,
            waiting,
            wants: inquiry.wants,
            since_ms: self.clock.host_ms(),
        };
        self.inquiries.open.insert(inquiry.id, open);
        let inquired = InquiredEntry {
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

    /// Ends an inquiry. If the inquiry is unknown, ended or withdrawn, this is ignored.
    pub(super) fn inquiry_ended(
        &mut self,
        inquiry: InquiryId,
        end: InquiryEnd,
        login: Option<InquiryLogin>,
    ) {
        let Some(open) = self.inquiries.open.remove(&inquiry) else {
            return;
        };
        // The person was busy with this inquiry, and now has the full time for the open questions.
        let was_said = matches!(
            end,
            InquiryEnd::Answered | InquiryEnd::Declined | InquiryEnd::Dismissed
        );
        if was_said && is_for_person(open.wants) {
            self.latest_answer_ms = self.clock.host_ms();
        }
        let ended = InquiryEndedEntry {
            call: open.call,
            inquiry,
            end,
            ms: self.clock.host_ms().saturating_sub(open.since_ms),
            login,
        };
        self.append(Body::InquiryEnded(ended), false);
        self.out.end_inquiry(inquiry, end);
    }

    /// Withdraws the inquiries of a call that is over, except those for which another call may
    /// wait.
    pub(super) fn withdraw_inquiries(&mut self, call: CallId) {
        let mut left = Vec::new();
        for (id, open) in &mut self.inquiries.open {
            open.waiting.retain(|it| *it != call);
            if open.waiting.is_empty() {
                left.push(*id);
            }
        }
        for inquiry in left {
            self.inquiry_ended(inquiry, InquiryEnd::Withdrawn, None);
        }
    }
}

fn is_for_person(wants: InquiryKind) -> bool {
    matches!(wants, InquiryKind::Form | InquiryKind::Address)
}
