//! One thing that is wrong with a script, where, and what to write instead; and how a script is
//! written.

use std::fmt;

/// The most findings that are kept; the rest are counted.
pub const FINDINGS_MAX: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Statements with top-level `await` and `return`.
    Body,
    /// One function, which is called with `input`.
    Function,
    /// One expression, whose value is the script's.
    Expression,
    /// What `export default` says.
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
    /// Nested more deeply than any engine follows.
    TooDeep,
    /// The check of the script met a limit of its own.
    TooComplex,
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
    pub const ALL: [Self; 15] = [
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
        }
    }

    /// The place in [`Self::ALL`].
    pub(crate) fn number(self) -> u8 {
        let place = Self::ALL.iter().position(|code| *code == self);
        place
            .and_then(|it| u8::try_from(it).ok())
            .unwrap_or(u8::MAX)
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether the script cannot even be started, as the engine itself would say.
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

/// What the check found out about a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// How the script is written; unknown when it cannot be parsed.
    pub form: Option<Form>,
    /// The script with its types blanked. Absent when there are none: then it runs as it is.
    pub blanked: Option<String>,
    /// In the order of their places.
    pub findings: Vec<Finding>,
    /// Findings beyond the bound, which are counted and not kept: so many at least, since what has
    /// that much wrong with it is not read to its end.
    pub findings_dropped: usize,
}

impl Checked {
    /// The first finding that stops a run.
    #[must_use]
    pub fn first_error(&self) -> Option<&Finding> {
        self.findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
    }
}
