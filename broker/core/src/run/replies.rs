//! Handles replies of servers: each is classified, recorded, and stored for the guest.

use crate::call::Args;
use crate::catalog::Tool;
use crate::id::{CallId, Digest, ToolId};
use crate::journal::{Body, SettledEntry, payload};
use crate::outcome::{JudgedReply, Reply, judge};
use crate::report::ReportedOutcome;

use super::Run;
use super::calls::CallStage;

impl Run {
    /// Handles a reply. A reply to a call that is not in flight (unknown, settled, late) is
    /// ignored.
    pub(super) fn replied(&mut self, call: CallId, reply: Reply) {
        let in_flight = |stage: &CallStage| matches!(stage, CallStage::InFlight { .. });
        if !self
            .calls
            .record(call)
            .is_some_and(|record| in_flight(&record.stage))
        {
            return;
        }
        let CallStage::InFlight {
            tool,
            args,
            since_ms,
            ..
        } = self.calls.take(call)
        else {
            return;
        };
        self.withdraw_inquiries(call);
        let ms = self.clock.host_ms().saturating_sub(since_ms);
        let judged = judge(reply, &tool, &self.spec.limits);
        if let Some(tracker) = &mut self.tracker {
            tracker.record_outcome(call, &tool, &judged.outcome);
        }
        self.note_unknown(call, &tool, &args, judged.reported);
        let is_told = self.drain.is_none();
        self.settle(call, &judged, ms, is_told);
        if is_told {
            self.tell(call, judged.outcome);
        }
    }

    /// Adds disclosed tools, which the script may call from now on.
    pub(super) fn disclosed(&mut self, tools: &[(ToolId, Digest)]) {
        self.spec.decision_context.disclosed.add(tools);
        if let Some(tracker) = &mut self.tracker {
            tracker.add_disclosed(tools);
        }
    }

    /// Remembers a call that is not repeatable and whose outcome is unknown.
    pub(super) fn note_unknown(
        &mut self,
        call: CallId,
        tool: &Tool,
        args: &Args,
        outcome: ReportedOutcome,
    ) {
        if outcome == ReportedOutcome::Unknown && !tool.is_repeatable() {
            let (key, _) = self.key_of(tool, args);
            let at = self.call_ref(call);
            self.indeterminate.entry(key).or_default().push(at);
        }
    }

    /// Records the outcome of a call that left. `told`: whether the script gets it.
    pub(super) fn settle(&mut self, call: CallId, judged: &JudgedReply, ms: u64, told: bool) {
        if let Some(record) = self.calls.record(call) {
            record.outcome = Some(judged.reported);
            record.code = judged.code;
            record.ms = ms;
        }
        // Without an outcome there is nothing to record.
        let is_known = told || judged.reported != ReportedOutcome::Unknown;
        let payload = match is_known {
            true => payload(&judged.outcome),
            false => "".into(),
        };
        let payload_bytes = payload.len();
        let short = payload_bytes <= self.spec.limits.journal_payload_bytes_max as usize;
        let payload_digest = Digest::sha256(payload.as_bytes());
        self.note_refreshed(call, judged.reported, payload_digest);
        let settled = SettledEntry {
            call,
            outcome: judged.reported,
            code: judged.code,
            why: judged.why.clone(),
            payload_digest,
            payload_bytes: payload_bytes as u64,
            payload: (is_known && short).then(|| payload.into_owned()),
            told,
            ms,
            masked: false,
        };
        self.append(Body::Settled(Box::new(settled)), false);
    }
}
