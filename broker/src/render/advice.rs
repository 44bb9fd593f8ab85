//! Formats findings about policies for a person, each with its line and what to write instead.

use airlock_core::policy::{Finding, Severity};

use super::report::marked;
use super::{Style, escape};

const CHARS_SHOWN: usize = 400;

/// Formats a finding. If `text` is empty, the line of the file is not shown.
#[must_use]
pub fn policy_finding(finding: &Finding, text: &str, style: Style) -> String {
    let severity = match finding.kind.severity() {
        Severity::Error => style.red("error:"),
        Severity::Warning => style.yellow("warning:"),
    };
    let place = &finding.place;
    let brief = |text: &str| escape::brief(text, CHARS_SHOWN);
    let (at, what) = (brief(&place.to_string()), brief(&finding.what));
    let mut shown = format!("{severity} {at}:{}: {what}\n", place.column);
    shown.push_str(&marked(place.line, place.column, text).unwrap_or_default());
    let fix = finding.fix.as_ref().map_or("", |fix| fix.what.as_str());
    // The advice often equals the fix. The fix is then not printed again.
    let fix = if fix == finding.next { "" } else { fix };
    for (word, said) in [
        ("  why:", finding.why.as_str()),
        (" next:", &finding.next),
        ("  fix:", fix),
        (" code:", finding.kind.as_str()),
    ] {
        if !said.is_empty() {
            shown.push_str(&format!("{} {}\n", style.dim(word), brief(said)));
        }
    }
    shown
}

/// Formats the numbers of errors and warnings, such as `1 error and 2 warnings`.
#[must_use]
pub fn policy_summary(findings: &[Finding]) -> String {
    let words = |severity: Severity, word: &str| {
        let count = findings
            .iter()
            .filter(|it| it.kind.severity() == severity)
            .count();
        match count {
            0 => None,
            1 => Some(format!("1 {word}")),
            count => Some(format!("{count} {word}s")),
        }
    };
    let parts = [
        words(Severity::Error, "error"),
        words(Severity::Warning, "warning"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "nothing found".to_owned(),
        false => parts.join(" and "),
    }
}
