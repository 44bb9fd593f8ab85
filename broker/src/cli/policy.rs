//! `airlock policy`: what a reviewer does with rules before they decide anything.

mod cases;
mod explain;
mod sources;
mod table;

use std::path::PathBuf;

use airlock_core::policy::{Finding, Policies};
use airlock_core::problem::Problem;
use clap::{Args, Subcommand};
use serde_json::json;

use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::config::Environment;
use explain::ExplainOptions;
use sources::{SourceOptions, Wrong};

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Read rules and hold them against tools: names, types, labels, annotations
    Check(Box<CheckOptions>),
    /// Decide the cases in *.cases.toml beside the rules; each rule must decide one
    Test(TestOptions),
    /// Why a call was decided as it was, or would be
    Explain(Box<ExplainOptions>),
}

#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Folders of rules, or single files
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceOptions,
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
            Self::Explain(options) => options.json,
        }
    }
}

pub(super) fn run(command: PolicyCommand, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    match command {
        PolicyCommand::Check(options) => check(*options, environment, &screen),
        PolicyCommand::Test(options) => cases::test(&options.folders, options.json),
        PolicyCommand::Explain(options) => explain::run(*options, environment, &screen),
    }
}

fn check(options: CheckOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let as_json = options.json;
    match options.sources.open(options.folders, environment, screen) {
        Ok(opened) => {
            let checked = opened.rules.policies().map(Checked::of);
            checked.unwrap_or_default().show(as_json)?;
            Ok(exit::DONE)
        }
        Err(Wrong::Rules(findings)) => {
            show_findings(&findings, as_json)?;
            Ok(exit::POLICY)
        }
        Err(Wrong::Other(problem)) => Err(problem),
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
