//! Formats spans and metrics for a collector, in the JSON form of OTLP.

use serde_json::{Value, json};

const SCOPE: &str = "airlock";

#[derive(Debug, Clone, Copy)]
pub(super) enum SpanKind {
    Internal,
    Server,
    Client,
}

impl SpanKind {
    fn number(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Server => 2,
            Self::Client => 3,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) began_ms: u64,
    pub(super) ended_ms: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) is_error: bool,
}

pub(super) fn traces(resource: &[(String, String)], spans: &[Span]) -> Value {
    let spans: Vec<_> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": described(resource),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

pub(super) fn metrics(resource: &[(String, String)], metrics: &[Value]) -> Value {
    json!({"resourceMetrics": [{
        "resource": described(resource),
        "scopeMetrics": [{"scope": scope(), "metrics": metrics}],
    }]})
}

fn scope() -> Value {
    json!({"name": SCOPE, "version": env!("CARGO_PKG_VERSION")})
}

fn described(resource: &[(String, String)]) -> Value {
    let pairs = resource
        .iter()
        .map(|(key, value)| attribute(key, &json!(value)));
    json!({"attributes": pairs.collect::<Vec<_>>()})
}

fn span(span: &Span) -> Value {
    let attributes = span
        .attributes
        .iter()
        .map(|(key, value)| attribute(key, value));
    json!({
        "traceId": span.trace,
        "spanId": span.id,
        "parentSpanId": span.parent.as_deref().unwrap_or_default(),
        "name": span.name,
        "kind": span.kind.number(),
        "startTimeUnixNano": nanos(span.began_ms),
        "endTimeUnixNano": nanos(span.ended_ms),
        "attributes": attributes.collect::<Vec<_>>(),
        "status": if span.is_error { json!({"code": 2}) } else { json!({}) },
    })
}

/// Converts milliseconds to nanoseconds. 64-bit numbers are strings in the JSON form.
pub(super) fn nanos(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).to_string()
}

pub(super) fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Bool(yes) => json!({ "boolValue": yes }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}
