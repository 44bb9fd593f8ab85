//! The benchmarks: every engine does the same work, in interleaved rounds. This crate measures only
//! the cold start of a process; the engines measure everything else and print their samples.

mod engine;
mod engine_name;
mod machine;
pub(crate) mod medians;
mod ours;
mod peers;
mod rounds;
mod rows;
mod samples;
mod table;
pub(crate) mod tokens;
mod work;
pub(crate) mod workloads;

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths;
use engine::Engine;
use engine_name::EngineName;
use rows::{Line, Row};

/// The rows to measure, from the command line.
struct Extent {
    rows: Vec<Row>,
    quick: bool,
}

pub(crate) fn ours_alone(words: &[&str]) -> Result<()> {
    measure(words, |_| Ok(Vec::new()))
}

/// Measures `airlock serve` with twelve servers and a thousand tools. Runs a test that measures a
/// plain release build of the binary, and shows its figures. The test itself is not optimised.
pub(crate) fn serve() -> Result<()> {
    let complaint = "serving is slower than its limit";
    shipped(&["--test", "scale"], &["many::"], &[], complaint)
}

/// Runs tests that measure a plain release build of the binary. The tests are not optimised.
///
/// The selection is the workspace, as for `cargo test --workspace`: Cargo would compile the
/// dependencies again for another selection of packages, with other features.
fn shipped(
    targets: &[&str],
    filters: &[&str],
    variables: &[(&str, String)],
    complaint: &'static str,
) -> Result<()> {
    let binary = ours::shipped()?;
    eprintln!("building the tests that measure airlock (not optimised)");
    let status = Command::new("cargo")
        .args(["test", "--quiet", "--workspace"])
        .args(targets)
        .arg("--")
        .args(filters)
        .args(["--nocapture", "--test-threads", "1"])
        .env("AIRLOCK_BIN", binary)
        .env("AIRLOCK_MEASURED", "1")
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!(complaint);
    }
    Ok(())
}

/// Measures hostile scripts from the grammar with a test, like [`serve`]: the cost of each script,
/// and the delay of a good session during these scripts.
pub(crate) fn hostile(words: &[&str]) -> Result<()> {
    let count = match words {
        [] => 100_000,
        [count] => count.replace([',', '_'], "").parse::<u64>()?,
        _ => bail!("expected at most one number after `bench hostile`"),
    };
    let count = [("AIRLOCK_SCRIPTS", count.to_string())];
    let complaint = "a hostile script exceeds its limits, or delays other sessions";
    shipped(&["--test", "generated_scripts"], &[], &count, complaint)
}

/// Measures the memory of many runs under a budget with a test, like [`serve`].
pub(crate) fn budget() -> Result<()> {
    let complaint = "runs under a budget fail, or take too much memory";
    shipped(&["--test", "scale"], &["budget::"], &[], complaint)
}

/// Measures how soon a resumed run makes its first new call with a test, like [`serve`].
pub(crate) fn resume() -> Result<()> {
    let complaint = "a resumed run takes longer than its limit";
    shipped(&["--test", "scale"], &["resume::"], &[], complaint)
}

/// Measures all other expensive text from outside with a test, like [`serve`].
pub(crate) fn outside_text() -> Result<()> {
    let complaint = "a text from outside takes longer than a second";
    shipped(&["--test", "outside_text"], &[], &[], complaint)
}

/// Measures a policy reviewer's commands with a test, like [`serve`].
pub(crate) fn workbench() -> Result<()> {
    let targets = ["--test", "scale", "--test", "workbench"];
    let complaint = "a reviewer's command is slower than its limit";
    shipped(&targets, &["workbench::", "large::"], &[], complaint)
}

/// Compares answers of `airlock policy diff` and `can` about random rules with concrete calls, and
/// measures no times.
pub(crate) fn proofs(words: &[&str]) -> Result<()> {
    let count = match words {
        [] => 1_000,
        [count] => count.replace([',', '_'], "").parse::<u64>()?,
        _ => bail!("expected at most one number after `bench proofs`"),
    };
    let test = "no_call_contradicts_diff_or_can_on_random_pairs";
    let complaint = "a call contradicts an answer about rules";
    unit_test(test, ("AIRLOCK_POLICY_PAIRS", count), complaint)
}

/// Measures a new session of `airlock serve` beside 10 and beside many others, with a test of the
/// library, which is not optimised.
pub(crate) fn sessions(words: &[&str]) -> Result<()> {
    let count = match words {
        [] => 100_000,
        [count] => count.replace([',', '_'], "").parse::<u64>()?,
        _ => bail!("expected at most one number after `bench sessions`"),
    };
    let test = "new_session_costs_the_same_beside_many_others";
    let complaint = "a new session costs more beside many others";
    unit_test(test, ("AIRLOCK_SESSIONS", count), complaint)
}

/// Runs a unit test with a variable, and shows its output.
fn unit_test(test: &str, variable: (&str, u64), complaint: &'static str) -> Result<()> {
    let (name, value) = variable;
    let status = Command::new("cargo")
        .args(["test", "--quiet", "--workspace", "--lib", test])
        .args(["--", "--nocapture"])
        .env(name, value.to_string())
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!(complaint);
    }
    Ok(())
}

/// Measures the signature at the end of a run, by running a test of the broker and showing its
/// figures.
pub(crate) fn signing() -> Result<()> {
    let test = "time_to_sign_an_end_does_not_depend_on_the_length_of_the_index";
    let status = Command::new("cargo")
        .args(["test", "--release", "--quiet", "--workspace", "--lib", test])
        .args(["--", "--nocapture"])
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    anyhow::ensure!(status.success(), "signing takes longer with a long index");
    Ok(())
}

/// Measures search, by running a test of the broker and showing its figures.
pub(crate) fn search() -> Result<()> {
    let status = std::process::Command::new("cargo")
        .args([
            "test",
            "--release",
            "--quiet",
            "-p",
            "airlock",
            "--test",
            "search",
        ])
        .args(["--", "--nocapture"])
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    anyhow::ensure!(status.success(), "search finds fewer tools than required");
    Ok(())
}

pub(crate) fn beside_peers(words: &[&str]) -> Result<()> {
    measure(words, peers::install)
}

/// Replays recorded tasks and attacks. Counts the questions and the successful attacks, and
/// measures no times.
pub(crate) fn replay() -> Result<()> {
    let status = Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "--workspace",
            "--test",
            "replay",
            "--",
            "--nocapture",
        ])
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!("the replay has too many questions, or an attack succeeded");
    }
    Ok(())
}

fn measure(
    words: &[&str],
    peers: impl FnOnce(&std::path::Path) -> Result<Vec<Engine>>,
) -> Result<()> {
    let (which, words) = EngineName::parse(words)?;
    let extent = Extent::parse(&words)?;
    let target = paths::target();
    let work = work::write(&target.join("bench")).context("writing the workload")?;
    let peers = peers(&target)?;
    let mut engines = vec![ours::build(&target, which)?];
    engines.extend(peers);
    let before = machine::load_average();
    let lines: Vec<&Line> = rows::LINES
        .iter()
        .filter(|line| extent.rows.contains(&line.row))
        .collect();
    let figures = rounds::run(&engines, &lines, &work, extent.quick)?;
    println!("{}", machine::describe(&before));
    println!("{}", table::render(&engines, &lines, &figures, which));
    Ok(())
}

impl Extent {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut extent = Self {
            rows: Vec::new(),
            quick: false,
        };
        for word in words {
            if *word == "--quick" {
                extent.quick = true;
            } else if let Some(row) = Row::ALL.into_iter().find(|row| row.word() == *word) {
                extent.rows.push(row);
            } else {
                bail!(
                    "no such row: {word}; expected {}",
                    Row::ALL.map(Row::word).join(" ")
                );
            }
        }
        if extent.rows.is_empty() {
            extent.rows = Row::ALL.to_vec();
        }
        Ok(extent)
    }
}
