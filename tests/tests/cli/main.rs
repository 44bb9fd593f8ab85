//! Tests the command line: arguments and input, output and exit codes.

mod altered;
mod check;
mod descriptions;
mod engines;
mod errors;
mod exits;
mod explain;
mod grants;
mod inquiring;
mod journal;
mod lock;
mod logins;
mod mistakes;
mod policy;
mod policy_can;
mod policy_diff;
mod policy_facts;
mod policy_init;
mod policy_prove;
mod policy_sources;
mod record;
mod report;
mod resume;
mod resume_killed;
mod rogue;
mod scripts;
mod secrets;
mod servers;
mod signals;
mod terminal;
mod tsc;
mod types;
mod wire;

use tests::command::{CommandOutput, Home};

/// Runs code on the demo server with everything allowed, and returns the report.
fn demo(home: &Home, code: &str, more: &[&str]) -> CommandOutput {
    let mut args = vec!["run", "--json", "--demo", "--allow", "demo.*"];
    args.extend(more);
    args.extend(["-e", code]);
    home.run(args)
}
