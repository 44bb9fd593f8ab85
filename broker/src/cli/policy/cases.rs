//! `airlock policy test`: each case is decided by the rules of all folders, and
//! each rule has to decide at least one case.

use std::collections::BTreeSet;
use std::path::PathBuf;

use airlock_core::policy::{Judged, Policies, PolicyFile};
use airlock_core::problem::Problem;
use serde::Serialize;
use serde_json::json;

use super::super::{Outcome, exit, print, print_json};
use super::show_findings;
use super::table::{self, Case, Table};
use crate::config::{policies, rule_folder};
use crate::render::escape;

const ENDING: &str = "cases.toml";

/// How the cases came out.
#[derive(Debug, Default, Serialize)]
struct Results {
    cases: usize,
    rules: usize,
    failures: Vec<Failure>,
    /// Rules that decided no case.
    uncovered: Vec<String>,
}

/// A case that came out otherwise.
#[derive(Debug, Serialize)]
struct Failure {
    case: String,
    expected: String,
    found: String,
    reasons: Vec<String>,
}

pub(super) fn test(folders: &[PathBuf], as_json: bool) -> Outcome {
    let mut files = Vec::new();
    let mut tables = Vec::new();
    for folder in folders {
        files.extend(policies::read(folder, false)?);
        for (name, text) in rule_folder::read(folder, ENDING)? {
            if name.ends_with(ENDING) {
                tables.push(table::parse(&name, &text)?);
            }
        }
    }
    match decide(&files, tables) {
        Ok(results) => results.show(as_json),
        Err(findings) => {
            show_findings(&findings, as_json)?;
            Ok(exit::POLICY)
        }
    }
}

type Findings = Vec<airlock_core::policy::Finding>;

fn decide(files: &[PolicyFile], tables: Vec<Table>) -> Result<Results, Findings> {
    let mut results = Results::default();
    let mut hit = BTreeSet::new();
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for Table { vocabulary, cases } in tables {
        let policies = Policies::load(files, vocabulary, true)?;
        ids.extend(policies.rules().iter().map(|rule| rule.id.to_string()));
        for case in &cases {
            let judged = policies.judge(&case.tool, &case.args, &case.facts);
            hit.extend(judged.rules.iter().map(ToString::to_string));
            results.cases += 1;
            results.failures.extend(failure(case, &judged));
        }
    }
    if results.cases == 0 {
        // Without cases the rules are still read.
        let policies = Policies::load(files, airlock_core::policy::Vocabulary::new(), true)?;
        ids.extend(policies.rules().iter().map(|rule| rule.id.to_string()));
    }
    results.rules = ids.len();
    results.uncovered = ids.difference(&hit).cloned().collect();
    Ok(results)
}

fn failure(case: &Case, judged: &Judged) -> Option<Failure> {
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
        case: case.name.clone(),
        expected: spelt(case.level.as_str(), &case.rules),
        found: spelt(judged.level.as_str(), &found),
        reasons: judged.reasons.clone(),
    })
}

impl Results {
    fn show(&self, as_json: bool) -> Result<u8, Problem> {
        if as_json {
            print_json(&json!(self))?;
        } else {
            print(&escape::block(&self.text()))?;
        }
        let passed = self.failures.is_empty() && self.uncovered.is_empty();
        Ok(if passed { exit::DONE } else { exit::POLICY })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for failure in &self.failures {
            let Failure {
                case,
                expected,
                found,
                reasons,
            } = failure;
            text.push_str(&format!(
                "FAIL {case}\n  expected {expected}\n     found {found}\n"
            ));
            reasons
                .iter()
                .for_each(|reason| text.push_str(&format!("           {reason}\n")));
        }
        for rule in &self.uncovered {
            text.push_str(&format!("FAIL the rule `{rule}` decides no case\n"));
        }
        let (cases, rules) = (self.cases, self.rules);
        let failed = self.failures.len();
        let covered = rules - self.uncovered.len();
        text.push_str(&format!(
            "{cases} cases, {failed} failed; {covered} of {rules} rules covered\n"
        ));
        text
    }
}
