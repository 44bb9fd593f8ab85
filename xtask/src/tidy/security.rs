//! Checks the table of vulnerabilities in `SECURITY.md`: each row that promises something names the
//! tests that check it, and each named test runs. A test is named by its function, or by the file
//! of a hostile script.

use super::{File, Finding, Rule};

const PAGE: &str = "SECURITY.md";
const HEADING: &str = "## What is a vulnerability?";

/// Finds rows without a test, and names of tests that do not run.
pub(super) fn check(all: &[File]) -> Vec<Finding> {
    let Some(page) = all.iter().find(|file| file.path == PAGE) else {
        return Vec::new();
    };
    let found = |(number, what)| Finding::new(Rule::SecurityTest, page, number, what);
    rows(&page.text)
        .flat_map(|(row, number)| complaints(row, all).into_iter().map(move |it| (number, it)))
        .map(found)
        .collect()
}

/// Returns the rows of the table below the heading, with their line numbers.
fn rows(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines = text
        .lines()
        .zip(1..)
        .skip_while(|(line, _)| *line != HEADING);
    let table = lines
        .skip(1)
        .take_while(|(line, _)| !line.starts_with("## "));
    table.filter(|(line, _)| line.starts_with('|')).skip(2)
}

fn complaints(row: &str, all: &[File]) -> Vec<String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [_, answer, tests] = cells.as_slice() else {
        return vec!["expected three columns: kind, answer, tests".to_owned()];
    };
    let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
    if answer.starts_with("yes") && tests.is_empty() {
        return vec!["the row names no test that holds it".to_owned()];
    }
    let missing = tests.into_iter().filter(|test| !exists(test, all));
    missing
        .map(|test| format!("there is no test `{test}` that runs"))
        .collect()
}

fn exists(test: &str, all: &[File]) -> bool {
    if test.contains('/') {
        return all.iter().any(|file| file.path == test);
    }
    let mut sources = all.iter().filter(|file| file.path.ends_with(".rs"));
    sources.any(|file| runs(&file.text, test))
}

/// Returns whether a file has a test of this name that no attribute disables.
fn runs(text: &str, test: &str) -> bool {
    let heads = [format!("fn {test}("), format!("async fn {test}(")];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_head = |line: &&str| heads.iter().any(|head| line.starts_with(head.as_str()));
    let Some(at) = lines.iter().position(is_head) else {
        return false;
    };
    let before = lines.iter().take(at).rev();
    let attributes: Vec<&str> = before
        .copied()
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .filter(|line| line.starts_with("#["))
        .collect();
    let is_test = |line: &&str| *line == "#[test]" || line.starts_with("#[tokio::test");
    let disables = |line: &&str| line.contains(concat!("ig", "nore")) || line.contains("cfg");
    attributes.iter().any(is_test) && !attributes.iter().any(disables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn found(row: &str) -> Vec<String> {
        let page =
            format!("# Page\n| not | this |\n{HEADING}\n\n| K | V | T |\n| - | - | - |\n{row}\n");
        let tests = "mod tests {\n    #[test]\n    fn it_holds() {}\n    fn helper() {}\n    #[test]\n    #[cfg(windows)]\n    fn elsewhere() {}\n}";
        let all = [file(PAGE, &page), file("a.rs", tests), file("b/c.js", "")];
        let findings = check(&all).into_iter();
        findings
            .map(|it| format!("{}: {}", it.line, it.what))
            .collect()
    }

    #[test]
    fn named_tests_must_run() {
        assert!(found("| a | yes | `it_holds`, `b/c.js` |").is_empty());
        assert!(found("| a | no: a reason | |").is_empty());
        let missing = |test: &str| vec![format!("7: there is no test `{test}` that runs")];
        for test in ["gone", "helper", "elsewhere", "b/d.js"] {
            assert_eq!(
                found(&format!("| a | yes | `it_holds`, `{test}` |")),
                missing(test)
            );
        }
    }

    #[test]
    fn row_without_a_test_is_found() {
        assert_eq!(found("| a | yes, critical | |").len(), 1);
        assert_eq!(found("| a | yes |").len(), 1);
    }
}
