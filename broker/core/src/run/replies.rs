//! Handles replies of servers: each is classified, recorded, and stored for the guest.

use sandbox_protocol::{Failure, Outcome};
use serde_json::{Value, json};

use crate::id::{CallId, Digest, ToolId};
use crate::journal::{Body, SettledEntry};
use crate::outcome::{JudgedReply, Reply, judge};

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
        let CallStage::InFlight { tool, since_ms, .. } = self.calls.take(call) else {
            return;
        };
        self.withdraw_inquiries(call);
        let ms = self.clock.host_ms().saturating_sub(since_ms);
        let judged = judge(reply, &tool, &self.spec.limits);
        if let Some(tracker) = &mut self.tracker {
            tracker.record_outcome(call, &tool, &judged.outcome);
        }
        self.settle(call, &judged, ms, true);
        self.tell(call, judged.outcome);
    }

    /// Adds disclosed tools, which the script may call from now on.
    pub(super) fn disclosed(&mut self, tools: &[(ToolId, Digest)]) {
        self.spec.decision_context.disclosed.add(tools);
        if let Some(tracker) = &mut self.tracker {
            tracker.add_disclosed(tools);
        }
    }

    /// Records the outcome of a call that left.
    pub(super) fn settle(&mut self, call: CallId, judged: &JudgedReply, ms: u64, told: bool) {
        if let Some(record) = self.calls.record(call) {
            record.outcome = Some(judged.reported);
            record.code = judged.code;
            record.ms = ms;
        }
        let payload = if told {
            payload(&judged.outcome)
        } else {
            "".into()
        };
        let payload_bytes = payload.len();
        let short = payload_bytes <= self.spec.limits.journal_payload_bytes_max as usize;
        let settled = SettledEntry {
            call,
            outcome: judged.reported,
            code: judged.code,
            why: judged.why.clone(),
            payload_digest: Digest::sha256(payload.as_bytes()),
            payload_bytes: payload_bytes as u64,
            payload: (told && short).then(|| payload.into_owned()),
            told,
            ms,
        };
        self.append(Body::Settled(Box::new(settled)), false);
    }
}

/// Returns the payload of the settled promise as text: the value itself, or the failure's fields.
fn payload(outcome: &Outcome) -> std::borrow::Cow<'_, str> {
    match outcome {
        // A value is JSON and therefore UTF-8, so checking is enough and faster than a lossy
        // conversion.
        Outcome::Value(text) => match std::str::from_utf8(text) {
            Ok(text) => text.into(),
            Err(_) => String::from_utf8_lossy(text),
        },
        Outcome::Failure(failure) => failure_json(failure).to_string().into(),
    }
}

fn failure_json(failure: &Failure) -> Value {
    json!({
        "code": failure.code,
        "content": as_text(&failure.content),
        "message": failure.message,
        "retryable": failure.retryable,
        "structured_content": as_text(&failure.structured_content),
        "tool": failure.tool,
    })
}

/// Keeps JSON inside JSON as text, so that a replay passes on the same bytes.
fn as_text(json: &[u8]) -> Option<String> {
    (!json.is_empty()).then(|| String::from_utf8_lossy(json).into_owned())
}
