//! `airlock policy`: checks and analyses rules before they decide any call.

mod analysis;
mod can;
mod cases;
mod check;
mod diff;
mod explain;
mod facts;
mod format;
mod init;
mod proofs;
mod replay;
mod sources;
mod table;

use airlock_core::policy::Finding;
use airlock_core::problem::Problem;
use clap::Subcommand;
use codegen::closest::closest_tool;
use serde_json::json;

use super::options::usage;
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::render::{counted, escape};
use can::CanOptions;
use cases::TestOptions;
use check::PolicyCheckOptions;
use diff::DiffOptions;
use explain::ExplainOptions;
use init::InitOptions;
pub(super) use init::{FirstPolicy, first_policy};
use replay::ReplayOptions;
use sources::LoadError;

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Write rules, labels and cases for the tools of the configured servers, to be edited
    Init(Box<InitOptions>),
    /// Check that rules fit the tools: names, types, labels, annotations
    Check(Box<PolicyCheckOptions>),
    /// Run the cases in the *.cases.toml files next to the rules; each rule must decide at least
    /// one case
    Test(TestOptions),
    /// Explain the decision on a recorded call, or on a call that you describe
    Explain(Box<ExplainOptions>),
    /// Show which decisions calls of a tool can get: an example for each decision, or a proof that
    /// no call gets it
    Can(Box<CanOptions>),
    /// Compare two versions of rules; exit with 32 if the new rules allow more
    Diff(Box<DiffOptions>),
    /// Decide the calls of recorded runs again, with the current rules
    Replay(Box<ReplayOptions>),
}

impl PolicyCommand {
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Check(options) => options.format.is_json(),
            Self::Init(options) => options.json,
            Self::Test(options) => options.is_json(),
            Self::Explain(options) => options.json,
            Self::Can(options) => options.format.is_json(),
            Self::Diff(options) => options.format.is_json(),
            Self::Replay(options) => options.format.is_json(),
        }
    }
}

pub(super) fn run(command: PolicyCommand, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    match command {
        PolicyCommand::Check(options) => check::run(*options, environment, &screen),
        PolicyCommand::Test(options) => cases::run(&options, environment, &screen),
        PolicyCommand::Init(options) => init::run(*options, environment, &screen),
        PolicyCommand::Explain(options) => explain::run(*options, environment, &screen),
        PolicyCommand::Can(options) => can::run(*options, environment, &screen),
        PolicyCommand::Diff(options) => diff::run(*options, environment, &screen),
        PolicyCommand::Replay(options) => replay::run(*options, environment, &screen),
    }
}

/// Reports an unknown tool. `why` may be empty; `names` are the known tools.
fn no_tool(wanted: &str, why: &str, names: &[String]) -> Problem {
    let meant = closest_tool(wanted, names.iter().map(String::as_str));
    let next = meant.map_or_else(
        || {
            "`airlock types --detail names` with the same server flags lists all tools; --server, \
             --config, --from and --lock select them"
                .to_owned()
        },
        |meant| format!("did you mean `{meant}`?"),
    );
    usage(format!("there is no tool `{wanted}`"), why, next)
}

/// Returns the outcome of a command whose rules cannot be used. Shows what is wrong with them.
fn unusable(error: LoadError, as_json: bool) -> Outcome {
    match error {
        LoadError::Other(problem) => Err(problem),
        LoadError::Rules(findings) => {
            show_findings(&findings, as_json)?;
            Ok(exit::POLICY)
        }
    }
}

fn show_findings(findings: &[Finding], as_json: bool) -> Result<(), Problem> {
    if as_json {
        return print_json(&json!({ "findings": findings }));
    }
    let lines: String = findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    let count = counted(findings.len(), "finding");
    print(&format!("{}{count}\n", escape::block(&lines)))
}
