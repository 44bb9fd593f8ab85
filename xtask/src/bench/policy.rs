//! What a decision by policies costs: builds the bench of the core in release
//! and lays its medians beside what they may be.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::machine;
use crate::paths;

/// What is measured, as the bench names it, and its median at most, in µs.
const LINES: [(&str, &str, Option<f64>); 5] = [
    ("10", "10 rules over 7 tools", Some(150.0)),
    ("100", "100 rules over 7 tools", Some(200.0)),
    ("1000", "1,000 rules over 7 tools", Some(400.0)),
    ("own", "5 rules about this tool", None),
    (
        "own, 1000 for others",
        "the same, and 1,000 about others",
        None,
    ),
];

pub(crate) fn run() -> Result<()> {
    let before = machine::load_average();
    let output = Command::new("cargo")
        .args([
            "bench",
            "--quiet",
            "--package",
            "airlock-core",
            "--bench",
            "policy",
        ])
        .current_dir(paths::root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be started")?;
    ensure!(
        output.status.success(),
        "the bench failed: {}",
        output.status
    );
    let medians: Value = serde_json::from_slice(&output.stdout).context("not one JSON object")?;
    println!("{}", machine::describe(&before));
    print!("{}", table(&medians));
    Ok(())
}

fn table(medians: &Value) -> String {
    let mut text = String::from(
        "| raw arguments to decision | median µs | at most | met |\n| --- | --- | --- | --- |\n",
    );
    for (name, title, max) in LINES {
        let median = medians
            .get(name)
            .and_then(Value::as_f64)
            .unwrap_or(f64::NAN);
        let (max, met) = match max {
            Some(max) => (format!("{max}"), if median <= max { "yes" } else { "NO" }),
            None => ("–".to_owned(), "–"),
        };
        text.push_str(&format!("| {title} | {median:.0} | {max} | {met} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_median_above_its_limit_or_missing_is_not_met() {
        let text = table(&json!({"10": 149.6, "100": 201.0, "own": 5.0}));
        for row in [
            "| 10 rules over 7 tools | 150 | 150 | yes |",
            "| 100 rules over 7 tools | 201 | 200 | NO |",
            "| 1,000 rules over 7 tools | NaN | 400 | NO |",
            "| 5 rules about this tool | 5 | – | – |",
        ] {
            assert!(text.contains(row), "{text}");
        }
    }
}
