//! Texts with their positions in configuration files, for messages.

use std::ops::Range;

use airlock_core::problem::Problem;
use codegen::closest::closest;

use super::{choice, invalid};

/// A text with its position, such as `airlock.toml:12`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedText {
    pub(crate) text: String,
    pub(crate) origin: String,
}

/// Returns the problem of an invalid document: the line, the reason, and the known word that is
/// closest to an unknown one.
pub(super) fn unreadable(name: &str, text: &str, error: &toml::de::Error, help: &str) -> Problem {
    // The full error text quotes the file, which may contain secrets, so only the message is used.
    unreadable_at(name, text, error.span(), error.message().to_owned(), help)
}

pub(super) fn unreadable_at(
    name: &str,
    text: &str,
    span: Option<Range<usize>>,
    why: String,
    help: &str,
) -> Problem {
    let start = span.map(|span| span.start);
    let line = start.map(|start| LineIndex::new(text).line(start));
    if let Some(((found, expected), line)) = invalid_value(&why).zip(line) {
        let before = start
            .and_then(|start| text.get(..start))
            .unwrap_or_default();
        let key = before.rsplit('\n').next().unwrap_or_default();
        let key = key.split('=').next().unwrap_or_default();
        let key = key.trim().trim_matches(['"', '\'']);
        let what = format!("invalid value for `{key}` ({name}:{line})");
        let next = choice::one_of(found, &choice::listed(expected));
        return invalid(what, &why, next);
    }
    let line = line.map_or_else(String::new, |line| format!(", line {line}"));
    let next = meant(&why).map_or_else(|| help.to_owned(), |key| format!("did you mean `{key}`?"));
    invalid(format!("{name}{line} is invalid"), why, next)
}

/// Returns the value, and the expected words, in a message of [`choice::parse`].
fn invalid_value(why: &str) -> Option<(&str, &str)> {
    why.strip_prefix("invalid value `")?
        .split_once("`; expected ")
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
