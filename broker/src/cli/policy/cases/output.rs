//! Formats the results of cases for people, and for programs in CI.

use airlock_core::policy::Finding;
use airlock_core::problem::Problem;
use serde_json::json;

use super::{CaseResult, Failure, Results, TestFormat};
use crate::cli::policy::format::Files;
use crate::cli::{print, print_json};
use crate::render::{Sarif, SarifLevel, SarifResult, escape};

impl Results {
    pub(super) fn print(&self, format: TestFormat, files: &Files) -> Result<(), Problem> {
        match format {
            TestFormat::Text => print(&escape::block(&self.text())),
            TestFormat::Json => print_json(&json!({
                "cases": self.cases.len(),
                "rules": self.rules.len(),
                "failures": self.failures().collect::<Vec<_>>(),
                "uncovered": self.uncovered().map(|(id, _)| id).collect::<Vec<_>>(),
            })),
            TestFormat::Sarif => files.print_sarif(&self.sarif()),
            TestFormat::Junit => print(&self.junit()),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for failure in self.failures() {
            let Failure {
                case,
                line,
                expected,
                found,
                reasons,
                ..
            } = failure;
            text.push_str(&format!(
                "FAIL {case} (line {line})\n  expected {expected}\n     found {found}\n"
            ));
            reasons
                .iter()
                .for_each(|reason| text.push_str(&format!("           {reason}\n")));
        }
        for (rule, place) in self.uncovered() {
            let stem = place.file.trim_end_matches(".cedar");
            text.push_str(&format!(
                "FAIL the rule `{rule}` ({place}) decides no case\n      \
                 next: add a case that it decides to {stem}.cases.toml\n"
            ));
        }
        let (cases, rules) = (self.cases.len(), self.rules.len());
        let failed = self.failures().count();
        let covered = rules - self.uncovered().count();
        text.push_str(&format!(
            "{cases} cases, {failed} failed; {covered} of {rules} rules covered\n"
        ));
        text
    }

    fn sarif(&self) -> Sarif {
        let failed = self.cases.iter().filter_map(|case| {
            let failure = case.failure.as_ref()?;
            Some(SarifResult {
                rule: "case-failed",
                level: SarifLevel::Error,
                message: format!("{}: {}", case.name, describe(failure)),
                place: Some(case.place.clone()),
                fix: None,
            })
        });
        let uncovered = self.uncovered().map(|(id, place)| SarifResult {
            rule: "rule-uncovered",
            level: SarifLevel::Warning,
            message: format!("the rule `{id}` decides no case"),
            place: Some(place.clone()),
            fix: None,
        });
        Sarif {
            rules: vec![
                (
                    "case-failed",
                    "The result of a case is not the expected one.",
                ),
                ("rule-uncovered", "A rule decides no case."),
            ],
            results: failed.chain(uncovered).collect(),
        }
    }

    /// Formats one suite per case file, and one suite with a coverage test for each rule.
    fn junit(&self) -> String {
        let mut suites: Vec<Suite> = Vec::new();
        for CaseResult {
            name,
            place,
            failure,
        } in &self.cases
        {
            let test = (name.clone(), failure.as_ref().map(describe));
            match suites.iter_mut().find(|(file, _)| **file == *place.file) {
                Some((_, tests)) => tests.push(test),
                None => suites.push((place.file.to_string(), vec![test])),
            }
        }
        let covered = self.rules.iter().map(|(id, (place, is_covered))| {
            let why = format!("the rule `{id}` ({place}) decides no case");
            (id.clone(), (!is_covered).then_some(why))
        });
        suites.push(("rules covered".to_owned(), covered.collect()));
        document(&suites)
    }
}

/// Formats errors in the rules that prevented the cases from running.
pub(super) fn junit_of(findings: &[Finding]) -> String {
    let test = |it: &Finding| (it.kind.as_str().to_owned(), Some(it.to_string()));
    let tests = findings.iter().map(test).collect();
    document(&[("rules read".to_owned(), tests)])
}

/// A suite: its name, and its tests with a message if they failed.
type Suite = (String, Vec<(String, Option<String>)>);

fn document(suites: &[Suite]) -> String {
    let tests = || suites.iter().flat_map(|(_, tests)| tests);
    let (count, failed) = (
        tests().count(),
        tests().filter(|(_, why)| why.is_some()).count(),
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"airlock policy test\" tests=\"{count}\" failures=\"{failed}\">\n"
    );
    suites
        .iter()
        .for_each(|(name, tests)| xml.push_str(&suite(name, tests)));
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(name: &str, tests: &[(String, Option<String>)]) -> String {
    let (count, failed) = (
        tests.len(),
        tests.iter().filter(|(_, why)| why.is_some()).count(),
    );
    let name = xml(name);
    let mut text =
        format!("  <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\">\n");
    for (test, why) in tests {
        let head = format!("    <testcase classname=\"{name}\" name=\"{}\"", xml(test));
        text.push_str(&match why {
            None => format!("{head}/>\n"),
            Some(why) => {
                let why = xml(why);
                let message = why.split('\n').next().unwrap_or_default();
                format!("{head}>\n      <failure message=\"{message}\">{why}</failure>\n    </testcase>\n")
            }
        });
    }
    text.push_str("  </testsuite>\n");
    text
}

fn describe(failure: &Failure) -> String {
    let Failure {
        expected,
        found,
        reasons,
        ..
    } = failure;
    let mut said = format!("expected {expected}, found {found}");
    reasons
        .iter()
        .for_each(|reason| said.push_str(&format!("\n{reason}")));
    said
}

/// Escapes a text for XML, and replaces characters that XML cannot contain.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
