//! Texts with their positions in configuration files, for messages.

use airlock_core::problem::Problem;
use codegen::closest::closest;

use super::invalid;

/// A text with its position, such as `airlock.toml:12`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedText {
    pub(crate) text: String,
    pub(crate) origin: String,
}

/// Returns the problem of an invalid document: the line, the reason, and the known key that is
/// closest to an unknown one.
pub(super) fn unreadable(name: &str, text: &str, error: &toml::de::Error, help: &str) -> Problem {
    let line = error
        .span()
        .map(|span| format!(", line {}", LineIndex::new(text).line(span.start)))
        .unwrap_or_default();
    // The full error text quotes the file, which may contain secrets, so only the message is used.
    let why = error.message().to_owned();
    let next = meant(&why).map_or_else(|| help.to_owned(), |key| format!("did you mean `{key}`?"));
    invalid(format!("{name}{line} is invalid"), why, next)
}

/// Returns the known key in a message such as "unknown field `x`, expected one of `y`, `z`" that is
/// closest to the unknown key.
fn meant(why: &str) -> Option<&str> {
    let mut quoted = why
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2);
    let found = quoted.next()?;
    closest(found, quoted)
}

/// Finds the lines of offsets in a text, without searching the text for each offset.
pub(super) struct LineIndex(Vec<usize>);

impl LineIndex {
    pub(super) fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// Returns the line of an offset. The first line is 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}
