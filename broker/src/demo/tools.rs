//! Calls the demo server's tools: takes a name and arguments, and returns a `tools/call` result.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::logs::{self, Query};
use super::tickets::{Draft, TicketFilter, Tickets};

/// An answer that is sent immediately or after a delay.
#[derive(Debug, PartialEq)]
pub(super) enum ToolReply<T> {
    Now(T),
    After(Duration, T),
}

impl<T> ToolReply<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> ToolReply<U> {
        match self {
            Self::Now(told) => ToolReply::Now(change(told)),
            Self::After(delay, told) => ToolReply::After(delay, change(told)),
        }
    }
}

/// Returns the descriptions as `tools/list` sends them.
pub(super) fn descriptions() -> Value {
    // The file is part of the program, and a test checks that it can be parsed.
    serde_json::from_str(include_str!("tools.json")).unwrap_or_default()
}

#[derive(Debug, Default)]
pub(super) struct DemoTools {
    tickets: Tickets,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chart {
    service: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketArgs {
    id: u64,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Period {
    #[default]
    Hour,
    Day,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    #[serde(default)]
    period: Period,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    ms: u64,
    value: Value,
}

/// The result of a tool. The text of a failure is sent as an `isError` result.
type ToolOutcome = Result<Value, String>;

impl DemoTools {
    /// Calls a tool. Returns `None` if there is no such tool.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Option<ToolReply<Value>> {
        let done = match name {
            "slow_echo" => return Some(slow_echo(arguments)),
            "logs_query" => read(arguments)
                .and_then(|query: Query| query.checked())
                .map(|query| typed(logs::query(&query))),
            "logs_services" => read(arguments).map(|NoArgs {}| typed(logs::services())),
            "logs_count" => {
                read(arguments).map(|query: Query| typed(json!({"result": logs::count(&query)})))
            }
            "logs_chart" => read(arguments).and_then(|chart: Chart| logs_chart(&chart.service)),
            "tickets_list" => {
                read(arguments).map(|filter: TicketFilter| typed(self.tickets.list(&filter)))
            }
            "tickets_create" => read(arguments)
                .and_then(|draft: Draft| self.tickets.create(draft))
                .map(typed),
            "tickets_delete" => read(arguments)
                .and_then(|TicketArgs { id }| self.tickets.delete(id))
                .map(typed),
            "flaky_report" => read(arguments).and_then(flaky_report),
            "get-time" => {
                read(arguments).map(|NoArgs {}| json!({"content": [text(&logs::newest())]}))
            }
            _ => return None,
        };
        Some(ToolReply::Now(done.unwrap_or_else(|why| failed(&why))))
    }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| format!("invalid arguments: {error}"))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a structured result, with the same value as text for clients that read only text.
fn typed(value: Value) -> Value {
    json!({"content": [text(&value.to_string())], "structuredContent": value})
}

fn failed(why: &str) -> Value {
    json!({"content": [text(why)], "isError": true})
}

fn slow_echo(arguments: Map<String, Value>) -> ToolReply<Value> {
    const MS_MAX: u64 = 600_000;
    match read(arguments) {
        Ok(Echo { ms, .. }) if ms > MS_MAX => ToolReply::Now(failed("`ms` is more than 600000")),
        // A timer would take at least a millisecond.
        Ok(Echo { ms: 0, value }) => ToolReply::Now(typed(json!({ "value": value }))),
        Ok(Echo { ms, value }) => {
            ToolReply::After(Duration::from_millis(ms), typed(json!({"value": value})))
        }
        Err(why) => ToolReply::Now(failed(&why)),
    }
}

fn flaky_report(report: Report) -> ToolOutcome {
    match report.period {
        Period::Day => Ok(json!({"content": [text(&logs::summary())]})),
        Period::Hour => Ok(json!({
            "content": [
                text("the report of the running hour is not ready"),
                {"type": "resource_link", "uri": "demo://reports/day", "name": "day", "description": "the report of the whole day"}
            ],
            "structuredContent": {"reason": "not-ready", "retryAfterMs": 3_600_000},
            "isError": true
        })),
    }
}

fn logs_chart(service: &str) -> ToolOutcome {
    // A picture of one grey pixel.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";
    let csv = logs::csv(service).ok_or_else(|| format!("there is no service `{service}`"))?;
    Ok(json!({"content": [
        {"type": "image", "data": PNG, "mimeType": "image/png", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "resource", "resource": {"uri": format!("demo://charts/{service}.csv"), "mimeType": "text/csv", "text": csv}},
        {"type": "resource_link", "uri": format!("demo://logs/{service}"), "name": format!("{service}.log"), "mimeType": "text/plain"}
    ]}))
}
