//! The command from outside: what a person or a program gives it and gets back.

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
mod policy;
mod policy_can;
mod policy_diff;
mod policy_prove;
mod policy_sources;
mod report;
mod rogue;
mod scripts;
mod secrets;
mod signals;
mod tsc;
mod types;
mod wire;

use tests::command::{Ended, Home};

/// Runs code on the demo server with everything allowed, and answers the report.
fn demo(home: &Home, code: &str, more: &[&str]) -> Ended {
    let mut args = vec!["run", "--json", "--demo", "--allow", "demo.*"];
    args.extend(more);
    args.extend(["-e", code]);
    home.run(args)
}
