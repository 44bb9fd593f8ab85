//! A script as a row of tokens, for what the parser keeps no places of. The parser has read
//! the script, and tells where its regular expressions stand: so no `/` is in doubt.

use std::ops::{ControlFlow, Range};

use boa_ast::Spanned;
use boa_ast::expression::RegExpLiteral;
use boa_ast::visitor::{VisitWith, Visitor};
use rustc_hash::FxHashSet;

use super::spans::Text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a word of the language, a number.
    Word,
    /// A text, a regular expression, a template or what stands of it before and behind `${}`.
    Literal,
    Open,
    Close,
    /// One character of any other.
    Sign,
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
    /// Of a bracket, where in the row the other one is.
    pub(super) partner: usize,
    /// A line ends between the token before and this one.
    pub(super) begins_line: bool,
}

/// The tokens of a script, or `None` when they do not come out even.
pub(super) fn of(text: &Text<'_>, read: &impl VisitWith) -> Option<Vec<Token>> {
    let mut expressions = Expressions {
        text,
        starts: FxHashSet::default(),
    };
    let _ = read.visit_with(&mut expressions);
    let mut row = Row {
        script: text.script,
        bytes: text.script.as_bytes(),
        at: 0,
        expressions: expressions.starts,
        tokens: Vec::new(),
        open: Vec::new(),
        begins_line: false,
    };
    row.read()?;
    row.open.is_empty().then_some(row.tokens)
}

/// Where regular expressions begin.
struct Expressions<'a> {
    text: &'a Text<'a>,
    starts: FxHashSet<usize>,
}

impl<'ast> Visitor<'ast> for Expressions<'_> {
    type BreakTy = ();

    fn visit_reg_exp_literal(&mut self, node: &'ast RegExpLiteral) -> ControlFlow<()> {
        self.starts.extend(self.text.offset(node.span().start()));
        ControlFlow::Continue(())
    }
}

struct Open {
    token: usize,
    is_template: bool,
}

struct Row<'a> {
    script: &'a str,
    bytes: &'a [u8],
    at: usize,
    expressions: FxHashSet<usize>,
    tokens: Vec<Token>,
    open: Vec<Open>,
    begins_line: bool,
}

impl Row<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn read(&mut self) -> Option<()> {
        while self.at < self.bytes.len() {
            let start = self.at;
            match self.peek(0) {
                byte if byte.is_ascii_whitespace() || byte == 0x0b => {
                    self.begins_line |= matches!(byte, b'\n' | b'\r');
                    self.at += 1;
                }
                0x80.. if self.wide_blank().is_some() => {
                    let blank = self.wide_blank()?;
                    self.begins_line |= is_line_end(blank);
                    self.at += blank.len_utf8();
                }
                b'/' if self.peek(1) == b'/' => self.pass_until(is_line_end),
                b'/' if self.peek(1) == b'*' => {
                    let length = self.script.get(start + 2..)?.find("*/")? + 4;
                    self.at += length;
                    self.begins_line |= self.script.get(start..self.at)?.contains(is_line_end);
                }
                b'/' if self.expressions.contains(&start) => {
                    self.regex();
                    self.push(Kind::Literal, start);
                }
                quote @ (b'\'' | b'"') => {
                    self.text(quote);
                    self.push(Kind::Literal, start);
                }
                b'`' => {
                    self.at += 1;
                    self.template_text(start);
                }
                b'(' | b'[' | b'{' => self.opens(false),
                b')' | b']' | b'}' => self.closes()?,
                byte if is_word(byte) => {
                    self.pass_word();
                    self.push(Kind::Word, start);
                }
                _ => {
                    self.at += 1;
                    self.push(Kind::Sign, start);
                }
            }
        }
        Some(())
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token {
            kind,
            range: start..self.at,
            partner: 0,
            begins_line: std::mem::take(&mut self.begins_line),
        });
    }

    fn opens(&mut self, is_template: bool) {
        self.open.push(Open {
            token: self.tokens.len(),
            is_template,
        });
        let start = self.at;
        self.at += if is_template { 2 } else { 1 };
        self.push(Kind::Open, start);
    }

    fn closes(&mut self) -> Option<()> {
        let Open { token, is_template } = self.open.pop()?;
        let here = self.tokens.len();
        self.tokens.get_mut(token)?.partner = here;
        self.at += 1;
        self.push(Kind::Close, self.at - 1);
        self.tokens.last_mut()?.partner = token;
        if is_template {
            self.template_text(self.at);
        }
        Some(())
    }

    /// The text of a template up to its end or its next `${`, and that as well.
    fn template_text(&mut self, start: usize) {
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'\\', _) => self.at += 2,
                (b'`', _) => {
                    self.at += 1;
                    return self.push(Kind::Literal, start);
                }
                (b'$', b'{') => {
                    self.push(Kind::Literal, start);
                    return self.opens(true);
                }
                _ => self.at += 1,
            }
        }
    }

    fn text(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != quote {
            self.at += if self.peek(0) == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }

    fn regex(&mut self) {
        let mut is_in_class = false;
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at += 1,
                b'[' => is_in_class = true,
                b']' => is_in_class = false,
                b'/' if !is_in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        self.pass_word();
    }

    fn pass_word(&mut self) {
        while is_word(self.peek(0)) && self.wide_blank().is_none() {
            self.at += 1;
            while !self.script.is_char_boundary(self.at) {
                self.at += 1;
            }
        }
    }

    fn pass_until(&mut self, is_end: fn(char) -> bool) {
        let rest = self.script.get(self.at..).unwrap_or_default();
        self.at += rest.find(is_end).unwrap_or(rest.len());
    }

    /// White space and line ends beyond ASCII.
    fn wide_blank(&self) -> Option<char> {
        let next = self.script.get(self.at..)?.chars().next()?;
        let is_blank = next.is_whitespace() || next == '\u{feff}';
        (is_blank && !next.is_ascii()).then_some(next)
    }
}

pub(super) fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Whether a byte is of a name or a number; names may hold whatever is beyond ASCII.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | 0x80..)
}
