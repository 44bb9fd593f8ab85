//! Reads the results of the protocol's conformance suite.

use std::path::Path;

use serde_json::Value;

/// One check of one scenario.
#[derive(Debug)]
pub struct Check {
    /// Name as `scenario/check`.
    pub name: String,
    pub status: String,
    /// The suite's reason for a failure.
    pub why: String,
}

/// Reads the results in a folder. Each scenario has a folder, named after the scenario and the
/// time. A scenario with a slash in its name is two folders deep.
///
/// # Panics
///
/// Panics if the results cannot be read.
#[must_use]
pub fn checks(results: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    for folder in std::fs::read_dir(results).expect("results").flatten() {
        let Ok(text) = std::fs::read_to_string(folder.path().join("checks.json")) else {
            checks.extend(self::checks(&folder.path()));
            continue;
        };
        let name = folder.file_name().to_string_lossy().into_owned();
        let list: Vec<Value> = serde_json::from_str(&text).expect("a list of checks");
        let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
        checks.extend(list.iter().map(|check| Check {
            name: format!("{}/{}", scenario(&name), text(check, "id")),
            status: text(check, "status"),
            why: text(check, "errorMessage"),
        }));
    }
    checks
}

/// Returns the scenario of a folder: `ping` for `server-ping-2026-11-22T07-35-56-047Z`.
fn scenario(folder: &str) -> &str {
    const TIME: usize = "-2026-11-22T07-35-56-047Z".len();
    let name = folder.get(..folder.len().saturating_sub(TIME));
    let name = name.unwrap_or(folder);
    name.strip_prefix("server-").unwrap_or(name)
}
