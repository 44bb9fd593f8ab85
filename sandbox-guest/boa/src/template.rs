//! The replacement text of `replace`: `$&`, `$1` and similar patterns stand for parts of the match.

use boa_engine::JsString;
use boa_engine::string::JsStr;

use crate::string_builder::StringBuilder;

/// A parsed replacement text.
pub(crate) struct Template<'a> {
    text: JsStr<'a>,
    parts: Vec<TemplatePart>,
}

enum TemplatePart {
    /// Literal text, from and to.
    Text(usize, usize),
    Found,
    Before,
    After,
    /// `$d` or `$dd`: the position of the pattern and its digits.
    Group {
        start: usize,
        digits: [u16; 2],
        count: usize,
    },
}

impl<'a> Template<'a> {
    pub(crate) fn new(text: &'a JsString) -> Self {
        let text = text.as_str();
        let mut parts = Vec::new();
        let mut from = 0;
        let mut at = 0;
        if text.contains(b'$') {
            while at < text.len() {
                let Some((part, length)) = special(text, at) else {
                    at += 1;
                    continue;
                };
                parts.push(TemplatePart::Text(from, at));
                parts.push(part);
                at += length;
                from = at;
            }
        }
        parts.push(TemplatePart::Text(from, text.len()));
        Self { text, parts }
    }

    /// Whether it contains a named group, `$<name>`.
    pub(crate) fn has_names(&self) -> bool {
        let text = self.text;
        (0..text.len()).any(|at| unit(text, at) == DOLLAR && unit(text, at + 1) == u16::from(b'<'))
    }

    /// Appends the replacement of the match from `found.0` to `found.1`, whose groups are given.
    pub(crate) fn fill(
        &self,
        made: &mut BuiltText<'_>,
        found: (usize, usize),
        groups: &[Option<(usize, usize)>],
    ) {
        let subject = made.text;
        made.keep_until(found.0);
        for part in &self.parts {
            match *part {
                TemplatePart::Text(from, to) => made.push(self.text.get(from..to)),
                TemplatePart::Found => made.push(subject.get(found.0..found.1)),
                TemplatePart::Before => made.push(subject.get(..found.0)),
                TemplatePart::After => made.push(subject.get(found.1..)),
                TemplatePart::Group {
                    start,
                    digits,
                    count,
                } => {
                    let (group, used) = group(digits, count, groups.len());
                    match group.and_then(|group| groups.get(group - 1)) {
                        Some(Some((from, to))) => made.push(subject.get(*from..*to)),
                        Some(None) => {}
                        None => made.push(self.text.get(start..start + 1 + used)),
                    }
                    made.push(self.text.get(start + 1 + used..start + 1 + count));
                }
            }
        }
        made.kept_until = found.1;
    }
}

/// A text that is built from another text by replacing parts.
pub(crate) struct BuiltText<'a> {
    text: JsStr<'a>,
    kept_until: usize,
    made: StringBuilder,
}

impl<'a> BuiltText<'a> {
    pub(crate) fn new(text: JsStr<'a>) -> Self {
        Self {
            text,
            kept_until: 0,
            made: StringBuilder::default(),
        }
    }

    /// Replaces the text from `from` to `to` with `by`.
    pub(crate) fn put(&mut self, from: usize, by: JsStr<'_>, to: usize) {
        self.keep_until(from);
        self.push(Some(by));
        self.kept_until = to;
    }

    fn keep_until(&mut self, place: usize) {
        self.push(self.text.get(self.kept_until..place));
    }

    fn push(&mut self, piece: Option<JsStr<'_>>) {
        if let Some(piece) = piece {
            self.made.push(piece);
        }
    }

    pub(crate) fn finish(mut self) -> JsString {
        self.keep_until(self.text.len());
        self.made.finish()
    }
}

const DOLLAR: u16 = b'$' as u16;

fn unit(text: JsStr<'_>, at: usize) -> u16 {
    text.get(at).unwrap_or_default()
}

fn digit(text: JsStr<'_>, at: usize) -> Option<u16> {
    unit(text, at)
        .checked_sub(u16::from(b'0'))
        .filter(|digit| *digit < 10)
}

/// Returns the pattern at a position, and its length.
fn special(text: JsStr<'_>, at: usize) -> Option<(TemplatePart, usize)> {
    if unit(text, at) != DOLLAR {
        return None;
    }
    let next = unit(text, at + 1);
    if next == DOLLAR {
        return Some((TemplatePart::Text(at, at + 1), 2));
    }
    if next == u16::from(b'&') {
        return Some((TemplatePart::Found, 2));
    }
    if next == u16::from(b'`') {
        return Some((TemplatePart::Before, 2));
    }
    if next == u16::from(b'\'') {
        return Some((TemplatePart::After, 2));
    }
    let first = digit(text, at + 1)?;
    let second = digit(text, at + 2);
    let count = 1 + usize::from(second.is_some());
    let part = TemplatePart::Group {
        start: at,
        digits: [first, second.unwrap_or(0)],
        count,
    };
    Some((part, 1 + count))
}

/// Returns the group that the digits stand for if there are `groups`, and the number of digits
/// used.
fn group(digits: [u16; 2], count: usize, groups: usize) -> (Option<usize>, usize) {
    let [first, second] = digits.map(usize::from);
    let both = first * 10 + second;
    if count == 2 && (1..=groups).contains(&both) {
        return (Some(both), 2);
    }
    (Some(first).filter(|first| (1..=groups).contains(first)), 1)
}
