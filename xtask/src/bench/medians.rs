//! Benchmarks inside other crates: builds one in release, reads the medians that it prints, and
//! compares them with their maximums.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::machine;
use crate::paths;

/// The name of a figure in the benchmark's output, its description, and its maximum median in µs.
type Line = (&'static str, &'static str, Option<f64>);

/// A benchmark of another crate, and its figures.
pub(crate) struct Bench {
    package: &'static str,
    name: &'static str,
    title: &'static str,
    lines: &'static [Line],
}

/// Measures the cost of a decision by policies.
pub(crate) const POLICY: Bench = Bench {
    package: "airlock-core",
    name: "policy",
    title: "raw arguments to decision",
    lines: &[
        ("10", "10 rules over 7 tools", Some(150.0)),
        ("100", "100 rules over 7 tools", Some(200.0)),
        ("1000", "1,000 rules over 7 tools", Some(400.0)),
        (
            "1000 by Cedar",
            "1,000 rules over 7 tools, all evaluated by Cedar",
            None,
        ),
        ("own", "5 rules about the called tool", None),
        (
            "own, 1000 for others",
            "5 rules about the called tool, 1,000 about other tools",
            None,
        ),
    ],
};

/// Measures the cost of the check of a script before a run.
pub(crate) const CHECK: Bench = Bench {
    package: "airlock",
    name: "check",
    title: "the check of a script in the sandbox",
    lines: &[
        ("median", "the median script, 200 tools", Some(130.0)),
        ("slowest", "the slowest script, 200 tools", Some(2_000.0)),
        ("many", "the median script, 2,000 tools", Some(300.0)),
    ],
};

impl Bench {
    pub(crate) fn run(&self) -> Result<()> {
        let before = machine::load_average();
        let output = Command::new("cargo")
            .args(["bench", "--quiet", "--package", self.package])
            .args(["--bench", self.name])
            .current_dir(paths::root())
            .stderr(Stdio::inherit())
            .output()
            .context("cargo could not be started")?;
        ensure!(
            output.status.success(),
            "the benchmark failed: {}",
            output.status
        );
        let medians: Value =
            serde_json::from_slice(&output.stdout).context("expected one JSON object")?;
        println!("{}", machine::describe(&before));
        print!("{}", self.table(&medians));
        Ok(())
    }

    fn table(&self, medians: &Value) -> String {
        let mut text = format!(
            "| {} | median µs | at most | met |\n| --- | --- | --- | --- |\n",
            self.title
        );
        for (name, title, max) in self.lines {
            let median = medians
                .get(name)
                .and_then(Value::as_f64)
                .unwrap_or(f64::NAN);
            let (max, met) = match max {
                Some(max) => (format!("{max}"), if median <= *max { "yes" } else { "NO" }),
                None => ("–".to_owned(), "–"),
            };
            text.push_str(&format!("| {title} | {median:.0} | {max} | {met} |\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn median_above_limit_or_missing_fails() {
        let bench = Bench {
            package: "p",
            name: "b",
            title: "what",
            lines: &[
                ("10", "ten", Some(150.0)),
                ("100", "a hundred", Some(200.0)),
                ("1000", "a thousand", Some(400.0)),
                ("own", "its own", None),
            ],
        };
        let text = bench.table(&json!({"10": 149.6, "100": 201.0, "own": 5.0}));
        for row in [
            "| ten | 150 | 150 | yes |",
            "| a hundred | 201 | 200 | NO |",
            "| a thousand | NaN | 400 | NO |",
            "| its own | 5 | – | – |",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }
}
