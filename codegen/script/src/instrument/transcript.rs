//! Parses the output of an instrumented script. The lines come from a sandbox, so only lines of the
//! right form are trusted.

use serde::Deserialize;

/// Maximum number of lines that are read.
const LINES_MAX: usize = 4_000;

/// The output of an instrumented script.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    notes: Vec<Note>,
    end: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    End { end: u32 },
    Note(Box<Note>),
}

/// A report of an error that is about to happen, or that passed through this place.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Note {
    note: u32,
    pub(super) place: usize,
    /// The error's name, if the engine created the error.
    pub(super) name: Option<String>,
    pub(super) value: Option<Value>,
    /// The value that `value` was read from.
    pub(super) parent: Option<Value>,
    /// Index of the nested pattern.
    pub(super) path: Option<usize>,
    /// Whether the error came from a built-in function that was called here.
    pub(super) inside: bool,
    /// Whether the error came from an unknown place in a function that was called here.
    pub(super) around: bool,
    pub(super) thrown: bool,
    /// Number of the note about the error that this error repeats or names as its cause.
    pub(super) because: Option<u32>,
    /// Number of steps from `parent` to the object that the value was read from.
    pub(super) up: usize,
    /// The operands of an operator.
    pub(super) operands: Vec<Value>,
    /// Why a member could not be set.
    pub(super) refused: String,
    /// Index of the missing argument.
    pub(super) missing: Option<usize>,
    /// The places of the active calls, innermost first.
    pub(super) stack: Vec<usize>,
}

/// A description of a value, without its content.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Value {
    pub(super) kind: String,
    pub(super) size: u64,
    pub(super) keys: Vec<String>,
    /// Number of members, including those that `keys` does not list.
    pub(super) of: usize,
    /// Names of members that are arrays.
    pub(super) lists: Vec<String>,
    /// Whether a string looks like JSON.
    pub(super) looks: bool,
}

impl Transcript {
    pub(super) fn parse<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut transcript = Self::default();
        for line in lines.take(LINES_MAX) {
            match serde_json::from_str(line) {
                Ok(Line::Note(note)) if note.note > 0 => transcript.notes.push(*note),
                Ok(Line::End { end }) => transcript.end = Some(end),
                _ => {}
            }
        }
        transcript
    }

    pub(super) fn note(&self, number: u32) -> Option<&Note> {
        self.notes.iter().find(|it| it.note == number)
    }

    /// Whether an error ended the script, at a known or unknown place.
    pub(super) fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the note about the error that ended the script. The script's last line has the
    /// number of the note. After an unhandled rejection it has none, and the note is the last one
    /// with the same error name.
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
