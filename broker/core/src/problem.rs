//! A message for a person: what happened, why, what to do next, and a stable code.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub what: String,
    pub why: String,
    pub next: String,
    pub code: Cow<'static, str>,
}

impl Problem {
    #[must_use]
    pub fn new(
        code: impl Into<Cow<'static, str>>,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            next: next.into(),
            code: code.into(),
        }
    }
}

/// Writes the plain text form; an empty part is omitted.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for (label, text) in [("  why", &self.why), (" next", &self.next)] {
            if !text.is_empty() {
                write!(f, "\n{label}: {text}")?;
            }
        }
        write!(f, "\n code: {}", self.code)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_displays_what_why_next_and_code() {
        let problem = Problem::new("denied", "the call was denied", "rule x", "use y");
        let expected = "error: the call was denied\n  why: rule x\n next: use y\n code: denied";
        assert_eq!(problem.to_string(), expected);
        let short = Problem {
            why: String::new(),
            ..problem
        };
        assert_eq!(
            short.to_string(),
            "error: the call was denied\n next: use y\n code: denied"
        );
    }
}
