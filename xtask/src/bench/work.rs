//! The workload: scripts and payloads, written once and read by every engine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::paths;

const BIG_BYTES: usize = 10_000_000;
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];
const SERVICES: [&str; 5] = ["billing", "search", "login", "mail", "export"];

/// Writes the workload below `folder` and returns its path.
pub(super) fn write(folder: &Path) -> Result<PathBuf> {
    let work = folder.join("work");
    fs::create_dir_all(&work)?;
    let scripts = paths::root().join("xtask/bench/scripts");
    for script in [
        "one.js",
        "calls.js",
        "concurrent.js",
        "filter.js",
        "waiting.js",
    ] {
        fs::copy(scripts.join(script), work.join(script))?;
    }
    let (big, filtered) = big();
    fs::write(work.join("args.json"), args().to_string())?;
    fs::write(work.join("result.json"), result().to_string())?;
    fs::write(work.join("big.json"), big)?;
    fs::write(work.join("filtered.json"), filtered)?;
    Ok(work)
}

/// Returns 200 bytes of arguments.
fn args() -> Value {
    json!({
        "query": "connection reset by peer", "service": "billing", "levels": ["warn", "error"],
        "since": "2026-03-01T00:00:00Z", "limit": 50, "cursor": "c2Vjb25kLXBhZ2U",
        "labels": { "team": "payments", "region": "eu-1" }
    })
}

/// Returns a result of 1 KB.
fn result() -> Value {
    let item = |id: u32| {
        json!({
            "id": id, "at": "2026-03-01T08:15:00Z", "level": "error", "service": "billing",
            "message": "connection reset by peer", "retried": true, "ms": f64::from(id) + 0.5
        })
    };
    json!({ "items": (0..7).map(item).collect::<Vec<_>>(), "next": "dGhpcmQtcGFnZQ" })
}

/// Returns 10 MB of rows, and the text that `filter.js` must return for them.
fn big() -> (String, String) {
    let mut text = String::from("{\"rows\":[");
    let (mut of, mut slow) = (0_u64, 0_u64);
    let mut worst: Option<(u64, &str, f64)> = None;
    let mut chance: u64 = 2026;
    while text.len() < BIG_BYTES {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let level = pick(&LEVELS, chance >> 33);
        let service = pick(&SERVICES, chance >> 43);
        // Quarters are exact in binary, so all engines print the same digits.
        let ms = ((chance >> 50) % 4_000) as f64 / 4.0;
        if of > 0 {
            text.push(',');
        }
        let bytes = (chance >> 20) % 100_000;
        let row = json!({
            "id": of, "at": time_of_day(of), "level": level, "service": service, "ms": ms,
            "message": format!("connection reset by peer after {bytes} bytes of the reply")
        });
        text.push_str(&row.to_string());
        if level == "error" && ms > 990.0 {
            slow += 1;
            if worst.is_none_or(|(_, _, most)| ms > most) {
                worst = Some((of, service, ms));
            }
        }
        of += 1;
    }
    text.push_str("]}");
    let (id, service, ms) = worst.unwrap_or_default();
    let filtered =
        json!({ "slow": slow, "of": of, "worst": { "id": id, "service": service, "ms": ms } });
    (text, filtered.to_string())
}

/// Returns the time of day of a row. Neighbouring rows have different times.
fn time_of_day(row: u64) -> String {
    let (seconds, minutes, hours) = (row % 60, row / 60 % 60, row / 3_600 % 24);
    format!("2026-03-01T{hours:02}:{minutes:02}:{seconds:02}Z")
}

fn pick(words: &[&'static str], number: u64) -> &'static str {
    let index = number as usize % words.len().max(1);
    words.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_documented_sizes() {
        let near = |text: String, bytes: usize| text.len().abs_diff(bytes) * 20 <= bytes;
        assert!(
            near(args().to_string(), 200),
            "{}",
            args().to_string().len()
        );
        assert!(
            near(result().to_string(), 1_000),
            "{}",
            result().to_string().len()
        );
        let (big, filtered) = big();
        assert!(near(big, BIG_BYTES));
        assert!(
            near(filtered.clone(), 100) || filtered.len() < 100,
            "{}",
            filtered.len()
        );
    }

    #[test]
    fn big_payload_is_stable_json() {
        assert_eq!(big(), big());
        let parsed: Value = serde_json::from_str(&big().0).unwrap();
        assert!(parsed["rows"].as_array().unwrap().len() > 10_000);
    }
}
