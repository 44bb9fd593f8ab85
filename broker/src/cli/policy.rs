//! `airlock policy`: what a reviewer does with rules before they decide anything.

mod cases;
mod table;

use std::path::PathBuf;

use airlock_core::policy::{Finding, Policies};
use clap::{Args, Subcommand};
use serde_json::json;

use super::options::{ServerOptions, StateOptions};
use super::run::build_problem;
use super::screen::Screen;
use super::{Outcome, exit, print, print_json, runtime};
use crate::broker::{Broker, BuildError};
use crate::config::{Config, Environment};

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Read rules and hold them against tools: names, types, labels, annotations
    Check(Box<CheckOptions>),
    /// Decide the cases in *.cases.toml beside the rules; each rule must decide one
    Test(TestOptions),
}

#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Folders of rules, or single files
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// Folders of rules that may only forbid
    #[arg(long, value_name = "FOLDER")]
    tighten: Vec<PathBuf>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten)]
    state: StateOptions,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct TestOptions {
    /// Folders of rules with their cases
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl PolicyCommand {
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Check(options) => options.json,
            Self::Test(options) => options.json,
        }
    }
}

pub(super) fn run(command: PolicyCommand, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    match command {
        PolicyCommand::Check(options) => check(*options, environment, &screen),
        PolicyCommand::Test(options) => cases::test(&options.folders, options.json),
    }
}

fn check(options: CheckOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let required = !options.servers.skip_unreachable;
    let mut flags = options.servers.into_flags()?;
    flags.policies = options.folders;
    flags.tighten = options.tighten;
    flags.state_dir = options.state.state_dir;
    let config = Config::load(flags, environment)?;
    let built = runtime()?.block_on(async {
        let builder = Broker::builder().config(config).servers_required(required);
        let broker = builder.build().await?;
        let checked = broker.rules().policies().map(Checked::of);
        let problems = broker.problems().to_vec();
        broker.close().await;
        Ok((checked.unwrap_or_default(), problems))
    });
    match built {
        Ok((checked, problems)) => {
            let told = |code: &str| matches!(code, "server-unavailable" | "policy-empty");
            let problems = problems.iter().filter(|problem| told(&problem.code));
            problems.for_each(|problem| screen.warning(problem));
            checked.show(options.json)?;
            Ok(exit::DONE)
        }
        Err(BuildError::Policies(findings)) => {
            show_findings(&findings, options.json)?;
            Ok(exit::POLICY)
        }
        Err(error) => Err(build_problem(error)),
    }
}

/// What a reviewer is told of rules that nothing is wrong with.
#[derive(Default)]
struct Checked {
    rules: Vec<String>,
    idle: Vec<String>,
    digest: String,
}

impl Checked {
    fn of(policies: &Policies) -> Self {
        Self {
            rules: policies
                .rules()
                .iter()
                .map(|rule| rule.id.to_string())
                .collect(),
            idle: policies.idle().map(|rule| rule.id.to_string()).collect(),
            digest: policies.digest().to_string(),
        }
    }

    fn show(&self, as_json: bool) -> Result<(), airlock_core::problem::Problem> {
        if as_json {
            return print_json(&json!({
                "findings": [], "rules": self.rules, "idle": self.idle, "digest": self.digest,
            }));
        }
        let mut text = format!(
            "{} rules, nothing found ({})\n",
            self.rules.len(),
            self.digest
        );
        for id in &self.idle {
            text.push_str(&format!(
                "note: the rule `{id}` is about no tool of these servers\n"
            ));
        }
        print(&text)
    }
}

fn show_findings(
    findings: &[Finding],
    as_json: bool,
) -> Result<(), airlock_core::problem::Problem> {
    if as_json {
        return print_json(&json!({ "findings": findings }));
    }
    let lines: String = findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect();
    let count = match findings.len() {
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    };
    print(&format!(
        "{}{count}\n",
        crate::render::escape::block(&lines)
    ))
}
