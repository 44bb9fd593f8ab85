//! Regular expressions over names and descriptions, in bounded time and memory.

use regex::{Regex, RegexBuilder};

const PATTERN_BYTES_MAX: usize = 1_000;
/// What a pattern costs at a byte goes with its states.
const COMPILED_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    #[error("the pattern is longer than {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    #[error("the pattern is not a regular expression: {0}")]
    Syntax(String),
    #[error("the pattern needs too much memory; use a simpler one")]
    TooLarge,
    #[error("the pattern takes too long; use a simpler one, or search by words")]
    TooSlow,
}

#[derive(Debug)]
pub(super) struct Pattern(Regex);

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, BadPattern> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(BadPattern::TooLong);
        }
        RegexBuilder::new(text)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map(Self)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => BadPattern::TooLarge,
                other => BadPattern::Syntax(last_line(&other.to_string())),
            })
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// The lines before it draw the place.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or(text).trim().replace("error: ", "")
}
