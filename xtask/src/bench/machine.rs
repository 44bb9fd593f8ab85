//! Describes the machine of a measurement.

use std::fs;

pub(super) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

pub(super) fn describe(load_before: &str) -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "machine: {cpus} × {}, Linux {}; load average {load_before} before, {} after\n",
        cpu_model(),
        kernel.trim(),
        load_average(),
    )
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let model = line
        .and_then(|line| line.split_once(": "))
        .map(|(_, model)| model);
    model.unwrap_or("unknown CPU").to_owned()
}
