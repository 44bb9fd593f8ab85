//! `bench engine`: runs small programs alternately in the guest and in quickjs-emscripten. Prints
//! the CPU milliseconds of both, and their ratio.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::engine_name::EngineName;
use super::{machine, ours, peers};
use crate::paths;

/// Each workload with its maximum ratio.
const WORKLOADS: [(&str, Option<f64>); 14] = [
    ("fib", None),
    ("loop", None),
    ("sort-numbers", Some(2.0)),
    ("sort-strings", Some(2.0)),
    ("json", Some(2.0)),
    ("json-parse", Some(2.0)),
    ("json-stringify", Some(2.0)),
    ("objects", None),
    ("classes", None),
    ("awaits", None),
    ("append", Some(2.0)),
    ("regex", Some(2.0)),
    ("lines", Some(2.0)),
    ("groups", None),
];
const MEAN_MAX: f64 = 4.0;
/// Maximum mean ratio of QuickJS. The peer is the same engine.
const QUICKJS_MEAN_MAX: f64 = 1.15;

const ROUNDS: usize = 5;

/// Runs the named workloads, or all of them if there are no names.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (which, words) = EngineName::parse(words)?;
    let (flags, names): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with("--"));
    let known = |name: &&str| WORKLOADS.iter().any(|(known, _)| known == name);
    ensure!(
        names.iter().all(known),
        "no such workload; expected {}",
        WORKLOADS.map(|(name, _)| name).join(" ")
    );
    let rounds = match flags.as_slice() {
        [] => ROUNDS,
        ["--quick"] => 1,
        _ => anyhow::bail!("unknown flag; expected --quick or --engine NAME"),
    };
    let target = paths::target();
    let peer = peers::quickjs(&target)?;
    let ours = ours::binary(&target)?;
    let before = machine::load_average();
    let mut ratios = Vec::new();
    println!("| workload | airlock ms | quickjs ms | ratio | at most | met |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mean_max = match which {
        EngineName::Boa => MEAN_MAX,
        EngineName::QuickJs => QUICKJS_MEAN_MAX,
    };
    for (name, ratio_max) in WORKLOADS {
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        let script = paths::root().join(format!("xtask/bench/engine/{name}.js"));
        let (own, theirs) = turn_about((&ours, which), &peer, &script, rounds).context(name)?;
        let ratio = own / theirs;
        ratios.push(ratio);
        println!(
            "| {name} | {own:.0} | {theirs:.0} | {ratio:.2} | {} |",
            verdict(ratio, ratio_max)
        );
    }
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let mean_max = Some(mean_max).filter(|_| names.is_empty());
    println!(
        "| geometric mean | | | {mean:.2} | {} |\n",
        verdict(mean, mean_max)
    );
    println!("{}", machine::describe(&before));
    Ok(())
}

fn verdict(ratio: f64, ratio_max: Option<f64>) -> String {
    match ratio_max {
        None => "– | –".to_owned(),
        Some(max) => format!("{max} | {}", if ratio <= max { "yes" } else { "NO" }),
    }
}

/// Runs a program alternately on both engines, which must return the same value. Returns the median
/// times.
fn turn_about(
    ours: (&[PathBuf], EngineName),
    peer: &[PathBuf],
    script: &Path,
    rounds: usize,
) -> Result<(f64, f64)> {
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (value, ms) = own_turn(ours, script)?;
        own.push(ms);
        let said = output_text(
            Command::new(first(peer)?)
                .args(rest(peer))
                .arg(script)
                .arg("1"),
        )?;
        let sample = said.pointer("/samples/0").and_then(Value::as_f64);
        theirs.push(sample.context("no samples")?);
        let other = said.get("value").cloned().unwrap_or_default();
        ensure!(
            value == other,
            "airlock returned {value}, but the peer returned {other}"
        );
    }
    Ok((median(own), median(theirs)))
}

fn own_turn((ours, which): (&[PathBuf], EngineName), script: &Path) -> Result<(Value, f64)> {
    let limits = [
        "--timeout",
        "120s",
        "--limit",
        "cpu=120s",
        "--json",
        "--quiet",
    ];
    let said = output_text(
        Command::new(first(ours)?)
            .args(rest(ours))
            .envs([which.variable()])
            .args(limits)
            .arg(script),
    )?;
    let ms = said.pointer("/usage/guest_ms").and_then(Value::as_f64);
    let value = said.get("value").cloned().unwrap_or_default();
    Ok((value, ms.context("the report has no CPU time")?))
}

fn first(words: &[PathBuf]) -> Result<&PathBuf> {
    words.first().context("an engine without a program")
}

fn rest(words: &[PathBuf]) -> &[PathBuf] {
    words.get(1..).unwrap_or_default()
}

fn output_text(command: &mut Command) -> Result<Value> {
    let output = command.output().context("could not be started")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    serde_json::from_slice(&output.stdout).context("expected one JSON object")
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_a_valid_script() {
        let folder = paths::root().join("xtask/bench/engine");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        let mut named = WORKLOADS.map(|(name, _)| format!("{name}.js"));
        named.sort();
        assert_eq!(there, named);
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
