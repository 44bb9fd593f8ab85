//! Takes samples: durations, gaps between arrivals, memory.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often a small piece of work is repeated before the measurement begins.
pub(crate) const WARM_UPS: usize = 500;

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Measures `work` `count` times, after `warm_ups` executions that are not measured.
pub(crate) fn repeat(
    warm_ups: usize,
    count: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<Vec<Duration>> {
    let mut samples = Vec::with_capacity(count);
    for turn in 0..warm_ups + count {
        let start = Instant::now();
        work()?;
        let elapsed = start.elapsed();
        if turn >= warm_ups {
            samples.push(elapsed);
        }
    }
    Ok(samples)
}

/// Returns the times between arrivals in microseconds, without the first `WARM_UPS`.
pub(crate) fn gaps(arrivals: &[Instant]) -> Vec<f64> {
    let counted = arrivals
        .get(WARM_UPS.saturating_sub(1)..)
        .unwrap_or_default();
    let pairs = counted.iter().zip(counted.iter().skip(1));
    pairs
        .map(|(before, after)| micros(after.duration_since(*before)))
        .collect()
}

/// Returns the proportional set size of this process in KiB.
pub(crate) fn pss_kib() -> Result<f64> {
    let rollup =
        fs::read_to_string("/proc/self/smaps_rollup").context("smaps_rollup exists on Linux")?;
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .context("no Pss line")?;
    let number = line
        .split_whitespace()
        .next()
        .context("no number in the Pss line")?;
    Ok(number.parse()?)
}
