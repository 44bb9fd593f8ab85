//! Types for a finding, the form of a script, and the result of its check. A finding says what is
//! wrong with a script, where, and what to write instead.

use std::fmt;

/// Maximum number of findings that are kept; the rest are counted.
pub const FINDINGS_MAX: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Statements with top-level `await` and `return`.
    Body,
    /// One function, which is called with `input`.
    Function,
    /// One expression, whose value is the value of the script.
    Expression,
    /// A module, whose value is its `export default`.
    Module,
}

impl Form {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Function => "function",
            Self::Expression => "expression",
            Self::Module => "module",
        }
    }
}

/// How serious a finding is. The order is from the least to the most serious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Probably a mistake.
    Warning,
    /// Certainly wrong. By default, the run does not start.
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingCode {
    Syntax,
    /// Nesting deeper than any engine supports.
    TooDeep,
    /// The script exceeds a limit of the check.
    TooComplex,
    /// TypeScript syntax that has an effect at run time.
    NotErasable,
    /// An import of a module, or an export other than the script's value.
    NoModules,
    UnknownServer,
    UnknownTool,
    /// A name that is not declared.
    UnknownName,
    UnknownProperty,
    MissingArgument,
    /// A value of the right type that is not one of the allowed values.
    WrongLiteral,
    WrongType,
    /// A call of a tool with anything but exactly one object.
    NotOneObject,
    MissingAwait,
    /// A call that is never awaited.
    NotAwaited,
    /// A tool that is named and not called.
    NotCalled,
    /// A call of a tool that is to be replaced.
    Deprecated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub code: FindingCode,
    /// Line of the script, from 1.
    pub line: u32,
    /// Column in characters, as the engine counts them, from 1.
    pub column: u32,
    pub message: String,
    /// The correction, as a whole sentence.
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
    pub const ALL: [Self; 17] = [
        Self::Syntax,
        Self::TooDeep,
        Self::TooComplex,
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
        Self::NotCalled,
        Self::Deprecated,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::TooDeep => "too-deep",
            Self::TooComplex => "script-too-complex",
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
            Self::NotCalled => "not-called",
            Self::Deprecated => "deprecated",
        }
    }

    /// Returns the position in [`Self::ALL`].
    pub(crate) fn number(self) -> u8 {
        let place = Self::ALL.iter().position(|code| *code == self);
        place
            .and_then(|it| u8::try_from(it).ok())
            .unwrap_or(u8::MAX)
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether the engine itself would refuse to start the script.
    #[must_use]
    pub const fn is_syntax(self) -> bool {
        matches!(
            self,
            Self::Syntax | Self::TooDeep | Self::TooComplex | Self::NotErasable | Self::NoModules
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

/// Result of the check of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The form of the script; `None` if it cannot be parsed.
    pub form: Option<Form>,
    /// The script with its types blanked; `None` if it has no types and runs unchanged.
    pub blanked: Option<String>,
    /// Findings in the order of the script.
    pub findings: Vec<Finding>,
    /// Number of findings beyond [`FINDINGS_MAX`], which are not kept. The true number may be
    /// higher, because the check of a value with many errors stops early.
    pub findings_dropped: usize,
}

impl CheckResult {
    /// Returns the first finding that stops a run.
    #[must_use]
    pub fn first_error(&self) -> Option<&Finding> {
        self.findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
    }
}
