//! Counts and times operations since the start, by tool and outcome.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::otlp::{attribute, nanos};
use airlock_sandbox::budget::BudgetUsage;

/// Bounds of the histogram buckets in seconds, from the OpenTelemetry conventions.
const BOUNDS_S: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Maximum number of attribute sets per metric, to limit the load on the collector.
const SERIES_MAX: usize = 5_000;

/// A completed operation that is counted or timed.
#[derive(Debug)]
pub(super) enum Measurement {
    Run {
        status: String,
        ms: u64,
    },
    Call {
        allowed: bool,
    },
    /// A session's request for full descriptions.
    Fetch {
        too_often: bool,
    },
    Request {
        tool: String,
        error: Option<String>,
        ms: u64,
    },
}

type Attributes = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
pub(super) struct Metrics {
    durations: BTreeMap<(&'static str, Attributes), Durations>,
    counts: BTreeMap<CounterSpec, u64>,
}

/// A counter with one attribute and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CounterSpec {
    name: &'static str,
    unit: &'static str,
    attribute: (&'static str, &'static str),
}

impl CounterSpec {
    fn call(allowed: bool) -> Self {
        let word = if allowed { "allow" } else { "deny" };
        Self {
            name: "airlock.calls",
            unit: "{call}",
            attribute: ("airlock.decision", word),
        }
    }

    fn fetch(too_often: bool) -> Self {
        let word = if too_often { "too-often" } else { "shown" };
        Self {
            name: "airlock.descriptions.fetches",
            unit: "{fetch}",
            attribute: ("airlock.fetch.outcome", word),
        }
    }
}

#[derive(Debug, Default)]
struct Durations {
    count: u64,
    sum_s: f64,
    buckets: [u64; BOUNDS_S.len() + 1],
}

impl Metrics {
    pub(super) fn take(&mut self, measured: Measurement) {
        match measured {
            Measurement::Run { status, ms } => {
                self.duration(
                    "airlock.run.duration",
                    vec![("airlock.run.status", status)],
                    ms,
                );
            }
            Measurement::Call { allowed } => self.count(CounterSpec::call(allowed)),
            Measurement::Fetch { too_often } => self.count(CounterSpec::fetch(too_often)),
            Measurement::Request { tool, error, ms } => {
                let mut attributes = vec![
                    ("gen_ai.tool.name", tool),
                    ("mcp.method.name", "tools/call".to_owned()),
                ];
                attributes.extend(error.map(|error| ("error.type", error)));
                self.duration("mcp.client.operation.duration", attributes, ms);
            }
        }
    }

    fn count(&mut self, counted: CounterSpec) {
        *self.counts.entry(counted).or_default() += 1;
    }

    fn duration(&mut self, name: &'static str, attributes: Attributes, ms: u64) {
        let key = (name, attributes);
        if self.durations.len() >= SERIES_MAX && !self.durations.contains_key(&key) {
            return;
        }
        let durations = self.durations.entry(key).or_default();
        let seconds = ms as f64 / 1_000.0;
        durations.count += 1;
        durations.sum_s += seconds;
        let bucket = BOUNDS_S.iter().position(|bound| seconds <= *bound);
        let bucket = bucket.unwrap_or(BOUNDS_S.len());
        if let Some(count) = durations.buckets.get_mut(bucket) {
            *count += 1;
        }
    }

    /// Returns the metrics, cumulative since `began_ms`, with the current usage. The result is
    /// empty before the first run.
    pub(super) fn told(&self, (began_ms, now_ms): (u64, u64), usage: &BudgetUsage) -> Vec<Value> {
        let times = |mut point: Value| {
            if let Some(point) = point.as_object_mut() {
                point.insert("startTimeUnixNano".into(), nanos(began_ms).into());
                point.insert("timeUnixNano".into(), nanos(now_ms).into());
            }
            point
        };
        let mut by_name: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for ((name, attributes), durations) in &self.durations {
            let attributes = attributes
                .iter()
                .map(|(key, value)| attribute(key, &json!(value)));
            let buckets = durations.buckets.iter().map(u64::to_string);
            by_name.entry(name).or_default().push(times(json!({
                "attributes": attributes.collect::<Vec<_>>(),
                "count": durations.count.to_string(),
                "sum": durations.sum_s,
                "bucketCounts": buckets.collect::<Vec<_>>(),
                "explicitBounds": BOUNDS_S,
            })));
        }
        let histogram = |(name, points): (&str, Vec<Value>)| {
            json!({
                "name": name,
                "unit": "s",
                "histogram": {"aggregationTemporality": 2, "dataPoints": points},
            })
        };
        let mut told: Vec<_> = by_name.into_iter().map(histogram).collect();
        let mut sums: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
        for (counted, count) in &self.counts {
            let (key, word) = counted.attribute;
            let attributes = [attribute(key, &json!(word))];
            let points = sums.entry((counted.name, counted.unit)).or_default();
            points.push(times(
                json!({"attributes": attributes, "asInt": count.to_string()}),
            ));
        }
        told.extend(sums.into_iter().map(|((name, unit), points)| {
            json!({
                "name": name,
                "unit": unit,
                "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points},
            })
        }));
        let is_idle = usage.runs + usage.waiting == 0 && usage.refused == 0;
        if told.is_empty() && is_idle {
            return told;
        }
        let points = |values: Vec<(Value, u64)>| -> Vec<Value> {
            let values = values.into_iter();
            let point = |(attributes, value): (Value, u64)| {
                times(json!({"attributes": attributes, "asInt": value.to_string()}))
            };
            values.map(point).collect()
        };
        let waits = |what: &str| json!([attribute("airlock.wait", &json!(what))]);
        let waiting = vec![
            (waits("room"), usage.waiting as u64),
            (waits("memory"), usage.growing as u64),
            (waits("processor"), usage.computing_later as u64),
        ];
        let gauges = [
            (
                "airlock.runs.active",
                "{run}",
                vec![(json!([]), usage.runs as u64)],
            ),
            ("airlock.runs.waiting", "{run}", waiting),
            (
                "airlock.runs.memory",
                "By",
                vec![(json!([]), usage.memory_bytes)],
            ),
        ];
        told.extend(gauges.into_iter().map(|(name, unit, values)| {
            json!({"name": name, "unit": unit, "gauge": {"dataPoints": points(values)}})
        }));
        told.push(json!({
            "name": "airlock.runs.refused",
            "unit": "{run}",
            "sum": {
                "aggregationTemporality": 2,
                "isMonotonic": true,
                "dataPoints": points(vec![(json!([]), usage.refused)]),
            },
        }));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> BudgetUsage {
        BudgetUsage {
            runs: 3,
            waiting: 2,
            growing: 1,
            memory_bytes: 4_096,
            computing: 1,
            computing_later: 0,
            refused: 7,
        }
    }

    #[test]
    fn what_all_runs_use_is_told_once_there_is_something_to_tell() {
        let told = Metrics::default().told((1, 2), &usage());
        let values = told.iter().map(|metric| {
            let points = metric.get("gauge").or(metric.get("sum")).unwrap();
            let points = points["dataPoints"].as_array().unwrap().iter();
            let values: Vec<_> = points.map(|it| it["asInt"].as_str().unwrap()).collect();
            format!("{} {}", metric["name"].as_str().unwrap(), values.join(" "))
        });
        assert_eq!(
            values.collect::<Vec<_>>(),
            [
                "airlock.runs.active 3",
                "airlock.runs.waiting 2 1 0",
                "airlock.runs.memory 4096",
                "airlock.runs.refused 7",
            ]
        );
        let idle = BudgetUsage {
            runs: 0,
            waiting: 0,
            refused: 0,
            ..usage()
        };
        assert!(Metrics::default().told((1, 2), &idle).is_empty());
    }

    #[test]
    fn durations_fall_in_buckets_and_are_cumulative() {
        let mut metrics = Metrics::default();
        for ms in [5, 10, 400_000] {
            metrics.take(Measurement::Request {
                tool: "fs.read".into(),
                error: None,
                ms,
            });
        }
        metrics.take(Measurement::Call { allowed: true });
        for too_often in [false, true, true] {
            metrics.take(Measurement::Fetch { too_often });
        }
        let told = metrics.told((1, 2), &usage());
        let point = &told[0]["histogram"]["dataPoints"][0];
        assert_eq!(point["count"], "3");
        assert_eq!(point["bucketCounts"][0], "2");
        assert_eq!(point["bucketCounts"][BOUNDS_S.len()], "1");
        assert_eq!(point["startTimeUnixNano"], "1000000");
        assert_eq!(told[1]["sum"]["dataPoints"][0]["asInt"], "1");
        let fetches = &told[2]["sum"]["dataPoints"];
        assert_eq!(told[2]["name"], "airlock.descriptions.fetches");
        assert_eq!(
            (&fetches[0]["asInt"], &fetches[1]["asInt"]),
            (&json!("1"), &json!("2"))
        );
    }
}
