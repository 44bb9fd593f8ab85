//! The benchmarks: the same work through every engine, in interleaved rounds.
//! Nothing is measured here but the cold start of a process; the engines
//! measure themselves and hand back their samples.

mod engine;
mod machine;
pub(crate) mod medians;
mod ours;
mod peers;
mod rounds;
mod rows;
mod samples;
mod table;
pub(crate) mod tokens;
mod which;
mod work;
pub(crate) mod workloads;

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths;
use engine::Engine;
use rows::{Line, Row};
use which::Which;

/// How much is measured, from the command line.
struct Extent {
    rows: Vec<Row>,
    quick: bool,
}

pub(crate) fn ours_alone(words: &[&str]) -> Result<()> {
    measure(words, |_| Ok(Vec::new()))
}

/// Twelve servers and a thousand tools behind one; a test that is run to be read. What is
/// measured is the binary of a plain release build; the test around it need not be optimised.
pub(crate) fn serve() -> Result<()> {
    let complaint = "serving is slower than it may be";
    shipped(&["--test", "scale"], &["many::"], &[], complaint)
}

/// Runs tests that measure a plain release build of the binary; the tests are not optimised.
fn shipped(
    targets: &[&str],
    filters: &[&str],
    variables: &[(&str, String)],
    complaint: &'static str,
) -> Result<()> {
    let binary = ours::shipped()?;
    eprintln!("building the tests that measure it (not optimised)");
    let status = Command::new("cargo")
        .args(["test", "--quiet", "-p", "tests"])
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

/// Scripts made from the grammar, likewise: what each takes, and what a good session beside them.
pub(crate) fn hostile(words: &[&str]) -> Result<()> {
    let count = match words {
        [] => 100_000,
        [count] => count.replace([',', '_'], "").parse::<u64>()?,
        _ => bail!("`bench hostile` takes one number"),
    };
    let count = [("AIRLOCK_SCRIPTS", count.to_string())];
    let complaint = "a hostile script takes more than it may, or holds up others";
    shipped(&["--test", "generated_scripts"], &[], &count, complaint)
}

/// Text of every other kind that costs, likewise.
pub(crate) fn outside_text() -> Result<()> {
    let complaint = "a text from outside takes longer than a second";
    shipped(&["--test", "outside_text"], &[], &[], complaint)
}

/// What a reviewer waits for, likewise.
pub(crate) fn workbench() -> Result<()> {
    let targets = ["--test", "scale", "--test", "workbench"];
    let complaint = "a reviewer waits longer than they should";
    shipped(&targets, &["workbench::", "large::"], &[], complaint)
}

/// The measuring is a test of the broker, which knows search; here it is run to be read.
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
    anyhow::ensure!(status.success(), "search finds less than it should");
    Ok(())
}

pub(crate) fn beside_peers(words: &[&str]) -> Result<()> {
    measure(words, peers::install)
}

/// Nothing is timed: the figures are questions, and attacks that got through.
pub(crate) fn replay() -> Result<()> {
    let status = Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "-p",
            "tests",
            "--test",
            "replay",
            "--",
            "--nocapture",
        ])
        .current_dir(paths::root())
        .status()
        .context("cargo could not be started")?;
    if !status.success() {
        bail!("the replay did not come out as it must");
    }
    Ok(())
}

fn measure(
    words: &[&str],
    peers: impl FnOnce(&std::path::Path) -> Result<Vec<Engine>>,
) -> Result<()> {
    let (which, words) = Which::of(words)?;
    let extent = Extent::parse(&words)?;
    let target = paths::target();
    let work = work::write(&target.join("bench")).context("the work could not be written")?;
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
                    "no such row: {word}; there are {}",
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
