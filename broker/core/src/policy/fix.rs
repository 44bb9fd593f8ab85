//! A fix: proposed edits of a policy file. The owner of the rule decides whether to apply them.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::source::{Place, Statement};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fix {
    pub what: String,
    /// Edits in the order of the file; they do not overlap.
    pub edits: Vec<Edit>,
}

/// A range of a file, and the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Edit {
    pub start: Place,
    /// The first character after the range.
    pub end: Place,
    pub text: String,
    #[serde(skip)]
    first: usize,
    #[serde(skip)]
    past: usize,
}

impl Fix {
    pub fn replace(
        statement: &Statement,
        range: Range<usize>,
        text: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            edits: vec![edit(statement, range, text.into())],
        }
    }

    /// Creates a fix that replaces a byte range of a file's text.
    #[must_use]
    pub fn replace_range(
        file: &Arc<str>,
        whole: &str,
        range: Range<usize>,
        text: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        let edit = Edit {
            start: Place::at_offset(file, whole, range.start),
            end: Place::at_offset(file, whole, range.end),
            text: text.into(),
            first: range.start,
            past: range.end,
        };
        Self {
            what: what.into(),
            edits: vec![edit],
        }
    }

    /// Creates a fix that removes the whole rule.
    pub fn without_rule(statement: &Statement, what: impl Into<String>) -> Self {
        Self::replace(statement, 0..statement.text().len(), "", what)
    }

    /// Adds a replacement of another range of a rule's text.
    pub(crate) fn and_replace(
        mut self,
        statement: &Statement,
        range: Range<usize>,
        text: impl Into<String>,
    ) -> Self {
        self.edits.push(edit(statement, range, text.into()));
        self.edits.sort_by_key(|edit| edit.first);
        self
    }

    /// Returns the byte offset in the file at which the first edit starts.
    pub fn first_byte(&self) -> usize {
        self.edits.first().map_or(0, |edit| edit.first)
    }

    /// Returns the text of the file with all edits applied.
    #[must_use]
    pub fn apply(&self, text: &str) -> Option<String> {
        let mut changed = String::with_capacity(text.len());
        let mut from = 0;
        for edit in &self.edits {
            changed.push_str(text.get(from..edit.first)?);
            changed.push_str(&edit.text);
            from = edit.past;
        }
        changed.push_str(text.get(from..)?);
        Some(changed)
    }
}

fn edit(statement: &Statement, range: Range<usize>, text: String) -> Edit {
    Edit {
        start: statement.place(range.start),
        end: statement.place(range.end),
        text,
        first: statement.start() + range.start,
        past: statement.start() + range.end,
    }
}
