//! Policy files as text: where each rule begins, and the line and column of a position. This module
//! does not parse rules.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

/// Maximum size of a policy file; larger files cannot be reviewed.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Characters that end a comment in Cedar, each by itself.
const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// One policy file, read by the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Name of the file in messages, such as `policies/flow.cedar`.
    pub name: String,
    pub text: String,
    /// Whether the file may only forbid.
    pub tightens: bool,
}

/// A place in a file. Line and column are 1-based; a column counts characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// Returns the place of a byte of a text. An offset past the end gives the end.
    #[must_use]
    pub fn at_offset(file: &Arc<str>, text: &str, offset: usize) -> Self {
        Spot::FIRST.after(text, offset).in_file(file)
    }
}

/// A 1-based line and column.
#[derive(Debug, Clone, Copy)]
struct Spot {
    line: u32,
    column: u32,
}

impl Spot {
    const FIRST: Self = Self { line: 1, column: 1 };

    /// Returns the position of a byte of the text that begins here. An offset past the end gives
    /// the end.
    fn after(self, text: &str, offset: usize) -> Self {
        let mut at = offset.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let passed = text.get(..at).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', passed.as_bytes()).count();
        let last = passed.rsplit('\n').next().unwrap_or_default();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let from = if lines == 0 { self.column } else { 1 };
        Self {
            line: self.line.saturating_add(number(lines)),
            column: from.saturating_add(number(last.chars().count())),
        }
    }

    fn in_file(self, file: &Arc<str>) -> Place {
        Place {
            file: Arc::clone(file),
            line: self.line,
            column: self.column,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The text of one rule within its file.
#[derive(Debug, Clone)]
pub struct Statement {
    file: Arc<str>,
    whole: Arc<str>,
    start: usize,
    end: usize,
    /// Position of the rule's first character.
    spot: Spot,
}

impl Statement {
    pub fn text(&self) -> &str {
        self.whole.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the byte offset of the rule in its file.
    pub fn start(&self) -> usize {
        self.start
    }

    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.end
    }

    /// Returns the text of the whole file.
    pub fn whole(&self) -> &str {
        &self.whole
    }

    pub fn end(&self) -> usize {
        self.end
    }

    /// Returns the place of a byte of [`Statement::text`].
    pub fn place(&self, offset: usize) -> Place {
        let text = self.whole.get(self.start..).unwrap_or_default();
        self.spot.after(text, offset).in_file(&self.file)
    }

    /// Returns the place of a word outside of comments, or the start of the rule.
    pub(crate) fn place_of(&self, word: &str) -> Place {
        self.place(self.find(word).unwrap_or_default())
    }

    /// Returns the byte offset in [`Statement::text`] of the first occurrence of a word outside of
    /// comments.
    pub fn find(&self, word: &str) -> Option<usize> {
        let text = self.text();
        let comments = comments(text);
        let is_comment = |at: usize| {
            let before = comments.partition_point(|comment| comment.start <= at);
            let last = before.checked_sub(1).and_then(|last| comments.get(last));
            last.is_some_and(|comment| comment.contains(&at))
        };
        let found = text.match_indices(word).find(|(at, _)| !is_comment(*at));
        found.map(|(at, _)| at)
    }
}

fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut scan = Scan::new(text);
    while let Some((start, mark)) = scan.next() {
        if let Mark::Comment { end } = mark {
            found.push(start..end);
        }
    }
    found
}

/// Splits a file into rules, each with its closing semicolon. Text after the last semicolon is a
/// statement too, unless it is only space and comments.
pub(crate) fn statements(file: &Arc<str>, whole: &Arc<str>) -> Vec<Statement> {
    one_by_one(file, whole).collect()
}

/// Splits a file into rules lazily.
pub fn one_by_one<'a>(
    file: &'a Arc<str>,
    whole: &'a Arc<str>,
) -> impl Iterator<Item = Statement> + 'a {
    let (mut seen, mut spot) = (0, Spot::FIRST);
    let mut statement = move |start: usize, end| {
        spot = spot.after(whole.get(seen..).unwrap_or_default(), start - seen);
        seen = start;
        Statement {
            file: Arc::clone(file),
            whole: Arc::clone(whole),
            start,
            end,
            spot,
        }
    };
    let mut scan = Scan::new(whole);
    std::iter::from_fn(move || {
        let mut start = None;
        while let Some((at, mark)) = scan.next() {
            match mark {
                Mark::Comment { .. } => {}
                Mark::Text => start = start.or(Some(at)),
                Mark::Semicolon => return Some(statement(start.unwrap_or(at), at + 1)),
            }
        }
        start.map(|start| statement(start, whole.len()))
    })
}

/// A scanner that divides a text into strings, comments, semicolons and other characters.
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

pub(crate) enum Mark {
    Comment {
        end: usize,
    },
    Semicolon,
    /// A string, or a single character that is not white space.
    Text,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn next(&mut self) -> Option<(usize, Mark)> {
        loop {
            let at = self.at;
            let rest = self.text.get(at..)?;
            let first = rest.chars().next()?;
            let (long, mark) = if rest.starts_with("//") {
                let long = rest.find(LINE_ENDS).unwrap_or(rest.len());
                (long, Some(Mark::Comment { end: at + long }))
            } else if first == '"' {
                (string_bytes(rest), Some(Mark::Text))
            } else if first == ';' {
                (1, Some(Mark::Semicolon))
            } else {
                let is_space = first.is_whitespace();
                (first.len_utf8(), (!is_space).then_some(Mark::Text))
            };
            self.at = at + long;
            if let Some(mark) = mark {
                return Some((at, mark));
            }
        }
    }
}

/// Returns the length of a string with both quotes, or of the whole text if the closing quote is
/// missing.
pub(crate) fn string_bytes(text: &str) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match (c, escaped) {
            ('"', false) => return at + 1,
            ('\\', false) => escaped = true,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, u32, u32)]) {
        let file: Arc<str> = "a.cedar".into();
        let all = statements(&file, &text.into());
        let found: Vec<_> = all
            .iter()
            .map(|it| (it.text(), it.place(0).line, it.place(0).column))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn statement_ends_at_semicolon_outside_text_and_comment() {
        check(
            "// a; b\n  permit(\";\\\"\" // ;\n);forbid();\n// end;\n",
            &[("permit(\";\\\"\" // ;\n);", 2, 3), ("forbid();", 3, 3)],
        );
        check("permit() // no end", &[("permit() // no end", 1, 1)]);
        check(
            "// a;\rpermit(); // b\r\nforbid();",
            &[("permit();", 1, 7), ("forbid();", 2, 1)],
        );
        check("\"open; ", &[("\"open; ", 1, 1)]);
        check(";", &[(";", 1, 1)]);
        check(" // nothing; here", &[]);
        check("", &[]);
    }

    #[test]
    fn word_is_found_past_comments() {
        let file: Arc<str> = "a.cedar".into();
        // A scan that is quadratic in the number of comments would take minutes here.
        let text = format!("permit{}\"// a\"; a", "//a\n".repeat(200_000));
        let statement = &statements(&file, &text.as_str().into())[0];
        let place = statement.place_of("a");
        assert_eq!((place.line, place.column), (200_001, 5));
        assert_eq!(statement.place_of("none").line, 1);
    }

    #[test]
    fn place_counts_lines_and_characters() {
        let file: Arc<str> = "a.cedar".into();
        let text = "é\n äb;";
        let all = statements(&file, &text.into());
        let place = all[0].place_of("b");
        assert_eq!(
            (place.line, place.column, place.to_string()),
            (2, 3, "a.cedar:2".into())
        );
        assert_eq!(all[0].place(999).line, 2);
    }
}
