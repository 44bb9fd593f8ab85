//! A finding about a value, with the expected value and a correction.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The schema refuses the value.
    Error,
    /// The schema accepts the value, but it is probably a mistake.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Path as a script would write it: `args.filter.tags[2]`.
    pub path: String,
    pub expected: String,
    pub got: String,
    /// The correction, as a whole sentence.
    pub suggestion: Option<String>,
}

impl Finding {
    pub(super) fn error(path: String, expected: String, got: String) -> Self {
        Self {
            severity: Severity::Error,
            path,
            expected,
            got,
            suggestion: None,
        }
    }

    pub(super) fn too_costly(root: &str) -> Self {
        Self {
            suggestion: Some("Pass a smaller or less nested value.".to_owned()),
            ..Self::error(
                root.to_owned(),
                "a value that can be checked in bounded time".to_owned(),
                "one that this tool's recursive schema makes too costly".to_owned(),
            )
        }
    }

    pub(super) fn too_large_to_explain(root: &str) -> Self {
        Self {
            suggestion: Some("Try a smaller value first.".to_owned()),
            ..Self::error(
                root.to_owned(),
                "a value that fits the tool's schema".to_owned(),
                "an invalid one, too large to locate the error".to_owned(),
            )
        }
    }

    #[must_use]
    pub(super) fn suggesting(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: expected {}, got {}",
            self.path, self.expected, self.got
        )?;
        match &self.suggestion {
            Some(suggestion) => write!(f, ". {suggestion}"),
            None => Ok(()),
        }
    }
}
