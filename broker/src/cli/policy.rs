//! `airlock policy`: what a reviewer does with rules before they decide anything.

mod cases;
mod table;

use std::path::PathBuf;

use airlock_core::policy::{Finding, Policies};
use airlock_core::problem::Problem;
use clap::{Args, Subcommand};
use serde_json::json;

use super::options::{ServerOptions, StateOptions, usage};
use super::run::build_problem;
use super::screen::Screen;
use super::types::saved;
use super::{Outcome, exit, print, print_json, runtime};
use crate::broker::{Broker, BuildError, policies_of};
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
    /// A saved answer to tools/list instead of servers; nothing is connected to, and neither is
    /// with --lock
    #[arg(long, value_name = "[NAME=]FILE", help_heading = "Servers")]
    from: Vec<String>,
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
    let as_json = options.json;
    let is_pinned = !options.from.is_empty() || options.servers.lock.is_some();
    let checked = if is_pinned {
        against_files(options, environment, screen)
    } else {
        against_servers(options, environment, screen)
    };
    match checked {
        Ok(checked) => checked.show(as_json).map(|()| exit::DONE),
        Err(Wrong::Rules(findings)) => {
            show_findings(&findings, as_json)?;
            Ok(exit::POLICY)
        }
        Err(Wrong::Other(problem)) => Err(problem),
    }
}

fn against_servers(
    options: CheckOptions,
    environment: &Environment,
    screen: &Screen,
) -> Result<Checked, Wrong> {
    let required = !options.servers.skip_unreachable;
    let mut flags = options.servers.into_flags()?;
    flags.policies = options.folders;
    flags.tighten = options.tighten;
    flags.state_dir = options.state.state_dir;
    let config = Config::load(flags, environment)?;
    runtime()?.block_on(async {
        let builder = Broker::builder().config(config).servers_required(required);
        let broker = builder.build().await?;
        let checked = broker.rules().policies().map(Checked::of);
        let problems = broker.problems().to_vec();
        broker.close().await;
        let told = |code: &str| matches!(code, "server-unavailable" | "policy-empty");
        let problems = problems.iter().filter(|problem| told(&problem.code));
        problems.for_each(|problem| screen.warning(problem));
        Ok(checked.unwrap_or_default())
    })
}

/// The tools are those of a saved list or of a lock file, and the configuration says what it
/// says of their servers.
fn against_files(
    options: CheckOptions,
    environment: &Environment,
    screen: &Screen,
) -> Result<Checked, Wrong> {
    let ServerOptions {
        lock, descriptions, ..
    } = options.servers.clone();
    if options.servers.connects() || (lock.is_some() && !options.from.is_empty()) {
        let why = "--from and --lock take the tools from a file and connect to nothing";
        let next = "leave the others out";
        return Err(usage("two kinds of sources are named", why, next).into());
    }
    let mut flags = options.servers.into_flags()?;
    flags.policies = options.folders;
    flags.tighten = options.tighten;
    flags.state_dir = options.state.state_dir;
    let config = Config::load(flags, environment)?;
    let folder = descriptions.or_else(|| config.descriptions.clone());
    let found = match &lock {
        Some(lock) => saved::locked(lock, folder)?,
        None => saved::read(&options.from, folder)?,
    };
    found.problems.iter().for_each(|it| screen.warning(it));
    let policies = policies_of(&config, &found.descriptions)?;
    Ok(policies.as_ref().map(Checked::of).unwrap_or_default())
}

/// Why rules were not found to be right.
enum Wrong {
    Rules(Vec<Finding>),
    Other(Problem),
}

impl From<Problem> for Wrong {
    fn from(problem: Problem) -> Self {
        Self::Other(problem)
    }
}

impl From<BuildError> for Wrong {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Policies(findings) => Self::Rules(findings),
            error => Self::Other(build_problem(error)),
        }
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

    fn show(&self, as_json: bool) -> Result<(), Problem> {
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

fn show_findings(findings: &[Finding], as_json: bool) -> Result<(), Problem> {
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
