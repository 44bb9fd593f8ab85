//! One thing that is wrong with a script, where, and what to write instead.

use std::fmt;

use super::lines::Lines;
use crate::closest::Patience;

/// Findings that are kept; the rest are counted.
pub(super) const FINDINGS_MAX: usize = 50;

/// Ordered from harmless to grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Probably not what was meant.
    Warning,
    /// Certain: it stops a run before any effect.
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingCode {
    Syntax,
    TooDeep,
    /// TypeScript that is more than types.
    NotErasable,
    /// Modules and what they export or import.
    NoModules,
    UnknownServer,
    UnknownTool,
    /// A name that nothing declares.
    UnknownName,
    UnknownProperty,
    MissingArgument,
    /// The right type, and not one of the values that there are.
    WrongLiteral,
    WrongType,
    /// A tool that is not called with one object.
    NotOneObject,
    MissingAwait,
    /// A call that nobody waits for.
    NotAwaited,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub code: FindingCode,
    /// In the script's own text, from 1.
    pub line: u32,
    /// In characters, as the engine counts, from 1.
    pub column: u32,
    pub message: String,
    /// What to do instead, a whole sentence.
    pub suggestion: Option<String>,
}

impl Severity {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl FindingCode {
    pub const ALL: [Self; 14] = [
        Self::Syntax,
        Self::TooDeep,
        Self::NotErasable,
        Self::NoModules,
        Self::UnknownServer,
        Self::UnknownTool,
        Self::UnknownName,
        Self::UnknownProperty,
        Self::MissingArgument,
        Self::WrongLiteral,
        Self::WrongType,
        Self::NotOneObject,
        Self::MissingAwait,
        Self::NotAwaited,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TooDeep => "too-deep",
            Self::NotErasable => "not-erasable",
            Self::NoModules => "no-modules",
            Self::UnknownServer => "unknown-server",
            Self::UnknownTool => "unknown-tool",
            Self::UnknownName => "unknown-name",
            Self::UnknownProperty => "unknown-property",
            Self::MissingArgument => "missing-argument",
            Self::WrongLiteral => "wrong-literal",
            Self::WrongType => "wrong-type",
            Self::NotOneObject => "not-one-object",
            Self::MissingAwait => "missing-await",
            Self::NotAwaited => "not-awaited",
        }
    }

    /// Whether the script cannot even be started, as the engine itself would say.
    #[must_use]
    pub const fn is_syntax(self) -> bool {
        matches!(
            self,
            Self::Syntax | Self::TooDeep | Self::NotErasable | Self::NoModules
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, ". {suggestion}"),
            None => Ok(()),
        }
    }
}

/// Findings in the making.
pub(super) struct Findings<'a> {
    lines: Lines<'a>,
    kept: Vec<(u32, Finding)>,
    dropped: usize,
    has_error: bool,
    /// For what was probably meant.
    pub(super) patience: Patience,
}

impl<'a> Findings<'a> {
    pub(super) fn new(lines: Lines<'a>) -> Self {
        Self {
            lines,
            kept: Vec::new(),
            dropped: 0,
            has_error: false,
            patience: Patience::default(),
        }
    }

    pub(super) fn has_error(&self) -> bool {
        self.has_error
    }

    /// Whether one more of this severity would be kept; what would not is not put into words.
    pub(super) fn wants(&self, severity: Severity) -> bool {
        let mut kept = self.kept.iter();
        self.kept.len() < FINDINGS_MAX || kept.any(|(_, kept)| kept.severity < severity)
    }

    /// Findings that nobody wants.
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

    /// The same thing at the same place is said once, and an error is never dropped for a warning.
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
    fn what_is_too_much_is_counted_and_errors_stay() {
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
