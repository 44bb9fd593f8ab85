//! Regular expressions over names and descriptions, in bounded time and memory.

use regex::{Regex, RegexBuilder};

const PATTERN_BYTES_MAX: usize = 1_000;
/// Maximum size of a compiled pattern. The cost per byte of text grows with the number of states.
const COMPILED_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSearchPattern {
    #[error("the pattern is longer than {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    #[error("the pattern is not a valid regular expression: {0}")]
    Syntax(String),
    #[error("the pattern needs too much memory; use a simpler one")]
    TooLarge,
    #[error("the pattern takes too long; use a simpler one, or search by words")]
    TooSlow,
}

#[derive(Debug)]
pub(super) struct SearchPattern(Regex);

impl SearchPattern {
    pub(super) fn parse(text: &str) -> Result<Self, BadSearchPattern> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(BadSearchPattern::TooLong);
        }
        RegexBuilder::new(text)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map(Self)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => BadSearchPattern::TooLarge,
                other => BadSearchPattern::Syntax(last_line(&other.to_string())),
            })
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Returns the last line of an error; the lines before it only mark the position.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or(text).trim().replace("error: ", "")
}
