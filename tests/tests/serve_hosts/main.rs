//! `airlock serve` from outside: who may come in, hosts side by side, and how it ends.

mod ends;
mod logging;
mod news;
mod offered;
mod opening;
mod passing;
mod side_by_side;
mod tokens;

use serde_json::Value;
use tests::command::{Home, program};

/// The server `test` with the tools of the fixture; it notes what it hears in `fixture.log`.
fn fixture(home: &Home) -> String {
    let (program, log) = (program("fixture-server"), home.path().join("fixture.log"));
    format!("test={} {}", program.display(), log.display())
}

/// What the fixture noted so far.
fn noted(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("fixture.log")).unwrap_or_default()
}

/// A call of `run_script`, with a line for everything that happens.
fn running(code: &str) -> Value {
    serde_json::json!({
        "name": "run_script",
        "arguments": {"code": code},
        "_meta": {"progressToken": "p"},
    })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
