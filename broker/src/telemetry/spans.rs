//! The spans of one run: the run, its calls, and for each call the decision, the approval, and the
//! request to the server.

use std::collections::HashMap;
use std::sync::Arc;

use airlock_core::id::{CallId, Digest, RunId, ToolId};
use airlock_core::journal::Verdict;
use airlock_core::report::Report;
use serde_json::{Value, json};

use super::export::Exporter;
use super::metrics::Measurement;
use super::otlp::{Span, SpanKind};
use crate::run_event::RunEvent;
use crate::run_index::SignedHead;

/// The ids of a run's trace. A request to a server contains them, so that the server knows to which
/// span the request belongs.
#[derive(Debug, Clone)]
pub(crate) struct TraceIds {
    trace: String,
    run: String,
    is_sampled: bool,
}

/// The state of one run's trace so far.
pub(crate) struct RunTrace(Option<RunTraceState>);

struct RunTraceState {
    exporter: Arc<Exporter>,
    ids: TraceIds,
    parent: Option<String>,
    run: RunId,
    began_ms: u64,
    calls: HashMap<CallId, Call>,
    signed: Option<SignedHead>,
}

struct Call {
    tool: ToolId,
    began_ms: u64,
    asked_ms: Option<u64>,
    decided_ms: Option<u64>,
    attributes: Vec<(&'static str, Value)>,
}

impl TraceIds {
    /// Continues the trace of the requester, or begins a new one.
    fn new(run: &RunId, parent: Option<(String, bool)>) -> Self {
        let (trace, is_sampled) = parent.unwrap_or_else(|| (hex(&run.0, 32), true));
        Self {
            run: hex(&format!("{trace} {}", run.0), 16),
            trace,
            is_sampled,
        }
    }

    fn of_call(&self, call: CallId, part: &str) -> String {
        hex(&format!("{} {} {part}", self.run, call.0), 16)
    }

    /// Returns the `traceparent` of the request of a call.
    pub(crate) fn traceparent(&self, call: CallId) -> String {
        let (trace, span) = (&self.trace, self.of_call(call, "request"));
        let flags = u8::from(self.is_sampled);
        format!("00-{trace}-{span}-{flags:02x}")
    }
}

/// Derives this number of hexadecimal digits from a text.
fn hex(text: &str, digits: usize) -> String {
    let digest = Digest::sha256(text.as_bytes()).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    hex.chars().take(digits).collect()
}

/// Parses a `traceparent`: the trace, the span, and whether it is sampled.
fn read(parent: &str) -> Option<(String, String, bool)> {
    let mut parts = parent.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (span, flags) = (parts.next()?, parts.next()?);
    let is_hex = |text: &str, digits: usize| {
        text.len() == digits
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    };
    let is_some = |text: &str| text.bytes().any(|b| b != b'0');
    let is_one = is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && is_some(trace)
        && is_hex(span, 16)
        && is_some(span)
        && is_hex(flags, 2);
    let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
    is_one.then(|| (trace.to_owned(), span.to_owned(), is_sampled))
}

impl RunTrace {
    pub(super) fn off() -> Self {
        Self(None)
    }

    pub(super) fn begin(
        exporter: Arc<Exporter>,
        run: &RunId,
        parent: Option<&str>,
        now_ms: u64,
    ) -> Self {
        let parent = parent.and_then(read);
        let of_trace = parent.as_ref().map(|it| (it.0.clone(), it.2));
        Self(Some(RunTraceState {
            exporter,
            ids: TraceIds::new(run, of_trace),
            parent: parent.map(|it| it.1),
            run: run.clone(),
            began_ms: now_ms,
            calls: HashMap::new(),
            signed: None,
        }))
    }

    pub(crate) fn ids(&self) -> Option<TraceIds> {
        self.0.as_ref().map(|open| open.ids.clone())
    }

    pub(crate) fn hear(&mut self, event: &RunEvent, now_ms: u64) {
        let Some(open) = &mut self.0 else { return };
        match event {
            RunEvent::Asked { call, tool } => {
                open.call(*call, tool, now_ms).asked_ms = Some(now_ms);
            }
            RunEvent::Answered { call, answer } => {
                let answer = serde_json::to_value(answer).unwrap_or_default();
                open.answered(*call, answer, now_ms);
            }
            RunEvent::CallDecided {
                call,
                tool,
                decision,
                code,
                ..
            } => {
                let call_of = open.call(*call, tool, now_ms);
                call_of.decided_ms = Some(now_ms);
                let word = serde_json::to_value(decision).unwrap_or_default();
                call_of.attributes.push(("airlock.decision", word.clone()));
                open.decided(*call, word, now_ms);
                if *decision != Verdict::Allow {
                    open.ended(*call, code.map(|it| it.as_str()), now_ms);
                }
            }
            RunEvent::CallSettled { call, code, .. } => {
                open.ended(*call, code.map(|it| it.as_str()), now_ms);
            }
            RunEvent::CallReused { call, tool, .. } => {
                let call_of = open.call(*call, tool, now_ms);
                call_of
                    .attributes
                    .push(("airlock.decision", json!("reused")));
                open.ended(*call, None, now_ms);
            }
            RunEvent::Signed { head } => open.signed = Some(head.clone()),
            RunEvent::Checked { .. }
            | RunEvent::Started { .. }
            | RunEvent::Console { .. }
            | RunEvent::Inquired { .. }
            | RunEvent::InquiryEnded { .. } => {}
        }
    }

    pub(crate) fn finish(self, report: &Report, now_ms: u64) {
        let Some(mut open) = self.0 else { return };
        let left: Vec<CallId> = open.calls.keys().copied().collect();
        for call in left {
            open.ended(call, Some("run-ended"), now_ms);
        }
        let status = serde_json::to_value(report.status).unwrap_or_default();
        let error = report.code.map(|code| code.as_str());
        let mut attributes = vec![
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!("run_script")),
            ("airlock.run.id", json!(&*open.run.0)),
            ("airlock.run.status", status.clone()),
            ("airlock.run.calls", json!(report.calls.len())),
        ];
        attributes.extend(error.map(|code| ("error.type", json!(code))));
        if let Some(head) = open.signed.take() {
            attributes.extend([
                ("airlock.journal.head", json!(head.head)),
                ("airlock.journal.entries", json!(head.entries)),
                ("airlock.journal.seq", json!(head.seq)),
                ("airlock.journal.key", json!(head.key)),
                ("airlock.journal.signature", json!(head.signature)),
            ]);
        }
        let span = Span {
            id: open.ids.run.clone(),
            parent: open.parent.take(),
            name: "run_script".into(),
            kind: SpanKind::Server,
            began_ms: open.began_ms,
            ended_ms: now_ms,
            attributes,
            is_error: error.is_some(),
            trace: open.ids.trace.clone(),
        };
        open.send(span);
        open.exporter.measure(Measurement::Run {
            status: status.as_str().unwrap_or_default().to_owned(),
            ms: now_ms.saturating_sub(open.began_ms),
        });
    }
}

impl RunTraceState {
    fn call(&mut self, call: CallId, tool: &ToolId, now_ms: u64) -> &mut Call {
        self.calls.entry(call).or_insert_with(|| Call {
            tool: tool.clone(),
            began_ms: now_ms,
            asked_ms: None,
            decided_ms: None,
            attributes: Vec::new(),
        })
    }

    fn answered(&self, call: CallId, answer: Value, now_ms: u64) {
        let asked = self.calls.get(&call).and_then(|it| it.asked_ms);
        let span = self.part(call, "approval", asked.unwrap_or(now_ms), now_ms);
        self.send(Span {
            attributes: vec![("airlock.answer", answer)],
            ..span
        });
    }

    fn decided(&self, call: CallId, decision: Value, now_ms: u64) {
        let began = self.calls.get(&call).map_or(now_ms, |it| it.began_ms);
        let span = self.part(call, "decision", began, now_ms);
        self.send(Span {
            attributes: vec![("airlock.decision", decision)],
            ..span
        });
    }

    fn ended(&mut self, id: CallId, error: Option<&str>, now_ms: u64) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let tool = call.tool.to_string();
        let allowed = call
            .attributes
            .contains(&("airlock.decision", json!("allow")));
        let mut attributes = call.attributes;
        attributes.push(("gen_ai.operation.name", json!("execute_tool")));
        attributes.push(("gen_ai.tool.name", json!(tool)));
        attributes.extend(error.map(|code| ("error.type", json!(code))));
        if let Some(sent_ms) = call.decided_ms.filter(|_| allowed) {
            let request = self.part(id, "request", sent_ms, now_ms);
            let mut said = vec![
                ("mcp.method.name", json!("tools/call")),
                ("gen_ai.operation.name", json!("execute_tool")),
                ("gen_ai.tool.name", json!(&*call.tool.tool.0)),
                ("airlock.server", json!(&*call.tool.server.0)),
            ];
            said.extend(error.map(|code| ("error.type", json!(code))));
            self.send(Span {
                name: format!("tools/call {}", call.tool.tool.0),
                kind: SpanKind::Client,
                attributes: said,
                is_error: error.is_some(),
                ..request
            });
            self.exporter.measure(Measurement::Request {
                tool: tool.clone(),
                error: error.map(str::to_owned),
                ms: now_ms.saturating_sub(sent_ms),
            });
        }
        self.exporter.measure(Measurement::Call { allowed });
        let span = Span {
            id: self.ids.of_call(id, "call"),
            parent: Some(self.ids.run.clone()),
            name: format!("execute_tool {tool}"),
            attributes,
            is_error: error.is_some(),
            ..self.part(id, "call", call.began_ms, now_ms)
        };
        self.send(span);
    }

    /// Returns a span inside a call.
    fn part(&self, call: CallId, part: &str, began_ms: u64, ended_ms: u64) -> Span {
        Span {
            trace: self.ids.trace.clone(),
            id: self.ids.of_call(call, part),
            parent: Some(self.ids.of_call(call, "call")),
            name: part.to_owned(),
            kind: SpanKind::Internal,
            began_ms,
            ended_ms,
            attributes: Vec::new(),
            is_error: false,
        }
    }

    fn send(&self, span: Span) {
        if self.ids.is_sampled {
            self.exporter.trace(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parent_is_ignored() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let good = format!("00-{trace}-00f067aa0ba902b7-01");
        assert_eq!(
            read(&good),
            Some((trace.into(), "00f067aa0ba902b7".into(), true))
        );
        for bad in [
            "",
            "00",
            &good.to_uppercase(),
            &good.replace("00f067aa0ba902b7", "0000000000000000"),
            &good.replace("00-", "ff-"),
            &good.replace(trace, "x"),
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let run = RunId("r1".into());
        let ids = TraceIds::new(&run, Some((trace.into(), false)));
        let sent = ids.traceparent(CallId(1));
        assert!(sent.starts_with(&format!("00-{trace}-")) && sent.ends_with("-00"));
        assert!(read(&sent).is_some());
        assert_ne!(sent, ids.traceparent(CallId(2)));
    }
}
