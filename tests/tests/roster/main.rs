//! Tests servers that join, change, die and go idle while scripts run. A call is decided with the
//! descriptions that its run knows, and is sent only if the server still has the same description.

mod changed;
mod paths;
mod resting;

use airlock::core::report::Report;
use airlock::{Broker, Script};
use serde_json::Value;

/// Waits until a condition on the known servers holds.
async fn until(broker: &Broker, holds: impl Fn(&Broker) -> bool) {
    let mut changes = broker.changes();
    while !holds(broker) {
        changes.changed().await.unwrap();
    }
}

fn offers(broker: &Broker, tool: &str) -> bool {
    let catalog = broker.catalog();
    catalog.tools().any(|it| it.id.to_string() == tool)
}

async fn run(broker: &Broker, script: &str) -> Report {
    broker.run(Script::body(script)).report().await
}

fn value(report: &Report) -> Value {
    let text = report.value.as_ref();
    let text = text.unwrap_or_else(|| panic!("no value: {report:?}"));
    serde_json::from_str(text.get()).unwrap()
}
