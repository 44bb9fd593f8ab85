//! The mode `full`: a complete call through the library as an embedding program uses it. It
//! includes the rules, the schema of the arguments, the decision, the journal on disk and the
//! schema of the result. Every tool is read-only, so no call waits for a sync.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use airlock::core::limits::Limits;
use airlock::core::report::Status;
use airlock::{Broker, Cancel, InProcessTool, Script};
use anyhow::{Context, Result, bail, ensure};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::timing::{WARM_UPS, gaps, micros, millis, pss_kib, repeat};
use crate::work::{AT_ONCE, Work};

pub(crate) fn measure(row: &str, work: &Work, count: usize) -> Result<Vec<f64>> {
    let full = Full::build(work)?;
    match row {
        "warm" => full.warm(count),
        "calls" => full.calls(count),
        "concurrent" => full.concurrent(count),
        "filter" => full.filter(count),
        "waiting" => full.waiting(count),
        other => bail!("no such row: {other}"),
    }
}

struct Full<'a> {
    broker: Broker,
    runtime: Runtime,
    work: &'a Work,
    seen: ToolObservations,
    // The last field is dropped last, which removes the journals.
    _state: StateDir,
}

/// The records of the tools about their calls.
#[derive(Clone, Default)]
struct ToolObservations {
    lookups: Arc<Mutex<Vec<Instant>>>,
    hung: Arc<AtomicUsize>,
}

impl<'a> Full<'a> {
    fn build(work: &'a Work) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let state = StateDir::new(&work.folder)?;
        let seen = ToolObservations::default();
        let mut builder = Broker::builder()
            .allow("bench.*")?
            .engine(crate::engine()?)
            .limits(limits())
            .state_dir(&state.0);
        for tool in tools(work, &seen)? {
            builder = builder.tool(tool);
        }
        let broker = runtime.block_on(builder.build())?;
        let problems = broker.problems();
        ensure!(problems.is_empty(), "the broker has problems: {problems:?}");
        Ok(Self {
            broker,
            runtime,
            work,
            seen,
            _state: state,
        })
    }

    fn warm(&self, count: usize) -> Result<Vec<f64>> {
        let script = Script::body(&self.work.one);
        let samples = repeat(WARM_UPS, count, || self.run(script.clone(), "2"))?;
        Ok(samples.into_iter().map(micros).collect())
    }

    fn calls(&self, count: usize) -> Result<Vec<f64>> {
        let script = Script::body(&self.work.calls).with_input(&self.work.calls_input(count));
        self.run(script, &self.work.calls_value(count))?;
        let arrivals = self
            .seen
            .lookups
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(gaps(&arrivals))
    }

    fn concurrent(&self, count: usize) -> Result<Vec<f64>> {
        let script = Script::body(&self.work.concurrent).with_input(&json!({ "count": AT_ONCE }));
        let samples = repeat(1, count, || self.run(script.clone(), &AT_ONCE.to_string()))?;
        Ok(samples.into_iter().map(millis).collect())
    }

    fn filter(&self, count: usize) -> Result<Vec<f64>> {
        let script = Script::body(&self.work.filter);
        let samples = repeat(1, count, || self.run(script.clone(), &self.work.filtered))?;
        Ok(samples.into_iter().map(millis).collect())
    }

    /// Measures the memory of each waiting run. The library gives every run its own thread.
    fn waiting(&self, count: usize) -> Result<Vec<f64>> {
        let script = Script::body(&self.work.waiting);
        let first = self.broker.run(script.clone());
        self.wait_for_hung(1);
        let before = pss_kib()?;
        let mut held: Vec<_> = (0..count)
            .map(|_| self.broker.run(script.clone()))
            .collect();
        self.wait_for_hung(1 + count);
        let each = (pss_kib()? - before) / count as f64;
        held.push(first);
        for running in held {
            running.cancel_handle().cancel("measured");
            self.runtime.block_on(running.report());
        }
        Ok(vec![each])
    }

    /// Drives the runtime until `count` calls hang, and then until they have settled.
    fn wait_for_hung(&self, count: usize) {
        let rest = async |ms| tokio::time::sleep(Duration::from_millis(ms)).await;
        self.runtime.block_on(async {
            while self.seen.hung.load(Ordering::Relaxed) < count {
                rest(5).await;
            }
            rest(200).await;
        });
    }

    fn run(&self, script: Script, expected: &str) -> Result<()> {
        let report = self
            .runtime
            .block_on(self.broker.run_here(script, &Cancel::new(), |_| {}));
        ensure!(
            report.status == Status::Done,
            "the run ended as {:?}: {:?}",
            report.status,
            report.error
        );
        let value = report.value.context("the run has no value")?;
        ensure!(
            value.get() == expected,
            "expected {expected}, got {}",
            value.get()
        );
        Ok(())
    }
}

/// Limits that are high enough for all rows. The defaults are for scripts that a model writes.
fn limits() -> Limits {
    Limits {
        run_wall_ms_max: 120_000,
        guest_cpu_ms_max: 60_000,
        calls_max: 100_000,
        calls_in_flight_max: u32::try_from(AT_ONCE).unwrap_or(u32::MAX),
        ..Limits::default()
    }
}

fn tools(work: &Work, seen: &ToolObservations) -> Result<Vec<InProcessTool>> {
    let result = RawValue::from_string(work.result.clone())?;
    let big = RawValue::from_string(work.big.clone())?;
    let (looked, hanging) = (seen.lookups.clone(), seen.hung.clone());
    Ok(vec![
        InProcessTool::of_text("bench", lookup_description(), move |_args| {
            looked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Instant::now());
            let result = result.clone();
            async move { Ok(result) }
        }),
        InProcessTool::new(
            "bench",
            description("wait", json!({ "ms": { "type": "integer" } })),
            async |args: Value| {
                let ms = args.get("ms").and_then(Value::as_u64).unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(json!({ "ok": true }))
            },
        ),
        InProcessTool::of_text("bench", description("export", json!({})), move |_args| {
            let big = big.clone();
            async move { Ok(big) }
        }),
        InProcessTool::new("bench", description("hang", json!({})), move |_args| {
            hanging.fetch_add(1, Ordering::Relaxed);
            std::future::pending()
        }),
    ])
}

fn description(name: &str, properties: Value) -> Value {
    json!({
        "name": name,
        "inputSchema": { "type": "object", "properties": properties, "additionalProperties": false },
        "annotations": { "readOnlyHint": true },
    })
}

/// Returns a tool whose input and output schemas describe every property.
fn lookup_description() -> Value {
    let text = || json!({ "type": "string" });
    let mut tool = description(
        "lookup",
        json!({
            "query": text(), "service": { "enum": ["billing", "search", "login"] }, "cursor": text(),
            "levels": { "type": "array", "items": { "enum": ["info", "warn", "error"] }, "maxItems": 4 },
            "since": text(), "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        }),
    );
    let item = json!({
        "type": "object",
        "required": ["id", "at", "level", "service", "message", "retried", "ms"],
        "properties": {
            "id": { "type": "integer" }, "at": text(), "level": text(), "service": text(),
            "message": text(), "retried": { "type": "boolean" }, "ms": { "type": "number" },
        },
    });
    let output = json!({
        "type": "object", "required": ["items"],
        "properties": { "items": { "type": "array", "items": item }, "next": text() },
    });
    if let Some(tool) = tool.as_object_mut() {
        tool.insert("outputSchema".to_owned(), output);
    }
    tool
}

/// The folder with the journals of one measurement. Dropping it removes the folder.
struct StateDir(PathBuf);

impl StateDir {
    fn new(work: &Path) -> Result<Self> {
        let folder = work.with_file_name(format!("state-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // If the folder cannot be removed, it only uses disk space below the target folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
