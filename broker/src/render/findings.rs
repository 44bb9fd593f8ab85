//! Formats the findings of the script check for a person, each with its line.

use airlock_core::report::{Report, ReportedFinding, ReportedSeverity};

use super::report::{has_stopped, marked};
use super::{Style, escape};

const MESSAGE_CHARS_SHOWN: usize = 400;

/// Formats one finding in a few lines. If `script` is empty, the line of the script is not shown.
#[must_use]
pub fn finding(finding: &ReportedFinding, name: &str, script: &str, style: Style) -> String {
    let severity = match finding.severity {
        ReportedSeverity::Error => style.red("error:"),
        ReportedSeverity::Warning => style.yellow("warning:"),
        ReportedSeverity::Note => style.dim("note:"),
    };
    let name = escape::brief(name, 80);
    let place = match (finding.line, finding.column) {
        (0, _) => String::new(),
        (line, column) => format!("{name}:{line}:{column}: "),
    };
    let message = escape::brief(&finding.message, MESSAGE_CHARS_SHOWN);
    let mut text = format!("{severity} {place}{message}\n");
    if let Some(excerpt) = marked(finding.line, finding.column, script) {
        text.push_str(&excerpt);
    }
    if let Some(suggestion) = &finding.suggestion {
        let suggestion = escape::brief(suggestion, MESSAGE_CHARS_SHOWN);
        text.push_str(&format!("{} {suggestion}\n", style.dim(" next:")));
    }
    text.push_str(&format!("{} {}\n", style.dim(" code:"), finding.code));
    text
}

/// Returns the findings of a run, without the finding that stopped the run, because the run's
/// problem already shows it.
pub fn untold_findings(report: &Report) -> impl Iterator<Item = &ReportedFinding> {
    report.findings.iter().filter(|it| !has_stopped(report, it))
}

/// Formats the numbers of errors and warnings, such as `1 error and 2 warnings`.
#[must_use]
pub fn findings_summary(findings: &[ReportedFinding]) -> String {
    let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
    let words = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {word}s")),
    };
    let errors = words(count(ReportedSeverity::Error), "error");
    let warnings = words(count(ReportedSeverity::Warning), "warning");
    let parts: Vec<String> = errors.into_iter().chain(warnings).collect();
    if parts.is_empty() {
        "no errors or warnings".to_owned()
    } else {
        parts.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(severity: ReportedSeverity) -> ReportedFinding {
        ReportedFinding {
            severity,
            code: "unknown-tool".into(),
            line: 2,
            column: 12,
            message: "`demo` has no tool `logs_qery`\u{1b}[2J".into(),
            suggestion: Some("Did you mean `logs_query`?".into()),
        }
    }

    #[test]
    fn finding_shows_its_line_escaped() {
        let script = "const a = 1;\nawait demo.logs_qery({});\n";
        let shown = finding(
            &found(ReportedSeverity::Error),
            "a.js",
            script,
            Style::default(),
        );
        assert_eq!(
            shown,
            "error: a.js:2:12: `demo` has no tool `logs_qery`\\u{1b}[2J\n\
             \x20    2 | await demo.logs_qery({});\n\
             \x20      |            ^\n\
             \x20next: Did you mean `logs_query`?\n\
             \x20code: unknown-tool\n"
        );
    }

    #[test]
    fn note_has_no_place() {
        let note = ReportedFinding {
            line: 0,
            column: 0,
            ..found(ReportedSeverity::Note)
        };
        let shown = finding(&note, "a.js", "await 1;", Style::default());
        assert!(shown.starts_with("note: `demo`"), "{shown}");
        assert_eq!(findings_summary(&[note]), "no errors or warnings");
    }

    #[test]
    fn findings_are_counted_by_severity() {
        use ReportedSeverity::{Error, Warning};
        assert_eq!(findings_summary(&[]), "no errors or warnings");
        assert_eq!(findings_summary(&[found(Error)]), "1 error");
        assert_eq!(
            findings_summary(&[found(Warning), found(Error), found(Warning)]),
            "1 error and 2 warnings"
        );
    }
}
