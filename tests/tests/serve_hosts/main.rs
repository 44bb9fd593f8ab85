//! Tests `airlock serve` with its hosts: access, several hosts at once, messages between hosts and
//! servers, and the end.

mod callers;
mod continuing;
mod ends;
mod logging;
mod logging_in;
mod models;
mod news;
mod nobody_asked;
mod offered;
mod opening;
mod passing;
mod resuming;
mod side_by_side;
mod suspending;
mod tokens;

use serde_json::Value;
use tests::command::{Home, program};

/// Returns the flag value for the server `test` with the tools of the fixture. The server logs the
/// messages that it receives in `fixture.log`.
fn fixture(home: &Home) -> String {
    let (program, log) = (program("fixture-server"), home.path().join("fixture.log"));
    format!("test={} {}", program.display(), log.display())
}

/// Returns the log of the fixture server so far.
fn noted(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("fixture.log")).unwrap_or_default()
}

/// Returns the parameters of a `run_script` call with progress messages.
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
