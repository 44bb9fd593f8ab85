//! Traces and metrics of runs, as OTLP over HTTP in JSON. Off unless a collector
//! is named. What is told are names, codes and times: never an argument, a
//! result, a script or a credential.
//!
//! A run never waits for a collector. What cannot be sent is dropped.

mod export;
mod metrics;
mod otlp;
mod settings;
mod spans;

use std::sync::Arc;

use airlock_core::id::RunId;
use airlock_core::problem::Problem;

use crate::budget::Budget;
use export::Exporter;
use metrics::Measured;

pub use settings::TelemetryConfig;
pub(crate) use spans::{RunTrace, TraceIds};

/// Where traces and metrics go. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Telemetry(Option<Arc<Exporter>>);

impl Telemetry {
    /// Sends from the runtime that is entered.
    pub(crate) fn start(config: Option<TelemetryConfig>, budget: &Budget) -> Self {
        let start = |config| Exporter::start(config, budget.clone());
        Self(config.and_then(start).map(Arc::new))
    }

    /// `parent` is a `traceparent` of whoever wanted the run.
    pub(crate) fn run(&self, run: &RunId, parent: Option<&str>, now_ms: u64) -> RunTrace {
        match &self.0 {
            Some(exporter) => RunTrace::begin(Arc::clone(exporter), run, parent, now_ms),
            None => RunTrace::off(),
        }
    }

    /// A session asked for full descriptions, perhaps more often than it may.
    pub(crate) fn fetched(&self, too_often: bool) {
        if let Some(exporter) = &self.0 {
            exporter.measure(Measured::Fetch { too_often });
        }
    }

    /// When the collector has not got something, once; never where it gets everything.
    pub(crate) async fn trouble(&self) -> Problem {
        if let Some(exporter) = &self.0
            && let Ok(why) = exporter.trouble().wait_for(Option::is_some).await
        {
            let what = "the collector does not get all traces and metrics";
            let next = "see to OTEL_EXPORTER_OTLP_ENDPOINT, or set OTEL_SDK_DISABLED=true; runs \
                        go on without it";
            return Problem::new(
                "collector-unheard",
                what,
                why.clone().unwrap_or_default(),
                next,
            );
        }
        std::future::pending().await
    }

    /// Sends what waits, if a collector takes it soon.
    pub(crate) async fn flush(&self) {
        if let Some(exporter) = &self.0 {
            exporter.flush().await;
        }
    }
}
