//! What a watched script said. It comes out of a sandbox, and is believed as far
//! as it has the right form.

use serde::Deserialize;

/// Lines that are kept.
const LINES_MAX: usize = 4_000;

/// Everything that was heard of a watched script.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    notes: Vec<Note>,
    end: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    End { end: u32 },
    Note(Box<Note>),
}

/// An error that was about to happen, or was seen on its way.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Note {
    note: u32,
    pub(super) place: usize,
    /// The error's name, where the engine made it.
    pub(super) name: Option<String>,
    pub(super) value: Option<Value>,
    /// What the value was read from.
    pub(super) parent: Option<Value>,
    /// Which of the patterns inside a pattern.
    pub(super) path: Option<usize>,
    /// It came from a built-in that was called here.
    pub(super) inside: bool,
    /// It came from somewhere in what was called here.
    pub(super) around: bool,
    pub(super) thrown: bool,
    /// The note of an error whose words are repeated, or that is named as the cause.
    pub(super) because: Option<u32>,
    /// How far above what the value was read from the parent is.
    pub(super) up: usize,
    /// What an operator was given.
    pub(super) operands: Vec<Value>,
    /// Why a member could not be set.
    pub(super) refused: String,
    /// Which argument was missing.
    pub(super) missing: Option<usize>,
    /// The calls that were open, innermost first.
    pub(super) stack: Vec<usize>,
}

/// A value, without what it holds.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Value {
    pub(super) kind: String,
    pub(super) size: u64,
    pub(super) keys: Vec<String>,
    /// How many members there are in all.
    pub(super) of: usize,
    /// Members that are arrays.
    pub(super) lists: Vec<String>,
    /// A text that looks like JSON.
    pub(super) looks: bool,
}

impl Hearing {
    pub(super) fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut hearing = Self::default();
        for line in lines.take(LINES_MAX) {
            match serde_json::from_str(line) {
                Ok(Line::Note(note)) if note.note > 0 => hearing.notes.push(*note),
                Ok(Line::End { end }) => hearing.end = Some(end),
                _ => {}
            }
        }
        hearing
    }

    pub(super) fn note(&self, number: u32) -> Option<&Note> {
        self.notes.iter().find(|it| it.note == number)
    }

    /// Whether an error came out of the script, be it known or not.
    pub(super) fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// What was said of the error that ended the script: the one that its end names. Of a promise
    /// that nobody waited for, the end knows nothing; then it is the last of the same name.
    pub(super) fn of_end(&self, name: &str) -> Option<&Note> {
        match self.end {
            Some(end) => self.note(end),
            None => self
                .notes
                .iter()
                .rev()
                .find(|it| it.thrown || it.name.as_deref() == Some(name)),
        }
    }
}
