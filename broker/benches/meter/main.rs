//! The meter: measures one row of the benchmarks in one mode, and prints the samples as
//! `{"samples": [numbers]}`. `cargo xtask bench` builds and runs it. The scripts and payloads are
//! files that the peers read too.
//!
//! Usage: `meter ROW-MODE WORK_DIR COUNT`, with the mode `bare` or `full`.

mod bare;
mod full;
mod timing;
mod work;

use std::process::ExitCode;

use airlock::sandbox::JsEngine;
use anyhow::{Context, Result, bail};

use crate::work::Work;

fn main() -> ExitCode {
    match measure() {
        Ok(samples) => {
            println!("{}", serde_json::json!({ "samples": samples }));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("meter: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the engine from `AIRLOCK_ENGINE`, as the program itself does.
pub(crate) fn engine() -> Result<JsEngine> {
    match std::env::var("AIRLOCK_ENGINE") {
        Ok(name) => JsEngine::of_name(&name).with_context(|| format!("no such engine: {name}")),
        Err(_) => Ok(JsEngine::default()),
    }
}

fn measure() -> Result<Vec<f64>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder, count] = words.as_slice() else {
        bail!("usage: meter ROW-MODE WORK_DIR COUNT");
    };
    let work = Work::read(folder.as_ref()).context("WORK_DIR cannot be read")?;
    let count: usize = count.parse().context("COUNT is not a number")?;
    match what.split_once('-') {
        Some((row, "bare")) => bare::measure(row, &work, count),
        Some((row, "full")) => full::measure(row, &work, count),
        _ => bail!("no such row and mode: {what}"),
    }
}
