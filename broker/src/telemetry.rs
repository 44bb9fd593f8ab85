//! Traces and metrics of runs, as OTLP over HTTP in JSON. It is off unless a collector is
//! configured. It contains names, codes and times, but never an argument, a result, a script or a
//! credential.
//!
//! A run never waits for a collector. Data that cannot be sent is dropped.

mod export;
mod metrics;
mod otlp;
mod spans;

use std::sync::Arc;

use airlock_core::id::RunId;
use airlock_core::problem::Problem;

use crate::config::TelemetryConfig;
use airlock_sandbox::budget::Budget;
use export::Exporter;
use metrics::Measurement;

pub(crate) use spans::{RunTrace, TraceIds};

/// The destination of traces and metrics. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Telemetry(Option<Arc<Exporter>>);

impl Telemetry {
    /// Starts the exporter on the current tokio runtime.
    pub(crate) fn start(config: Option<TelemetryConfig>, budget: &Budget) -> Self {
        let start = |config| Exporter::start(config, budget.clone());
        Self(config.and_then(start).map(Arc::new))
    }

    /// Begins the trace of a run. `parent` is the `traceparent` of the requester.
    pub(crate) fn run(&self, run: &RunId, parent: Option<&str>, now_ms: u64) -> RunTrace {
        match &self.0 {
            Some(exporter) => RunTrace::begin(Arc::clone(exporter), run, parent, now_ms),
            None => RunTrace::off(),
        }
    }

    /// Counts a session's request for full descriptions. `too_often` is set if the session exceeded
    /// its limit.
    pub(crate) fn fetched(&self, too_often: bool) {
        if let Some(exporter) = &self.0 {
            exporter.measure(Measurement::Fetch { too_often });
        }
    }

    /// Resolves once when data could not be sent to the collector. Never resolves if everything was
    /// sent.
    pub(crate) async fn trouble(&self) -> Problem {
        if let Some(exporter) = &self.0
            && let Ok(why) = exporter.trouble().wait_for(Option::is_some).await
        {
            let what = "the collector does not get all traces and metrics";
            let next = "check OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_SDK_DISABLED=true; runs \
                        continue without telemetry";
            return Problem::new(
                "collector-unheard",
                what,
                why.clone().unwrap_or_default(),
                next,
            );
        }
        std::future::pending().await
    }

    /// Sends the waiting data, if the collector accepts it soon.
    pub(crate) async fn flush(&self) {
        if let Some(exporter) = &self.0 {
            exporter.flush().await;
        }
    }
}
