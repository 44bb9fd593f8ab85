//! `airlock policy test`: decides each case with the rules of all folders. Each rule must decide at
//! least one case.

mod output;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use airlock_core::policy::{InvalidPolicies, Place, Policies, PolicyFile, PolicyVerdict};
use airlock_core::problem::Problem;
use airlock_policy_analysis::findings_with_checked_fixes;
use clap::{Args, ValueEnum};
use codegen::closest::closest;
use serde::Serialize;

use super::check;
use super::facts::{CallFacts, all_pinned};
use super::format::{Files, PolicyFormat};
use super::table::{self, CaseFile, KnownTools, PolicyCase};
use crate::broker::vocabulary_of;
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::types::saved;
use crate::cli::{Outcome, exit, print};
use crate::config::{Config, Environment, Flags, policies, rule_folder};

const ENDING: &str = "cases.toml";

#[derive(Debug, Args)]
pub(in crate::cli) struct TestOptions {
    /// Folders that contain rules and their cases
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// Take the groups, roots and marks of tools from an airlock.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take the tools from a lock file, so that the cases need no [tools] tables [default: the
    /// configured lock file, with --config]
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    lock: Option<PathBuf>,
    /// Take the tools from a saved tools/list result
    #[arg(long, value_name = "[NAME=]FILE")]
    from: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    format: TestFormat,
    /// Same as --format json
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum TestFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object
    Json,
    /// SARIF 2.1.0
    Sarif,
    /// JUnit XML
    Junit,
}

impl TestOptions {
    /// Returns the tools that the configuration and a file of descriptions describe.
    fn known(&self, environment: &Environment, screen: &Screen) -> Result<KnownTools, Problem> {
        if self.config.is_none() && self.lock.is_none() && self.from.is_empty() {
            return Ok(KnownTools::default());
        }
        let flags = Flags {
            config: self.config.clone(),
            roots_absent: true,
            ..Flags::default()
        };
        let config = Config::load(flags, environment)?;
        let folder = config.settings.tools.descriptions.clone();
        let found = match self.lock.as_ref().or(config.settings.tools.lock.as_ref()) {
            _ if !self.from.is_empty() => saved::read(&self.from, folder)?,
            Some(lock) => saved::locked(lock, &config, screen)?,
            None => {
                let why =
                    "the configuration describes groups, and names no lock file with the tools";
                let next = "add --lock FILE; `airlock lock` writes the file";
                return Err(usage("there are no tools for the cases", why, next));
            }
        };
        found.problems.iter().for_each(|it| screen.warning(it));
        let vocabulary = vocabulary_of(&config, &found.descriptions);
        let known = KnownTools::new(vocabulary, &found.descriptions);
        if !config.flow.is_configured {
            return Ok(known);
        }
        let facts = CallFacts::new(&config);
        Ok(known.with_facts(match self.from.is_empty() {
            true => facts.with_pinned(all_pinned(&found.descriptions)),
            false => facts,
        }))
    }

    fn format(&self) -> TestFormat {
        if self.json {
            TestFormat::Json
        } else {
            self.format
        }
    }

    /// Whether problems are printed as JSON too.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.format(), TestFormat::Json | TestFormat::Sarif)
    }
}

/// The results of all cases.
#[derive(Debug, Default)]
struct Results {
    cases: Vec<CaseResult>,
    /// The place of each rule, and whether it decided a case.
    rules: BTreeMap<String, (Place, bool)>,
}

/// A case and its result.
#[derive(Debug)]
struct CaseResult {
    name: String,
    place: Place,
    failure: Option<Failure>,
}

/// A case with an unexpected result.
#[derive(Debug, Serialize)]
struct Failure {
    case: String,
    file: String,
    line: u32,
    expected: String,
    found: String,
    reasons: Vec<String>,
}

pub(super) fn run(options: &TestOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let known = options.known(environment, screen)?;
    let mut files = Vec::new();
    let mut tables = Vec::new();
    for folder in &options.folders {
        files.extend(policies::read(folder, false)?);
        for (name, text) in rule_folder::read(folder, ENDING)? {
            if name.ends_with(ENDING) {
                tables.push(table::parse(&name, &text, &known)?);
            }
        }
    }
    let places = Files::of_rules(&options.folders)?.with(&options.folders, ENDING)?;
    match decide(&files, tables, known).map_err(findings_with_checked_fixes) {
        Ok(results) => {
            if results.rules.is_empty() && results.cases.is_empty() {
                return Err(usage(
                    "there is nothing to test",
                    "the named folders contain neither rules (.cedar) nor cases (.cases.toml)",
                    "name a folder with rules",
                ));
            }
            results.show(options.format(), &places)
        }
        Err(findings) => match options.format() {
            TestFormat::Text => check::show_findings(findings, PolicyFormat::Text, &places),
            TestFormat::Json => check::show_findings(findings, PolicyFormat::Json, &places),
            TestFormat::Sarif => check::show_findings(findings, PolicyFormat::Sarif, &places),
            TestFormat::Junit => {
                print(&output::junit_of(&findings))?;
                Ok(exit::POLICY)
            }
        },
    }
}

fn decide(
    files: &[PolicyFile],
    tables: Vec<CaseFile>,
    known: KnownTools,
) -> Result<Results, InvalidPolicies> {
    let mut results = Results::default();
    let is_empty = tables.iter().all(|table| table.cases.is_empty());
    let servers: BTreeSet<String> = tables
        .iter()
        .flat_map(|table| table.servers.clone())
        .collect();
    for table in tables {
        let (mut vocabulary, cases) = (table.vocabulary, table.cases);
        // A server that only another case file contains is not a misspelt name here.
        let others = servers.difference(&table.servers);
        others.for_each(|server| vocabulary.add_unseen(server));
        let policies = Policies::load(files, vocabulary, true)?;
        results.know(&policies);
        for case in cases {
            let judged = policies.judge(&case.tool, &case.args, &case.facts);
            results.add(case, &judged);
        }
    }
    if is_empty {
        // Rules are parsed even if there are no cases.
        results.know(&Policies::load(files, known.vocabulary, true)?);
    }
    Ok(results)
}

impl Results {
    fn know(&mut self, policies: &Policies) {
        for rule in policies.rules() {
            let known = self.rules.entry(rule.id.to_string());
            known.or_insert_with(|| (rule.place.clone(), false));
        }
    }

    fn add(&mut self, case: PolicyCase, judged: &PolicyVerdict) {
        for rule in &judged.rules {
            if let Some((_, is_covered)) = self.rules.get_mut(&**rule) {
                *is_covered = true;
            }
        }
        let failure = self.failure(&case, judged);
        self.cases.push(CaseResult {
            name: case.name,
            place: case.place,
            failure,
        });
    }

    fn failure(&self, case: &PolicyCase, judged: &PolicyVerdict) -> Option<Failure> {
        let found: BTreeSet<String> = judged.rules.iter().map(ToString::to_string).collect();
        let spelt = |level: &str, rules: &BTreeSet<String>| {
            let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
            match rules.as_slice() {
                [] => format!("{level} by no rule"),
                rules => format!("{level} by {}", rules.join(", ")),
            }
        };
        let fits = judged.level == case.level && case.rules.is_subset(&found);
        (!fits).then(|| Failure {
            case: format!("{}: {}", case.place.file, case.name),
            file: case.place.file.to_string(),
            line: case.place.line,
            expected: spelt(case.level.as_str(), &case.rules),
            found: spelt(judged.level.as_str(), &found),
            reasons: self
                .unknown(case)
                .chain(judged.reasons.iter().cloned())
                .collect(),
        })
    }

    /// Returns the rules that a case names and that do not exist.
    fn unknown<'a>(&'a self, case: &'a PolicyCase) -> impl Iterator<Item = String> + 'a {
        let unknown = case
            .rules
            .iter()
            .filter(|rule| !self.rules.contains_key(*rule));
        unknown.map(|rule| {
            let meant = closest(rule, self.rules.keys().map(String::as_str));
            let meant = meant.map(|it| format!("; did you mean `{it}`?"));
            format!("there is no rule `{rule}`{}", meant.unwrap_or_default())
        })
    }

    fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.cases.iter().filter_map(|case| case.failure.as_ref())
    }

    /// Returns the rules that decided no case.
    fn uncovered(&self) -> impl Iterator<Item = (&str, &Place)> {
        let rules = self.rules.iter().filter(|(_, (_, is_covered))| !is_covered);
        rules.map(|(id, (place, _))| (id.as_str(), place))
    }

    fn show(&self, format: TestFormat, files: &Files) -> Result<u8, Problem> {
        self.print(format, files)?;
        let passed = self.failures().next().is_none() && self.uncovered().next().is_none();
        Ok(if passed { exit::DONE } else { exit::POLICY })
    }
}
