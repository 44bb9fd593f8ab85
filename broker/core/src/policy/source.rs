//! Policy files as text: where each rule begins, and where in a file something
//! stands. Says nothing about what a rule means.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

/// More than any file that a person reviews.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// What ends a comment in Cedar: either, by itself.
const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// One policy file, read by the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// As it is called in messages, such as `policies/flow.cedar`.
    pub name: String,
    pub text: String,
    /// It may forbid, and permits nothing.
    pub tightens: bool,
}

/// A place in a file; line and column are 1-based, a column is a character.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// Of a byte of a text; one past its end is its end.
    #[must_use]
    pub fn of(file: &Arc<str>, text: &str, offset: usize) -> Self {
        Spot::FIRST.after(text, offset).in_file(file)
    }
}

/// A line and a column, 1-based.
#[derive(Debug, Clone, Copy)]
struct Spot {
    line: u32,
    column: u32,
}

impl Spot {
    const FIRST: Self = Self { line: 1, column: 1 };

    /// Of a byte of the text that begins here; one past its end is its end.
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

/// One rule's text within its file.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    file: Arc<str>,
    whole: Arc<str>,
    start: usize,
    end: usize,
    /// Where it begins.
    spot: Spot,
}

impl Statement {
    pub(super) fn text(&self) -> &str {
        self.whole.get(self.start..self.end).unwrap_or_default()
    }

    /// Where it begins in its file.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The text of that file.
    pub(super) fn whole(&self) -> &str {
        &self.whole
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// The place of a byte of [`Statement::text`].
    pub(super) fn place(&self, offset: usize) -> Place {
        let text = self.whole.get(self.start..).unwrap_or_default();
        self.spot.after(text, offset).in_file(&self.file)
    }

    /// Where a word stands outside of comments, or the beginning.
    pub(super) fn place_of(&self, word: &str) -> Place {
        self.place(self.find(word).unwrap_or_default())
    }

    /// The byte of [`Statement::text`] at which a word stands outside of comments.
    pub(super) fn find(&self, word: &str) -> Option<usize> {
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

/// The rules of a file, each with the semicolon that ends it. What follows the last one
/// is a statement too, unless it is space and comments.
pub(super) fn statements(file: &Arc<str>, whole: &Arc<str>) -> Vec<Statement> {
    one_by_one(file, whole).collect()
}

/// The same, each read when it is wanted.
pub(super) fn one_by_one<'a>(
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

/// Goes over a text in pieces, and knows strings and comments.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

pub(super) enum Mark {
    Comment {
        end: usize,
    },
    Semicolon,
    /// A string, or a character that is neither space nor part of one.
    Text,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Option<(usize, Mark)> {
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

/// With both quotes; to the end of the text when the closing one is missing.
pub(super) fn string_bytes(text: &str) -> usize {
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
    fn a_statement_ends_at_a_semicolon_that_is_no_text_and_no_comment() {
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
    fn a_word_is_found_past_the_comments_that_hold_it() {
        let file: Arc<str> = "a.cedar".into();
        // Quadratic in the comments, this would take minutes.
        let text = format!("permit{}\"// a\"; a", "//a\n".repeat(200_000));
        let statement = &statements(&file, &text.as_str().into())[0];
        let place = statement.place_of("a");
        assert_eq!((place.line, place.column), (200_001, 5));
        assert_eq!(statement.place_of("none").line, 1);
    }

    #[test]
    fn a_place_counts_lines_and_characters() {
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
