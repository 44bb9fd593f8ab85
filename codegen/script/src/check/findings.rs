//! Collects findings: limited in number, without repetitions, in the order of the script.

use codegen_shared::finding::{FINDINGS_MAX, Finding, FindingCode, Severity};
use codegen_shared::lines::Lines;

use crate::closest::CompareBudget;

/// Collects the findings of one check.
pub(super) struct Findings<'a> {
    lines: Lines<'a>,
    kept: Vec<(u32, Finding)>,
    dropped: usize,
    has_error: bool,
    /// Budget for the search for similar names.
    pub(super) patience: CompareBudget,
}

impl<'a> Findings<'a> {
    pub(super) fn new(lines: Lines<'a>) -> Self {
        Self {
            lines,
            kept: Vec::new(),
            dropped: 0,
            has_error: false,
            patience: CompareBudget::default(),
        }
    }

    pub(super) fn has_error(&self) -> bool {
        self.has_error
    }

    /// Whether another finding of this severity would be kept. Callers build a message only in this
    /// case.
    pub(super) fn wants(&self, severity: Severity) -> bool {
        let mut kept = self.kept.iter();
        self.kept.len() < FINDINGS_MAX || kept.any(|(_, kept)| kept.severity < severity)
    }

    /// Counts findings that are dropped.
    pub(super) fn count(&mut self, findings: usize) {
        self.dropped += findings;
    }

    pub(super) fn error(
        &mut self,
        code: FindingCode,
        at: u32,
        message: String,
        suggestion: Option<String>,
    ) {
        self.add(Severity::Error, code, at, message, suggestion);
    }

    /// Adds an error at a line and column.
    pub(super) fn error_at(
        &mut self,
        code: FindingCode,
        (line, column): (u32, u32),
        message: String,
        suggestion: Option<String>,
    ) {
        let at = self.lines.offset(line, column);
        self.error(code, at, message, suggestion);
    }

    /// Adds a finding. The same message at the same location is kept once. Errors are never dropped
    /// to keep warnings.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        code: FindingCode,
        at: u32,
        message: String,
        suggestion: Option<String>,
    ) {
        let is_said = |(place, said): &(u32, Finding)| *place == at && said.message == message;
        if self.kept.iter().any(is_said) {
            return;
        }
        if self.kept.len() >= FINDINGS_MAX {
            self.dropped += 1;
            let milder = self
                .kept
                .iter()
                .rposition(|(_, kept)| kept.severity < severity);
            match milder {
                Some(milder) => drop(self.kept.remove(milder)),
                None => return,
            }
        }
        self.has_error |= severity == Severity::Error;
        let (line, column) = self.lines.place(at);
        let finding = Finding {
            severity,
            code,
            line,
            column,
            message,
            suggestion,
        };
        self.kept.push((at, finding));
    }

    pub(super) fn into_sorted(mut self) -> (Vec<Finding>, usize) {
        self.kept
            .sort_by_key(|(at, finding)| (*at, finding.code, finding.message.clone()));
        let findings = self.kept.into_iter().map(|(_, finding)| finding).collect();
        (findings, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_bounded_and_errors_kept() {
        let text = "x".repeat(200);
        let mut findings = Findings::new(Lines::new(&text, 0));
        for at in 0..100 {
            let message = format!("number {at}");
            findings.add(
                Severity::Warning,
                FindingCode::UnknownName,
                at,
                message,
                None,
            );
        }
        assert!(!findings.wants(Severity::Warning));
        assert!(findings.wants(Severity::Error));
        findings.error(FindingCode::Syntax, 150, "grave".to_owned(), None);
        findings.error(FindingCode::Syntax, 150, "grave".to_owned(), None);
        let (kept, dropped) = findings.into_sorted();
        assert_eq!((kept.len(), dropped), (FINDINGS_MAX, 51));
        let last = kept.last().unwrap();
        assert_eq!((last.severity, last.column), (Severity::Error, 151));
    }
}
